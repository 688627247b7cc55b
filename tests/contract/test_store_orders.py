"""Orders of people, and records taken back after a ban was noticed."""

from __future__ import annotations

from linkcrawl.items import Act, Category, Order
from linkcrawl.stores.contract import Query, Store

from .making import check, entry, history, link, links


def test_the_last_order_about_a_host_stands(store: Store) -> None:
    block = Order(host="a.example", act=Act.BLOCK, at=10.0, reason="asked by mail\u2028", until=99.5)
    other = Order(host="b.example:8080", act=Act.BLOCK, at=11.0)
    store.give_order(block)
    store.give_order(other)
    assert store.orders() == {"a.example": block, "b.example:8080": other}
    unblock = Order(host="a.example", act=Act.UNBLOCK, at=12.0)
    store.give_order(unblock)
    assert store.orders() == {"a.example": unblock, "b.example:8080": other}


def test_an_order_is_not_host_memory(store: Store) -> None:
    store.give_order(Order(host="a.example", act=Act.BLOCK, at=10.0))
    assert list(store.hosts()) == []


def test_withdrawn_records_say_undetermined_and_their_links_are_due(store: Store) -> None:
    store.add([entry(n) for n in range(3)])
    before, since, other = (link(store, n) for n in range(3))
    refused = {"category": Category.RESTRICTED, "reason": "http_403", "status": 403, "attempt": 1}
    store.finish([check(before, 100.0, **refused), check(since, 200.0, **refused), check(other, 200.0)])
    assert store.withdraw([before.id, since.id], 150.0, "host_blocked", "turned us away", 300.0) == 1
    records = {record.url[-1]: record for record in store.records()}
    assert records["1"].category is Category.UNDETERMINED
    assert (records["1"].reason, records["1"].error, records["1"].confirmed) == ("host_blocked", "turned us away", True)
    assert (records["1"].status, records["1"].checked_at, records["1"].next_check_at) == (403, 200.0, 300.0)
    assert records["0"].reason == "http_403"
    assert records["2"].reason == "ok"
    assert [found.id for found in links(store, now=300.0)] == [since.id]
    assert links(store, now=300.0)[0].last_category is Category.UNDETERMINED
    assert [record.url for record in store.records(Query(category=Category.UNDETERMINED))] == [since.url]


def test_withdrawing_again_changes_nothing(store: Store) -> None:
    store.add([entry(0)])
    store.finish([check(link(store, 0), 100.0)])
    assert store.withdraw([link(store, 0).id], 50.0, "host_blocked", "why", 300.0) == 1
    assert store.withdraw([link(store, 0).id], 50.0, "host_blocked", "why", 400.0) == 0
    assert next(iter(store.records())).next_check_at == 300.0
    assert len(history(store, history=True)) == 1


def test_a_link_that_was_never_checked_has_nothing_to_withdraw(store: Store) -> None:
    store.add([entry(0)])
    assert store.withdraw([link(store, 0).id], 0.0, "host_blocked", "why", 300.0) == 0
    assert store.withdraw([], 0.0, "host_blocked", "why", 300.0) == 0
