"""What users of link checkers reported of one page: HEAD and GET, walls, limits, statuses, broken networks."""

from __future__ import annotations

import pytest
from check_kit import (
    ALIVE,
    BROKEN,
    EMPTY,
    GOOD,
    HOST,
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
    lied,
    once,
)

from linkcrawl.check.outcome import Failure

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
    both("B15 202", answer(202), OK | {"status": 202}),
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
    lied("austind/retryhttp#10 503 that may be asked again at once", answer(503, retry_after="0")),
    once("R09 503, in ten seconds", answer(503, retry_after="10"), OPEN | {"reason": "rate_limited"}),
    Case("R02 GET is limited after HEAD 404", [("HEAD /doc", answer(404)), ("GET /doc", answer(429))],
         OPEN | {"reason": "rate_limited", "method": "GET"}),
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

CASES = [*HEAD_VERSUS_GET, *WALLS, *LIMITS, *NETWORK, *STATUS]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_user_report(case: Case) -> None:
    assert_finding(case)


def test_case_ids_are_distinct() -> None:
    assert len({case.id for case in CASES}) == len(CASES)
