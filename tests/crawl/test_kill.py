"""kill -9 at any moment, then the same command: nothing lost, nothing recorded twice, and no delay cut short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from tests.crawl.harness import Crawler, Running, until
from tests.crawl.measures import pages, too_close
from tests.site.client import RunningSite, running_site
from tests.site.crowds import healthy

Moment = Callable[[RunningSite, Crawler], object]


def _answered(number: int) -> Moment:
    """When the site has answered so many requests."""
    return lambda site, crawler: site.count() >= number


def _store_made(site: RunningSite, crawler: Crawler) -> bool:
    return crawler.store_path.exists()


def _kill_at(moment: Moment, running: Running, site: RunningSite, crawler: Crawler) -> None:
    until(lambda: moment(site, crawler) or running.ended, "the moment to kill")
    assert not running.ended, f"it ended before the moment came:\n{running.stderr[-2000:]}"
    running.kill()


def test_killed_at_several_moments(crawler: Crawler) -> None:
    hosts, links, delay = 20, 12, 0.2
    moments = [_store_made, *map(_answered, (1, 60, 130, 200))]
    with running_site(crawler.folder, hosts=hosts) as site:
        urls = [site.url(healthy(host), f"/{page}") for host in range(hosts) for page in range(links)]
        seeds = crawler.seeds(urls)
        for moment in moments:
            with crawler.running("-a", f"seeds={seeds}") as running:
                _kill_at(moment, running, site, crawler)
        last = crawler.run("-a", f"seeds={seeds}")
        requests = site.requests()
    assert last.status == 0
    kept = Counter(record["url"] for record in crawler.kept())
    assert kept == Counter(urls)
    assert {record["category"] for record in crawler.kept()} == {"Ok"}
    assert set(Counter(record["url"] for record in last.records).values()) == {1}
    assert too_close(requests, delay) == []
    # Asked again is only what no record was kept of: at each kill, a request or two of a host.
    again = len(pages(requests)) - len(urls)
    assert 0 <= again <= len(moments) * hosts * 2
    books = crawler.books()
    assert (books.links, books.checked, books.due, books.records) == (len(urls), len(urls), 0, len(urls))


@pytest.mark.long
def test_twenty_thousand_links_killed_five_times(crawler: Crawler) -> None:
    hosts, links = 200, 100
    settings = {"DOWNLOAD_DELAY": "0", "AUTOTHROTTLE_MAX_DELAY": "0"}
    with running_site(crawler.folder, hosts=hosts) as site:
        urls = [site.url(healthy(host), f"/{page}") for host in range(hosts) for page in range(links)]
        seeds = crawler.seeds(urls)
        for answered in (100, 3000, 7000, 11000, 15000):
            with crawler.running("-a", f"seeds={seeds}", settings=settings) as running:
                _kill_at(_answered(answered), running, site, crawler)
        last = crawler.run("-a", f"seeds={seeds}", settings=settings)
        asked = Counter(request.url for request in pages(site.requests()))
    assert last.status == 0
    assert last.peak < 200 * 2**20
    assert Counter(record["url"] for record in crawler.kept()) == Counter(urls)
    assert len(asked) == len(urls)
    assert sum(asked.values()) - len(urls) <= 5 * 2000
