"""robots.txt by RFC 9309: the contents of google/robotstxt's robots_test.cc as a table, and what our users met."""

from __future__ import annotations

import json
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protego import Protego

from linkcrawl.politeness.robots.pace import RobotsPace, robots_pace_from_row
from linkcrawl.politeness.robots.parser import MAX_BYTES, Robots, read_robots

FOO = "user-agent: FooBot\n"
LATIN_1 = "User-agent: *\nDisallow: /caf\xe9".encode("latin-1")


def case(name: str, robots: str | bytes, yes: str = "", no: str = "", token: str = "FooBot"):
    """One robots.txt, and the paths (blank-separated) that the token may and may not request."""
    body = robots.encode() if isinstance(robots, str) else robots
    return pytest.param(body, token, yes.split(), no.split(), id=name)


GROUPS = (
    "allow: /foo/bar/\n\nuser-agent: FooBot\ndisallow: /\nallow: /x/\nuser-agent: BarBot\ndisallow: /\nallow: /y/\n\n\n"
    "allow: /w/\nuser-agent: BazBot\n\nuser-agent: FooBot\nallow: /z/\ndisallow: /\n"
)
FISH = "/fish /fish.html /fish/salmon.html /fishheads /fishheads/yummy.html /fish.html?id=anything"
NO_FISH = "/bar /Fish.asp /catfish /?id=fish"
GLOBAL = "user-agent: *\nallow: /\nuser-agent: FooBot\ndisallow: /\n"
SPECIFIC = "user-agent: FooBot\nallow: /\nuser-agent: BarBot\ndisallow: /\nuser-agent: BazBot\ndisallow: /\n"
SPACED = "User-Agent: *\nDisallow: /\nUser-Agent: Foo Bar\nAllow: /x/\nDisallow: /\n"

