"""robots.txt in every state."""

from __future__ import annotations

from tests.site.behaviours import answer, flood, head, raw, redirect, reset, robots, silence
from tests.site.misbehaviour import Misbehaviour, robots_file

_ALL = "User-agent: *\nDisallow: /\n"
_PLAIN = head(200, [("Content-Type", "text/plain"), ("Connection", "close")])
_FREE = "User-agent: *\nDisallow:\n"

ROWS = [
    robots_file("robots-all", "Disallow: / for everybody", robots(_ALL)),
    robots_file("robots-ours", "Disallow: / for us alone", robots("User-agent: LinkCrawl\nDisallow: /\n")),
    robots_file("robots-others", "Disallow: / for another", robots("User-agent: otherbot\nDisallow: /\n")),
    robots_file(
        "robots-own-group", "our own empty group beats *", robots(_ALL + "\nUser-agent: linkcrawl\nDisallow:\n")
    ),
    robots_file(
        "robots-substring",
        "groups named `link` and `crawl`",
        robots("User-agent: link\nUser-agent: crawl\nDisallow: /"),
    ),
    robots_file("robots-longest", "Allow: /doc beats Disallow: /", robots(_ALL + "Allow: /doc\n")),
    robots_file("robots-star", "* in a rule", robots("User-agent: *\nDisallow: /*/secret\n"), "/a/secret"),
    robots_file("robots-dollar", "$ ends a rule", robots("User-agent: *\nDisallow: /*.pdf$\n"), "/a.pdf"),
    robots_file(
        "robots-dollar-query", "$ spares what goes on", robots("User-agent: *\nDisallow: /*.pdf$\n"), "/a.pdf?x=1"
    ),
    robots_file("robots-bom", "a byte order mark", robots("\ufeff" + _ALL)),
    robots_file("robots-cr", "lines that end with CR", robots(_ALL.replace("\n", "\r"))),
    robots_file("robots-html", "a page instead of rules", answer()),
    robots_file("robots-404", "404 whose body says Disallow", robots(_ALL, 404)),
    robots_file("robots-403", "403", robots(_ALL, 403)),
    robots_file("robots-410", "410", robots(_ALL, 410)),
    robots_file("robots-500", "500", answer(500)),
    robots_file("robots-503", "503", answer(503)),
    robots_file("robots-429", "429", answer(429)),
    robots_file("robots-hang", "never answered", silence()),
    robots_file("robots-reset", "reset", reset()),
    robots_file("robots-redirect-loop", "a redirect to itself", redirect("/robots.txt")),
    robots_file("robots-long", "rules, then comments without end", flood(_PLAIN + _ALL.encode(), b"# more\n" * 9362)),
    robots_file(
        "robots-cut", "rules, shorter than Content-Length", raw(head(200, [("Content-Length", "999")]) + _ALL.encode())
    ),
    robots_file("robots-delay", "Crawl-delay: 1", robots("User-agent: *\nCrawl-delay: 1\nDisallow:\n")),
    Misbehaviour(
        name="robots-redirect",
        about="a redirect to another path",
        routes=lambda at: {"/robots.txt": redirect("/rules.txt"), "/rules.txt": robots(_ALL), "/doc": answer()},
    ),
    Misbehaviour(
        name="robots-redirect-host",
        about="a redirect to another host, whose rules count for the first",
        routes=lambda at: {"/robots.txt": redirect(at.other_url("/robots.txt")), "/doc": answer()},
        other=lambda at: {"/robots.txt": robots(_ALL)},
    ),
    Misbehaviour(
        name="robots-target",
        about="a redirect to a page that robots.txt forbids",
        routes=lambda at: {
            "/robots.txt": robots("User-agent: *\nDisallow: /secret\n"),
            "/doc": redirect("/secret"),
            "/secret": answer(),
        },
    ),
    Misbehaviour(
        name="robots-other-host",
        about="a redirect to a host whose robots.txt forbids everything",
        routes=lambda at: {"/robots.txt": robots(_FREE), "/doc": redirect(at.other_url("/to"))},
        other=lambda at: {"/robots.txt": robots(_ALL), "/to": answer()},
    ),
]
