"""Queries that narrow records: by link, by judgement and by media type, alone and together."""

from __future__ import annotations

from itertools import combinations
from typing import Any

from attrs import evolve

from linkcrawl.items import Category, Record
from linkcrawl.stores.contract import Query, Store
from tests.contract.making import check, entry, link

HOSTS = ("a.example", "b.example:8080", "sub.a.example")
PROVIDERS = ("One", "on", None)
FACTS: tuple[dict[str, Any], ...] = (
    {},
    {"category": Category.BROKEN, "reason": "http_404", "status": 404, "confirmed": False},
    {"category": Category.BROKEN, "reason": "http_404", "status": 404},
    {"category": Category.UNDETERMINED, "reason": "timeout", "status": None},
    {"expected_mime": "application/pdf", "mime": "text/html", "mime_matches": False},
    {"expected_mime": "text/html", "mime": "text/html", "mime_matches": True},
)
NOW = 1000.0
#: Each filter: the query's fields, and whether it lets a record of a host and provider through.
FILTERS: dict[str, tuple[dict[str, Any], Any]] = {
    "host": ({"host": "*a.example"}, lambda record, host, provider: host != "b.example:8080"),
    "provider": ({"provider": "[Oo]n*"}, lambda record, host, provider: False),
    "provider *": ({"provider": "?n*"}, lambda record, host, provider: provider is not None),
    "provider one": ({"provider": "One"}, lambda record, host, provider: provider == "One"),
    "confirmed": ({"confirmed": True}, lambda record, host, provider: record.confirmed),
    "suspected": ({"confirmed": False}, lambda record, host, provider: not record.confirmed),
    "status": ({"statuses": (404,)}, lambda record, host, provider: record.status == 404),
    "no answer": ({"statuses": (None,)}, lambda record, host, provider: record.status is None),
    "either": ({"statuses": (None, 200)}, lambda record, host, provider: record.status in (None, 200)),
    "due": ({"due_at": NOW}, lambda record, host, provider: record.next_check_at <= NOW),
    "mismatch": ({"mismatched": True}, lambda record, host, provider: record.mime_matches is False),
    "claimed": (
        {"expected_mime": "application/pdf"},
        lambda record, host, provider: record.expected_mime == "application/pdf",
    ),
    "given": ({"mime": "text/html"}, lambda record, host, provider: record.mime == "text/html"),
    "reason": ({"reasons": ("timeout", "ok")}, lambda record, host, provider: record.reason in ("timeout", "ok")),
    "category": ({"category": Category.BROKEN}, lambda record, host, provider: record.category is Category.BROKEN),
}


def test_filters_alone_and_in_pairs(store: Store) -> None:
    kept: list[tuple[Record, str, str | None]] = []
    for n in range(36):
        host, provider = HOSTS[n % 3], PROVIDERS[n // 3 % 3]
        store.add([entry(n, host, provider=provider, collection="c")])
        finished = check(link(store, n, host), 100.0 + n, (NOW - 1, NOW, NOW + 1)[n // 2 % 3], **FACTS[n % 6])
        store.finish([finished])
        kept.append((evolve(finished.record), host, provider))
    for names in [*((name,) for name in FILTERS), *combinations(FILTERS, 2)]:
        asked: dict[str, Any] = {}
        for name in names:
            asked |= FILTERS[name][0]
        if len(asked) < len(names):
            continue  # both are about the same field
        wanted = [
            record for record, host, provider in kept if all(FILTERS[name][1](record, host, provider) for name in names)
        ]
        assert list(store.records(Query(**asked))) == wanted, names


def test_it_is_the_latest_record_that_counts_unless_history_is_asked_for(store: Store) -> None:
    store.add([entry(1)])
    store.finish([check(link(store, 1), 10.0, 20.0, **FACTS[1])])
    store.finish([check(link(store, 1), 20.0, 5000.0)])
    assert not list(store.records(Query(confirmed=False)))
    assert [found.checked_at for found in store.records(Query(confirmed=False, history=True))] == [10.0]
    assert not list(store.records(Query(due_at=NOW)))
    assert not list(store.records(Query(due_at=NOW, history=True)))  # the link is not due, whatever was planned before
