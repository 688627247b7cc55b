"""Log lines of items: records are in the store and the feed, so the log doesn't repeat them."""

from __future__ import annotations

import logging
from typing import Any

from scrapy import logformatter

from linkcrawl.items import Finished


class LogFormatter(logformatter.LogFormatter):
    """Scrapy's, without a line for each item; of a dropped item it logs the URL only."""

    def scraped(self, item: Any, response: Any, spider: Any) -> Any:
        return None

    def dropped(self, item: Any, exception: BaseException, response: Any, spider: Any) -> Any:
        url = item.record.url if isinstance(item, Finished) else "an item"
        return {"level": logging.DEBUG, "msg": "Dropped: %(url)r: %(why)s", "args": {"url": url, "why": exception}}
