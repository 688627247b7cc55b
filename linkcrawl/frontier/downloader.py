"""Scrapy's downloader, with a short way for what the frontier has let go.

Slots would make such a request wait a second time, and cost more than the request. Requests of other components take
Scrapy's own way, slots and all.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

from scrapy.core import downloader
from scrapy.http import Request, Response
from twisted.internet.defer import Deferred, inlineCallbacks

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class Downloader(downloader.Downloader):
    """`DOWNLOADER` of a crawl. `active` and `needs_backout` count the requests of both ways."""

    #: Told of the end of every request, however it ends; the scheduler sets it.
    ended: Callable[[Request], None]

    @inlineCallbacks
    def fetch(self, request: Request) -> Generator[Deferred[Any], Any, Response | Request]:  # type: ignore[override]
        """Scrapy's own way."""
        try:
            answer: Response | Request = yield super().fetch(request)
            return answer
        finally:
            self.ended(request)

    async def send(self, request: Request) -> Response:
        """The short way: through all middlewares to the handler, at once. Raises what these raise."""
        self.active.add(request)
        try:
            answer = await self.middleware.download_async(self.handlers.download_request_async, request)
        finally:
            self.active.remove(request)
            self.ended(request)
        if isinstance(answer, Request):
            raise TypeError(f"a downloader middleware answers {request} with another request: hops are the check's")
        return answer


def downloader_of(crawler: Crawler) -> Downloader:
    """The downloader of a crawl."""
    found = crawler.engine.downloader
    assert isinstance(found, Downloader)
    return found
