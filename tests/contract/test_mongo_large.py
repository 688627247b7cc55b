"""What comes near MongoDB's 16 MiB a document: long URLs in every hop, and batches of large records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from attrs import evolve

from linkcrawl.items import Hop, Seed
from linkcrawl.sources.lines import MAX_LINE
from linkcrawl.stores.contract import LinkEntry, Query, Store, Totals
from linkcrawl.stores.mongo.documents import SHORT_TEXT
from linkcrawl.stores.mongo.writing import LARGEST_BATCH
from linkcrawl.stores.opening import open_store
from tests.contract.making import check, entry, key, link, links
from tests.contract.mongodb import database, looking_at, server_url

#: As long as a source lets one be.
LONG = "https://a.example/" + "x" * (MAX_LINE - 100)
HOP = Hop(url=LONG, method="HEAD", status=302, location=LONG, duration_ms=1, ip="192.0.2.1", error=None, at=99.0)


@pytest.fixture
def url() -> Iterator[str]:
    with database(server_url()) as url:
        yield url


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with closing(open_store(url)) as store:
        yield store


def test_the_longest_url_and_the_longest_chain_have_a_record(store: Store) -> None:
    store.add([LinkEntry(key=key(1), url=LONG, host="a.example", seed=Seed(url=LONG, extra={"again": LONG}))])
    [found] = links(store)
    done = check(found, 100.0, hops=(HOP,) * 26, final_url=LONG)
    store.finish([done])
    [kept] = store.records()
    assert (kept.url, kept.final_url) == (LONG, LONG)
    assert evolve(kept, hops=()) == evolve(done.record, hops=())
    assert {(hop.url, hop.location) for hop in kept.hops} == {(LONG[:SHORT_TEXT], LONG[:SHORT_TEXT])}
    assert len(kept.hops) == 26


def test_a_batch_larger_than_a_document_is_stored(url: str, store: Store) -> None:
    number = 40
    text = "y" * 500_000
    assert number * len(text) > LARGEST_BATCH
    taken = store.add([entry(n, extra={"text": text}) for n in range(number)])
    assert (taken.new, taken.known, taken.proxies) == (number, 0, number)
    store.finish([check(found, 10.0, error=text) for found in links(store)])
    assert store.books(11.0) == Totals(
        links=number, active=number, proxies=number, checked=number, later=number, records=number
    )
    assert {record.error for record in store.records(Query(history=True))} == {text}
    with looking_at(url) as seen:
        assert seen["batches"].count_documents({}) == 0


def test_a_link_in_very_many_records_is_one_small_document(url: str, store: Store) -> None:
    for start in range(0, 20_000, 1000):
        store.add([entry(1, collection=f"C{n % 7}", record=f"{n}.xml" * 20) for n in range(start, start + 1000)])
    found = link(store, 1)
    assert found.collections == tuple(f"C{n}" for n in range(7))
    assert len(store.proxies([found.id])[found.id]) == 20_000
    with looking_at(url) as seen:
        [size] = seen["links"].aggregate([{"$project": {"bytes": {"$bsonSize": "$$ROOT"}}}])
        assert size["bytes"] < 2000
