"""Scrapy's stats at the cost that counting should have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from scrapy import signals
from scrapy.extensions import corestats
from scrapy.statscollectors import MemoryStatsCollector

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class Stats(MemoryStatsCollector):
    """`STATS_CLASS`. Scrapy's own wraps every look at an attribute, for callers that pass a spider as they once did;
    twenty looks for a check were a twentieth of its cost."""

    __getattribute__ = object.__getattribute__


class CoreStats(corestats.CoreStats):
    """When a crawl began and why it ended. Items and answers are not counted here: a listener costs a task for each
    item, and the records pipeline counts them anyway."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        made = cls(crawler.stats)
        crawler.signals.connect(made.spider_opened, signal=signals.spider_opened)
        crawler.signals.connect(made.spider_closed, signal=signals.spider_closed)
        crawler.signals.connect(made.item_dropped, signal=signals.item_dropped)
        return made
