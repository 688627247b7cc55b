"""What a crawl shows while it runs: a live line on a terminal, else one line in the log a minute."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.text import Text
from scrapy import signals
from scrapy.exceptions import NotConfigured
from scrapy.utils.asyncio import AsyncioLoopingCall

from linkcrawl.frontier.scheduler import Scheduler
from linkcrawl.items import Category
from linkcrawl.session import Session, session_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.spiders import Spider

logger = logging.getLogger(__name__)

#: Seconds between two lines: on a terminal, and in a log.
LIVE, LOGGED = 0.5, 60.0


class Progress:
    """Reads Scrapy's stats and the frontier; counts nothing itself."""

    def __init__(self, crawler: Crawler):
        if crawler.spider is None or not isinstance(getattr(crawler.spider, "session", None), Session):
            raise NotConfigured("serves the spider resourceproxies only")
        self._crawler = crawler
        self._live: Live | None = None
        self._console = Console(stderr=True)
        self._loop = AsyncioLoopingCall(self._show)
        crawler.signals.connect(self._opened, signal=signals.spider_opened)
        crawler.signals.connect(self._closed, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def line(self) -> str:
        """Where the crawl stands, in one line."""
        session, stats = session_of(self._crawler), self._crawler.stats
        scheduler = self._crawler.engine.scheduler
        assert isinstance(scheduler, Scheduler)
        records = stats.get_value("linkcrawl/records", 0)
        elapsed = max(0.001, session.now() - session.started_at)
        counts = [f"{category} {stats.get_value(f'linkcrawl/category/{category}', 0)}" for category in Category]
        left = sum(queue.due for queue in scheduler.queue.hosts.values()) + len(scheduler.queue)
        return (
            f"{records} checked ({records / elapsed:.1f}/s), {left} due, {scheduler.in_flight} in flight, "
            f"{len(scheduler.bench.gates)} hosts; {', '.join(counts)}"
        )

    def _opened(self, spider: Spider) -> None:
        if self._console.is_terminal and self._crawler.settings.get("LOG_FILE"):
            self._live = Live(Text(""), console=self._console, auto_refresh=False)
            self._live.start()
        self._loop.start(LIVE if self._live else LOGGED, now=False)

    def _show(self) -> None:
        if self._live is not None:
            self._live.update(Text(self.line()), refresh=True)
        else:
            logger.info("%s", self.line())

    def _closed(self, spider: Spider, reason: str) -> None:
        self._loop.stop()
        self._show()
        if self._live is not None:
            self._live.stop()
            sys.stderr.flush()
