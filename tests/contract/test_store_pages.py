"""What the HTTP service reads: pages of records, links looked up by their keys, and whether the store has changed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

import pytest

from linkcrawl.items import Act, Category, Order, Seed
from linkcrawl.stores.contract import LinkEntry, Position, Query, Store
from linkcrawl.stores.opening import open_existing, open_store
from tests.contract.making import check, entry, key, link, links


def filled(store: Store) -> None:
    """Ten links, of which nine were checked, six at the same time and one twice."""
    store.add(
        [entry(n, f"{n % 2}.example", collection=f"C{n % 3}", provider=f"P{n % 2}") for n in range(10)],
    )
    times = [100.0, 101.0, 102.0, 102.0, 102.0, 102.0, 102.0, 102.0, 103.5]
    for n, at in enumerate(times):
        bad = {"category": Category.BROKEN, "reason": "http_404"} if n % 2 else {}
        store.finish([check(link(store, n, f"{n % 2}.example"), at, **bad)])
    store.finish([check(link(store, 4, "0.example"), 105.0)])


def paged(store: Store, query: Query, size: int) -> list[tuple[str, float]]:
    """The whole list by pages."""
    found: list[tuple[str, float]] = []
    after: Position | None = None
    while page := store.page(query, size, after):
        assert len(page) <= size
        found += [(one.record.url, one.record.checked_at) for one in page]
        after = page[-1].position
    return found


QUERIES = {
    "latest": Query(),
    "history": Query(history=True),
    "a time": Query(since=101.0, until=103.5, history=True),
    "latest before": Query(until=104.0),
    "category": Query(category=Category.BROKEN),
    "changed": Query(changed=True, history=True),
    "collection": Query(collection="C1"),
    "reason": Query(reasons=("http_404",)),
    "a refusal": Query(reasons=("http_403",)),
    "retired": Query(retired=True),
}


def test_pages_are_the_whole_list_whatever_their_size(new_url: Callable[[], str]) -> None:
    with closing(open_store(new_url())) as store:
        filled(store)
        for name, query in QUERIES.items():
            whole = [(record.url, record.checked_at) for record in store.records(query)]
            for size in (1, 3, 100):
                assert paged(store, query, size) == whole, (name, size)


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        (Query(host="1.*"), [1, 3, 5, 7]),
        (Query(provider="P0"), [0, 2, 6, 8, 4]),
        (Query(provider="p0"), []),
        (Query(provider="P?", host="0.example", collection="C0"), [0, 6]),
    ],
)
def test_records_of_a_host_and_of_a_provider(new_url: Callable[[], str], query: Query, numbers: list[int]) -> None:
    with closing(open_store(new_url())) as store:
        filled(store)
        expected = [f"https://{n % 2}.example/{n}" for n in numbers]
        assert [record.url for record in store.records(query)] == expected
        assert [url for url, _ in paged(store, query, 2)] == expected


def test_records_of_one_link_come_by_pages(new_url: Callable[[], str]) -> None:
    with closing(open_store(new_url())) as store:
        filled(store)
        four = link(store, 4, "0.example")
        assert paged(store, Query(link=four.id, history=True), 1) == [(four.url, 102.0), (four.url, 105.0)]


def test_following_pages_while_checks_are_stored_gives_each_record_once(new_url: Callable[[], str]) -> None:
    with closing(open_store(new_url())) as store:
        filled(store)
        query = Query(history=True)
        first = store.page(query, 4)
        store.finish([check(links(store, "1.example")[-1], 200.0)])
        rest = store.page(query, 100, first[-1].position)
        assert [(one.record.url, one.record.checked_at) for one in [*first, *rest]] == [
            (record.url, record.checked_at) for record in store.records(query)
        ]


def test_links_are_looked_up_with_their_latest_records(new_url: Callable[[], str]) -> None:
    with closing(open_store(new_url())) as store:
        filled(store)
        found = store.lookup([key(4), key(77), key(9), key(0)])
        assert set(found) == {key(4), key(9), key(0)}
        assert found[key(9)].record is None
        assert found[key(4)].record == store.latest(key(4))
        assert found[key(4)].link == store.link(key(4))
        assert not found[key(4)].is_retired
        assert store.lookup([]) == {}


def test_more_links_are_looked_up_than_one_statement_takes(new_url: Callable[[], str]) -> None:
    with closing(open_store(new_url())) as store:
        url = "https://a.example/x"
        store.add([LinkEntry(key=key(n), url=f"{url}{n}", host="a.example", seed=Seed(url=url)) for n in range(1500)])
        assert len(store.lookup([key(n) for n in range(3000)])) == 1500


def test_the_fingerprint_changes_with_what_others_store_and_not_by_itself(new_url: Callable[[], str]) -> None:
    url = new_url()
    with closing(open_store(url)) as writer, closing(open_existing(url)) as reader:
        seen = [reader.fingerprint()]
        assert reader.fingerprint() == seen[0]
        writer.add([entry(1)])
        seen.append(reader.fingerprint())
        writer.finish([check(link(writer, 1), 100.0)])
        seen.append(reader.fingerprint())
        writer.give_order(Order(host="a.example", act=Act.BLOCK, at=100.0, reason="r"))
        seen.append(reader.fingerprint())
        writer.give_order(Order(host="a.example", act=Act.UNBLOCK, at=101.0))
        seen.append(reader.fingerprint())
        assert len(set(seen)) == 5
        assert reader.fingerprint() == seen[-1]
