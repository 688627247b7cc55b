"""What users of link checkers reported of redirects, cookies, logins, and of the text of URLs."""

from __future__ import annotations

from itertools import pairwise

import pytest
from check_kit import (
    ALIVE,
    BROKEN,
    GOOD,
    HOST,
    IDP,
    LATE,
    OK,
    ON_GET,
    OPEN,
    RESET,
    SILENT,
    WALLED,
    Case,
    answer,
    assert_finding,
    both,
    failed,
    once,
)

from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.check.procedure import Done, Next, Rules, answered, begin


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
    nowhere("to a URL that is too long", answer(302, "/" + "a" * 20_000)),
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
    resolves("D34 another host", "http://a.example.org/doc", "http://a.example.org/doc"),
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
         [("HEAD /doc", answer(302, "http://b.example/", cookies=["s=1", "u=3; Domain=example"])),
          ("HEAD http://b.example/", answer(302, "http://a.example/doc", cookies=["t=2"])),
          ("HEAD /doc [s=1]", GOOD)], ALIVE | {"redirects": 2}),
    Case("latchai/seneca#2: a neighbour host sets the cookie for the whole domain",
         [("HEAD http://www.pub.test/a", answer(302, "http://set.pub.test")),
          ("HEAD http://set.pub.test/", answer(302, "http://www.pub.test/a", cookies=["s=1; Domain=.pub.test"])),
          ("HEAD http://www.pub.test/a [s=1]", GOOD)], ALIVE | {"redirects": 2}, url="http://www.pub.test/a"),
    Case("falconry/falcon#1445: octets outside ASCII come back",
         [("HEAD /doc", answer(302, "/doc", cookies=["lang=中文\udce9; Path=/"])),
          ("HEAD /doc [lang=中文\udce9]", GOOD)], ALIVE | {"redirects": 1}),
    Case("a second chain starts without the first one's cookies",
         [("HEAD /doc", answer(302, "/b", cookies=["s=1"])), ("HEAD /b [s=1]", answer(405)),
          ("GET /doc", answer(302, "/b")), ("GET /b", GOOD)], ALIVE | {"method": "GET", "redirects": 1}),
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


def login(case: str, to: str, *outcomes: Outcome, **want: object) -> Case:
    """A redirect to a login, whatever it answers: by GET too, for HEAD alone decides against no link. A reset gets its
    one fresh try by HEAD."""
    outcomes = outcomes or (GOOD,)
    steps = [("HEAD /doc", answer(302, to)), *((f"HEAD {to}", outcome) for outcome in outcomes),
             ("GET /doc", answer(302, to)), (f"GET {to}", outcomes[-1])]  # fmt: skip
    return Case(case, steps, WALLED | {"reason": "login_redirect", "final_url": to, "method": "GET"} | want)


LOGINS = [
    login("D22 SAML", IDP),
    *(login(f"D22 SAML {code}", IDP, answer(code), status=code) for code in (403, 404, 405, 500)),
    Case("D22 SAML 429: asked too often, so no GET", [("HEAD /doc", answer(302, IDP)), (f"HEAD {IDP}", answer(429))],
         WALLED | {"reason": "login_redirect", "final_url": IDP, "status": 429}),
    Case("D22 a login for HEAD only", [("HEAD /doc", answer(302, IDP)), (f"HEAD {IDP}", GOOD), ("GET /doc", GOOD)],
         ON_GET),
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
         [(f"{method} {step}", outcome) for method in ("HEAD", "GET") for step, outcome in
          (("/doc", answer(302, IDP)), (IDP, answer(302, "http://a.example/doc")))],
         WALLED | {"reason": "login_redirect"}),
    Case("D22 an error page at the provider",
         [(f"{method} {step}", outcome) for method in ("HEAD", "GET") for step, outcome in
          (("/doc", answer(302, IDP)), (IDP, answer(302, "/error")), ("https://idp.b.example/error", answer(500)))],
         WALLED | {"reason": "login_redirect", "status": 500}),
]  # fmt: skip

CASES = [*REDIRECTS, *COOKIES, *URLS, *LOGINS]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_user_report(case: Case) -> None:
    assert_finding(case)


def test_case_ids_are_distinct() -> None:
    assert len({case.id for case in CASES}) == len(CASES)


LOCATIONS = {
    "http://me:hush@b.example/x": "http://b.example/x",
    "//me:hush@b.example/x": "//b.example/x",
    "HTTP:\\\\me:hush@b.example\\x": "HTTP:\\\\b.example\\x",
    "ftp://me:hush@b.example/x": "ftp://b.example/x",
    "http://me:hush@/x": "http:///x",
    "http://me:hush/1@b.example:x/": "http://:b.example:x/",
    "/x?mail=me@b.example": "/x?mail=me@b.example",
}


@pytest.mark.parametrize("location", LOCATIONS)
def test_a_password_in_a_location_is_nowhere_in_the_check(location: str) -> None:
    step = begin(f"{HOST}/doc", Rules())
    for _ in range(2):
        assert isinstance(step, Next)
        step = answered(step.check, answer(302, location))
        assert "hush" not in repr(step)
        assert step.check.hops[0].location == LOCATIONS[location]
        if isinstance(step, Done):
            break
