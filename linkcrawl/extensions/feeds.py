"""Scrapy's feed exporter, made to say once that a feed can't be written: records are safe in the store, and a crawl
whose feed is not whole must not look like one whose feed is.
"""

from __future__ import annotations

import logging
from typing import Any

from scrapy import Spider
from scrapy.extensions import feedexport
from scrapy.statscollectors import StatsCollector

logger = logging.getLogger(__name__)

#: Scrapy counts feeds that failed at their end under this prefix; those that failed before are counted there too.
_FAILED = "feedexport/failed_count/"


class FeedExporter(feedexport.FeedExporter):
    """Takes the place of Scrapy's own."""

    _broken = False

    def item_scraped(self, item: Any, spider: Spider) -> None:
        """Nothing is added to a feed after a failure: it would follow half a record."""
        if self._broken:
            return
        try:
            super().item_scraped(item, spider)
        except OSError as fault:
            self._broken = True
            self.crawler.stats.inc_value(f"{_FAILED}{type(self).__name__}")
            why = fault.strerror or fault
            logger.error("The feed can't be written and ends here: %s. scrapy export has all records.", why)


def feed_failed(stats: StatsCollector) -> bool:
    """Whether a feed of the crawl is not whole."""
    return any(name.startswith(_FAILED) for name in stats.get_stats())
