"""Python's cyclic garbage collector, tuned for a crawl, which makes few cycles.

By default it examines the youngest objects after 700 allocations, and all objects after 70,000: a fifth of the cost of
a check (measured), to find a few cycles of exceptions and tasks. Objects without cycles are freed at once anyway.
"""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Self

from scrapy import signals

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

#: Surviving allocations until generation 0 is collected; collections of it until generation 1 is; of that until all is.
THRESHOLDS = (50_000, 20, 20)


class GcTuning:
    """Tunes the collector while a crawl runs. Objects of the program itself are frozen: they aren't examined again."""

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