GOOGLE = [
    case("SystemTest empty file", "", yes="/x"),
    case("SystemTest no path", FOO + "disallow: /", no="http://foo.bar"),
    case("LineSyntax_Line", FOO + "disallow: /", no="/x/y"),
    case("LineSyntax_Line unknown fields", "foo: FooBot\nbar: /", yes="/x/y"),
    case("LineSyntax_Line no colon", "user-agent FooBot\ndisallow /", no="/x/y"),
    case("LineSyntax_Groups Foo", GROUPS, yes="/x/b /z/d", no="/y/c /foo/bar/"),
    case("LineSyntax_Groups Bar", GROUPS, yes="/y/c /w/a", no="/z/d /foo/bar/", token="BarBot"),
    case("LineSyntax_Groups Baz", GROUPS, yes="/z/d", no="/foo/bar/", token="BazBot"),
    case("OtherRules Sitemap", "User-agent: FooBot\nSitemap: https://f/s\nUser-agent: *\nDisallow: /", no="/"),
    case("OtherRules Sitemap, everybody", "User-agent: B\nSitemap: https://f/s\nUser-agent: *\nDisallow: /", no="/"),
    case("OtherRules unknown", "User-agent: FooBot\nUnknown-Line: u\nUser-agent: *\nDisallow: /", no="/"),
    case("LineNames upper", "USER-AGENT: FooBot\nALLOW: /x/\nDISALLOW: /", yes="/x/y", no="/a/b"),
    case("LineNames camel", "uSeR-aGeNt: FooBot\nAlLoW: /x/\ndIsAlLoW: /", yes="/x/y", no="/a/b"),
    case("UserAgentValue upper", "User-Agent: FOO BAR\nAllow: /x/\nDisallow: /", "/x/y", "/a/b", token="Foo"),
    case("UserAgentValue lower", "User-Agent: foo bar\nAllow: /x/\nDisallow: /", "/x/y", "/a/b", token="Foo"),
    case("UserAgentValue camel", "User-Agent: FoO bAr\nAllow: /x/\nDisallow: /", "/x/y", "/a/b", token="foo"),
    case("UpToFirstSpace", SPACED, yes="/x/y", token="Foo"),
    case("GlobalGroups own", GLOBAL, no="/x/y"),
    case("GlobalGroups other", GLOBAL, yes="/x/y", token="BarBot"),
    case("GlobalGroups none", SPECIFIC, yes="/x/y", token="QuxBot"),
    case("CaseSensitive same", FOO + "disallow: /x/", no="/x/y"),
    case("CaseSensitive other", FOO + "disallow: /X/", yes="/x/y"),
    case("LongestMatch 1", FOO + "disallow: /x/page.html\nallow: /x/", no="/x/page.html"),
    case("LongestMatch 2", FOO + "allow: /x/page.html\ndisallow: /x/", yes="/x/page.html", no="/x/"),
    case("LongestMatch 3 empty", FOO + "disallow: \nallow: ", yes="/x/page.html"),
    case("LongestMatch 4 equal", FOO + "disallow: /\nallow: /", yes="/x/page.html"),
    case("LongestMatch 5", FOO + "disallow: /x\nallow: /x/", yes="/x/", no="/x"),
    case("LongestMatch 6 equal", FOO + "disallow: /x/page.html\nallow: /x/page.html", yes="/x/page.html"),
    case("LongestMatch 7", FOO + "allow: /page\ndisallow: /*.html", yes="/page", no="/page.html"),
    case("LongestMatch 8", FOO + "allow: /x/page.\ndisallow: /*.html", yes="/x/page.html", no="/x/y.html"),
    case("LongestMatch 9 own", "User-agent: *\nDisallow: /x/\n" + FOO + "Disallow: /y/", yes="/x/page", no="/y/page"),
    case("Encoding query", FOO + "Disallow: /\nAllow: /b?q=t&z=http://f?t&p", yes="/b?q=t&z=http://f?t&p"),
    # Google leaves the escaping of URLs to its callers, so there the raw spelling is denied; here it means the same.
    case("Encoding UTF-8", FOO + "Disallow: /\nAllow: /bar/ツ", yes="/bar/%E3%83%84 /bar/%e3%83%84 /bar/ツ"),
    case("Encoding escaped", FOO + "Disallow: /\nAllow: /bar/%E3%83%84", yes="/bar/%E3%83%84 /bar/ツ"),
    # Google compares %62 and b as different text; by RFC 9309, 2.2.2 unreserved characters are the same escaped.
    case("Encoding unreserved", FOO + "Disallow: /\nAllow: /bar/%62%61%7A", yes="/bar/baz /bar/%62%61%7A"),
    case(
        "SpecialCharacters *",
        FOO + "Disallow: /foo/bar/quz\nAllow: /foo/*/qux",
        yes="/foo/quz /foo//quz /foo/bax/quz",
        no="/foo/bar/quz",
    ),
    case(
        "SpecialCharacters $",
        FOO + "Disallow: /foo/bar$\nAllow: /foo/bar/qux",
        yes="/foo/bar/qux /foo/bar/ /foo/bar/baz",
        no="/foo/bar",
    ),
    case("SpecialCharacters #", FOO + "# Disallow: /\nDisallow: /foo/quz#qux\nAllow: /", yes="/foo/bar", no="/foo/quz"),
    case(
        "IndexHTMLisDirectory",
        "User-Agent: *\nAllow: /slash/index.html\nDisallow: /",
        yes="/slash/ /slash/index.html",
        no="/slash/index.htm /other",
    ),
    # Google cuts lines after 16,664 bytes; here the whole line counts: no URL of a catalogue is that long.
    case("LineTooLong", FOO + "disallow: /x/" + "a" * 20000 + "/qux", yes="/fux /x/" + "a" * 16000),
    case("Documentation /fish", FOO + "disallow: /\nallow: /fish", yes=FISH, no=NO_FISH),
    case("Documentation /fish*", FOO + "disallow: /\nallow: /fish*", yes=FISH, no=NO_FISH),
    case(
        "Documentation /fish/",
        FOO + "disallow: /\nallow: /fish/",
        yes="/fish/ /fish/salmon /fish/?salmon /fish/salmon.html /fish/?id=anything",
        no="/bar /fish /fish.html /Fish/Salmon.html",
    ),
    case(
        "Documentation /*.php",
        FOO + "disallow: /\nallow: /*.php",
        yes="/filename.php /folder/filename.php /folder/filename.php?parameters //folder/any.php.file.html "
        "/filename.php/ /index?f=filename.php/",
        no="/bar /php/ /index?php /windows.PHP",
    ),
    case(
        "Documentation /*.php$",
        FOO + "disallow: /\nallow: /*.php$",
        yes="/filename.php /folder/filename.php",
        no="/bar /filename.php?parameters /filename.php/ /filename.php5 /php/ /filename?php /aaaphpaaa //windows.PHP",
    ),
    case(
        "Documentation /fish*.php",
        FOO + "disallow: /\nallow: /fish*.php",
        yes="/fish.php /fishheads/catfish.php?parameters",
        no="/bar /Fish.PHP",
    ),
    case("Precedence 1", FOO + "allow: /p\ndisallow: /", yes="/page"),
    case("Precedence 2", FOO + "allow: /folder\ndisallow: /folder", yes="/folder/page"),
    case("Precedence 3", FOO + "allow: /page\ndisallow: /*.htm", no="/page.htm"),
    case("Precedence 4", FOO + "allow: /$\ndisallow: /", yes="/", no="/page.html"),
    case("BOM", b"\xef\xbb\xbfUser-Agent: FooBot\nDisallow: /a", yes="/b", no="/a"),
    # Google skips a broken BOM, too; here the first line is garbage, and what follows it is in no group.
    case("BOM broken", b"\xef\x11\xbfUser-Agent: FooBot\nDisallow: /a", yes="/a"),
    case("BOM in the middle", b"User-Agent: FooBot\n\xef\xbb\xbfDisallow: /a\nDisallow: /b", yes="/a", no="/b"),
    case("GetPathParamsQuery", FOO + "disallow: /?a\ndisallow: /a;b", no="http://example.com?a http://e.com/a;b#c"),
    case("GetPathParamsQuery fragment", FOO + "disallow: /a/b$", yes="/a/b?c", no="http://e.com/a/b#fragment"),
]

