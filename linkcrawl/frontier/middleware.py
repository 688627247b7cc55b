"""The outermost downloader middleware: sees every way in which a request can end, and frees its gate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from linkcrawl.frontier.scheduler import Scheduler

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.http import Request, Response


class GateMiddleware:
    """Answered, failed, or dropped by a middleware further in: the scheduler is told, once."""

    def __init__(self, crawler: Crawler):
        self._crawler = crawler

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def process_response(self, request: Request, response: Response) -> Response:
        self._ended(request)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        self._ended(request)

    def _ended(self, request: Request) -> None:
        scheduler = self._crawler.engine.scheduler
        assert isinstance(scheduler, Scheduler)
        scheduler.ended(request)
