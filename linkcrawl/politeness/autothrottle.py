"""Scrapy's AutoThrottle with floors. The only file that touches downloader slots.

The frontier's gates keep the pace, from the end of an answer on, with floors and robots.txt. Requests of checks and for
robots.txt bypass the slots (frontier.downloader). Requests of other components pass them: one slot per gate, one
request at a time, and from start to start at least the delay in force when the request was handed out. Scrapy's own
arithmetic is not used: its only floor is the global setting, and it lowers a Crawl-delay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from scrapy import signals
from scrapy.extensions import throttle

from linkcrawl.network.transport import CONTEXT

if TYPE_CHECKING:
    from scrapy.core.downloader import Slot
    from scrapy.crawler import Crawler
    from scrapy.http import Request, Response
    from scrapy.spiders import Spider


class AutoThrottle(throttle.AutoThrottle):
    """Keeps each slot's delay at what its gate says."""

    def __init__(self, crawler: Crawler):
        super().__init__(crawler)
        crawler.signals.connect(self._reached, signal=signals.request_reached_downloader)

    def _start_delay(self) -> float:
        """No delay before a slot's first request: its gate has kept it."""
        return 0.0

    def _reached(self, request: Request, spider: Spider) -> None:
        _, slot = self._get_slot(request, spider)
        if slot is not None:
            slot.concurrency, slot.jitter = 1, 0.0
            required = getattr(request.meta.get(CONTEXT), "required", None)
            slot.delay = self._min_delay() if required is None else required.seconds

    def _adjust_delay(self, slot: Slot, latency: float, response: Response) -> None:
        """Nothing to adjust: the gate's pace has taken the answer in (politeness.pacing)."""