OURS = [
    case("RFC 5.1 own empty group", FOO + "\nUser-agent: *\nDisallow: /x", no="/x"),
    case("own group says nothing", FOO + "Disallow:\nUser-agent: *\nDisallow: /", yes="/x"),
    case("Crawl-delay within the names", FOO + "Crawl-delay: 5\nUser-agent: b\nDisallow: /x", yes="/y", no="/x"),
    case("Content-Signal within a group", FOO + "Content-Signal: search=yes\nDisallow: /x", yes="/y", no="/x"),
    case("Content-Usage within the names", FOO + "Content-Usage: ai=n\nUser-agent: b\nDisallow: /x", no="/x"),
    case(
        "groups are merged", FOO + "Disallow: /a\nUser-agent: b\nDisallow: /c\n" + FOO + "Disallow: /b", "/c", "/a /b"
    ),
    case("version", "User-agent: FooBot/2.0\nDisallow: /", no="/x"),
    case("asterisk after the token", "User-agent: FooBot*\nDisallow: /", no="/x"),
    case("everybody with a comment", "User-agent: * # all\nDisallow: /", no="/x"),
    case("words that are not our token", "User-agent: bot\nUser-agent: foo\nUser-agent: mozilla\nDisallow: /", "/x"),
    case("longer token", "User-agent: FooBotImages\nDisallow: /", yes="/x"),
    case("wildcard name is nobody", "User-agent: *Bot\nDisallow: /", yes="/x"),
    case("/robots.txt always", "User-agent: *\nDisallow: /", yes="/robots.txt", no="/robots.txt.html /a/robots.txt"),
    case("escaped ?", "User-agent: *\nDisallow: /a%3Fb", yes="/a?b", no="/a%3Fb /a%3fb"),
    case("plain ?", "User-agent: *\nDisallow: /a?b", yes="/a%3Fb", no="/a?b /a?bc"),
    case("escaped /", "User-agent: *\nDisallow: /a%2Fb", yes="/a/b", no="/a%2fb"),
    case("escaped &", "User-agent: *\nDisallow: /?a%26b", yes="/?a&b", no="/?a%26b"),
    case("escaped =", "User-agent: *\nDisallow: /?a%3Db", yes="/?a=b", no="/?a%3Db"),
    case("escaped #", "User-agent: *\nDisallow: /a%23b", yes="/a", no="/a%23b"),
    case("RFC table, query", "User-agent: *\nDisallow: /q?u=https://f", no="/q?u=https://f /q?u=https%3A%2F%2Ff"),
    case("RFC table, query escaped", "User-agent: *\nDisallow: /q?u=https%3A%2F%2Ff", no="/q?u=https://f"),
    case("escaped *", "User-agent: *\nDisallow: /f-%2A.html", yes="/f-abc.html", no="/f-*.html /f-%2A.html"),
    case("escaped $", "User-agent: *\nDisallow: /a%24", yes="/a", no="/a$ /a%24b"),
    case("$ within", "User-agent: *\nDisallow: /a$b", yes="/a", no="/a$b /a%24bc"),
    case("closing $ is not a dollar", "User-agent: *\nDisallow: /\nAllow: /$", yes="/", no="/$secret /%24"),
    case("PDF", "User-agent: *\nDisallow: /*.pdf$", yes="/a.pdf?x=1 /a.pdfx", no="/a.pdf /b/c.pdf"),
    case("tilde", "User-agent: *\nDisallow: /%7Ejoe", no="/~joe /%7Ejoe /%7ejoe/x"),
    case("tilde, plain", "User-agent: *\nDisallow: /~joe", no="/~joe /%7Ejoe"),
    case("blanks in a path", "User-agent: *\nDisallow: /a b", yes="/a", no="/a%20b"),
    case("per cent sign", "User-agent: *\nDisallow: /100%-x", yes="/100", no="/100%-x /100%25-x"),
    case("doubly escaped", "User-agent: *\nDisallow: /a%253F", yes="/a%3F /a?", no="/a%253F"),
    case("Latin-1 file", LATIN_1, yes="/cafe /caf%E8", no="/caf%E9 /caf%C3%A9/x"),
    case(
        "VT, NEL, LS in a value",
        "User-agent: *\nDisallow: /a\x0bDisallow: /b\x85Disallow: /c\u2028Disallow: /d",
        "/b /c /d",
    ),
    case("VT in Request-rate", "User-agent: *\nRequest-rate: 1/1\x0bDisallow: /", yes="/x"),
    case("NUL", b"User-agent: *\0\nDisallow: /a\0\nDisallow: /b", yes="/c", no="/a /b"),
    case("UTF-16", "User-agent: *\nDisallow: /a".encode("utf-16"), yes="/b", no="/a"),
    case("HTML", "<!DOCTYPE html>\n<p>User-agent: *<br>\nDisallow: / is what others write\n", yes="/ /x"),
    case("colon in a rule without one", "User-agent *\nDisallow /a:b", yes="/a", no="/a:b"),
    case("misspelled", "User agent: *\nDissallow: /a", yes="/b", no="/a"),
    case("binary", bytes(range(256)) * 50, yes="/x"),
    case("no slash", "User-agent: *\nDisallow: private", yes="/private"),
    case("absolute URL in a rule", "User-agent: *\nDisallow: http://foo.bar/x", yes="/x"),
    case("rules before any name", "Disallow: /\nUser-agent: *\nDisallow: /x", yes="/y", no="/x"),
    case("nobody named", "User-agent:\nDisallow: /", yes="/x"),
]


