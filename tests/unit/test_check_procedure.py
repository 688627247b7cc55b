"""What users of link checkers reported, as checks played through: the requests that are made, and the finding."""

from __future__ import annotations

from itertools import pairwise

import pytest
from check_kit import HOST, START, Case, answer, failed, place, play
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.check.procedure import BARS, Bar, Done, Next, Rules, answered, barred, begin
from linkcrawl.items import Category

OK = {"category": "Ok", "reason": "ok", "error": None, "timeout": False}
ALIVE = OK | {"status": 200}
ON_GET = ALIVE | {"method": "GET", "redirects": 0}
OPEN = {"category": "Undetermined"}
BROKEN = {"category": "Broken"}
WALLED = {"category": "Restricted_Access"}
SILENT = {"status": None, "mime": None, "content_length": None}

RESET, EMPTY = failed(Failure.RESET), failed(Failure.EMPTY_REPLY)
LATE = failed(Failure.TIMEOUT_ANSWER, "timed out after 30 s waiting for the answer of a.example:80")
GOOD = answer(200, content_type="text/html")


def both(case: str, outcome: Outcome, want: dict[str, object]) -> Case:
    """HEAD and GET come to the same."""
    return Case(case, [("HEAD /doc", outcome), ("GET /doc", outcome)], {"method": "GET"} | want)


def once(case: str, outcome: Outcome, want: dict[str, object]) -> Case:
    """HEAD alone decides."""
    return Case(case, [("HEAD /doc", outcome)], {"method": "HEAD", "redirects": 0} | want)


def lied(case: str, *outcomes: Outcome) -> Case:
    """HEAD fails so, GET is fine."""
    return Case(case, [*(("HEAD /doc", outcome) for outcome in outcomes), ("GET /doc", GOOD)], ON_GET)


HEAD_VERSUS_GET = [
    *(lied(f"H01-H07 H13 HEAD {code}", answer(code)) for code in (400, 401, 403, 404, 405, 406, 410, 418, 451)),
    *(lied(f"H04 H06 H07 HEAD {code}", answer(code)) for code in (500, 501, 502, 503, 504, 520, 599)),
    lied("H13 a status of nobody's", answer(700)),
    lied("H08 reset", RESET, RESET),
    lied("H08 closed without a byte", EMPTY, EMPTY),
    lied("H08 reset, then closed", RESET, EMPTY),
    lied("H10 HEAD times out", LATE),
    lied("N11 HEAD answers garbage", failed(Failure.PROTOCOL)),
    lied("D11 HEAD redirects nowhere", answer(302)),
    lied("H09 HEAD redirects to itself", answer(302, "/doc")),
    Case(
        "H09 HEAD redirects for ever, always elsewhere",
        [
            ("HEAD /doc", answer(302, "/1")),
            ("HEAD /1", answer(302, "/2")),
            ("HEAD /2", answer(302, "/3")),
            ("GET /doc", GOOD),
        ],
        ON_GET,
        max_redirects=2,
    ),
    once("H11 HEAD without a type", answer(200), ALIVE | {"mime": None}),
    once("H11 HEAD with another type", answer(200, content_type="text/plain"), ALIVE | {"mime": "text/plain"}),
    Case(
        "H14 303 keeps HEAD",
        [("HEAD /doc", answer(303, "/to")), ("HEAD /to", GOOD)],
        ALIVE | {"method": "HEAD", "redirects": 1},
    ),
    Case(
        "H14 GET stays GET, and its chain is counted alone",
        [
            ("HEAD /doc", answer(301, "/to")),
            ("HEAD /to", answer(405)),
            ("GET /doc", answer(301, "/to")),
            ("GET /to", GOOD),
        ],
        ALIVE | {"method": "GET", "redirects": 1, "duration_ms": 40, "final_url": f"{HOST}/to"},
    ),
    Case("H01 a host whose HEAD lies is asked by GET at once", [("GET /doc", GOOD)], ON_GET, method="GET"),
    Case("H15 a GET's length is a fact, not a download", [("GET /doc", answer(200, content_length="5000000000"))],
         ALIVE | {"content_length": 5_000_000_000}, method="GET"),
    Case("the last chain decides: HEAD 404, GET late", [("HEAD /doc", answer(404)), ("GET /doc", LATE)],
         OPEN | SILENT | {"reason": "timeout", "method": "GET", "timeout": True}),
]  # fmt: skip

