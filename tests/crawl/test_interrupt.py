"""Ctrl-C: once, and what is in flight may end; twice, and it stops at once. Whatever is not finished stays due."""

from __future__ import annotations

import signal
import time
from collections import Counter

import pytest

from tests.crawl.harness import Crawler, until
from tests.site.client import running_site
from tests.site.crowds import hanging, healthy

INTERRUPTED = 130
HOSTS, LINKS = 5, 20


def _seeds(site_url: object, crawler: Crawler) -> tuple[list[str], str]:
    assert callable(site_url)
    urls = [site_url(healthy(host), f"/{page}") for host in range(HOSTS) for page in range(LINKS)]
    urls += [site_url(hanging(host), "/x") for host in range(HOSTS)]
    return urls, f"seeds={crawler.seeds(urls)}"


def _nothing_is_lost(crawler: Crawler, urls: list[str]) -> None:
    kept, books = Counter(record["url"] for record in crawler.kept()), crawler.books()
    assert set(kept.values()) <= {1}
    assert books.links == len(urls)
    assert books.checked == len(kept) < len(urls)
    assert books.due == len(urls) - len(kept)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_once(crawler: Crawler, number: signal.Signals) -> None:
    timeout = 2.0
    with running_site(crawler.folder, hosts=HOSTS, silent=HOSTS) as site:
        urls, seeds = _seeds(site.url, crawler)
        settings = {"LINKCRAWL_TIMEOUT": str(timeout)}
        with crawler.running("-a", seeds, settings=settings) as running:
            until(lambda: site.count() > 5 * HOSTS, "some answers")
            running.signal(number)
            told = time.monotonic()
            crawl = running.wait()
        assert crawl.status == INTERRUPTED
        assert time.monotonic() - told < timeout + 15
        assert "Traceback" not in crawl.stderr
        _nothing_is_lost(crawler, urls)
        kept = {record["url"] for record in crawler.kept()}
        assert {record["url"] for record in crawl.records} == kept
        last = crawler.run("-a", "host=127.31.*")
    assert last.status == 0
    assert {record["url"] for record in last.records} == {url for url in urls if "//127.31." in url} - kept


def test_twice(crawler: Crawler) -> None:
    with running_site(crawler.folder, hosts=HOSTS, silent=HOSTS) as site:
        urls, seeds = _seeds(site.url, crawler)
        with crawler.running("-a", seeds, settings={"LINKCRAWL_TIMEOUT": "60"}) as running:
            until(lambda: site.count() > 5 * HOSTS, "some answers")
            running.signal(signal.SIGINT)
            time.sleep(0.5)
            running.signal(signal.SIGINT)
            told = time.monotonic()
            crawl = running.wait()
        assert time.monotonic() - told < 40, "it waited for requests in flight"
        assert crawl.status == INTERRUPTED
        _nothing_is_lost(crawler, urls)
        last = crawler.run("-a", "host=127.31.*", settings={"LINKCRAWL_TIMEOUT": "60"})
    assert last.status == 0
    assert Counter(record["url"] for record in crawler.kept()) == Counter(url for url in urls if "//127.31." in url)