@pytest.mark.parametrize(("body", "token", "yes", "no"), GOOGLE + OURS)
def test_verdicts(body: bytes, token: str, yes: list[str], no: list[str]) -> None:
    robots = read_robots(body, token)
    assert [path for path in yes if not robots.allowed(path)] == []
    assert [path for path in no if robots.allowed(path)] == []


@pytest.mark.parametrize(("body", "token", "yes", "no"), GOOGLE + OURS)
def test_what_is_kept_says_the_same(body: bytes, token: str, yes: list[str], no: list[str]) -> None:
    """The rules' text is all that a store keeps of a robots.txt."""
    robots = Robots(read_robots(body, token).rules)
    assert [path for path in yes if not robots.allowed(path)] == []
    assert [path for path in no if robots.allowed(path)] == []


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(end: str) -> None:
    lines = ["User-agent: other", "Disallow: /", "", "User-agent: FooBot", "Disallow: /a", "", "Disallow: /b"]
    robots = read_robots(end.join(lines).encode(), "FooBot")
    assert [robots.allowed(path) for path in ("/a", "/b", "/c")] == [False, False, True]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_only_the_first_500_kib_count_cut_at_a_line_end(end: bytes) -> None:
    head = b"User-agent: *" + end + b"Disallow: /first" + end
    filler = b"#" + b"x" * 98 + end
    body = head + filler * (MAX_BYTES // len(filler) - 1)
    body += b"#" * (MAX_BYTES - len(body) - len(end) - 12) + end + b"Disallow: /cut/within" + end + b"Disallow: /late"
    robots = read_robots(body * 2, "FooBot")
    assert [robots.allowed(path) for path in ("/first", "/cut", "/cut/within", "/late")] == [False, True, True, True]


@pytest.mark.parametrize(
    ("lines", "seconds"),
    [
        (["10"], 10.0),
        (["2.5"], 2.5),
        ([".5"], 0.5),
        (["3600"], 3600.0),
        (["0"], 0.0),
        (["3", "10", "5"], 10.0),
        (["-3", "nan", "inf", "5s", "", "1e999", "9" * 400, "+4", "٣", "1_0", "5 seconds"], None),
        (["5s", "4"], 4.0),
    ],
)
def test_crawl_delay_is_the_largest_usable(lines: list[str], seconds: float | None) -> None:
    body = "User-agent: *\n" + "".join(f"Crawl-delay: {line}\n" for line in lines)
    assert read_robots(body.encode(), "FooBot").pace.crawl_delay == seconds


def test_unusable_lines_are_told() -> None:
    body = b"User-agent: *\nCrawl-delay: 5s\nCrawl-delay: 3\nRequest-rate: often\nVisit-time: noon\n"
    assert read_robots(body, "FooBot").ignored == ("crawl-delay: 5s", "request-rate: often", "visit-time: noon")


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        ("User-agent: FooBot\nCrawl-delay: 5\nUser-agent: *\nCrawl-delay: 9", 5.0),
        ("User-agent: FooBot\nDisallow: /x\nUser-agent: *\nCrawl-delay: 9", None),  # the group is not ours
        ("User-agent: slurp\nCrawl-delay: 60\n\nUser-agent: *\nDisallow: /x", None),  # meant for slurp alone
        (
            "User-agent: FooBot\nDisallow: /\nCrawl-delay: 2\nUser-agent: b\nCrawl-delay: 7\n" + FOO + "Crawl-delay: 4",
            4.0,
        ),
    ],
)
def test_whose_crawl_delay(body: str, seconds: float | None) -> None:
    assert read_robots(body.encode(), "FooBot").pace.crawl_delay == seconds