WALLS = [
    *(
        once(f"B01 B02 cf-mitigated {code}", answer(code, cf_mitigated="challenge"),
             OPEN | {"reason": "bot_challenge", "status": code})
        for code in (200, 202, 302, 401, 403, 429, 503)
    ),
    once("B01 a challenge that redirects is not followed", answer(302, "/verify", cf_mitigated="challenge"),
         OPEN | {"reason": "bot_challenge", "status": 302}),
    once("B15 AWS challenge", answer(202, x_amzn_waf_action="challenge"), OPEN | {"reason": "bot_challenge"}),
    once("B01 AWS captcha", answer(405, x_amzn_waf_action="captcha"), OPEN | {"reason": "bot_challenge"}),
    both("B02 503 interstitial", answer(503, server="cloudflare"), OPEN | {"reason": "http_503", "status": 503}),
    once("B03 999", answer(999), OPEN | {"reason": "bot_challenge", "status": 999}),
    *(both(f"B03 {code}", answer(code), OPEN | {"reason": f"http_{code}"}) for code in (600, 777, 998)),
    both("B04 418", answer(418), OPEN | {"reason": "http_418"}),
    both("B01 B13 403", answer(403, cf_ray="1"), WALLED | {"reason": "http_403", "status": 403}),
    both("B10 406", answer(406), OPEN | {"reason": "http_406"}),
    once("B15 202", answer(202), OK | {"status": 202}),
    lied("B01 HEAD 403 with cf-ray alone", answer(403, cf_ray="1")),
]  # fmt: skip

LIMITS = [
    *(once(f"R02 {code}", answer(code), OPEN | {"reason": "rate_limited"}) for code in (429, 420, 430, 509, 529)),
    *(
        once(f"R01 R04 R06 429, Retry-After {after}", answer(429, retry_after=after), OPEN | {"reason": "rate_limited"})
        for after in ("120", "1m30s", "86400", "soon")
    ),
    once("R09 503 with Retry-After", answer(503, retry_after="60"), OPEN | {"reason": "rate_limited"}),
    both("R09 503 with a blank Retry-After", answer(503, retry_after=" "), OPEN | {"reason": "http_503"}),
    lied("R09 503, then 200", answer(503)),
    Case("R02 GET is limited after HEAD 404", [("HEAD /doc", answer(404)), ("GET /doc", answer(429))],
         OPEN | {"reason": "rate_limited", "method": "GET"}),
]  # fmt: skip


def hops(count: int, status: int = 302) -> list[tuple[str, Outcome]]:
    """HEAD /doc redirects to /1, /1 to /2, …"""
    names = ["/doc", *(f"/{number}" for number in range(1, count + 1))]
    return [(f"HEAD {name}", answer(status, after)) for name, after in pairwise(names)]


def nowhere(case: str, outcome: Outcome, **want: object) -> Case:
    return both(case, outcome, BROKEN | {"reason": "redirect_nowhere", "redirects": 0, "status": 302} | want)


def stops(case: str, location: str, reason: str) -> Case:
    return once(case, answer(302, location), {"category": "Invalid_URL", "reason": reason, "status": 302,
                                              "final_url": f"{HOST}/doc"})  # fmt: skip


def resolves(case: str, location: str, asked: str, start: str = "/doc") -> Case:
    steps = [(f"HEAD {start}", answer(302, location)), (f"HEAD {asked}", GOOD)]
    return Case(case, steps, ALIVE | {"redirects": 1}, url=HOST + start)


