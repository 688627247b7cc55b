"""What a report is made of: sums by part that balance, the slowest, mismatches, and how links stood month by month."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkcrawl.items import Category
from linkcrawl.stores.contract import Mismatch, Query, Store, SummaryPart, Tally
from linkcrawl.stores.opening import open_store
from tests.contract.making import check, entry, link

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()


def at(month: int, day: int = 15, year: int = 2026) -> float:
    return datetime(year, month, day, tzinfo=UTC).timestamp()


def finish(store: Store, n: int, when: float, host: str = "a.example", **fields: object) -> None:
    store.finish([check(link(store, n, host), when, **fields)])  # type: ignore[arg-type]


def test_an_empty_store(store: Store) -> None:
    summary = store.summary(NOW)
    assert summary.overall == SummaryPart(name=None, links=0, proxies=0, checked=0, overdue=0)
    assert (summary.collections, summary.providers, summary.hosts) == ((), (), ())
    assert (summary.slowest, summary.mismatches, summary.months) == ((), (), ())
    assert summary.books == store.books(NOW)


def test_parts_count_links_mentions_and_outcomes(store: Store) -> None:
    store.add(
        [
            entry(1, collection="C", provider="P", record="1"),
            entry(1, collection="C", provider="P", record="2"),
            entry(1, collection="D"),
            entry(2, collection="C", host="b.example"),
            entry(3),
        ]
    )
    finish(store, 1, NOW - 100, next_at=NOW - 1, duration_ms=40)
    broken = {"category": Category.BROKEN, "reason": "http_404", "status": 404, "confirmed": False}
    finish(store, 2, NOW - 50, host="b.example", duration_ms=None, **broken)
    summary = store.summary(NOW)
    ok = Tally(
        category=Category.OK,
        status=200,
        reason="ok",
        confirmed=True,
        count=1,
        timed=1,
        total_ms=40,
        max_ms=40,
        mismatches=0,
    )
    gone = Tally(**broken, count=1, timed=0, total_ms=0, max_ms=None, mismatches=0)  # type: ignore[arg-type]
    c = SummaryPart(name="C", links=2, proxies=3, checked=2, overdue=1, tallies=(gone, ok))
    d = SummaryPart(name="D", links=1, proxies=1, checked=1, overdue=1, tallies=(ok,))
    none = SummaryPart(name=None, links=1, proxies=1, checked=0, overdue=0)
    assert summary.collections == (c, none, d)
    p = SummaryPart(name="P", links=1, proxies=2, checked=1, overdue=1, tallies=(ok,))
    without = SummaryPart(name=None, links=3, proxies=3, checked=2, overdue=1, tallies=(gone, ok))
    assert summary.providers == (without, p)
    a = SummaryPart(name="a.example", links=2, proxies=4, checked=1, overdue=1, tallies=(ok,))
    b = SummaryPart(name="b.example", links=1, proxies=1, checked=1, overdue=0, tallies=(gone,))
    assert summary.hosts == (a, b)
    assert summary.overall == SummaryPart(name=None, links=3, proxies=5, checked=2, overdue=1, tallies=(gone, ok))
    assert (c.never_checked, c.due, none.never_checked, none.due) == (0, 1, 1, 1)


def test_only_the_latest_check_of_a_link_counts(store: Store) -> None:
    store.add([entry(1, collection="C")])
    finish(store, 1, NOW - 200, category=Category.BROKEN, reason="http_404", status=404, duration_ms=9000)
    finish(store, 1, NOW - 100, duration_ms=5)
    summary = store.summary(NOW)
    assert [(tally.reason, tally.count) for tally in summary.overall.tallies] == [("ok", 1)]
    assert [record.duration_ms for record in summary.slowest] == [5]
    assert summary.books.records == 2


def test_the_slowest_first_and_no_more_than_asked_for(store: Store) -> None:
    times: list[int | None] = [30, None, 50, 10, 40]
    store.add([entry(n) for n in range(len(times))])
    for n, duration in enumerate(times):
        finish(store, n, NOW - 100 + n, duration_ms=duration)
    assert [record.duration_ms for record in store.summary(NOW, top=3).slowest] == [50, 40, 30]
    slowest = store.summary(NOW).slowest
    assert len(slowest) == 4
    assert slowest[0] == next(record for record in store.records() if record.duration_ms == 50)


def test_media_types_that_differ_by_pair(store: Store) -> None:
    pairs = [("application/pdf", "text/html")] * 3 + [("text/xml", "text/html")] + [("text/html", "text/html")]
    for n, (expected, got) in enumerate(pairs):
        store.add([entry(n, expected_mime=expected)])
        finish(store, n, NOW - n - 1, mime=got, mime_matches=expected == got)
    store.add([entry(len(pairs), expected_mime="text/html")])
    finish(store, len(pairs), NOW - 60, mime=None, mime_matches=None)
    summary = store.summary(NOW)
    assert summary.mismatches == (
        Mismatch(expected="application/pdf", got="text/html", count=3, example="https://a.example/0"),
        Mismatch(expected="text/xml", got="text/html", count=1, example="https://a.example/3"),
    )
    assert store.summary(NOW, top=1).mismatches == summary.mismatches[:1]
    assert sum(tally.mismatches for tally in summary.overall.tallies) == 4


def test_months_show_how_links_stood_not_how_often_they_were_asked(store: Store) -> None:
    store.add([entry(1), entry(2)])
    finish(store, 1, at(12, year=2025))
    for day in (1, 10, 20):  # a broken link is asked often: it is still one link
        finish(store, 2, at(2, day), category=Category.BROKEN, reason="http_404")
    finish(store, 2, at(4, 5), category=Category.RESTRICTED, reason="http_403")
    finish(store, 2, at(4, 6))
    months = store.summary(at(5)).months
    assert [month.month for month in months] == ["2025-12", "2026-01", "2026-02", "2026-03", "2026-04", "2026-05"]
    counts = [tuple(month.counts[category] for category in (Category.OK, Category.BROKEN)) for month in months]
    assert counts == [(1, 0), (1, 0), (1, 1), (1, 1), (2, 0), (2, 0)]
    assert all(sum(month.counts.values()) == sum(pair) for month, pair in zip(months, counts, strict=True))


def test_a_months_last_and_first_moment_are_utc(store: Store) -> None:
    store.add([entry(1), entry(2)])
    finish(store, 1, at(11, 1) - 0.001)
    finish(store, 2, at(11, 1))
    assert [month.counts[Category.OK] for month in store.summary(NOW).months] == [1, 2]


@pytest.mark.parametrize("name", ["", "a\nb", "<b>", "$where", "a.b", "ü" * 300])
def test_parts_have_the_names_that_were_given(store: Store, name: str) -> None:
    store.add([entry(1, collection=name, provider=name)])
    summary = store.summary(NOW)
    assert [part.name for part in (*summary.collections, *summary.providers)] == [name or None] * 2


def test_redirected_records_alone(store: Store) -> None:
    store.add([entry(n) for n in range(3)])
    finish(store, 0, NOW - 9, redirects=2)
    finish(store, 1, NOW - 8)
    finish(store, 2, NOW - 7, redirects=1)
    finish(store, 2, NOW - 6)
    assert [record.url for record in store.records(Query(redirected=True))] == ["https://a.example/0"]
    assert [record.redirects for record in store.records(Query(redirected=True, history=True))] == [2, 1]


SEEDS = st.lists(st.tuples(st.integers(0, 6), st.sampled_from([None, "C", "D"]), st.sampled_from([None, "P"])))
CHECKS = st.lists(
    st.tuples(
        st.integers(0, 6),
        st.integers(1, 400),
        st.integers(1, 400),
        st.sampled_from(list(Category)),
        st.none() | st.integers(0, 9),
    ),
    max_size=20,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seeds=SEEDS, checks=CHECKS, today=st.integers(400, 500))
def test_whatever_happened_the_sums_agree(
    new_url: Callable[[], str],
    seeds: list[tuple[int, str | None, str | None]],
    checks: list[tuple[int, int, int, Category, int | None]],
    today: int,
) -> None:
    store = open_store(new_url())
    store.add([entry(n, host=f"h{n % 2}", collection=name, provider=provider) for n, name, provider in seeds])
    known = {n for n, _, _ in seeds}
    for n, day, next_day, category, duration in checks:
        if n in known:
            made = {"category": category, "reason": category.lower(), "duration_ms": duration}
            finish(store, n, day * 86400.0, host=f"h{n % 2}", next_at=next_day * 86400.0, **made)
    now = today * 86400.0
    summary = store.summary(now)
    books = store.books(now)
    whole = summary.overall
    assert summary.books == books
    assert (whole.links, whole.proxies, whole.checked, whole.due) == (
        books.links,
        books.proxies,
        books.checked,
        books.due,
    )
    for parts in (summary.collections, summary.providers):
        assert sum(part.proxies for part in parts) == books.proxies
    for part in (whole, *summary.collections, *summary.providers, *summary.hosts):
        assert sum(tally.count for tally in part.tallies) == part.checked <= part.links
        assert part.overdue <= part.checked
    table = Counter[tuple[Category, int | None, str]]()
    for tally in whole.tallies:
        table[tally.category, tally.status, tally.reason] += tally.count
    assert table == Counter((record.category, record.status, record.reason) for record in store.records())
    if summary.months:
        standing = Counter(record.category for record in store.records())
        assert {category: count for category, count in summary.months[-1].counts.items() if count} == standing
    store.close()
