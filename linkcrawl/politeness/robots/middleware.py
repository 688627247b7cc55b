"""Scrapy's RobotsTxtMiddleware made RFC 9309: the last lock before a request leaves.

The frontier has asked, and fetched robots.txt through the gate, before it handed a request out; what comes here and is
not allowed has got around it. So this middleware fetches nothing: it asks the same cache, and drops whatever robots.txt
forbids or isn't known for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from scrapy.downloadermiddlewares import robotstxt
from scrapy.exceptions import IgnoreRequest

from linkcrawl.check.procedure import Denial
from linkcrawl.network.transport import CONTEXT
from linkcrawl.politeness.robots.cache import MIN_TTL, Access, RobotsCache, RobotsVerdict
from linkcrawl.urls import Target

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Request


class RobotsContext(Protocol):
    """What robots.txt has to do with a request: its `target`, and `robots_asked_at`, when the file was read that the
    request has waited for (Unix seconds; None: it has waited for none)."""

    @property
    def target(self) -> Target: ...
    @property
    def robots_asked_at(self) -> float | None: ...


class RobotsTxtMiddleware(robotstxt.RobotsTxtMiddleware):
    """Drops a request that has passed no gate, and one that the frontier has not cleared and robots.txt does not allow.
    Of the latter the errback finds the reason in the context's `denial`."""

    def __init__(self, crawler: Crawler, robots: RobotsCache, now: Callable[[], float]):
        super().__init__(crawler)
        self._robots = robots
        self._now = now

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        session: Any = getattr(crawler.spider, "session", None)
        if session is None:
            raise TypeError("linkcrawl's middlewares serve the spider resourceproxies only")
        return cls(crawler, session.robots, session.now)

    async def process_request(self, request: Request) -> None:  # type: ignore[override]
        context: Any = request.meta.get(CONTEXT)
        if context is None:
            raise IgnoreRequest(f"{request} has passed no gate: engine.crawl() would have it wait for its turn")
        if context.robots is not None:
            self._stats.inc_value("robotstxt/request_count")
        elif not context.cleared:
            verdict = verdict_on(self._robots, context, self._now())
            if verdict.access is not Access.ALLOWED:
                self._stats.inc_value("robotstxt/forbidden")
                context.denial = denial_of(verdict) or Denial(reason="robots_unreachable")
                raise IgnoreRequest("Forbidden by robots.txt")


def verdict_on(robots: RobotsCache, context: RobotsContext, now: float) -> RobotsVerdict:
    """What robots.txt says to a request; UNKNOWN where it must be fetched first.

    A request that has waited for a fetch is judged by what came of it, also where that has outlived a short time to
    live while the gate was closed: else a time to live shorter than the delay would fetch for ever.
    """
    target = context.target
    entry = robots.get(target.authority)
    if entry is not None and context.robots_asked_at == entry.asked_at and now < entry.asked_at + MIN_TTL:
        return entry.verdict(target.url, now)
    return robots.verdict(target.authority, target.url, now)


def denial_of(verdict: RobotsVerdict) -> Denial | None:
    """The denial that a verdict means; None where the request may go."""
    if verdict.access is Access.DISALLOWED:
        return Denial(reason="robots_disallowed", error=verdict.note)
    if verdict.access is Access.UNREACHABLE:
        reason = verdict.failure or "robots_unreachable"
        return Denial(reason=reason, timed_out=verdict.timed_out, error=verdict.note)
    return None
