"""Log lines: one line each, no control characters of strangers, nothing of what stands in a record anyway."""

from __future__ import annotations

from typing import Any

from scrapy import logformatter


class LogFormatter(logformatter.LogFormatter):
    """Scrapy's, without the whole item in the log: records are in the store and in the feed."""

    def scraped(self, item: Any, response: Any, spider: Any) -> Any:
        return None
