"""Scrapy's feed exporter, with one log line for a feed that can't be written. Its records are safe in the store, but a
crawl whose feed is incomplete ends with status 1.
"""

from __future__ import annotations

import contextlib
import logging
from typing import Any

from scrapy import Spider
from scrapy.extensions import feedexport
from scrapy.statscollectors import StatsCollector

logger = logging.getLogger(__name__)

#: Prefix under which Scrapy counts feeds that fail when they are closed. Feeds that fail earlier count here as well.
_FAILED = "feedexport/failed_count/"


class FeedExporter(feedexport.FeedExporter):
    """Replaces Scrapy's own."""

    _failed = False

    def item_scraped(self, item: Any, spider: Spider) -> None:
        """Add an item. After a failure nothing more is added: it would follow half a record."""
        if self._failed:
            return
        try:
            super().item_scraped(item, spider)
        except OSError as fault:
            self._fail(fault)

    async def _close_slot(self, slot: feedexport.FeedSlot, spider: Spider) -> None:
        """Close a feed. Writing what is buffered may fail first here, which Scrapy would log with a traceback."""
        try:
            if slot.file is not None:
                slot.finish_exporting()
                slot.file.flush()
        except OSError as fault:
            self._fail(fault)
        if not self._failed:
            await super()._close_slot(slot, spider)
        elif slot.file is not None:
            with contextlib.suppress(OSError):
                slot.file.close()

    def _fail(self, fault: OSError) -> None:
        if self._failed:
            return
        self._failed = True
        self.crawler.stats.inc_value(f"{_FAILED}{type(self).__name__}")
        why = fault.strerror or fault
        logger.error("The feed can't be written and ends here: %s. scrapy export has all records.", why)


def feed_failed(stats: StatsCollector) -> bool:
    """True where a feed of the crawl is incomplete."""
    return any(name.startswith(_FAILED) for name in stats.get_stats())
