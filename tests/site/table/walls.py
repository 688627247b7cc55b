"""Walls: rate limits, bot challenges, servers that have had enough."""

from __future__ import annotations

import time
from email.utils import formatdate

from tests.site.behaviours import answer, in_turn, per_method
from tests.site.misbehaviour import page
from tests.site.wire import Behaviour, Exchange

_CHALLENGE = [("cf-mitigated", "challenge"), ("Server", "cloudflare"), ("CF-RAY", "8a1b2c3d4e5f6789-FRA")]
_RAY = [("Server", "cloudflare"), ("CF-RAY", "8a1b2c3d4e5f6789-FRA")]


def _later(status: int, value: str) -> Behaviour:
    return answer(status, headers=[("Retry-After", value)])


async def _at_a_date(exchange: Exchange) -> None:
    now = time.time()
    dates = [("Date", formatdate(now, usegmt=True)), ("Retry-After", formatdate(now + 3600, usegmt=True))]
    await answer(429, headers=dates)(exchange)


ROWS = [
    *(
        page(f"wall-challenge-{status}", f"{status} with cf-mitigated", answer(status, headers=_CHALLENGE))
        for status in (200, 403, 429, 503)
    ),
    page("wall-ray", "404 behind Cloudflare, which is no challenge", answer(404, headers=_RAY)),
    page("wall-aws", "202 with AWS WAF's challenge", answer(202, headers=[("x-amzn-waf-action", "challenge")])),
    page("wall-429", "429 without Retry-After", answer(429)),
    page("wall-429-seconds", "429 with Retry-After in seconds", _later(429, "3600")),
    page("wall-429-date", "429 with Retry-After as a date", _at_a_date),
    page("wall-429-odd", "429 with Retry-After: 1m30s", _later(429, "1m30s")),
    page("wall-429-malformed", "429 with a Retry-After that says nothing", _later(429, "soon")),
    page("wall-429-years", "429 with Retry-After of thirty years", _later(429, "999999999")),
    page("wall-503", "503 without Retry-After", answer(503)),
    page("wall-503-seconds", "503 with Retry-After in seconds", _later(503, "3600")),
    *(page(f"wall-{status}", f"{status}, a rate limit by custom", answer(status)) for status in (420, 430, 509, 529)),
    page("wall-503-then-200", "503 on HEAD, 200 on GET", per_method(answer(503), answer())),
    page("wall-500-then-200", "500 at first, then 200", in_turn(answer(500), answer())),
]
