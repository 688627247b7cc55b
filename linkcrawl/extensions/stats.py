"""Scrapy's stats, cheaper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from scrapy import signals
from scrapy.extensions import corestats
from scrapy.statscollectors import MemoryStatsCollector

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class Stats(MemoryStatsCollector):
    """`STATS_CLASS`. Scrapy's own intercepts every attribute access, for callers that still pass a spider: a twentieth
    of the cost of a check."""

    __getattribute__ = object.__getattribute__


class CoreStats(corestats.CoreStats):
    """When a crawl began and why it ended. It doesn't count items and responses: a signal handler costs a task for
    each, and the records pipeline counts records."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        made = cls(crawler.stats)
        crawler.signals.connect(made.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(made.spider_closed, signal=signals.spider_closed)
        crawler.signals.connect(made.item_dropped, signal=signals.item_dropped)
        return made