DAY = 20_000 * 86400.0  # midnight UTC


def at(hours: float) -> float:
    return DAY + hours * 3600


@pytest.mark.parametrize(
    ("lines", "hour", "delay"),
    [
        (["1/10m 1300-1659"], 14, 600.0),
        (["1/10m 1300-1659"], 12.9, None),
        (["1/10m 1300-1659"], 17, None),
        (["1/5"], 3, 5.0),
        (["2/5s"], 3, 2.5),
        (["1/1h 2200-0400"], 23, 3600.0),
        (["1/1h 2200-0400"], 3.9, 3600.0),
        (["1/1h 2200-0400"], 5, None),
        (["1/5", "1/20", "1/10"], 3, 20.0),
        (["0/5", "1/0", "-1/5", "1", "x/y", "1/5x", "1/5 25-99"], 3, None),
        (["1/" + "9" * 4000], 3, 1e9),
    ],
)
def test_request_rate(lines: list[str], hour: float, delay: float | None) -> None:
    body = "User-agent: *\n" + "".join(f"Request-rate: {line}\n" for line in lines)
    assert read_robots(body.encode(), "FooBot").pace.request_delay(at(hour)) == delay


@pytest.mark.parametrize(
    ("lines", "hour", "opens"),
    [
        (["0200-0600"], 3, 3),
        (["0200-0600"], 1, 2),
        (["0200-0600"], 6, 26),
        (["0200 0600"], 7, 26),
        (["2200-0400"], 23, 23),
        (["2200-0400"], 2, 2),
        (["2200-0400"], 12, 22),
        (["0000-0000"], 12, 12),
        (["0200-0600", "1200-1300"], 7, 12),
        (["whenever"], 12, 12),
        ([], 12, 12),
    ],
)
def test_visit_time(lines: list[str], hour: float, opens: float) -> None:
    body = "User-agent: *\n" + "".join(f"Visit-time: {line}\n" for line in lines)
    assert read_robots(body.encode(), "FooBot").pace.open_at(at(hour)) == pytest.approx(at(opens), abs=1e-3)


@pytest.mark.parametrize(
    "body",
    [
        "User-agent: *\n" + "".join(f"Disallow: /*{n}*a*b*c$\n" for n in range(20_000)),
        "User-agent: *\nDisallow: /" + "*a" * 200_000 + "$",
        "User-agent: *\n" + "Request-rate: 1/5\n" * 20_000,
        "User-agent: *\n" * 30_000 + "Disallow: /x",
    ],
    ids=["many wildcards", "one of many wildcards", "many rates", "many names"],
)
def test_hostile_files_are_answered_soon(body: str) -> None:
    """CVE-2026-55520. Processor seconds, with a wide margin: what is bad here takes hours."""
    start = time.process_time()
    robots = read_robots(body.encode(), "FooBot")
    for _ in range(3):
        robots.allowed("/" + "abc" * 600)
        robots.pace.request_delay(0)
    assert time.process_time() - start < 10