REDIRECTS = [
    both("D02 to itself", answer(302, "/doc"), BROKEN | {"reason": "redirect_loop", "redirects": 0, "status": 302}),
    both("D02 to itself, by fragment", answer(302, "#top"), BROKEN | {"reason": "redirect_loop"}),
    Case(
        "D02 two in a circle",
        [
            (f"{method} {path}", answer(302, to))
            for method in ("HEAD", "GET")
            for path, to in (("/doc", "/b"), ("/b", "/doc"))
        ],
        BROKEN | {"reason": "redirect_loop", "redirects": 1, "final_url": f"{HOST}/b", "method": "GET"},
    ),
    Case("D03 as many as allowed", [*hops(10), ("HEAD /10", GOOD)], ALIVE | {"redirects": 10, "duration_ms": 220}),
    Case("D03 a larger limit", [*hops(15), ("HEAD /15", GOOD)], ALIVE | {"redirects": 15}, max_redirects=15),
    Case(
        "D03 one too many",
        [*hops(11), *((step.replace("HEAD", "GET"), outcome) for step, outcome in hops(11))],
        OPEN | {"reason": "too_many_redirects", "redirects": 10, "status": 302, "final_url": f"{HOST}/10"},
    ),
    Case("D03 none allowed", [("HEAD /doc", answer(301, "/to")), ("GET /doc", answer(301, "/to"))],
         OPEN | {"reason": "too_many_redirects", "redirects": 0}, max_redirects=0),
    Case(
        "D04 301 that ends in 404",
        [("HEAD /doc", answer(301, "/gone")), ("HEAD /gone", answer(404)),
         ("GET /doc", answer(301, "/gone")), ("GET /gone", answer(404))],
        BROKEN | {"reason": "http_404", "status": 404, "redirects": 1, "final_url": f"{HOST}/gone"},
    ),
    *(
        Case(f"D05 D09 D10 {code}", [("HEAD /doc", answer(code, "/to")), ("HEAD /to", GOOD)], ALIVE | {"redirects": 1})
        for code in (300, 301, 302, 303, 307, 308)
    ),
    Case("D10 a paywall at the end", [("HEAD /doc", answer(303, "/pay")), ("HEAD /pay", answer(402)),
                                      ("GET /doc", answer(303, "/pay")), ("GET /pay", answer(402))],
         WALLED | {"reason": "http_402", "redirects": 1}),
    *(nowhere(f"D11 {code} without Location", answer(code), status=code) for code in (301, 302, 303, 307, 308)),
    nowhere("D12 empty Location", answer(302, "")),
    nowhere("D12 blank Location", answer(302, "  ")),
    nowhere("U08 U14 Location that is no URL", answer(302, "http://a..b/")),
    both("D11 305 is not followed", answer(305, "/to"), OPEN | {"reason": "http_305"}),
    both("D11 306 is not followed", answer(306, "/to"), OPEN | {"reason": "http_306"}),
    both("D11 300 without Location", answer(300), OPEN | {"reason": "http_300"}),
    once("304 is a success", answer(304, "/to"), OK | {"status": 304}),
    resolves("D15 escapes stay", "/a%2Fb%23c%3Fd", "/a%2Fb%23c%3Fd"),
    resolves("D16 relative", "to/there", "/x/to/there", start="/x/from"),
    resolves("D16 //host", "//b.example/to", "http://b.example/to"),
    resolves("D16 ?query", "?x=1", "/x/from?x=1", start="/x/from"),
    resolves("D16 .. and spaces around", " ../to ", "/to", start="/x/from"),
    resolves("U06 N25 Latin-1 and UTF-8", "/é", "/%C3%A9"),
    resolves("sent twice, meant once", "/to, /to", "/to"),
    resolves("D34 another host", "http://a.example.org/", "http://a.example.org/"),
    resolves("D31 http to https", "https://a.example/doc", "https://a.example/doc"),
    resolves("D30 case only", "/Doc", "/Doc"),
    resolves("D27 SICI", "/10.1002/(SICI)1<1:A>3.0.CO;2-1", "/10.1002/(SICI)1%3C1:A%3E3.0.CO;2-1"),
    Case("D33 against the URL before, not the first",
         [("HEAD /doc", answer(302, "/x/")), ("HEAD /x/", answer(302, "y")), ("HEAD /x/y", GOOD)], ALIVE),
    *(stops(f"D17 {to}", to, "unsupported_scheme") for to in ("ftp://a.example/x", "mailto:a@b.example", "file:///etc",
                                                               "javascript:alert(1)", "data:text/html,x")),
    stops("D17 a bad port", "http://a.example:25/", "forbidden_port"),
    Case("D19 a private address", [("HEAD /doc", answer(302, "http://b.example/")),
                                   ("HEAD http://b.example/", failed(Failure.FORBIDDEN_ADDRESS))],
         SILENT | {"category": "Invalid_URL", "reason": "forbidden_address", "final_url": "http://b.example/"}),
    Case("D26 the resolver is fine, the publisher refuses",
         [(f"{method} {step}", outcome) for method in ("HEAD", "GET") for step, outcome in
          ((("/doc"), answer(302, "http://b.example/x")), ("http://b.example/x", answer(403)))],
         WALLED | {"status": 403, "final_url": "http://b.example/x"}),
]  # fmt: skip

