"""Copies of whole stores: from each kind to each, equal to the byte in what is exported, and going on after a kill."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from linkcrawl.errors import StoreError
from linkcrawl.exports import jsonl
from linkcrawl.exports.rows import link_rows, proxy_rows
from linkcrawl.items import Act, Category, HostMemory, Order, RobotsFile
from linkcrawl.stores import copying
from linkcrawl.stores.contract import Query, Store
from linkcrawl.stores.copying import copy
from linkcrawl.stores.opening import open_store
from tests.contract.making import check, entry, key, link

NOW = 10_000.0


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path}/other.db")
    yield opened
    opened.close()


def fill(store: Store) -> None:
    facts: tuple[dict[str, Any], ...] = (
        {},
        {"category": Category.BROKEN, "reason": "http_404", "status": 404, "confirmed": False},
        {"error": "line 1 \u2028 'x'", "mime": None},
    )
    for n in range(30):
        host = f"h{n % 3}.example" if n % 10 else ""
        seeds = [{"collection": f"c{n % 4}", "provider": "p" if n % 2 else None, "record": f"r{n}", "priority": n % 3}]
        seeds += [{"extra": {"note": [1, "\u00e9"]}, "expected_mime": "text/html", "resource_type": "Resource"}]
        store.add([entry(n, host, **seed) for seed in seeds])
    for at in (100.0, 200.1239, 300.0):  # many of the same moment
        for n in range(24):
            host = f"h{n % 3}.example" if n % 10 else ""
            store.finish([check(link(store, n, host), at, at + 50 * n, **facts[(n + int(at)) % 3])])
    memory = HostMemory(host="h1.example", last_end=5.5, failing_days=(1.0, 2.0), pace={"a": 1}, robots={"b": [2]})
    store.remember([memory, HostMemory(host="h2.example")])
    store.remember_robots([RobotsFile(authority="https://h1.example", until=9e9, entry={"text": "x"})])
    store.give_order(Order(host="h1.example", act=Act.BLOCK, at=3.0, reason="asked to", until=None))


def exported(store: Store) -> list[bytes]:
    """Everything that a store shows, in the order in which it does."""
    shown = []
    for query in (Query(history=True), Query(), Query(changed=True), Query(retired=True, history=True)):
        shown += list(jsonl.encode(link_rows(store.records(query)), False))
        shown += list(jsonl.encode(proxy_rows(store.records(query), store, None), True))
    return shown


def state(store: Store) -> list[Any]:
    """What crawls go on with. Ids are each store's own."""
    due = [
        evolve(found, id=0)
        for host in ("", "h0.example", "h1.example", "h2.example")
        for found in sorted(store.due(host, NOW, 1000), key=lambda one: one.url)
    ]
    robots = store.robots(["https://h1.example"])
    return [due, list(store.hosts()), robots, store.orders(), store.books(NOW), store.collections()]


def test_there_and_back(store: Store, file: Store, tmp_path: Path) -> None:
    fill(store)
    before, after = copy(store.copyable(), file.copyable(), "it", lambda links, records: None)
    assert before == after
    assert exported(file) == exported(store)
    assert state(file)[1:] == state(store)[1:]
    again = open_store(f"sqlite:///{tmp_path}/again.db")
    copy(file.copyable(), again.copyable(), "it", lambda links, records: None)
    assert exported(again) == exported(store)
    again.close()


def test_from_a_file(store: Store, file: Store) -> None:
    fill(file)
    before, after = copy(file.copyable(), store.copyable(), "it", lambda links, records: None)
    assert before == after
    assert exported(store) == exported(file)
    for n in range(30):
        one, other = store.latest(key(n)), file.latest(key(n))
        assert (one and one.row()) == (other and other.row())


class KilledError(Exception):
    pass


@pytest.mark.parametrize("steps", [1, 3, 4, 6, 9])
def test_a_copy_goes_on_where_it_stopped(
    store: Store, file: Store, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "BATCH", 11)
    fill(file)
    left = steps

    def stop(links: int, records: int) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise KilledError

    with pytest.raises(KilledError):
        copy(file.copyable(), store.copyable(), "it", stop)
    with pytest.raises(StoreError, match="unfinished copy of it"):
        copy(file.copyable(), store.copyable(), "another", stop)
    before, after = copy(file.copyable(), store.copyable(), "it", lambda links, records: None)
    assert before == after
    assert exported(store) == exported(file)


def test_a_batch_that_is_written_again_changes_nothing(
    store: Store, file: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill may come after a batch and before its progress is kept: where these are not one transaction."""
    monkeypatch.setattr(copying, "BATCH", 11)
    fill(file)
    target = store.copyable()
    if not hasattr(target, "_database"):
        return  # one transaction
    note: Callable[..., None] = target.note
    kept = 0

    def sometimes(progress: Any) -> None:
        nonlocal kept
        kept += 1
        if kept == 5:
            raise KilledError
        note(progress)

    monkeypatch.setattr(target, "note", sometimes)
    for _ in range(2):
        try:
            copy(file.copyable(), target, "it", lambda links, records: None)
            break
        except KilledError:
            continue
    assert exported(store) == exported(file)


def test_a_store_of_its_own_is_no_target(store: Store, file: Store) -> None:
    fill(store)
    with pytest.raises(StoreError, match="TO holds 30 links"):
        copy(file.copyable(), store.copyable(), "it", lambda links, records: None)
