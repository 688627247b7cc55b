"""The books balance after any sequence of calls, and say what a plain model of the same calls says."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkcrawl.stores.contract import Store, Totals
from linkcrawl.stores.opening import open_store
from tests.contract.making import check, entry, history, link

NUMBERS = st.integers(0, 5)
TIMES = st.integers(1, 40).map(float)
ADD = st.tuples(st.just("add"), st.lists(st.tuples(NUMBERS, st.sampled_from([None, "C", "D"])), max_size=4))
FINISH = st.tuples(st.just("finish"), st.lists(st.tuples(NUMBERS, TIMES, TIMES), max_size=4))
REOPEN = st.tuples(st.just("reopen"), st.none())


class Model:
    """What a store must know, in the simplest form: mentions, and each link's checks by time."""

    def __init__(self) -> None:
        self.mentions: set[tuple[int, str | None]] = set()
        self.checks: dict[int, dict[float, float]] = {}

    def due_at(self, n: int) -> float:
        return self.checks[n][max(self.checks[n])] if self.checks[n] else 0.0

    def books(self, now: float) -> Totals:
        checked = sum(bool(times) for times in self.checks.values())
        due = sum(self.due_at(n) <= now for n in self.checks)
        return Totals(
            links=len(self.checks),
            active=len(self.checks),
            proxies=len(self.mentions),
            checked=checked,
            never_checked=len(self.checks) - checked,
            due=due,
            later=len(self.checks) - due,
            records=sum(len(times) for times in self.checks.values()),
        )


def _apply(store: Store, model: Model, what: str, batch: list[tuple[int, ...]]) -> None:
    if what == "add":
        before = len(model.checks), len(model.mentions)
        for n, collection in batch:
            model.mentions.add((n, collection))  # type: ignore[arg-type]
            model.checks.setdefault(n, {})
        taken = store.add([entry(n, collection=collection) for n, collection in batch])
        assert (taken.new, taken.proxies) == (len(model.checks) - before[0], len(model.mentions) - before[1])
        assert taken.new + taken.known == len(batch)
    else:
        known = [(n, at, next_at) for n, at, next_at in batch if n in model.checks]
        for n, at, next_at in known:
            model.checks[n].setdefault(at, next_at)
        store.finish([check(link(store, n), at, next_at) for n, at, next_at in known])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(ADD | FINISH | REOPEN, max_size=12), now=TIMES)
def test_the_books_balance(
    new_url: Callable[[], str], steps: list[tuple[str, list[tuple[int, ...]]]], now: float
) -> None:
    url = new_url()
    store, model = open_store(url), Model()
    for what, batch in steps:
        if what == "reopen":
            store.close()
            store = open_store(url)
        else:
            _apply(store, model, what, batch)
        books = store.books(now)
        assert books.active == books.checked + books.never_checked == books.due + books.later
        assert books == model.books(now)
        assert sum(line.due for line in store.backlog(now)) == books.due
        assert sum(tally.count for tally in store.summary(now).overall.tallies) == books.checked
    assert sorted(history(store, history=True)) == sorted(
        (f"https://a.example/{n}", at) for n, times in model.checks.items() for at in times
    )
    store.close()