COOKIES = [
    Case("D02 a loop that wants its cookie back",
         [("HEAD /doc", answer(302, "/doc", cookies=["seen=1"])), ("HEAD /doc [seen=1]", GOOD)],
         ALIVE | {"redirects": 1}),
    Case("D02 by way of a cookie page",
         [("HEAD /doc", answer(302, "/check", cookies=["s=1; Path=/"])), ("HEAD /check [s=1]", answer(302, "/doc")),
          ("HEAD /doc [s=1]", GOOD)], ALIVE | {"redirects": 2}),
    Case("D02 the cookie doesn't help",
         [(f"{method} /doc{cookie}", answer(302, "/doc", cookies=["seen=1"]))
          for method in ("HEAD", "GET") for cookie in ("", " [seen=1]")],
         BROKEN | {"reason": "redirect_loop", "redirects": 1}),
    Case("D02 always another cookie is a loop too",
         [(f"{method} /doc" + (f" [n={n}]" if n else ""), answer(302, "/doc", cookies=[f"n={n + 1}"]))
          for method in ("HEAD", "GET") for n in range(3)],
         BROKEN | {"reason": "redirect_loop", "redirects": 2}, max_redirects=2),
    Case("D29 no cookie for another host",
         [("HEAD /doc", answer(302, "http://b.example/", cookies=["s=1; Domain=example"])),
          ("HEAD http://b.example/", answer(302, "http://a.example/doc", cookies=["t=2"])),
          ("HEAD /doc [s=1]", GOOD)], ALIVE | {"redirects": 2}),
    Case("a second chain starts without the first one's cookies",
         [("HEAD /doc", answer(302, "/b", cookies=["s=1"])), ("HEAD /b [s=1]", answer(405)), ("GET /doc", GOOD)],
         ON_GET),
]  # fmt: skip

URLS = [
    *(Case(f"U08 U14 {url[:20]}", [], {"category": "Invalid_URL", "reason": "invalid_url", "final_url": None,
                                       "method": None, "at": None} | SILENT, url=url)
      for url in ("http://", "http://a..b/", f"http://{'a' * 64}.example/", "http://[::1", "http://a.b:99999/", "")),
    Case("X13 mailto:", [], {"category": "Invalid_URL", "reason": "unsupported_scheme"}, url="mailto:a@b.example"),
    Case("bad port", [], {"category": "Invalid_URL", "reason": "forbidden_port"}, url="http://a.example:6667/"),
    *(Case(f"U01-U15 {sent}", [(f"HEAD {sent}", GOOD)], ALIVE | {"final_url": HOST + sent}, url=HOST + sent)
      for sent in ("/%28a%29", "/a%2Fb%2Bc%23", "/a,b|c[d]", "/?q=a&q=b", "/" + "x" * 3000)),
    Case("H17 a fragment is not sent", [("HEAD /doc", GOOD)], ALIVE | {"final_url": f"{HOST}/doc"},
         url=f"{HOST}/doc#part"),
]  # fmt: skip


