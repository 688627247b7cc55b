"""Scrapy's engine behind the frontier's port: the only file of the frontier that touches its private parts."""

from __future__ import annotations

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING, Any

from scrapy.http import Request, Response

from linkcrawl.frontier.downloader import Downloader
from linkcrawl.frontier.tasks import start_task

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class ScrapyEngine:
    """`ports.Engine` of a crawl. The engine may come to be after it: it is looked up when it is first used."""

    def __init__(self, crawler: Crawler):
        self._crawler = crawler
        self._closing: asyncio.Task[None] | None = None

    @property
    def is_at_limit(self) -> bool:
        return self._downloader.needs_backout()

    @property
    def downloading(self) -> int:
        return len(self._downloader.active)

    def wake(self) -> None:
        """The engine asks by itself once it is open, which comes after the scheduler."""
        engine = self._engine
        slot = engine._slot
        if slot is not None and slot.closing is None and engine.scraper.slot is not None:
            slot.nextcall.schedule()

    def hold(self, work: Any) -> None:
        """Scrapy's scraper would not wait for items."""
        self._slot.add_request(work)

    def release(self, work: Any) -> None:
        self._slot.remove_request(work)

    def occupy(self, request: Request) -> None:
        self._downloader.active.add(request)

    async def send(self, request: Request) -> Response:
        return await self._downloader.send(request)

    async def process_item(self, item: Any) -> None:
        await self._engine.scraper.start_itemproc_async(item, response=None)

    def close(self, reason: str) -> None:
        if self._closing is None:
            close = self._engine.close_spider_async(reason=reason)
            self._closing = start_task("closing the crawl", close)

    @property
    def _slot(self) -> Any:
        return self._engine._slot

    @cached_property
    def _engine(self) -> Any:
        return self._crawler.engine

    @cached_property
    def _downloader(self) -> Downloader:
        found = self._engine.downloader
        assert isinstance(found, Downloader)
        return found
