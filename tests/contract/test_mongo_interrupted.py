"""A batch is interrupted at each of its commands, by a lost answer or by the death of its process: nothing is lost,
nothing is there twice, and a batch is whole."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from attrs import evolve

from linkcrawl.errors import StoreLost
from linkcrawl.items import Category, LinkState, Rejudged
from linkcrawl.stores.contract import Store
from linkcrawl.stores.opening import open_store
from tests.contract.cutting import cutter
from tests.contract.making import check, entry, history, link, links
from tests.contract.mongodb import database, looking_at, server_url
from tests.contract.processes import ROOT

ENTRIES = [entry(n, collection=f"C{n % 2}", record=f"r{n}", priority=n) for n in range(5)]
MOMENT = 1000.0
#: More commands than any batch is made of.
ENOUGH = 20


def prepare(store: Store, what: str) -> None:
    """What a batch of this kind needs to find."""
    if what != "add":
        store.add(ENTRIES)
    if what in ("withdraw", "rejudge"):
        store.finish([check(found, MOMENT) for found in links(store)])


def write(store: Store, what: str) -> None:
    """One batch of a kind; known links that change, and ones that don't, are in the first."""
    if what == "add":
        store.add([*ENTRIES, entry(4, provider="P", priority=9)])
    elif what == "finish":
        store.finish([check(found, MOMENT) for found in links(store)])
    elif what == "rejudge":
        said: dict[str, Any] = {
            "category": Category.BROKEN,
            "reason": "http_404",
            "verdict_version": 9,
            "next_check_at": 5.0,
        }
        old = [record for _, record in store.judged_before(9, 10)]
        store.rejudge([Rejudged(before=one, record=evolve(one, **said), state=LinkState(attempt=1)) for one in old])
    else:
        store.withdraw([found.id for found in links(store)], 0.0, "host_blocked", "why", 5.0)


def is_whole(store: Store, what: str) -> bool:
    """Whether the batch is there, each link and record once; False where nothing of it is."""
    books = store.books(MOMENT)
    if what == "add":
        assert (books.links, books.proxies, store.collections()) in [(0, 0, []), (5, 6, ["C0", "C1"])]
        if books.links:
            assert [found.priority for found in links(store)] == [9, 3, 2, 1, 0]
            assert link(store, 4).providers == ("P",)
        return books.links > 0
    records = list(store.records())
    states = {(found.last_category, found.next_check_at) for found in links(store)}
    if what == "finish":
        assert len(records) in (0, 5)
        assert states == ({(Category.OK, MOMENT + 604_800)} if records else {(None, 0.0)})
        return bool(records)
    assert len(records) == 5
    [(category, due)] = states
    assert {(record.category, record.next_check_at) for record in records} == {(category, due)}
    assert {record.verdict_version for record in records} in ({1}, {9})
    assert ({found.state.attempt for found in links(store)} == {1}) == (records[0].verdict_version == 9)
    return due == 5.0


@pytest.mark.parametrize("what", ["add", "finish", "withdraw", "rejudge"])
def test_a_batch_whose_answer_was_lost_may_be_tried_again(what: str) -> None:
    lost = 0
    for nth in range(1, ENOUGH):
        with (
            database(server_url()) as url,
            cutter(url) as (cut, through),
            closing(open_store(through)) as store,
        ):
            prepare(store, what)
            cut.cut_answer(nth)
            try:
                write(store, what)
            except StoreLost:
                lost += 1
                write(store, what)
            seen = len(cut.commands)
            assert is_whole(store, what)
            with looking_at(url) as seen_by_others:
                assert seen_by_others["batches"].count_documents({}) == 0
            if seen < nth:
                break
    assert lost >= 4  # keeping the batch, its parts, and deleting it
    assert seen < nth < ENOUGH


DYING = """
import sys
from linkcrawl.errors import StoreLost
from linkcrawl.stores.opening import open_store
from tests.contract.cutting import cutter
from tests.contract.test_mongo_interrupted import prepare, write
what, *urls = sys.argv[1:]
for nth, url in enumerate(urls, start=1):
    with cutter(url) as (cut, through):
        store = open_store(through)
        prepare(store, what)
        cut.cut_answer(nth)
        try:
            write(store, what)
            print("done", flush=True)
        except StoreLost:
            print("lost", flush=True)
        store.close()
"""


@pytest.mark.parametrize("what", ["add", "finish", "withdraw", "rejudge"])
def test_what_a_dead_process_began_is_completed_by_the_next(what: str, opened: Callable[[str], Store]) -> None:
    base = f"{server_url().rstrip('/')}/"
    with database(server_url()) as url:
        urls = [f"{url}_{nth}" for nth in range(1, ENOUGH)]
        told = subprocess.run(
            [sys.executable, "-c", DYING, what, *urls], cwd=ROOT, check=True, capture_output=True, text=True
        ).stdout.split()
        outcomes = []
        for one, outcome in zip(urls, told, strict=True):
            store = opened(one)
            outcomes.append((outcome, is_whole(store, what)))
            with looking_at(one) as seen_by_others:
                assert seen_by_others["batches"].count_documents({}) == 0
                seen_by_others.client.drop_database(one.removeprefix(base))
    assert ("lost", True) in outcomes
    assert all(whole for outcome, whole in outcomes if outcome == "done")
    first_whole = outcomes.index(("lost", True))
    assert all(whole for _, whole in outcomes[first_whole:])  # from the moment on that the batch was kept


def test_a_batch_of_a_living_process_is_left_to_it(opened: Callable[[str], Store]) -> None:
    with database(server_url()) as url, cutter(url) as (cut, through):
        rehearsal = opened(through)
        prepare(rehearsal, "finish")
        cut.commands.clear()
        write(rehearsal, "finish")
        keeping = cut.commands.index("update") + 1
    with database(server_url()) as url, cutter(url) as (cut, through):
        store = opened(through)
        prepare(store, "finish")
        cut.cut_answer(keeping)
        with pytest.raises(StoreLost):
            write(store, "finish")
        with looking_at(url) as seen_by_others:
            assert seen_by_others["batches"].count_documents({}) == 1
        assert history(opened(url)) == []
        write(store, "finish")
        assert len(history(opened(url))) == 5
