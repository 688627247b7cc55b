"""A server that has asked to be left alone is, also by the crawl after one that was killed a moment later."""

from __future__ import annotations

import time

from tests.crawl.harness import Crawler, until
from tests.crawl.measures import pages
from tests.site.client import running_site
from tests.site.manners import where


def test_a_silence_outlives_a_kill(crawler: Crawler) -> None:
    with running_site(crawler.folder, table="manners") as site:
        seeds = crawler.seeds([site.url(where("retry-long"), f"/{number}") for number in range(5)])
        with crawler.running("-a", f"seeds={seeds}") as running:
            until(lambda: pages(site.requests()), "it has asked to be left alone")
            time.sleep(1.0)
            running.kill()
        last = crawler.run(settings={"LINKCRAWL_PATIENCE": "5"})
        requests = pages(site.requests())
    assert (last.status, last.records) == (0, [])
    assert len(requests) == 1