def dead(case: str, failure: Failure, reason: str, category: str) -> Case:
    """No answer, for a cause that comes before any method."""
    facts = {"final_url": f"{HOST}/doc", "error": "it failed at a.example:80", "timeout": failure.is_timeout}
    return once(case, failed(failure), SILENT | facts | {"category": category, "reason": reason})


NETWORK = [
    dead("N01 NXDOMAIN", Failure.DNS_NOT_FOUND, "dns_not_found", "Broken"),
    dead("N02 N03 SERVFAIL", Failure.DNS_TROUBLE, "dns_trouble", "Undetermined"),
    dead("refused", Failure.REFUSED, "connection_refused", "Broken"),
    dead("N04 N05 no route", Failure.UNREACHABLE, "host_unreachable", "Undetermined"),
    dead("N20 connecting", Failure.TIMEOUT_CONNECT, "timeout", "Undetermined"),
    dead("N20 TLS handshake", Failure.TIMEOUT_TLS, "timeout", "Undetermined"),
    dead("too large a head", Failure.TOO_LARGE, "headers_too_large", "Undetermined"),
    dead("D19 seed", Failure.FORBIDDEN_ADDRESS, "forbidden_address", "Invalid_URL"),
    dead("port", Failure.FORBIDDEN_PORT, "forbidden_port", "Invalid_URL"),
    dead("T02 expired", Failure.TLS_EXPIRED, "tls_expired", "Undetermined"),
    dead("T03 self-signed", Failure.TLS_SELF_SIGNED, "tls_self_signed", "Undetermined"),
    dead("T08 unknown authority", Failure.TLS_UNTRUSTED, "tls_untrusted", "Undetermined"),
    dead("T04 other name", Failure.TLS_HOSTNAME, "tls_hostname", "Undetermined"),
    dead("T05 version", Failure.TLS_VERSION, "tls_version", "Undetermined"),
    dead("T05 other", Failure.TLS_OTHER, "tls_error", "Undetermined"),
    Case("N07 reset, once", [("HEAD /doc", RESET), ("HEAD /doc", GOOD)], ALIVE | {"method": "HEAD", "redirects": 0}),
    Case("N07 reset, always", [("HEAD /doc", RESET), ("HEAD /doc", RESET), ("GET /doc", RESET)],
         OPEN | SILENT | {"reason": "connection_reset", "method": "GET"}),
    Case("N07 one fresh try in a check, wherever",
         [("HEAD /doc", answer(302, "/to")), ("HEAD /to", EMPTY), ("HEAD /to", answer(405)),
          ("GET /doc", answer(302, "/to")), ("GET /to", RESET)],
         OPEN | SILENT | {"reason": "connection_reset", "redirects": 1, "final_url": f"{HOST}/to"}),
    both("N11 garbage", failed(Failure.PROTOCOL), OPEN | SILENT | {"reason": "protocol_error"}),
    both("N16 N20 a drip-fed head", LATE, OPEN | SILENT | {"reason": "timeout", "timeout": True}),
    once("N26 no text came with it", failed(Failure.REFUSED, None), {"error": "Nothing listens at the host's port."}),
    once("N26 an error is one line", failed(Failure.REFUSED, "a\r\nb\x1b[0m"), {"error": "a\\r\\nb\\x1b[0m"}),
    once("N23 N25 invalid Content-Type", answer(200, content_type="ü; nonsense"), ALIVE | {"mime": None}),
    once("N22 capitals, parameters", answer(200, content_type='Text/HTML; Charset="U"'), ALIVE | {"mime": "text/html"}),
    once("Content-Type twice", answer(200, content_type="text/html, text/html"), ALIVE | {"mime": "text/html"}),
    *(once(f"N14 Content-Length {text!r}", answer(200, content_length=text), ALIVE | {"content_length": value})
      for text, value in (("0", 0), ("12", 12), ("5, 5", 5), ("5, 6", None), ("-1", None), ("1e3", None), ("٣", None))),
]  # fmt: skip