@given(st.binary(max_size=300))
def test_any_bytes_are_read(body: bytes) -> None:
    robots = read_robots(b"User-agent: *\n" + body, "FooBot")
    assert Robots(robots.rules).allowed("/a/b?c=d") == robots.allowed("/a/b?c=d")
    assert robots.pace.open_at(DAY) >= DAY


@given(st.text(max_size=60), st.text(max_size=60))
def test_any_url_is_judged(rule: str, url: str) -> None:
    body = f"User-agent: *\nDisallow: /{rule}".encode("utf-8", "surrogatepass")
    assert read_robots(body, "FooBot").allowed(url) in (True, False)


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126, exclude_characters="#*$?"), max_size=40))
def test_a_path_matches_itself_and_its_extensions(path: str) -> None:
    robots = read_robots(f"User-agent: *\nDisallow: /{path}x".encode(), "FooBot")
    assert not robots.allowed(f"/{path}x")
    assert not robots.allowed(f"http://example.org/{path}x/more?q=1")


# Of these Protego makes nothing else: neither escapes, nor what it takes a rule's length to be, come into it.
_PLAIN = st.text(st.sampled_from("ab/*"), max_size=8)


@given(
    st.lists(st.tuples(st.booleans(), _PLAIN, st.booleans()), max_size=8), st.text(st.sampled_from("ab/"), max_size=10)
)
def test_rules_match_as_protego_has_them(rules: list[tuple[bool, str, bool]], path: str) -> None:
    lines = [f"{'Allow' if allows else 'Disallow'}: /{text}{'$' * anchored}" for allows, text, anchored in rules]
    body = "User-agent: *\n" + "\n".join(lines)
    expected = Protego.parse(body).can_fetch(f"http://host/{path}", "*")
    assert read_robots(body.encode(), "FooBot").allowed(f"/{path}") == expected, lines


@pytest.mark.parametrize(
    ("lines", "yes", "no"),
    [
        ("Disallow: /a/\nAllow: /a/index.html", "/a/", "/a/b"),
        ("Disallow: /a/\nAllow: /a/index.html", "/a/index.html", "/a/index.htm"),
        ("Disallow: http://a.example/", "/", "/http://a.example/x"),
        ("Disallow: /*.pdf$\nAllow: /free/*.pdf", "/free/x.pdf", "/x.pdf"),
        ("Disallow: /a*b*a$", "/ab", "/abba"),
        ("Disallow: /a*a$", "/a", "/aa"),
    ],
)
def test_how_rules_match(lines: str, yes: str, no: str) -> None:
    robots = read_robots(f"User-agent: *\n{lines}".encode(), "FooBot")
    assert (robots.allowed(yes), robots.allowed(no)) == (True, False)


@given(
    st.lists(
        st.sampled_from(
            ["Crawl-delay: 5", "Crawl-delay: 0.5", "Request-rate: 1/10", "Request-rate: 3/1h 2200-0400",
             "Visit-time: 0200-0600", "Visit-time: 1200-1300", "Disallow: /x", "Crawl-delay: soon"]
        )
    ),
    st.floats(0, 48),
)  # fmt: skip
def test_pace_is_kept_apart_from_the_rules(lines: list[str], hour: float) -> None:
    """What is kept of it for a host says the same as the file."""
    robots = read_robots("\n".join(["User-agent: *", *lines]).encode(), "FooBot")
    kept = robots_pace_from_row(json.loads(json.dumps(robots.pace.to_row())))
    assert kept == robots.pace
    assert kept.request_delay(at(hour)) == robots.pace.request_delay(at(hour))
    assert (kept != RobotsPace()) == any(line not in ("Disallow: /x", "Crawl-delay: soon") for line in lines)


def test_what_is_held_of_a_robots_txt_is_its_text() -> None:
    """Verdicts leave nothing in memory besides: a crawl may hold those of a hundred thousand hosts."""
    body = ("User-agent: *\n" + "".join(f"Disallow: /{number:05}*x\n" for number in range(20_000))).encode()
    robots = read_robots(body, "FooBot")
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    robots.allowed("/00000x")
    assert robots.pace == RobotsPace()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert after - before < 10_000
