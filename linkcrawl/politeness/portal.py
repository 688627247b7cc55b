"""Whether something on our way answers in the place of hosts, as a captive portal does: one page for all. PURE.

It shows only in answers over plain http: a certificate that is good is the host's own. And only where the same answer
comes from many registered domains at as many addresses, and no other in between: an archive with one home page, a
hosting company and its parking page have few domains, or few addresses, or other hosts answer among them. That raises a
suspicion only. A portal has the same answer for robots.txt, too, so some of the hosts are asked for that. A portal that
works by DNS is noticed by the resolver (network.resolver).
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen

from linkcrawl.check.fields import redirect_target
from linkcrawl.check.outcome import Outcome
from linkcrawl.check.statuses import REDIRECTS
from linkcrawl.urls import Refused, Target, join
from linkcrawl.urls.domains import registered_domain

#: Registered domains, and addresses, that have to give the same answer in a row.
ALIKE = 8
#: "Network Authentication Required": only something on the way says so (RFC 6585, 6).
AUTHENTICATE = 511
#: Links of a run that are remembered.
MOST_LINKS = 500


@frozen(kw_only=True)
class Page:
    """What is alike in answers that one page gives. `text`: for people; `host`: where it redirects to, None for a page
    in place."""

    text: str
    host: str | None = None


@frozen(kw_only=True)
class Run:
    """Answers in a row that are alike. `domains`: registered domains, each with the address that answered and what was
    asked there; `links`: ids of the links that were asked; `since`: Unix seconds, when the first was sent."""

    page: Page | None = None
    domains: Mapping[str, tuple[str, Target]] = field(factory=dict)
    links: frozenset[int | str] = frozenset()
    since: float = 0.0

    @property
    def is_suspect(self) -> bool:
        """True where it is hardly the hosts' own page."""
        return len(self.domains) >= ALIKE and len({ip for ip, _ in self.domains.values()}) >= ALIKE

    def is_neutral(self, target: Target, outcome: Outcome) -> bool:
        """True for an end that says nothing: no answer, one of the host that the run leads to, or one of a host that is
        named by its address, as in laboratories, where all may have one page."""
        return outcome.status is None or target.is_address or (self.page is not None and self.page.host == target.host)


def page_of(target: Target, outcome: Outcome) -> Page | None:
    """The page that an answer may share with others; None where it is the host's own, or nothing is known of it."""
    if target.scheme != "http" or outcome.status is None:
        return None
    if outcome.status == AUTHENTICATE:
        return Page(text="status 511 (Network Authentication Required)")
    location = redirect_target(outcome.headers) if outcome.status in REDIRECTS else ""
    if location:
        return _redirected(target, location)
    size = outcome.headers.get("content-length", "0").strip()
    if outcome.status != 200 or not size.isdecimal() or int(size) == 0:
        return None
    known = [outcome.headers.get(name, "") for name in ("content-type", "etag", "last-modified", "server")]
    return Page(text=f"a page of {int(size)} bytes ({', '.join(value[:60] for value in known if value)})")


def _redirected(target: Target, location: str) -> Page | None:
    """A redirect within a registered domain is the host's own; of others the query may name the URL that was asked."""
    end = join(target.url, location)
    if isinstance(end, Refused) or registered_domain(end.host) == registered_domain(target.host):
        return None
    return Page(text=f"a redirect to {end.url.partition('?')[0][:200]}", host=end.host)


def note_answer(run: Run, target: Target, outcome: Outcome, link: int | str | None) -> Run:
    """The run after the end of a request. `link`: whose check it is of, None for none."""
    if run.is_neutral(target, outcome):
        return run
    page = page_of(target, outcome)
    if page is None:
        return Run()
    if page != run.page:
        run = Run(page=page, since=outcome.sent_at)
    links = run.links if link is None or len(run.links) >= MOST_LINKS else run.links | {link}
    domains = (
        run.domains if run.is_suspect else {**run.domains, registered_domain(target.host): (outcome.ip or "", target)}
    )
    return evolve(run, domains=domains, links=links)
