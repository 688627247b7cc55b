"""Scrapy's downloader, with a short way for requests that the frontier has let go.

Slots would make such a request wait a second time, and cost more than the request. Requests of other components take
Scrapy's own way, slots and all.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from attrs import define
from scrapy.core import downloader
from scrapy.http import Request, Response
from twisted.internet.defer import Deferred, inlineCallbacks

from linkcrawl.check.outcome import Failure
from linkcrawl.network import descriptors
from linkcrawl.network.handler import RequestFailed

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

#: Scrapy's signal that a request of another component has ended, in whatever way; argument: `request`.
request_ended = object()

#: Seconds after which a limit of requests in flight that has come down goes up by a step, and between two warnings.
RECOVER, REPEAT = 5.0, 60.0


@define
class ConcurrencyLimit:
    """How many requests may be in flight: `now`, at most `most`. While this machine is short of what a connection
    needs it comes down; then it goes up again in steps. Times are steady seconds."""

    most: int
    now: int
    _changed_at: float = 0.0

    def shrink(self, active: int, at: float) -> None:
        """A request could not be sent for want of resources while `active` were in flight, it included."""
        self.now = max(1, min(self.now, active - max(1, active // 8)))
        self._changed_at = at

    def grow(self, at: float) -> None:
        """A request was sent."""
        if at - self._changed_at >= RECOVER:
            self.now = min(self.most, self.now + max(1, self.now // 8))
            self._changed_at = at


class Downloader(downloader.Downloader):
    """`DOWNLOADER` of a crawl. `active` and `needs_backout` count the requests of both ways."""

    def __init__(self, crawler: Crawler):
        super().__init__(crawler)
        wanted = self.total_concurrency
        most = self.total_concurrency = descriptors.shares_now(wanted).requests
        self._limit = ConcurrencyLimit(most, most)
        self._warned_at = float("-inf")
        if wanted and most < wanted:
            logger.warning(
                "CONCURRENT_REQUESTS: at most %d requests are in flight at once, not %d: this process may open %d "
                "files (ulimit -n)",
                most,
                wanted,
                descriptors.limit(),
            )

    @inlineCallbacks
    def fetch(self, request: Request) -> Generator[Deferred[Any], Any, Response | Request]:  # type: ignore[override]
        """Scrapy's own way. Its own signals don't tell of a request that a middleware drops."""
        try:
            answer: Response | Request = yield super().fetch(request)
            return answer
        finally:
            self.signals.send_catch_log(request_ended, request=request)

    async def send(self, request: Request) -> Response:
        """The short way: through all middlewares to the handler, at once. Raises what these raise."""
        self.active.add(request)
        try:
            answer = await self.middleware.download_async(self.handlers.download_request_async, request)
        except RequestFailed as failed:
            if failed.failure is Failure.LOCAL_SHORTAGE:
                self._slow_down(failed)
            raise
        finally:
            self.active.remove(request)
        if self._limit.now < self._limit.most:
            self._limit.grow(time.monotonic())
            self.total_concurrency = self._limit.now
        if isinstance(answer, Request):
            raise TypeError(f"a downloader middleware answers {request} with another request: hops are the check's")
        return answer

    def _slow_down(self, failed: RequestFailed) -> None:
        now = time.monotonic()
        self._limit.shrink(len(self.active), now)
        self.total_concurrency = self._limit.now
        if now - self._warned_at >= REPEAT:
            self._warned_at = now
            logger.warning(
                "This machine is short of resources, which says nothing of any link: %s. The request is sent later; "
                "at most %d are in flight at once for now",
                failed.error,
                self.total_concurrency,
            )