STATUS = [
    *(once(f"S01 {code}", answer(code), OK | {"status": code}) for code in (200, 201, 203, 204, 206, 207, 226, 299)),
    *(both(f"S02 S04 {code}", answer(code), WALLED | {"reason": f"http_{code}"}) for code in (401, 402, 403, 407, 451)),
    *(both(f"S03 S04 {code}", answer(code), BROKEN | {"reason": f"http_{code}"}) for code in (400, 404, 410, 414, 422)),
    *(both(f"our request {code}", answer(code), OPEN | {"reason": f"http_{code}"})
      for code in (405, 408, 409, 411, 412, 413, 415, 416, 417, 419, 421, 423, 424, 425, 426, 428, 431, 444, 499)),
    *(both(f"R09 {code}", answer(code), OPEN | {"reason": f"http_{code}"}) for code in (500, 501, 502, 504, 505, 599)),
    both("S12 the facts of an error page", answer(404, content_type="text/html", content_length="9"),
         BROKEN | {"mime": "text/html", "content_length": 9}),
]  # fmt: skip


def login(case: str, to: str, *outcomes: Outcome, **want: object) -> Case:
    """A redirect to a login: no GET, whatever it answers."""
    steps = [("HEAD /doc", answer(302, to)), *((f"HEAD {to}", outcome) for outcome in outcomes or (GOOD,))]
    return Case(case, steps, WALLED | {"reason": "login_redirect", "final_url": to} | want)


IDP = "https://idp.b.example/idp/profile/SAML2/Redirect/SSO?SAMLRequest=x"
LOGINS = [
    login("D22 SAML", IDP),
    *(login(f"D22 SAML {code}", IDP, answer(code), status=code) for code in (403, 404, 405, 500, 429)),
    login("D22 the provider hangs", IDP, LATE, status=None, timeout=True),
    login("D22 the provider resets", IDP, RESET, RESET, status=None),
    login("D22 CAS", "https://b.example/cas/login?service=x"),
    login("D22 a page named login", "https://b.example/accounts/login/?next=/doc"),
    Case("D22 a page named login that isn't there",
         [(f"{method} {step}", outcome) for method in ("HEAD", "GET") for step, outcome in
          (("/doc", answer(302, "/login")), ("/login", answer(404)))], BROKEN | {"reason": "http_404"}),
    Case("D22 a link that is a login page", [("HEAD /login", GOOD)], ALIVE, url=f"{HOST}/login"),
    Case("D22 a login page that moved", [("HEAD /login", answer(301, "/user/login")), ("HEAD /user/login", GOOD)],
         ALIVE | {"redirects": 1}, url=f"{HOST}/login"),
    Case("D22 a gateway that bounces back",
         [("HEAD /doc", answer(302, "http://b.example/cas/login?gateway=true", cookies=["g=1"])),
          ("HEAD http://b.example/cas/login?gateway=true", answer(302, "http://a.example/doc")),
          ("HEAD /doc [g=1]", GOOD)], ALIVE | {"redirects": 2}),
    Case("D22 round and round by way of the provider",
         [("HEAD /doc", answer(302, IDP)), (f"HEAD {IDP}", answer(302, "http://a.example/doc"))],
         WALLED | {"reason": "login_redirect"}),
    Case("D22 an error page at the provider",
         [("HEAD /doc", answer(302, IDP)), (f"HEAD {IDP}", answer(302, "/error")),
          ("HEAD https://idp.b.example/error", answer(500))], WALLED | {"reason": "login_redirect", "status": 500}),
]  # fmt: skip

CASES = [*HEAD_VERSUS_GET, *WALLS, *LIMITS, *REDIRECTS, *COOKIES, *URLS, *NETWORK, *STATUS, *LOGINS]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_user_report(case: Case) -> None:
    done = play(case)
    finding = done.finding
    facts = {"category": finding.verdict.category, "reason": finding.verdict.reason}
    seen = {name: facts[name] if name in facts else getattr(finding, name) for name in case.want}
    assert seen == case.want
    assert [f"{hop.method} {place(hop.url)}" for hop in done.check.hops] == [
        step.partition(" [")[0] for step, _ in case.steps
    ]
    assert [hop.status for hop in done.check.hops] == [outcome.status for _, outcome in case.steps]


