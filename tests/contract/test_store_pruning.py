"""History that has grown old is pruned; a link's latest check never goes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkcrawl.stores.contract import Query, Store
from linkcrawl.stores.history import oldest, prune_windows
from linkcrawl.stores.opening import open_store
from linkcrawl.units import DAY
from tests.contract.making import check, entry, history, key, link, links


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def prune(store: Store, days: int, now: float) -> int:
    """Prune the whole history at once."""
    began = oldest(store)
    return 0 if began is None else sum(store.prune(since, until) for since, until in prune_windows(began, days, now))


def test_only_the_last_of_a_stretch_stays(store: Store) -> None:
    store.add([entry(n) for n in range(3)])
    for moment in (10.0, 19.999, 20.0, 25.0, 29.999, 30.0):
        store.finish([check(found, moment) for found in links(store) if found.url[-1] != "2"])
    store.finish([check(link(store, 2), 24.0)])
    assert store.prune(20.0, 30.0) == 4
    assert store.prune(20.0, 30.0) == 0
    left = [(url[-1], moment) for url, moment in history(store, history=True)]
    assert sorted(left) == [
        *(("0", moment) for moment in (10.0, 19.999, 29.999, 30.0)),
        *(("1", moment) for moment in (10.0, 19.999, 29.999, 30.0)),
        ("2", 24.0),
    ]
    assert store.books(31.0).records == 9


TIMES = [
    "2025-01-03 10:00",
    "2025-01-31 23:59",
    "2025-02-01 00:00",
    "2025-02-02 08:00",
    "2026-01-05 06:00",
    "2026-01-05 18:00",
    "2026-01-06 00:00",
    "2026-02-01 06:00",
    "2026-02-01 18:00",
]
#: By LINKCRAWL_HISTORY_DAYS and today: what stays of TIMES.
LEFT = [
    (0, "2030-01-01", "012345678"),
    (365, "2026-02-02", "012345678"),
    (365, "2027-01-06", "01235678"),
    (365, "2027-02-02", "123568"),
    (365, "2028-01-31", "13568"),
    (30, "2026-02-05", "135678"),
    (1, "2026-02-05", "1368"),
    (1, "2030-01-01", "1368"),
]


@pytest.mark.parametrize(("days", "today", "left"), LEFT)
def test_last_of_each_day_then_of_each_month(store: Store, days: int, today: str, left: str) -> None:
    store.add([entry(0)])
    times = [at(text) for text in TIMES]
    store.finish([check(link(store, 0), moment) for moment in times])
    assert prune(store, days, at(today)) == len(times) - len(left)
    assert [moment for _, moment in history(store, history=True)] == [times[int(place)] for place in left]
    assert prune(store, days, at(today)) == 0


def test_an_empty_store_has_nothing_to_prune(store: Store) -> None:
    assert prune(store, 1, at("2030-01-01")) == 0


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    checks=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 400)), min_size=1, max_size=20),
    days=st.sampled_from([1, 7, 30]),
)
def test_what_is_latest_and_what_is_young_stays(
    new_url: Callable[[], str], checks: list[tuple[int, int]], days: int
) -> None:
    store = open_store(new_url())
    store.add([entry(n) for n in range(3)])
    found = {int(one.url[-1]): one for one in links(store)}
    store.finish([check(found[n], 1e9 + day * DAY) for n, day in checks])
    before, now = set(store.records(Query(history=True))), 1e9 + 200 * DAY
    latest, states = [store.latest(key(n)) for n in found], links(store)
    removed = prune(store, days, now)
    after = set(store.records(Query(history=True)))
    assert after <= before
    assert len(before) - len(after) == removed
    assert {one for one in before if one.checked_at >= now - days * DAY} <= after
    assert ([store.latest(key(n)) for n in found], links(store)) == (latest, states)
    assert store.books(now).records == len(after)
    store.close()
