"""The progress of a crawl: a live panel on a terminal, else one log line a minute; at the end, a table of outcomes.
`kill -USR1 PID` lists the requests in flight.
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

#: Seconds between two updates of the panel, and between two log lines.
PANEL_SECONDS, LOG_SECONDS = 0.5, 60.0
#: An update reads every gate. The next one waits at least so many times as long as it took: updates cost under 1 %.
REST = 100.0
#: Seconds over which the rate of checks is measured.
RATE_SECONDS = 30.0


class Progress:
    """Counts records, and reads the state of the frontier."""

    def __init__(self, crawler: Crawler):
        if crawler.spider is None or not isinstance(getattr(crawler.spider, "session", None), Session):
            raise NotConfigured("serves the spider resourceproxies only")
        self._crawler = crawler
        self._session = session_of(crawler)
        self._console = Console(stderr=True)
        self._live: Live | None = None
        self._handlers: list[logging.StreamHandler[Any]] = []
        self._outcomes = OutcomeCounts()
        self._counts: deque[tuple[float, int]] = deque([(self._session.clock.steady(), 0)])
        self._next: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # set before the first request, as the default action of SIGUSR1 ends the process
        self._before = signal.signal(signal.SIGUSR1, self._on_signal)
        crawler.signals.connect(self._opened, signal=signals.spider_opened)
        crawler.signals.connect(self._closed, signal=signals.spider_closed)
        crawler.signals.connect(self._scraped, signal=signals.item_scraped)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def state(self) -> PanelState:
        """The crawl now."""
        scheduler = self._scheduler
        return PanelState(
            checked=self._outcomes.whole.count,
            rate=self._rate(self._session.clock.steady()),
            requests=len(scheduler.in_flight),
            stats=scheduler.stats(self._outcomes.service),
            categories=self._outcomes.categories,
        )

    def in_flight(self) -> list[str]:
        """A line for each request in flight: seconds since it was handed out, method, URL, and its gate."""
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
        self._counts.append((now, self._outcomes.whole.count))
        while len(self._counts) > 2 and self._counts[1][0] <= now - RATE_SECONDS:
            self._counts.popleft()
        since, count = self._counts[0]
        return (self._outcomes.whole.count - count) / max(0.001, now - since)

    def _scraped(self, item: Any) -> None:
        if isinstance(item, Record):
            self._outcomes.add(item)

    def _opened(self, spider: Spider) -> None:
        self._loop = asyncio.get_running_loop()
        if self._console.is_terminal:
            self._go_live()
        self._next = self._loop.call_later(PANEL_SECONDS if self._live else LOG_SECONDS, self._update)

    def _go_live(self) -> None:
        """Keep the panel at the bottom, with log lines that go to the same terminal above it."""
        terminal = sys.stderr
        self._live = Live(console=self._console, auto_refresh=False)
        self._live.start()
        for handler in logging.root.handlers:
            if isinstance(handler, logging.StreamHandler) and handler.stream is terminal:
                handler.setStream(sys.stderr)  # which rich has replaced
                self._handlers.append(handler)

    def _update(self) -> None:
        assert self._loop is not None
        began = time.perf_counter()
        if self._live is not None:
            self._live.update(panel(self.state()), refresh=True)
        else:
            logger.info("%s", line(self.state()))
        rest = REST * (time.perf_counter() - began)
        self._next = self._loop.call_later(max(PANEL_SECONDS if self._live else LOG_SECONDS, rest), self._update)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        """A signal interrupts between any two instructions, so the list is left to the event loop."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._log_in_flight)

    def _log_in_flight(self) -> None:
        requests = self.in_flight()
        logger.info("in flight: %d requests", len(requests))
        for text in requests:
            logger.info("%s", text)

    def _closed(self, spider: Spider, reason: str) -> None:
        signal.signal(signal.SIGUSR1, self._before)
        self._loop = None
        if self._next is not None:
            self._next.cancel()
        if self._live is not None:
            self._live.update(panel(self.state()), refresh=True)
            self._live.stop()
            for handler in self._handlers:
                handler.setStream(sys.stderr)
            self._console.print(table(self._outcomes, self._console))
            return
        for text in (line(self.state()), *lines(self._outcomes)):
            logger.info("%s", text)