def test_case_ids_are_distinct() -> None:
    assert len({case.id for case in CASES}) == len(CASES)


@pytest.mark.parametrize(
    ("steps", "learned"),
    [
        ([("HEAD /doc", answer(405)), ("GET /doc", GOOD)], True),
        ([("HEAD /doc", LATE), ("GET /doc", GOOD)], True),
        ([("HEAD /doc", GOOD)], None),
        ([("HEAD /doc", answer(404)), ("GET /doc", answer(404))], None),
        ([("HEAD /doc", RESET), ("HEAD /doc", GOOD)], None),
    ],
)
def test_head_useless(steps: list[tuple[str, Outcome]], learned: bool | None) -> None:
    assert play(Case("", steps, {})).head_useless is learned


def test_head_that_failed_at_another_host_teaches_nothing_of_the_links_own() -> None:
    there = "http://b.example/x"
    steps = [(f"{method} {step}", outcome) for method, end in (("HEAD", answer(405)), ("GET", GOOD))
             for step, outcome in (("/doc", answer(302, there)), (there, end))]  # fmt: skip
    assert play(Case("", steps, {})).head_useless is None


def test_hop_holds_what_happened() -> None:
    done = play(
        Case("", [("HEAD /doc", answer(302, "/a\tb\x9b")), ("HEAD /ab%C2%9B", failed(Failure.REFUSED, None))], {})
    )
    first, second = done.check.hops
    assert first.row() == {
        "url": f"{HOST}/doc", "method": "HEAD", "status": 302, "location": "/a\\tb\\x9b", "duration_ms": 20,
        "ip": "192.0.2.1", "error": None, "at": "2027-01-15T08:00:00.000Z",
    }  # fmt: skip
    assert (second.status, second.location, second.error) == (None, None, "Nothing listens at the host's port.")


def waiting(*outcomes: Outcome) -> Next:
    step = begin(f"{HOST}/doc", Rules())
    for outcome in outcomes:
        assert isinstance(step, Next)
        step = answered(step.check, outcome)
    assert isinstance(step, Next)
    return step


@pytest.mark.parametrize(
    ("reason", "category", "word"),
    [
        ("robots_disallowed", "Blocked_By_Robots_txt", "robots_disallowed"),
        ("robots_unreachable", "Blocked_By_Robots_txt", "robots_unreachable"),
        ("host_blocked", "Undetermined", "host_blocked"),
        ("skipped_by_policy", "Undetermined", "skipped_by_policy"),
        (Failure.DNS_NOT_FOUND, "Broken", "dns_not_found"),
        (Failure.REFUSED, "Broken", "connection_refused"),
        (Failure.TLS_EXPIRED, "Undetermined", "tls_expired"),
        (Failure.TIMEOUT_CONNECT, "Undetermined", "timeout"),
    ],
)
@pytest.mark.parametrize(
    ("before", "redirects", "final_url", "duration"),
    [
        ([], 0, f"{HOST}/doc", None),
        ([answer(302, "http://b.example/")], 0, "http://b.example/", 20),
        ([answer(302, "/1"), answer(302, "http://b.example/")], 1, "http://b.example/", 40),
        ([answer(302, "/1"), RESET], 1, f"{HOST}/1", 40),
        ([answer(404)], 0, f"{HOST}/doc", None),
    ],
    ids=["first", "second host", "third", "fresh try", "second chain"],
)  # fmt: skip
def test_barred(
    before: list[Outcome], redirects: int, final_url: str, duration: int | None,
    reason: str | Failure, category: str, word: str,
) -> None:  # fmt: skip
    done = barred(waiting(*before).check, Bar(reason=reason), START + 9)
    finding = done.finding
    assert (finding.verdict.category, finding.verdict.reason) == (category, word)
    assert (finding.status, finding.method, finding.redirects, finding.final_url) == (None, None, redirects, final_url)
    assert (finding.duration_ms, finding.at) == (duration, START + 9)
    assert finding.timeout is (word == "timeout")
    assert finding.error
    assert len(done.check.hops) == len(before)


