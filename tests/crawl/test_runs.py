"""The same command again, as cron does it: only what is due, narrowed as asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crawl.harness import Crawl, Crawler
from tests.crawl.measures import pages
from tests.site.client import RunningSite, running_site
from tests.site.crowds import healthy

HOSTS, LINKS = 3, 4


@pytest.fixture
def site(tmp_path: Path) -> Iterator[RunningSite]:
    with running_site(tmp_path, hosts=HOSTS) as running:
        yield running


def _seeds(site: RunningSite, crawler: Crawler) -> tuple[list[str], str]:
    rows = [
        {"url": site.url(healthy(host), f"/{page}"), "collection": f"collection-{host}"}
        for host in range(HOSTS)
        for page in range(LINKS)
    ]
    return [row["url"] for row in rows], f"seeds={crawler.seeds(rows)}"


def _of_host(urls: list[str], host: int) -> set[str]:
    return {url for url in urls if f"//{healthy(host)}:" in url}


def _checked(crawl: Crawl) -> set[str]:
    assert crawl.status == 0, crawl.stderr
    assert set(Counter(record["url"] for record in crawl.records).values()) <= {1}
    return {record["url"] for record in crawl.records}


def test_nothing_is_due_a_second_time(site: RunningSite, crawler: Crawler) -> None:
    urls, seeds = _seeds(site, crawler)
    assert _checked(crawler.run("-a", seeds)) == set(urls)
    before = site.count()
    for arguments in ((), ("-a", seeds)):
        assert _checked(crawler.run(*arguments)) == set()
    assert site.count() == before
    books = crawler.books()
    assert (books.links, books.due, books.later, books.records) == (len(urls), 0, len(urls), len(urls))


def test_an_empty_store_has_nothing_to_do(crawler: Crawler) -> None:
    assert _checked(crawler.run()) == set()


def test_recheck_asks_again(site: RunningSite, crawler: Crawler) -> None:
    urls, seeds = _seeds(site, crawler)
    assert _checked(crawler.run("-a", seeds)) == set(urls)
    assert _checked(crawler.run("-a", "recheck=1")) == set(urls)
    assert Counter(record["url"] for record in crawler.kept()) == Counter(urls * 2)
    robots = [request for request in site.requests() if request.target == "/robots.txt"]
    assert len(robots) == HOSTS, "robots.txt is remembered over runs"
    assert Counter(request.target for request in pages(site.requests())) == Counter(
        f"/{page}" for page in range(LINKS) for _ in range(2 * HOSTS)
    )


def test_a_new_link_alone_is_due(site: RunningSite, crawler: Crawler) -> None:
    _, seeds = _seeds(site, crawler)
    crawler.run("-a", seeds)
    new = site.url(healthy(0), "/new")
    assert _checked(crawler.run("-a", f"seeds={crawler.seeds([new], 'more.jsonl')}")) == {new}


@pytest.mark.parametrize("limit", [1, 5])
def test_limit(site: RunningSite, crawler: Crawler, limit: int) -> None:
    urls, seeds = _seeds(site, crawler)
    first = _checked(crawler.run("-a", seeds, "-a", f"limit={limit}"))
    assert len(first) == limit
    assert len(pages(site.requests())) == limit
    assert _checked(crawler.run()) == set(urls) - first


NARROW = {
    "collection=collection-1": [1],
    "collection=coll*-?": [0, 1, 2],
    "collection=*-[12]": [],
    "collection=Collection-1": [],
    "collection=other": [],
    "host=127.31.2.1*": [2],
    "host=127.31.*": [0, 1, 2],
    "host=example.org": [],
}


@pytest.mark.parametrize("argument", NARROW)
def test_narrowed(site: RunningSite, crawler: Crawler, argument: str) -> None:
    urls, seeds = _seeds(site, crawler)
    wanted = set().union(*(_of_host(urls, host) for host in NARROW[argument]))
    assert _checked(crawler.run("-a", seeds, "-a", argument)) == wanted
    assert {request.host for request in site.requests()} == {healthy(host) for host in NARROW[argument]}
    assert crawler.books().due == len(urls) - len(wanted)


def test_narrowed_recheck(site: RunningSite, crawler: Crawler) -> None:
    urls, seeds = _seeds(site, crawler)
    crawler.run("-a", seeds)
    again = crawler.run("-a", "recheck=1", "-a", "collection=collection-0", "-a", "limit=2")
    assert len(_checked(again)) == 2
    assert _checked(again) <= _of_host(urls, 0)


def test_larger_priority_first(site: RunningSite, crawler: Crawler) -> None:
    urls = [{"url": site.url(healthy(0), f"/{number}"), "priority": number} for number in (0, 5, -3, 9)]
    crawler.run("-a", f"seeds={crawler.seeds(urls)}")
    assert [request.target for request in pages(site.requests())] == ["/9", "/5", "/0", "/-3"]


def test_a_feed_on_standard_output(site: RunningSite, crawler: Crawler) -> None:
    """Records and log don't mix: the log is on standard error."""
    urls, seeds = _seeds(site, crawler)
    crawl = crawler.run("-a", seeds, "-O", "-:jsonl")
    assert crawl.status == 0
    assert len(crawl.stdout.splitlines()) == len(urls)


@pytest.mark.parametrize("length", [1, 9000], ids=["at its end", "on the way"])
def test_a_feed_that_could_not_be_written_is_told(site: RunningSite, crawler: Crawler, length: int) -> None:
    """/dev/full is a disk that is full; what is longer than a buffer meets it at once."""
    urls = [site.url(healthy(host), "/" + "x" * length) for host in range(HOSTS)]
    crawl = crawler.run("-a", f"seeds={crawler.seeds(urls)}", "-O", "/dev/full:jsonl")
    assert crawl.status == 1
    assert "No space left on device" in crawl.stderr
    assert crawl.stderr.count("scrapy export has all records") == 1
    assert Counter(record["url"] for record in crawler.kept()) == Counter(urls)
    assert Counter(record["url"] for record in crawl.records) <= Counter(urls)
