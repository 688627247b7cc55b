"""The older link checker's database, taken over: every document accounted for, facts kept, and again without harm."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from linkcrawl.check.verdict import judge
from linkcrawl.errors import ConfigError
from linkcrawl.ingest.clarin_legacy import MigrationCounts, migrate, reason_of
from linkcrawl.items import Category, Record, Reject
from linkcrawl.stores.contract import Query, Store, Totals
from linkcrawl.stores.opening import open_store
from linkcrawl.urls import identity
from tests.contract.mongodb import database, looking_at, server_url

MENTION = {"record": "r.xml", "collection": "C", "expectedMimeType": "application/pdf"}
RESULT = {
    **MENTION,
    "status": 200,
    "contentType": "application/PDF; charset=x",
    "byteSize": 1234,
    "duration": 250,
    "timestamp": 1_600_000_000_123,
    "method": "HEAD",
    "redirectCount": 0,
    "category": "Ok",
    "message": "Ok",
}
DAY_MS = 86_400_000


def result(url: str, days: int = 0, **fields: Any) -> dict[str, Any]:
    return {"url": url, **RESULT, "timestamp": RESULT["timestamp"] + days * DAY_MS, **fields}


DOCUMENTS = {
    "linksToBeChecked": [
        {"url": "https://a.example/1", **MENTION},
        {"url": "https://a.example/1", **MENTION, "collection": "D"},
        {"url": "https://a.example/new", **MENTION},
        {"url": "no scheme", **MENTION},
    ],
    "linksChecked": [
        result("https://a.example/1", 9),
        result("https://a.example/2", 9, status=404, category="Broken", message="Not Found"),
        result("https://a.example/3", timestamp=None),
        {"status": 200, "timestamp": 1},
    ],
    "linksCheckedHistory": [
        result("https://a.example/1", 1, status=503, category="Undetermined"),
        result("https://a.example/1", 2),
        result("https://a.example/2", 1),
    ],
}
MOVED = [
    MigrationCounts(name="linksToBeChecked", documents=4, seeds=3, rejected=1),
    MigrationCounts(name="linksCheckedHistory", documents=3, records=3),
    MigrationCounts(name="linksChecked", documents=4, records=2, undated=1, rejected=1),
]


@pytest.fixture
def old() -> Iterator[str]:
    with database(server_url()) as url, looking_at(url) as seen:
        for name, documents in DOCUMENTS.items():
            seen[name].insert_many([dict(document) for document in documents])
        yield url


def one(url: str, document: dict[str, Any], store: Store) -> Record:
    """The record that an old result becomes."""
    with looking_at(url) as seen:
        seen["linksChecked"].insert_one({**document, "url": "https://a.example/only"})
    migrate(url, store, lambda _: None)
    record = store.latest(identity("https://a.example/only"))
    assert record is not None
    return record


def test_every_document_becomes_something_and_is_counted(old: str, store: Store) -> None:
    rejects: list[Reject] = []
    moved = migrate(old, store, rejects.append)
    assert moved == MOVED
    assert all(one.balances for one in moved)
    assert [(reject.source, reject.line, reject.why) for reject in rejects] == [
        ("linksToBeChecked", 4, "url has no scheme"),
        ("linksChecked", 4, "no url"),
    ]
    assert store.books(0.0) == Totals(
        links=4, active=4, proxies=5, checked=2, never_checked=2, due=2, later=2, records=5
    )
    assert [(record.url[-1], record.reason) for record in store.records(Query(history=True))] == [
        ("1", "http_503"),
        ("2", "ok"),
        ("1", "ok"),
        ("1", "ok"),
        ("2", "http_404"),
    ]
    link = store.link(identity("https://a.example/1"))
    assert link is not None
    assert (link.collections, link.last_category) == (("C", "D"), Category.OK)


def test_again_it_changes_nothing(old: str, store: Store) -> None:
    migrate(old, store, lambda _: None)
    before = store.books(0.0), list(store.records(Query(history=True)))
    assert migrate(old, store, lambda _: None) == MOVED
    assert (store.books(0.0), list(store.records(Query(history=True)))) == before


def test_the_old_database_is_left_as_it_is(old: str, store: Store) -> None:
    with looking_at(old) as seen:
        before = {name: list(seen[name].find()) for name in DOCUMENTS}
        migrate(old, store, lambda _: None)
        migrate(old, None, lambda _: None)
        assert {name: list(seen[name].find()) for name in seen.list_collection_names()} == before


def test_the_facts_are_kept(url: str, opened: Callable[[str], Store]) -> None:
    with database(server_url()) as old:
        record = one(old, {**RESULT, "redirectCount": 2}, opened(url))
    told = record.row()
    assert told == told | {
        "checked_at": "2020-09-13T12:26:40.123Z",
        "category": "Ok",
        "reason": "ok",
        "status": 200,
        "method": "HEAD",
        "redirects": 2,
        "final_url": None,
        "duration_ms": 250,
        "expected_mime": "application/pdf",
        "mime": "application/pdf",
        "mime_matches": True,
        "content_length": 1234,
        "error": None,
        "hops": [],
        "crawler": "legacy linksChecked",
    }


BROKEN_OLD = {**RESULT, "status": 404, "category": "Broken"}


def test_an_old_failure_is_suspected_and_soon_asked_again(store: Store) -> None:
    with database(server_url()) as old:
        record = one(old, BROKEN_OLD, store)
    assert (record.category, record.confirmed, record.attempt) == (Category.BROKEN, False, 1)
    link = store.link(identity(record.url))
    assert link is not None
    assert (link.state.hard_count, link.state.hard_since) == (1, record.checked_at)
    assert link.next_check_at < record.checked_at + 2 * 86_400


@pytest.mark.parametrize(
    ("status", "category", "message", "reason"),
    [
        (200, "Ok", "Ok", "ok"),
        (404, "Broken", None, "http_404"),
        (404, "Ok", None, "http_404"),
        (403, "Restricted_Access", None, "http_403"),
        (429, "Undetermined", None, "rate_limited"),
        (302, "Undetermined", None, "redirect_nowhere"),
        (999, "Undetermined", None, "bot_challenge"),
        (None, "Ok", None, "ok"),
        (None, "Blocked_By_Robots_txt", "Blocked by robots.txt", "robots_disallowed"),
        (200, "Blocked_By_Robots_txt", None, "robots_disallowed"),
        (None, "Invalid_URL", "x", "invalid_url"),
        (None, "Broken", "java.net.UnknownHostException: a.example", "dns_not_found"),
        (None, "Broken", "Connect to a.example:443 failed: Connection refused", "connection_refused"),
        (None, "Undetermined", "Read timed out", "timeout"),
        (None, "Undetermined", "PKIX path building failed", "tls_error"),
        (None, "Broken", "Circular redirect to https://a.example/", "too_many_redirects"),
        (None, "Broken", "Connection reset", "connection_reset"),
        (None, "Broken", "", "not_recorded"),
        (None, None, None, "not_recorded"),
        (None, 7, {"$gt": ""}, "not_recorded"),
    ],
)
def test_reasons(status: int | None, category: Any, message: Any, reason: str) -> None:
    assert reason_of(status, {"category": category, "message": message}) == reason
    assert judge(reason).reason == reason


STRANGE: list[dict[str, Any]] = [
    {"status": "404"},
    {"status": 0},
    {"status": -1},
    {"status": 12345},
    {"status": [200]},
    {"timestamp": "1600000000123"},
    {"timestamp": datetime(2020, 1, 1, tzinfo=UTC)},
    {"duration": None, "byteSize": None, "contentType": None, "redirectCount": None, "method": None},
    {"duration": "x", "byteSize": -5, "contentType": 7, "redirectCount": {}, "method": 3},
    {"method": "get"},
    {"method": " head\n"},
    {"method": "OPTIONS"},
    {"message": "two\nlines\x1b[31m", "status": None},
    {"$where": "1", "a.b": {"$gt": ""}},
]


@pytest.mark.parametrize("fields", STRANGE, ids=str)
def test_strange_values_are_taken_as_they_may_be_meant(store: Store, fields: dict[str, Any]) -> None:
    with database(server_url()) as old:
        record = one(old, {**RESULT, **fields}, store)
    json.dumps(record.row())
    assert record.status in (None, 200, 404)
    assert record.method in (None, "HEAD", "GET")
    assert record.error is None or record.error.isprintable()
    assert 1.5e9 < record.checked_at < 1.7e9


@pytest.mark.parametrize("timestamp", [None, 0, -5, "yesterday", 10**30, True, {}], ids=str)
def test_a_result_without_a_time_is_a_link(store: Store, timestamp: Any) -> None:
    with database(server_url()) as old, looking_at(old) as seen:
        kept = str(timestamp) if timestamp == 10**30 else timestamp
        seen["linksChecked"].insert_one(result("https://a.example/", timestamp=kept))
        assert migrate(old, store, lambda _: None) == [MigrationCounts(name="linksChecked", documents=1, undated=1)]
    assert store.books(1.0) == Totals(links=1, active=1, proxies=1, never_checked=1, due=1)


@pytest.mark.parametrize("part", ["none of linksToBeChecked", "can't be read", "is not understood"])
def test_what_is_no_old_database_is_one_line(store: Store, part: str) -> None:
    with database(server_url()) as empty:
        source = {"none": empty, "can't": "mongodb://127.0.0.1:1/db?serverSelectionTimeoutMS=200"}.get(
            part.split()[0], "mongodb://127.0.0.1:x/db"
        )
        with pytest.raises(ConfigError, match=part) as refused:
            migrate(source, store, lambda _: None)
    assert "\n" not in str(refused.value)


def command(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SCRAPY_SETTINGS_MODULE": "linkcrawl.settings"}
    line = [sys.executable, "-m", "scrapy", "migrate-legacy", *args, "-s", f"LINKCRAWL_REJECTS={folder}/rejects"]
    return subprocess.run(
        [*line, "-s", f"LINKCRAWL_STORE=sqlite:///{folder}/store.db"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )


TOLD = """\
linksToBeChecked: 4 documents: 3 mentions, 1 rejected
linksCheckedHistory: 3 documents: 3 results, 0 undated, 0 rejected
linksChecked: 4 documents: 2 results, 1 undated, 1 rejected
rejected documents are in {folder}/rejects
"""
SUMS = """\
links in the store: 0 before, 4 after, 4 new
proxies in the store: 0 before, 5 after, 5 new
records in the store: 0 before, 5 after, 5 new
"""


def test_the_command_prints_counts_that_balance(old: str, tmp_path: Path) -> None:
    dry = command(tmp_path, old, "--dry-run")
    assert (dry.returncode, dry.stdout) == (0, TOLD.format(folder=tmp_path))
    assert not (tmp_path / "store.db").exists()
    done = command(tmp_path, old)
    assert (done.returncode, done.stdout) == (0, TOLD.format(folder=tmp_path) + SUMS)
    store = open_store(f"sqlite:///{tmp_path}/store.db")
    assert store.books(0.0).records == 5
    assert store.was_clean()
    store.close()


def test_the_command_refuses_what_cannot_be_used(tmp_path: Path) -> None:
    refused = command(tmp_path, "mongodb://u:secret@127.0.0.1:1/db?serverSelectionTimeoutMS=200")
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert refused.stderr.startswith("linkcrawl: migrate-legacy: mongodb://127.0.0.1:1/db can't be read")
