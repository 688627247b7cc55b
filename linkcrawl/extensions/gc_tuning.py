"""Python's cyclic garbage collector, told that a crawl makes little of what it looks for.

By default it looks at everything young after 700 objects, and at everything there is after 70,000: a fifth of what a
check costs (measured), for a few cycles of exceptions and tasks. Objects without cycles are freed at once all the same.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Self

from scrapy import signals

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

#: Objects made, and not freed, until the young are looked at; such looks until the older are; and those until all are.
THRESHOLDS = (50_000, 20, 20)


class GcTuning:
    """Sets the collector for the time of a crawl: what the program itself consists of is not looked at again."""

    def __init__(self) -> None:
        self._before = gc.get_threshold()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        made = cls()
        crawler.signals.connect(made.opened, signal=signals.spider_opened)
        crawler.signals.connect(made.closed, signal=signals.spider_closed)
        return made

    def opened(self) -> None:
        gc.collect()
        gc.freeze()
        gc.set_threshold(*THRESHOLDS)

    def closed(self) -> None:
        gc.set_threshold(*self._before)
        gc.unfreeze()
