"""Two workers have checked one link, because the first was stopped past its lease when it was about to store: one
record is kept, whole, whichever comes first and wherever the other was stopped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

from attrs import frozen

from linkcrawl.errors import StoreLost
from linkcrawl.items import Category, Finished
from linkcrawl.stores.contract import Query, Store
from linkcrawl.stores.opening import open_store
from tests.contract.cutting import Cutter, cutter
from tests.contract.making import entry, link, links, own_check
from tests.contract.mongodb import database, looking_at, server_url

BROKEN: dict[str, Any] = {"category": Category.BROKEN, "reason": "http_404", "status": 404}
#: More commands than any batch is made of.
ENOUGH = 20


@frozen(kw_only=True)
class Two:
    """`first` is the worker that may be cut off from the server; `second` has the gate now."""

    first: Store
    second: Store
    cut: Cutter
    url: str


@contextmanager
def two_workers() -> Iterator[Two]:
    with (
        database(server_url()) as url,
        cutter(url) as (cut, through),
        closing(open_store(through)) as first,
        closing(open_store(url)) as second,
    ):
        first.add([entry(n) for n in range(3)])
        yield Two(first=first, second=second, cut=cut, url=url)


def everything(store: Store) -> list[tuple[object, float, Category]]:
    """All records there are."""
    return [(each.link_id, each.checked_at, each.category) for each in store.records(Query(history=True))]


def is_one(two: Two, *either: list[Finished]) -> list[Finished]:
    """Which of the checks are stored, when every link goes on as its one record says."""
    kept = everything(two.second)
    (stored,) = [
        checks
        for checks in either
        if kept == [(each.record.link_id, each.record.checked_at, each.record.category) for each in checks]
    ]
    goes_on = {(each.record.link_id, each.record.next_check_at, each.record.category) for each in stored}
    assert {(each.id, each.next_check_at, each.last_category) for each in links(two.second)} == goes_on
    with looking_at(two.url) as seen:
        assert seen["batches"].count_documents({}) == 0
    return stored


def test_the_check_that_comes_second_is_refused() -> None:
    with two_workers() as two:
        given = links(two.first)
        early = [own_check(each, 10.0) for each in given]
        late = [own_check(each, 20.0, **BROKEN) for each in given[:2]]
        assert two.second.finish(early) == frozenset()
        assert two.first.finish(late) == {each.id for each in given[:2]}
        assert is_one(two, early) == early
        third = own_check(link(two.second, 1), 30.0)
        assert two.second.finish([third]) == frozenset()
        assert two.first.finish(late) == {each.id for each in given[:2]}
        assert len(everything(two.second)) == 4


def test_a_check_tried_again_is_not_refused() -> None:
    with two_workers() as two:
        mine = [own_check(each, 10.0) for each in links(two.first)]
        assert [two.first.finish(mine), two.first.finish(mine)] == [frozenset(), frozenset()]
        assert is_one(two, mine) == mine


def test_a_worker_that_is_stopped_anywhere_in_its_write() -> None:
    outcomes = []
    for nth in range(1, ENOUGH):
        with two_workers() as two:
            given = links(two.first)
            stopped = [own_check(each, 10.0, **BROKEN) for each in given]
            overtaking = [own_check(each, 20.0) for each in given]
            two.cut.cut_answer(nth)
            with suppress(StoreLost):  # a lost answer to a question is asked again, and tells nobody
                two.first.finish(stopped)
            if len(two.cut.commands) < nth:
                break
            refused = two.second.finish(overtaking)
            assert refused in (frozenset(), {each.id for each in given})
            # No link stays due because the one that has recorded it is still at it.
            assert {each.last_category for each in links(two.second)} <= {Category.OK, Category.BROKEN}
            assert len(everything(two.second)) <= 3
            late = two.first.finish(stopped)
            outcomes.append(is_one(two, stopped, overtaking) is stopped)
            assert (bool(refused), bool(late)) == ((True, False) if outcomes[-1] else (False, True))
    assert nth < ENOUGH
    assert set(outcomes) == {True, False}


def test_a_reader_sees_what_is_stored_while_another_is_refused() -> None:
    under_way = 0
    for nth in range(1, ENOUGH):
        with two_workers() as two:
            given = links(two.first)
            kept = [own_check(each, 10.0) for each in given]
            two.second.finish(kept)
            two.cut.cut_answer(nth)
            with suppress(StoreLost):
                two.first.finish([own_check(each, 20.0, **BROKEN) for each in given])
            with looking_at(two.url) as seen:
                under_way += seen["batches"].count_documents({})
            assert everything(two.second) == [(each.record.link_id, 10.0, Category.OK) for each in kept]
            if len(two.cut.commands) < nth:
                break
    assert nth < ENOUGH
    assert under_way > 0
