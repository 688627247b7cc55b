"""Computations that both stores share in making a Summary of what their aggregates return.

A Summary holds counts and short lists, whatever the size of the store. linkcrawl.reports makes ratios of them, and
chooses what is worth a person's time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime

from attrs import frozen

from linkcrawl.items import Category
from linkcrawl.stores.contract import Month, SummaryPart, Tally


@frozen(kw_only=True)
class Span:
    """How many links were in a category from the end of the month `begins` until before the end of the month `ends`
    (None: they still are). A check that was followed by another in the same month is in no span. A negative count takes
    retired links away from their last span."""

    category: Category
    begins: str
    ends: str | None
    count: int


def in_order(parts: Iterable[SummaryPart]) -> tuple[SummaryPart, ...]:
    """Parts in the order of a Summary."""
    return tuple(sorted(parts, key=lambda part: (-part.links, part.name or "")))


def tallies_in_order(tallies: Iterable[Tally]) -> tuple[Tally, ...]:
    """Tallies in the order of a SummaryPart."""
    return tuple(
        sorted(tallies, key=lambda one: (-one.count, one.category, one.reason, one.status or 0, one.confirmed))
    )


def whole(hosts: Iterable[SummaryPart]) -> SummaryPart:
    """The part of all links, added up over hosts: every link has exactly one host."""
    hosts = tuple(hosts)
    merged: dict[tuple[Category, int | None, str, bool], list[Tally]] = {}
    for host in hosts:
        for one in host.tallies:
            merged.setdefault((one.category, one.status, one.reason, one.confirmed), []).append(one)
    return SummaryPart(
        name=None,
        links=sum(host.links for host in hosts),
        proxies=sum(host.proxies for host in hosts),
        checked=sum(host.checked for host in hosts),
        overdue=sum(host.overdue for host in hosts),
        tallies=tallies_in_order(map(_added, merged.values())),
    )


def _added(alike: list[Tally]) -> Tally:
    first = alike[0]
    return Tally(
        category=first.category,
        status=first.status,
        reason=first.reason,
        confirmed=first.confirmed,
        count=sum(one.count for one in alike),
        timed=sum(one.timed for one in alike),
        total_ms=sum(one.total_ms for one in alike),
        max_ms=max((one.max_ms for one in alike if one.max_ms is not None), default=None),
        mismatches=sum(one.mismatches for one in alike),
    )


def months(spans: Iterable[Span], now: float) -> tuple[Month, ...]:
    """Every month from that of the first check to that of `now` (Unix seconds), also those without a check."""
    changes: dict[str, Counter[Category]] = {}
    for span in spans:
        changes.setdefault(span.begins, Counter())[span.category] += span.count
        if span.ends is not None:
            changes.setdefault(span.ends, Counter())[span.category] -= span.count
    if not changes:
        return ()
    last = max(*changes, f"{datetime.fromtimestamp(now, UTC):%Y-%m}")
    standing: Counter[Category] = Counter()
    found, month = [], min(changes)
    while month <= last:
        standing.update(changes.get(month, {}))
        found.append(Month(month=month, counts={category: standing[category] for category in Category}))
        month = _after(month)
    return tuple(found)


def _after(month: str) -> str:
    year, number = map(int, month.split("-"))
    return f"{year + number // 12:04d}-{number % 12 + 1:02d}"
