"""Ctrl-C while records that need no request are on their way to the store."""

from __future__ import annotations

import signal

from tests.crawl.harness import Crawler, until

LINKS = 30_000


def test_it_ends_when_they_are_stored(crawler: Crawler) -> None:
    seeds = crawler.seeds(f"ftp://files.example.org/{number}" for number in range(LINKS))
    with crawler.running("-a", f"seeds={seeds}") as running:
        until(lambda: crawler.store_path.exists() and crawler.books().checked > 0, "the first records are stored")
        running.signal(signal.SIGINT)
        crawl = running.wait()
    assert crawl.status == 130, crawl.stderr[-2000:]
    kept = crawler.kept()
    assert 0 < len(kept) < LINKS
    assert {record["url"] for record in crawl.records} == {record["url"] for record in kept}
