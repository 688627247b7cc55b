"""Scrapy's AutoThrottle with floors. The only file that touches downloader slots.

The frontier's gates keep the pace, from the end of an answer, floors and robots.txt included. What they have let go of
checks and robots.txt files doesn't come here (frontier.downloader). Scrapy's slots keep that of other components: one
per gate, one request at a time, start to start at least the delay that was in force when the request was handed out.
Scrapy's own arithmetic, whose only floor is the global setting and which a Crawl-delay doesn't survive, is not used.
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
        """A slot's delay before its first request: none, the gate has had it wait."""
        return 0.0

    def _reached(self, request: Request, spider: Spider) -> None:
        _, slot = self._get_slot(request, spider)
        if slot is not None:
            slot.concurrency, slot.jitter = 1, 0.0
            required = getattr(request.meta.get(CONTEXT), "required", None)
            slot.delay = self._min_delay() if required is None else required.seconds

    def _adjust_delay(self, slot: Slot, latency: float, response: Response) -> None:
        """The gate's pace takes note of every answer (politeness.pacing); here is nothing to adjust."""
