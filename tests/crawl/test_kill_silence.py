"""A server that has asked to be left alone is, also by the crawl after one that was killed a moment later."""

from __future__ import annotations

import sys
from contextlib import closing

from linkcrawl.stores.opening import open_store
from tests.crawl.harness import Crawler, Running, environment, until
from tests.crawl.measures import pages
from tests.site.client import running_site
from tests.site.manners import where

#: The command itself, but what is known of hosts is not stored every few seconds: only what can't wait is.
SCRAPY = (
    "import sys; from linkcrawl.frontier import maintenance; maintenance.REMEMBER = float('nan'); "
    "from scrapy.cmdline import execute; execute(sys.argv)"
)


def _is_remembered(crawler: Crawler, name: str) -> bool:
    if not crawler.store_path.exists():
        return False
    with closing(open_store(crawler.store_url)) as store:
        return any(
            memory.host.startswith(f"{where(name)}:") and "silent_until" in memory.pace for memory in store.hosts()
        )


def test_a_silence_outlives_a_kill(crawler: Crawler) -> None:
    with running_site(crawler.folder, table="manners") as site:
        seeds = crawler.seeds([site.url(where("retry-hour"), f"/{number}") for number in range(5)])
        feed = crawler.folder / "killed.jsonl"
        waits = {"LINKCRAWL_PATIENCE": "7200"}  # else it would end by itself
        words = crawler.command("crawl", "resourceproxies", "-O", feed.name, "-a", f"seeds={seeds}", settings=waits)[3:]
        running = Running([sys.executable, "-c", SCRAPY, *words], environment(), crawler.folder, feed)
        try:
            until(lambda: pages(site.requests()), "it has asked to be left alone")
            until(lambda: _is_remembered(crawler, "retry-hour") or running.ended, "that is stored")
            assert not running.ended, running.stderr[-2000:]
        finally:
            running.kill()
        last = crawler.run(settings={"LINKCRAWL_PATIENCE": "5"})
        requests = pages(site.requests())
    assert (last.status, last.records) == (0, [])
    assert len(requests) == 1
