"""The garbage collector is set for the time of a crawl, and not longer."""

import gc

from scrapy import signals
from scrapy.utils.test import get_crawler

from linkcrawl.extensions.gc_tuning import THRESHOLDS, GcTuning


def test_it_is_set_for_the_time_of_a_crawl_only() -> None:
    before = gc.get_threshold()
    crawler = get_crawler()
    crawler.collector = GcTuning.from_crawler(crawler)  # type: ignore[attr-defined]  # as Scrapy holds its extensions
    crawler.signals.send_catch_log(signals.spider_opened)
    try:
        assert gc.get_threshold() == THRESHOLDS
        assert gc.get_freeze_count() > 0
    finally:
        crawler.signals.send_catch_log(signals.spider_closed)
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