@pytest.mark.parametrize(
    ("bar", "word"),
    [
        ("robots_disallowed", "login_redirect"),
        ("robots_unreachable", "login_redirect"),
        (Failure.DNS_NOT_FOUND, "login_redirect"),
        (Failure.FORBIDDEN_ADDRESS, "forbidden_address"),
        ("host_blocked", "host_blocked"),
        ("skipped_by_policy", "skipped_by_policy"),
    ],
)
def test_barred_at_a_login(bar: str | Failure, word: str) -> None:
    """What an identity provider's robots.txt says does not hide that the link leads there."""
    assert barred(waiting(answer(302, IDP)).check, Bar(reason=bar), START).finding.verdict.reason == word


def test_programmer_faults() -> None:
    done = play(Case("", [("HEAD /doc", GOOD)], {}))
    with pytest.raises(ValueError, match="waits for no request"):
        answered(done.check, GOOD)
    with pytest.raises(ValueError, match="bars no request"):
        barred(waiting().check, Bar(reason="weather"), START)
    with pytest.raises(ValueError, match="neither a status nor a failure"):
        answered(waiting().check, Outcome(sent_at=0, ended_at=0, duration_ms=0))


LOCATIONS = st.one_of(
    st.sampled_from(["/doc", "/a", "/b", "/c", "http://b.example/", "//c.example", "ftp://x", "", IDP, "/login"]),
    st.text(max_size=30),
)
COOKIE_LINES = st.one_of(
    st.sampled_from(["a=1", "b=2; Path=/a", "a=; Max-Age=0", "c=3; Secure"]),
    st.text(alphabet='ab=;,", \x00é', max_size=12).map(lambda text: text + "; Expires=Thu, 99"),
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "location": LOCATIONS,
        "content-type": st.text(max_size=12),
        "content-length": st.text(alphabet="0123456789, -x", max_size=9),
        "retry-after": st.text(max_size=3),
        "cf-mitigated": st.sampled_from(["challenge", "other"]),
    },
)
ANSWERS = st.builds(
    lambda status, headers, cookies: Outcome(
        sent_at=START, ended_at=START, duration_ms=1, ip="192.0.2.1", status=status, headers=headers, set_cookie=cookies
    ),
    st.one_of(st.sampled_from([301, 302, 302, 303, 307, 308]), st.integers(100, 999)),
    HEADERS,
    st.lists(COOKIE_LINES, max_size=2).map(tuple),
)
FAILURES = st.builds(failed, st.sampled_from(list(Failure)), st.one_of(st.none(), st.text(max_size=9)))


@given(
    st.sampled_from([f"{HOST}/doc", f"{HOST}/login", "https://a.example/", "http://", "nothing"]),
    st.integers(0, 4),
    st.sampled_from(["HEAD", "GET"]),
    st.lists(st.one_of(ANSWERS, ANSWERS, FAILURES), min_size=20, max_size=20),
    st.one_of(st.none(), st.tuples(st.integers(0, 9), st.sampled_from([*sorted(BARS), *Failure]))),
)
def test_any_server_is_survived(
    url: str, limit: int, method: str, outcomes: list[Outcome], bar: tuple[int, str | Failure] | None
) -> None:
    step, asked = begin(url, Rules(max_redirects=limit), method=method), 0
    while isinstance(step, Next):
        assert step.ask == step.check.ask
        if bar and bar[0] == asked:
            step = barred(step.check, Bar(reason=bar[1], error="x\n"), START)
        else:
            step, asked = answered(step.check, outcomes[asked % len(outcomes)]), asked + 1
        assert asked <= 2 * (limit + 1) + 1
    assert isinstance(step, Done)
    finding, hops = step.finding, step.check.hops
    assert len(hops) == asked
    assert finding.redirects <= limit
    assert (finding.error is None) == (finding.verdict.category is Category.OK)
    assert finding.error is None or (finding.error.isprintable() and finding.error.strip())
    if finding.status is not None:
        assert finding.final_url is not None
        assert (hops[-1].status, hops[-1].method, hops[-1].url) == (finding.status, finding.method, finding.final_url)
    assert all(hop.location is None or hop.location.isprintable() for hop in hops)
