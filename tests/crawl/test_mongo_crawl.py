"""Crawls on a MongoDB store: killed, beside another, and with a server that goes away and comes back, or doesn't."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import frozen

from linkcrawl.stores.contract import Totals
from tests.contract.mongodb import Mongod, looking_at, mongod
from tests.crawl.harness import Crawler, until
from tests.crawl.measures import pages, too_close
from tests.site.client import RunningSite, running_site
from tests.site.crowds import healthy

HOSTS, LINKS, DELAY = 10, 15, 0.2


@frozen(kw_only=True)
class MongoCrawler(Crawler):
    url: str

    @property
    def store_url(self) -> str:
        return self.url


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mongod]:
    with mongod(tmp_path_factory.mktemp("mongod")) as running:
        yield running


@pytest.fixture
def crawler(tmp_path: Path, server: Mongod) -> MongoCrawler:
    return MongoCrawler(folder=tmp_path, url=f"{server.url}/crawl?serverSelectionTimeoutMS=1000")


def urls_of(site: RunningSite) -> list[str]:
    return [site.url(healthy(host), f"/{page}") for host in range(HOSTS) for page in range(LINKS)]


def is_complete(crawler: Crawler, urls: list[str]) -> None:
    """Every link has one record, whatever happened."""
    assert Counter(record["url"] for record in crawler.kept()) == Counter(urls)
    assert crawler.books() == Totals(
        links=len(urls), proxies=len(urls), active=len(urls), checked=len(urls), later=len(urls), records=len(urls)
    )


def test_killed_at_several_moments(crawler: MongoCrawler) -> None:
    with running_site(crawler.folder, hosts=HOSTS) as site:
        urls = urls_of(site)
        seeds = crawler.seeds(urls)
        for answered in (1, 50, 110):
            with crawler.running("-a", f"seeds={seeds}") as running:
                until(lambda enough=answered: site.count() >= enough or running.ended, "the moment to kill")
                assert not running.ended, running.stderr[-2000:]
        last = crawler.run("-a", f"seeds={seeds}")
        requests = site.requests()
    assert last.status == 0, last.stderr[-2000:]
    is_complete(crawler, urls)
    assert too_close(requests, DELAY) == []
    assert len(pages(requests)) - len(urls) <= 3 * HOSTS * 2


def test_a_second_crawl_is_refused(crawler: MongoCrawler) -> None:
    with running_site(crawler.folder, hosts=HOSTS) as site:
        seeds = crawler.seeds(urls_of(site))
        with crawler.running("-a", f"seeds={seeds}") as first:
            until(lambda: site.count() or first.ended, "the first request")
            second = crawler.run("-a", f"seeds={seeds}")
    assert second.status == 2
    assert re.search(rf"another crawl \(process {first.process.pid} on ", second.stderr)
    assert second.stderr.count("\n") == 1


def test_a_server_killed_and_started_again_loses_nothing(crawler: MongoCrawler, server: Mongod) -> None:
    with running_site(crawler.folder, hosts=HOSTS) as site:
        urls = urls_of(site)
        seeds = crawler.seeds(urls)
        with crawler.running("-a", f"seeds={seeds}") as running:
            until(lambda: site.count() >= 40 or running.ended, "some answers")
            server.kill()
            until(lambda: "store is lost" in running.stderr or running.ended, "a line about it")
            time.sleep(3)
            stopped = time.time()
            time.sleep(2)
            started = time.time()
            server.start()
            done = running.wait()
        requests = site.requests()
    assert done.status == 0, done.stderr[-2000:]
    assert [request for request in requests if stopped < request.started < started] == []
    assert done.stderr.count("store is lost") == 1  # one line a minute
    is_complete(crawler, urls)
    assert Counter(record["url"] for record in done.records) == Counter(urls)
    assert len(pages(requests)) == len(urls)
    assert too_close(requests, DELAY) == []


def test_a_server_that_stays_away_ends_the_crawl(crawler: MongoCrawler, server: Mongod) -> None:
    with running_site(crawler.folder, hosts=HOSTS) as site:
        urls = urls_of(site)
        seeds = crawler.seeds(urls)
        with crawler.running("-a", f"seeds={seeds}", settings={"LINKCRAWL_PATIENCE": "4"}) as running:
            until(lambda: site.count() >= 40 or running.ended, "some answers")
            server.kill()
            lost = running.wait()
        assert lost.status == 1, lost.stderr[-2000:]
        server.start()
        later = crawler.run("-a", f"seeds={seeds}")
    assert later.status == 0, later.stderr[-2000:]
    is_complete(crawler, urls)


def test_seeds_out_of_a_collection(crawler: MongoCrawler, server: Mongod) -> None:
    with running_site(crawler.folder, hosts=HOSTS) as site:
        urls = [site.url(healthy(host), "/") for host in range(HOSTS)]
        with looking_at(f"{server.url}/harvest") as seen:
            seen["links"].insert_many(
                [{"url": url, "collection": "C", "expectedMimeType": "text/html"} for url in urls]
            )
        done = crawler.run("-a", f"seeds={server.url}/harvest/links")
    assert done.status == 0, done.stderr[-2000:]
    is_complete(crawler, urls)
    assert {(*record["collections"], record["expected_mime"]) for record in done.records} == {("C", "text/html")}
