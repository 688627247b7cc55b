"""What a crawl shows while it runs: a live panel on a terminal, else one log line a minute; at the end, what came of
the links. `kill -USR1 PID` lists what is in flight, and since when.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from scrapy import signals
from scrapy.exceptions import NotConfigured

from linkcrawl.extensions.outcomes import OutcomeCounts
from linkcrawl.extensions.panel import PanelState, line, lines, panel, table
from linkcrawl.frontier.ports import context_of
from linkcrawl.frontier.scheduler import Scheduler
from linkcrawl.items import Record
from linkcrawl.session import Session, session_of

if TYPE_CHECKING:
    from types import FrameType
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.spiders import Spider

logger = logging.getLogger(__name__)

#: Seconds between two looks: on a terminal, and in a log.
LIVE, LOGGED = 0.5, 60.0
#: A look reads every gate: the next one waits so many times as long as it took, so that looking costs less than 1 %.
REST = 100.0
#: Seconds over which the rate is measured.
LATELY = 30.0


class Progress:
    """Counts records, and reads the frontier's gates."""

    def __init__(self, crawler: Crawler):
        if crawler.spider is None or not isinstance(getattr(crawler.spider, "session", None), Session):
            raise NotConfigured("serves the spider resourceproxies only")
        self._crawler = crawler
        self._session = session_of(crawler)
        self._console = Console(stderr=True)
        self._live: Live | None = None
        self._logs: list[logging.StreamHandler[Any]] = []
        self._outcomes = OutcomeCounts()
        self._seen: deque[tuple[float, int]] = deque([(self._session.clock.steady(), 0)])
        self._next: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # Set before the first request: by default the signal would end the process.
        self._before = signal.signal(signal.SIGUSR1, self._asked)
        crawler.signals.connect(self._opened, signal=signals.spider_opened)
        crawler.signals.connect(self._closed, signal=signals.spider_closed)
        crawler.signals.connect(self._scraped, signal=signals.item_scraped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def standing(self) -> PanelState:
        """Where the crawl stands."""
        scheduler = self._scheduler
        return PanelState(
            checked=self._outcomes.whole.count,
            rate=self._rate(self._session.clock.steady()),
            requests=len(scheduler.in_flight),
            stats=scheduler.stats(self._outcomes.service),
            categories=self._outcomes.categories,
        )

    def in_flight(self) -> list[str]:
        """Every request in flight, on one line each: seconds, method, URL, and the gate that it holds."""
        now = self._session.now()
        return [
            f"in flight for {now - context.handed_out_at:.1f} s: {request.method} {request.url} ({context.gate})"
            for request in self._scheduler.in_flight
            if (context := context_of(request))
        ]

    @property
    def _scheduler(self) -> Scheduler:
        scheduler = self._crawler.engine.scheduler
        assert isinstance(scheduler, Scheduler)
        return scheduler

    def _rate(self, now: float) -> float:
        self._seen.append((now, self._outcomes.whole.count))
        while len(self._seen) > 2 and self._seen[1][0] <= now - LATELY:
            self._seen.popleft()
        since, count = self._seen[0]
        return (self._outcomes.whole.count - count) / max(0.001, now - since)

    def _scraped(self, item: Any) -> None:
        if isinstance(item, Record):
            self._outcomes.add(item)

    def _opened(self, spider: Spider) -> None:
        self._loop = asyncio.get_running_loop()
        if self._console.is_terminal:
            self._go_live()
        self._next = self._loop.call_later(LIVE if self._live else LOGGED, self._look)

    def _go_live(self) -> None:
        """The panel stays below; log lines that would go to the same terminal go above it."""
        terminal = sys.stderr
        self._live = Live(console=self._console, auto_refresh=False)
        self._live.start()
        for handler in logging.root.handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream is terminal:
                handler.setStream(sys.stderr)  # by now the one that rich watches
                self._logs.append(handler)

    def _look(self) -> None:
        assert self._loop is not None
        began = time.perf_counter()
        if self._live is not None:
            self._live.update(panel(self.standing()), refresh=True)
        else:
            logger.info("%s", line(self.standing()))
        rest = REST * (time.perf_counter() - began)
        self._next = self._loop.call_later(max(LIVE if self._live else LOGGED, rest), self._look)

    def _asked(self, number: int, frame: FrameType | None) -> None:
        """A signal comes between any two instructions: the loop does what is asked when it is its turn."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._tell_in_flight)

    def _tell_in_flight(self) -> None:
        told = self.in_flight()
        logger.info("in flight: %d requests", len(told))
        for one in told:
            logger.info("%s", one)

    def _closed(self, spider: Spider, reason: str) -> None:
        signal.signal(signal.SIGUSR1, self._before)
        self._loop = None
        if self._next is not None:
            self._next.cancel()
        if self._live is not None:
            self._live.update(panel(self.standing()), refresh=True)
            self._live.stop()
            for handler in self._logs:
                handler.setStream(sys.stderr)
            self._console.print(table(self._outcomes, self._console))
            return
        for one in (line(self.standing()), *lines(self._outcomes)):
            logger.info("%s", one)
