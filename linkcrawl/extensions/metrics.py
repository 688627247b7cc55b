"""Metrics for Prometheus, at http://HOST:PORT/metrics where LINKCRAWL_METRICS_PORT is set. docs/deployment.md has the
table of names, deploy/ has alerts and a dashboard.

Values are read when Prometheus asks, in the thread that answers; nothing is counted twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from scrapy import signals
from scrapy.exceptions import NotConfigured

from linkcrawl.errors import StoreLost
from linkcrawl.frontier.scheduler import Scheduler
from linkcrawl.frontier.tasks import start_task
from linkcrawl.items import Category
from linkcrawl.pipelines.records import WALLS
from linkcrawl.session import Session, session_of
from linkcrawl.stores.contract import NEVER

if TYPE_CHECKING:
    from typing import Self

    from prometheus_client.metrics_core import Metric
    from scrapy.crawler import Crawler
    from scrapy.spiders import Spider

logger = logging.getLogger(__name__)

#: Seconds between two queries for the store's oldest due link.
LAG_SECONDS = 30.0

#: Scrapy's stats that become counters: their name here, and what they count.
COUNTERS: Mapping[str, tuple[str, str]] = {
    "linkcrawl/records": ("checks", "Checks whose record is stored."),
    "linkcrawl/requests": ("requests", "Requests that left, robots.txt and every hop included."),
    "linkcrawl/silenced": ("silences", "Times that a server asked for a pause (Retry-After, RateLimit)."),
    "linkcrawl/shut_out": ("shut_outs", "Times that a host which used to work refused connections and was left alone."),
    "linkcrawl/banned": ("bans", "Times that a host turned us away and was blocked."),
    "robotstxt/request_count": ("robots_asked", "Requests that were held against a robots.txt."),
}


class Metrics:
    """Serves the metrics of its crawl. A port that can't be bound is logged, and the crawl goes on."""

    def __init__(self, crawler: Crawler):
        if crawler.spider is None or not isinstance(getattr(crawler.spider, "session", None), Session):
            raise NotConfigured("serves the spider resourceproxies only")
        self._session = session_of(crawler)
        config = self._session.config
        if not config.metrics_port:
            raise NotConfigured  # without a text, which Scrapy would warn of: having no metrics is the rule
        self._crawler = crawler
        self._lag: float | None = None
        self._querying: asyncio.Task[None] | None = None
        self._server = _serve(config.metrics_address, config.metrics_port, self)
        crawler.signals.connect(self._opened, signal=signals.spider_opened)
        crawler.signals.connect(self._closed, signal=signals.spider_closed)

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    def collect(self) -> Iterator[Metric]:
        """All metrics now (a collector of prometheus_client)."""
        from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily

        stats = self._crawler.stats.get_stats()
        for stat, (name, about) in COUNTERS.items():
            yield CounterMetricFamily(f"linkcrawl_{name}", about, value=stats.get(stat, 0))
        categories = CounterMetricFamily("linkcrawl_checks_by_category", "Checks by category.", labels=["category"])
        for category in Category:
            categories.add_metric([str(category)], stats.get(f"linkcrawl/category/{category}", 0))
        yield categories
        walls = CounterMetricFamily("linkcrawl_walls", "Checks that ended at a wall.", labels=["wall", "host"])
        for stat, count in list(stats.items()):  # the crawl goes on counting
            if stat.startswith(WALLS):
                walls.add_metric(stat.removeprefix(WALLS).split("/", 1), count)
        yield walls
        scheduler = self._crawler.engine.scheduler
        if not isinstance(scheduler, Scheduler):
            return  # the crawl is opening or has closed
        yield from self._of_gates(scheduler)
        if self._lag is not None:
            yield GaugeMetricFamily("linkcrawl_lag_seconds", "How long the oldest due link has been due.", self._lag)
        for name, (about, value) in scheduler.ownership_metrics().items():
            kind = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
            yield kind(f"linkcrawl_{name}", about, value=value)

    def _of_gates(self, scheduler: Scheduler) -> Iterator[Metric]:
        from prometheus_client.metrics_core import GaugeMetricFamily

        stats, gauges = scheduler.stats(response_time=0.0), scheduler.gauges()
        states = GaugeMetricFamily("linkcrawl_gates", "Gates with work, by state.", labels=["state"])
        for state in ("ready", "waiting", "in_flight", "blocked"):
            states.add_metric([state], getattr(stats, state))
        yield states
        about = "Gates that a back-off slows down."
        yield GaugeMetricFamily("linkcrawl_gates_backing_off", about, gauges.backing_off)
        about = "Links due, as the last look into the store has it."
        yield GaugeMetricFamily("linkcrawl_backlog", about, gauges.backlog)
        yield GaugeMetricFamily("linkcrawl_store_lost", "1 while the store can't be reached.", gauges.store_lost)

    def _opened(self, spider: Spider) -> None:
        self._querying = start_task("metrics", self._query_lag())

    def _closed(self, spider: Spider, reason: str) -> None:
        if self._querying is not None:
            self._querying.cancel()
        server, thread = self._server
        server.shutdown()
        server.server_close()
        thread.join()

    async def _query_lag(self) -> None:
        session = self._session
        while True:
            try:
                since = await session.worker.call(session.store.next_due_at, NEVER)
            except StoreLost as fault:  # the records pipeline logs it
                logger.debug("The lag can't be queried: %s", fault)
            except Exception:
                self._lag = None  # an old one would look like a crawl that keeps up
                logger.exception("A fault of ours kept the lag from being queried; it is tried again")
            else:
                self._lag = 0.0 if since is None else max(0.0, session.now() - since)
            await asyncio.sleep(LAG_SECONDS)


def _serve(address: str, port: int, metrics: Metrics) -> tuple[Any, Any]:
    try:
        from prometheus_client import start_http_server
        from prometheus_client.registry import CollectorRegistry

        registry = CollectorRegistry(auto_describe=False)
        served = start_http_server(port, addr=address, registry=registry)
    except (ModuleNotFoundError, OSError) as fault:
        missing = isinstance(fault, ModuleNotFoundError)
        advice = "pip install 'linkcrawl[metrics]' would work" if missing else "another port would work"
        logger.error("LINKCRAWL_METRICS_PORT: no metrics at %s:%d: %s; %s", address, port, fault, advice)
        raise NotConfigured("metrics can't be served") from fault  # a crawl is worth more than its numbers
    registry.register(metrics)
    return served
