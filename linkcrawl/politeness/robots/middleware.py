"""Scrapy's RobotsTxtMiddleware made RFC 9309: the last lock before a request leaves.

The frontier has asked, and fetched robots.txt through the gate, before it handed a request out; what comes here and is
not allowed has got around it. So this middleware fetches nothing: it asks the same cache, and drops whatever robots.txt
forbids or isn't known for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy.downloadermiddlewares import robotstxt
from scrapy.exceptions import IgnoreRequest

from linkcrawl.check.procedure import Denial
from linkcrawl.politeness.robots.cache import MIN_TTL, Access, RobotsCache, RobotsVerdict
from linkcrawl.session import session_of

if TYPE_CHECKING:
    from scrapy.http import Request


class RobotsTxtMiddleware(robotstxt.RobotsTxtMiddleware):
    """Drops what the frontier has not cleared and robots.txt does not allow; its errback finds `meta["bar"]`."""

    async def process_request(self, request: Request) -> None:  # type: ignore[override]
        if "robots" in request.meta:
            self._stats.inc_value("robotstxt/request_count")
        elif not request.meta.get("cleared"):
            verdict = verdict_on(session_of(self.crawler).robots, request, session_of(self.crawler).now())
            if verdict.access is not Access.ALLOWED:
                self._stats.inc_value("robotstxt/forbidden")
                request.meta["bar"] = bar_of(verdict) or Denial(reason="robots_unreachable")
                raise IgnoreRequest("Forbidden by robots.txt")


def verdict_on(robots: RobotsCache, request: Request, now: float) -> RobotsVerdict:
    """What robots.txt says to a request; UNKNOWN where it must be fetched first.

    A request that has waited for a fetch is judged by what came of it, also where that has outlived a short time to
    live while the gate was closed: else a time to live shorter than the delay would fetch for ever.
    """
    authority = request.meta["authority"]
    entry = robots.get(authority)
    if entry is not None and request.meta.get("robots_asked_at") == entry.asked_at and now < entry.asked_at + MIN_TTL:
        return entry.verdict(request.url, now)
    return robots.verdict(authority, request.url, now)


def bar_of(verdict: RobotsVerdict) -> Denial | None:
    """The bar that a verdict puts before a request; None where it may go."""
    if verdict.access is Access.DISALLOWED:
        return Denial(reason="robots_disallowed", error=verdict.note)
    if verdict.access is Access.UNREACHABLE:
        return Denial(reason=verdict.failure or "robots_unreachable", error=verdict.note)
    return None
