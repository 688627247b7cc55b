"""Finished checks, and reading them back: history, latest of each, changes, times, sums by status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkcrawl import items
from linkcrawl.items import FIELDS_OF_RECORD, Category, Hop, Record
from linkcrawl.stores.contract import REFUSALS, LinkFilter, Query, Store, Tally, Totals
from linkcrawl.stores.opening import open_store
from tests.contract.making import check, entry, history, key, link, links, own_check, record

FRESH = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
BROKEN = {"category": Category.BROKEN, "reason": "http_404", "status": 404}


@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("reasons", [(), ("http_403",), REFUSALS, ("http_403", "ok")])
@pytest.mark.parametrize(
    "ended_at", [(), ("http://a.example/",), ("http://a.example/", "http://b.example:80\U0010fffe/")]
)
def test_records_by_reason_and_by_where_they_ended(
    store: Store, reasons: tuple[str, ...], ended_at: tuple[str, ...], history: bool
) -> None:
    store.add([entry(n) for n in range(12)])
    ends = ["http://a.example/", "http://a.example/x", "http://a.example.evil/", "http://a.example0", None, "x"]
    kept = []
    for n in range(12):
        for at in (1.0, 2.0):
            reason = ("http_403", "ok", "bot_challenge")[(n + int(at)) % 3]
            finished = check(link(store, n), at * 100 + n, reason=reason, final_url=ends[n % 6])
            store.finish([finished])
            kept.append((at, finished.record))
    found = list(store.records(Query(reasons=reasons, ended_at=ended_at, history=history)))
    expected = [
        one
        for at, one in kept
        if (history or at == 2.0)
        and (not reasons or one.reason in reasons)
        and (not ended_at or one.final_url is None or one.final_url.startswith(ended_at))
    ]
    assert found == sorted(expected, key=lambda one: one.checked_at)
    assert found


def test_a_link_is_due_until_its_record_is_stored(url: str, opened: Callable[[str], Store]) -> None:
    crashing = opened(url)
    crashing.add([entry(1)])
    [taken] = crashing.due("a.example", 1.0, 10)
    crashing.close()  # before its check was stored
    store = opened(url)
    assert store.due("a.example", 1.0, 10) == [taken]
    store.finish([check(taken, 1.0, 100.0)])
    store.close()
    again = opened(url)
    assert again.due("a.example", 99.0, 10) == []
    assert again.next_due_at(99.0) == 100.0
    assert [found.id for found in again.due("a.example", 100.0, 10)] == [taken.id]


def test_the_same_check_is_stored_once(store: Store) -> None:
    store.add([entry(1)])
    once = check(link(store, 1), 10.0, 100.0)
    store.finish([once, once])
    store.finish([once])
    store.finish([check(link(store, 1), 10.0, 999.0, **BROKEN)])
    assert list(store.records(Query(history=True))) == [once.record]
    assert store.latest(key(1)) == once.record
    assert link(store, 1).next_check_at == 100.0


def test_a_late_record_joins_the_history_and_moves_nothing(store: Store) -> None:
    store.add([entry(1)])
    newer, older = check(link(store, 1), 20.0, 200.0), check(link(store, 1), 10.0, 30.0, **BROKEN)
    store.finish([newer])
    store.finish([older])
    assert history(store, history=True) == [("https://a.example/1", 10.0), ("https://a.example/1", 20.0)]
    assert store.latest(key(1)) == newer.record
    found = link(store, 1)
    assert (found.next_check_at, found.last_category) == (200.0, Category.OK)


def test_a_clock_that_was_put_back_does_not_keep_a_link_due(store: Store) -> None:
    store.add([entry(1)])
    store.finish([own_check(link(store, 1), 2000.0, 3000.0)])
    store.withdraw([link(store, 1).id], 0.0, "host_blocked", "why", 10.0)
    assert link(store, 1).last_checked_at == 2000.0
    store.finish([own_check(link(store, 1), 20.0, 100.0)])
    found = link(store, 1)
    assert (found.next_check_at, found.last_checked_at, found.last_category) == (100.0, 20.0, Category.OK)


def test_records_of_a_clock_that_was_ahead_count_as_before_the_next(store: Store) -> None:
    store.add([entry(1)])
    for at in (10.0, 5000.0, 6000.0):
        store.finish([own_check(link(store, 1), at, at + 100)])
    last = own_check(link(store, 1), 20.0, 100.0, **BROKEN)
    store.finish([last])
    store.finish([last])
    assert [at for _, at in history(store, history=True)] == [10.0, 19.998, 19.999, 20.0]
    assert store.latest(key(1)) == last.record
    assert [record.checked_at for record in store.records()] == [20.0]


def test_links_checked_at_a_time_to_come_count_as_checked_now(store: Store) -> None:
    store.add([entry(n) for n in range(4)])
    ahead, due, past, never = (link(store, n) for n in range(4))
    store.finish([check(ahead, 5000.0, 5600.0), check(due, 6000.0, 50.0), check(past, 10.0, 9000.0)])
    for _ in range(2):  # a crawl may be started again
        assert store.recall_future(160.0, 100.0) == (2, 6000.0)
        assert [link(store, n).next_check_at for n in range(4)] == [700.0, 50.0, 9000.0, never.next_check_at]
    assert link(store, 0).last_checked_at == 5000.0
    store.finish([own_check(link(store, n), 110.0, 900.0) for n in (0, 1)])
    assert store.recall_future(160.0, 120.0) == (0, 0.0)
    assert link(store, 0).next_check_at == 900.0


def test_a_recheck_takes_links_checked_at_a_time_to_come(store: Store) -> None:
    store.add([entry(n) for n in range(4)])
    store.finish([check(link(store, n), at) for n, at in enumerate((99.0, 100.0, 170.0, 5000.0))])
    narrow = LinkFilter(recheck_before=100.0, recheck_after=180.0)
    taken = store.due("a.example", 100.0, 10, narrow)
    assert sorted(found.url[-1] for found in taken) == ["0", "3"]
    assert [line.due for line in store.backlog(100.0, narrow)] == [2]


def test_checks_are_counted_by_the_hour(store: Store) -> None:
    store.add([entry(n) for n in range(4)])
    begin = 1_796_040_000
    times = (begin - 0.001, begin + 0.0, begin + 3599.999, begin + 7200.0)
    store.finish([check(link(store, n), at) for n, at in enumerate(times)])
    assert store.checks_by_hour(0.0, 4e9) == {begin - 3600: 1, begin: 2, begin + 7200: 1}
    assert store.checks_by_hour(begin, begin + 7200) == {begin: 2}
    assert store.checks_by_hour(0.0, 9.0) == {}


def test_a_batch_of_checks_is_stored_whole_or_not_at_all(store: Store) -> None:
    store.add([entry(1)])
    good = check(link(store, 1), 10.0)
    absent = check(link(store, 1), 10.0, link_id=987_654_321)
    with pytest.raises(LookupError, match="987654321"):
        store.finish([good, absent])
    assert list(store.records()) == []
    assert store.books(11.0) == Totals(links=1, active=1, proxies=1, never_checked=1, due=1)
    store.finish([good])
    assert list(store.records()) == [good.record]


def test_no_record_of_an_unknown_or_unchecked_link(store: Store) -> None:
    store.add([entry(1)])
    assert store.latest(key(1)) is None
    assert store.latest(key(2)) is None


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBERS = st.none() | st.integers(-(2**63), 2**63 - 1)
TIMES = st.integers(0, 4 * 10**12).map(lambda milliseconds: milliseconds / 1000)
HOPS = st.builds(
    Hop,
    url=TEXTS,
    method=TEXTS,
    status=NUMBERS,
    location=st.none() | TEXTS,
    duration_ms=NUMBERS,
    ip=st.none() | TEXTS,
    error=st.none() | TEXTS,
    at=TIMES,
)
#: Values of a field, by its type.
VALUES = {
    items.TEXT: TEXTS,
    items.INTEGER: st.integers(-(2**63), 2**63 - 1),
    items.BOOLEAN: st.booleans(),
    items.TIME: TIMES,
    items.CATEGORY: st.sampled_from(Category),
    items.TEXTS: st.lists(TEXTS, max_size=3).map(tuple),
    items.HOPS: st.lists(HOPS, max_size=3).map(tuple),
}
FIELDS = st.fixed_dictionaries(
    {
        part.name: st.none() | VALUES[part.type] if part.null else VALUES[part.type]
        for part in FIELDS_OF_RECORD
        if part.name not in ("url", "checked_at", "next_check_at")
    }
)


@FRESH
@given(fields=FIELDS, at=TIMES, next_at=TIMES)
def test_a_record_comes_back_as_it_was(
    new_url: Callable[[], str], fields: dict[str, object], at: float, next_at: float
) -> None:
    store = open_store(new_url())
    store.add([entry(1)])
    kept = check(link(store, 1), at, next_at, **fields)
    store.finish([kept])
    [found] = store.records()
    assert found == kept.record
    assert isinstance(found.category, Category)
    assert [type(value) for value in (found.confirmed, found.timeout)] == [bool, bool]
    assert store.latest(key(1)) == found
    store.close()


def _told(store: Store) -> None:
    """Link 1 in C and D: Ok 10, 404 20, 404 30. Link 2 in C: Ok 15, Ok 25 elsewhere. Link 3, nowhere: 404 at 20."""
    store.add([entry(1, collection="C"), entry(1, collection="D"), entry(2, collection="C"), entry(3)])
    one, two, three = (link(store, n) for n in (1, 2, 3))
    store.finish([check(one, 10.0), check(two, 15.0), check(three, 20.0, **BROKEN), check(one, 20.0, **BROKEN)])
    store.finish([check(two, 25.0, final_url="https://b.example/")])
    store.finish([check(one, 30.0, **BROKEN)])


QUERIES = [
    ({}, "3@20 2@25 1@30"),
    ({"history": True}, "1@10 2@15 3@20 1@20 2@25 1@30"),
    ({"history": True, "since": 15.0, "until": 25.0}, "2@15 3@20 1@20"),
    ({"since": 20.0}, "3@20 2@25 1@30"),
    ({"until": 30.0}, "3@20 1@20 2@25"),
    ({"until": 20.0}, "1@10 2@15"),
    ({"since": 26.0}, "1@30"),
    ({"since": 31.0}, ""),
    ({"since": 20.0, "until": 20.0}, ""),
    ({"collection": "C"}, "2@25 1@30"),
    ({"collection": "[CD]"}, ""),
    ({"collection": "*", "history": True}, "1@10 2@15 1@20 2@25 1@30"),
    ({"collection": "d"}, ""),
    ({"category": Category.BROKEN}, "3@20 1@30"),
    ({"category": Category.OK, "until": 30.0}, "2@25"),
    ({"category": Category.OK, "history": True}, "1@10 2@15 2@25"),
    ({"reasons": ("http_404",)}, "3@20 1@30"),
    (
        {
            "reasons": (
                "http_404",
                "ok",
            ),
            "history": True,
        },
        "1@10 2@15 3@20 1@20 2@25 1@30",
    ),
    ({"reasons": ("ok",), "category": Category.BROKEN}, ""),
    ({"reasons": ("timeout' OR 1=1 --",)}, ""),
    ({"changed": True}, "3@20 2@25"),
    ({"changed": True, "history": True}, "1@10 2@15 3@20 1@20 2@25"),
    ({"changed": True, "history": True, "since": 20.0, "until": 25.0}, "3@20 1@20"),
    ({"changed": True, "until": 25.0, "collection": "?", "category": Category.BROKEN}, "1@20"),
]


@pytest.mark.parametrize(("query", "expected"), QUERIES, ids=lambda value: str(value)[:70])
def test_records_are_chosen_and_in_order_of_time(store: Store, query: dict[str, object], expected: str) -> None:
    _told(store)
    found = [f"{url[-1]}@{at:.0f}" for url, at in history(store, **query)]
    assert found == expected.split()


CHANGES = [
    ({}, False),
    ({"category": Category.UNDETERMINED}, True),
    ({"status": 204}, True),
    ({"status": None}, True),
    ({"final_url": "https://a.example/new"}, True),
    ({"final_url": None}, True),
    ({"reason": "other", "duration_ms": 99, "mime": None, "redirects": 1, "error": "x"}, False),
]


@pytest.mark.parametrize(("fields", "changed"), CHANGES, ids=lambda value: str(value)[:60])
def test_what_counts_as_a_change(store: Store, fields: dict[str, object], changed: bool) -> None:
    store.add([entry(1)])
    found = link(store, 1)
    store.finish([check(found, 10.0), check(found, 20.0, **fields)])
    assert bool(history(store, changed=True)) is changed


def test_a_link_that_joins_a_collection_later_is_found_in_it(store: Store) -> None:
    store.add([entry(1)])
    store.finish([check(link(store, 1), 10.0)])
    store.add([entry(1, collection="C")])
    assert history(store, collection="C") == [("https://a.example/1", 10.0)]
    assert [(part.name, part.checked) for part in store.summary(11.0).collections] == [(None, 1), ("C", 1)]
    assert [found.collections for found in store.records()] == [()]  # as it was at the check


def test_tallies_sum_up_the_latest_checks(store: Store) -> None:
    store.add([entry(n, collection="C" if n < 4 else "D%") for n in range(6)])
    one = {found.url[-1]: found for found in links(store)}
    store.finish([check(one["0"], 5.0, **BROKEN)])
    store.finish(
        [
            check(one["0"], 10.0, duration_ms=10),
            check(one["1"], 10.0, duration_ms=25),
            check(one["2"], 10.0, duration_ms=None),
            check(one["3"], 10.0, duration_ms=5, **BROKEN),
            check(one["4"], 10.0, category=Category.BROKEN, reason="timeout", status=None, duration_ms=None),
        ]
    )
    plain: dict[str, Any] = {"confirmed": True, "mismatches": 0}
    ok = Tally(category=Category.OK, status=200, reason="ok", count=3, timed=2, total_ms=35, max_ms=25, **plain)
    missing = Tally(
        category=Category.BROKEN, status=404, reason="http_404", count=1, timed=1, total_ms=5, max_ms=5, **plain
    )
    slow = Tally(
        category=Category.BROKEN, status=None, reason="timeout", count=1, timed=0, total_ms=0, max_ms=None, **plain
    )
    summary = store.summary(11.0)
    assert summary.overall.tallies == (ok, missing, slow)
    assert {part.name: part.tallies for part in summary.collections} == {"C": (ok, missing), "D%": (slow,)}


def test_a_reader_sees_one_moment_while_a_crawl_writes(store: Store) -> None:
    store.add([entry(n) for n in range(3000)])
    found = links(store)
    store.finish([check(one, 10.0 + n) for n, one in enumerate(found)])
    reading = store.records()
    first = next(reading)
    store.finish([check(one, 50_000.0 + n) for n, one in enumerate(found)])
    store.add([entry(5000)])
    rest = list(reading)
    assert [one.checked_at for one in (first, *rest)] == [10.0 + n for n in range(3000)]
    assert {one.checked_at >= 50_000 for one in store.records()} == {True}


def test_a_reader_may_stop_early(store: Store) -> None:
    store.add([entry(1)])
    store.finish([check(link(store, 1), 10.0), check(link(store, 1), 20.0)])
    reading = store.records(Query(history=True))
    next(reading)
    reading.close()  # type: ignore[attr-defined]
    assert len(history(store, history=True)) == 2


def test_records_of_one_moment_come_as_they_were_stored(store: Store) -> None:
    store.add([entry(n) for n in range(50)])
    shuffled = sorted(links(store), key=lambda found: found.url)  # 0, 1, 10, 11, …: neither by number nor by id
    store.finish([check(one, 10.0) for one in shuffled])
    assert [found.url for found in store.records()] == [one.url for one in shuffled]


def test_a_record_needs_no_seed_fields(store: Store) -> None:
    store.add([entry(1)])
    plain: Record = record(link(store, 1), 10.0, 20.0, hops=(), status=None, method=None, final_url=None)
    store.finish([check(link(store, 1), 10.0, 20.0, hops=(), status=None, method=None, final_url=None)])
    assert list(store.records()) == [plain]
