"""Log lines: one line each, no control characters of strangers, nothing of what stands in a record anyway."""

from __future__ import annotations

import logging
from typing import Any

from scrapy import logformatter

from linkcrawl.items import Finished


class LogFormatter(logformatter.LogFormatter):
    """Scrapy's, without the whole item in the log: records are in the store and in the feed."""

    def scraped(self, item: Any, response: Any, spider: Any) -> Any:
        return None

    def dropped(self, item: Any, exception: BaseException, response: Any, spider: Any) -> Any:
        url = item.record.url if isinstance(item, Finished) else "an item"
        return {"level": logging.DEBUG, "msg": "Dropped: %(url)r: %(why)s", "args": {"url": url, "why": exception}}
