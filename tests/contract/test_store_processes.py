"""Several processes at one store: claims, sudden ends, and seeds, readers and a crawl side by side."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from linkcrawl.errors import StoreBusy
from linkcrawl.stores.contract import Query, Store
from linkcrawl.stores.opening import open_store
from tests.contract.making import FOREVER, check, entry, links
from tests.contract.processes import line, process

CLAIM = "store.claim(); say('claimed'); input()"
SEED = """
for batch in range(1000):
    store.add([entry(batch * 100 + n, collection=f'C{n}') for n in range(100)])
    say(batch + 1)
"""
FINISH = """
found = links(store)
for batch in range(1000):
    store.finish([check(one, 10.0 + batch) for one in found])
    say(batch + 1)
"""


def test_a_second_crawl_is_refused_and_told_who_holds_the_store(url: str, opened: Callable[[str], Store]) -> None:
    with process(url, CLAIM) as crawl:
        assert line(crawl) == "claimed"
        second = opened(url)
        with pytest.raises(StoreBusy, match=rf"\b{crawl.pid}\b") as refused:
            second.claim()
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("end", ["kill -9", "close"])
def test_a_claim_ends_with_its_crawl(url: str, opened: Callable[[str], Store], end: str) -> None:
    with process(url, CLAIM) as crawl:
        assert line(crawl) == "claimed"
        if end == "kill -9":
            crawl.kill()
        else:
            crawl.communicate("\n")
        crawl.wait()
    opened(url).claim()


def test_two_crawls_in_one_process_are_two(url: str, opened: Callable[[str], Store]) -> None:
    first, second = opened(url), opened(url)
    first.claim()
    first.claim()  # it is its own already
    with pytest.raises(StoreBusy):
        second.claim()
    first.close()
    second.claim()


def test_an_end_without_warning_is_seen_by_the_next_crawl(url: str, opened: Callable[[str], Store]) -> None:
    with process(url, CLAIM) as crawl:
        assert line(crawl) == "claimed"
    after_kill = opened(url)
    after_kill.claim()
    assert not after_kill.was_clean()
    after_kill.mark_clean()
    assert not after_kill.was_clean()  # still said of the crawl before
    after_kill.close()
    after_clean_end = opened(url)
    after_clean_end.claim()
    assert after_clean_end.was_clean()
    after_clean_end.close()  # closed in order, but never said to be clean
    assert not opened(url).was_clean()


def test_a_new_store_was_clean_until_it_is_claimed(url: str, opened: Callable[[str], Store]) -> None:
    store, other = opened(url), opened(url)
    assert store.was_clean()
    store.claim()
    assert store.was_clean()
    assert not other.was_clean()


def test_seeds_and_exports_go_on_beside_a_crawl(url: str, opened: Callable[[str], Store]) -> None:
    with process(url, CLAIM) as crawl:
        assert line(crawl) == "claimed"
        beside = opened(url)
        beside.add([entry(1)])
        assert list(beside.records()) == list(beside.hosts()) == []
        assert beside.books(1.0).due == 1


@pytest.mark.parametrize("batches", [1, 3, 8])
def test_killed_while_seeding_nothing_that_was_said_to_be_stored_is_lost(url: str, batches: int) -> None:
    with process(url, SEED) as seeding:
        told = 0
        while told < batches:
            told = int(line(seeding))
    store = open_store(url)
    books = store.books(1.0)
    assert books.links >= told * 100
    assert books.links == books.proxies  # whole batches only
    assert books.links % 100 == 0
    assert len(links(store)) == books.links
    assert {found.collections for found in links(store)} == {(f"C{n}",) for n in range(100)}
    store.close()


@pytest.mark.parametrize("batches", [1, 3, 8])
def test_killed_while_finishing_every_link_has_its_record_or_is_due(url: str, batches: int) -> None:
    store = open_store(url)
    store.add([entry(n) for n in range(200)])
    store.close()
    with process(url, FINISH) as finishing:
        told = 0
        while told < batches:
            told = int(line(finishing))
    store = open_store(url)
    times = [found.checked_at for found in store.records(Query(history=True))]
    stored = len(times) // 200
    assert stored >= told
    assert times == [10.0 + batch for batch in range(stored) for _ in range(200)]
    assert {found.next_check_at for found in links(store)} == {10.0 + stored - 1 + 604_800}
    store.close()


def test_many_may_open_a_new_store_at_the_same_moment(new_url: Callable[[], str]) -> None:
    for _ in range(10):
        url, together = new_url(), Barrier(6)

        def open_and_add(url: str = url, together: Barrier = together) -> int:
            together.wait()
            store = open_store(url)
            new = store.add([entry(n) for n in range(20)]).new
            store.close()
            return new

        with ThreadPoolExecutor(6) as threads:
            counts = [threads.submit(open_and_add) for _ in range(6)]
            assert sum(count.result() for count in counts) == 20


def test_a_seeder_a_reader_and_a_crawl_side_by_side(url: str) -> None:
    store = open_store(url)
    store.add([entry(n, "crawled.example") for n in range(300)])
    store.finish([check(found, 1.0) for found in links(store, "crawled.example")])

    def seed() -> int:
        seeder = open_store(url)
        new = sum(seeder.add([entry(1000 + batch * 50 + n) for n in range(50)]).new for batch in range(20))
        seeder.close()
        return new

    def crawl() -> int:
        for round_ in range(20):
            store.finish([check(found, 10.0 + round_) for found in store.due("crawled.example", FOREVER, 300)])
        return store.books(FOREVER).records

    def read() -> list[int]:
        reader = open_store(url)
        counts = [sum(1 for _ in reader.records(Query(history=True))) for _ in range(10)]
        reader.close()
        return counts

    with ThreadPoolExecutor(3) as threads:
        seeding, crawling, reading = threads.submit(seed), threads.submit(crawl), threads.submit(read)
        assert seeding.result() == 1000
        assert crawling.result() == 300 * 21
        counts = reading.result()
    assert counts == sorted(counts)
    assert all(count % 300 == 0 for count in counts)  # never a part of a batch
    store.close()
