"""Migrating the MongoDB database of CLARIN's older link checker: its links, their results, and the history of those.

`linksToBeChecked` holds mentions of links. `linksChecked` holds the last result of each link, and `linksCheckedHistory`
the earlier ones; a result has a mention (url, record, collection, expectedMimeType) and facts: status, contentType,
byteSize, duration (ms), timestamp (ms), method, redirectCount, category, message. The facts are kept and judged by our
table; the old category and message decide only where there is no status.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from attrs import evolve, frozen
from pymongo.database import Database
from pymongo.errors import PyMongoError

from linkcrawl import urls
from linkcrawl.check.conclude import recorded
from linkcrawl.check.fields import bare_mime
from linkcrawl.check.procedure import Finding
from linkcrawl.check.recheck import Intervals, plan
from linkcrawl.check.rejudge import reason_of_status
from linkcrawl.check.verdict import judge
from linkcrawl.errors import ConfigError, StoreError
from linkcrawl.ingest.ingest import link_entry
from linkcrawl.items import LAST_MOMENT, DueLink, Finished, LinkState, Reject, Seed
from linkcrawl.sources.databases import CODEC, seed_of
from linkcrawl.stores.contract import Store
from linkcrawl.stores.mongo.schema import client_of, one_line
from linkcrawl.text import one_line as printable
from linkcrawl.urls.servers import shown

WAITING = "linksToBeChecked"
#: The collections that hold results, oldest first.
CHECKED = ("linksCheckedHistory", "linksChecked")
WOULD_WORK = "mongodb://HOST:PORT/DB"
BATCH = 1000

_MENTION = ("url", "record", "collection", "expectedMimeType")
#: Reasons by words of old messages, where there was no status: Java's exceptions, and what people wrote.
_MESSAGES = (
    ("timeout", ("timed out", "timeout")),
    ("dns_not_found", ("unknownhost", "unknown host", "not known", "nodename", "resolve")),
    ("connection_refused", ("refused",)),
    ("connection_reset", ("reset",)),
    ("host_unreachable", ("unreachable", "no route")),
    ("tls_error", ("ssl", "tls", "certificate", "pkix", "handshake")),
    ("too_many_redirects", ("redirect",)),
    ("forbidden_address", ("private", "loopback")),
)
_CATEGORIES = {
    "ok": "ok",
    "blocked_by_robots_txt": "robots_disallowed",
    "invalid_url": "invalid_url",
}


@frozen(kw_only=True)
class MigrationCounts:
    """How many documents of one old collection became what: documents = seeds + records + undated + rejected.
    `undated`: results without a time; only their links are migrated."""

    name: str
    documents: int
    seeds: int = 0
    records: int = 0
    undated: int = 0
    rejected: int = 0

    @property
    def balances(self) -> bool:
        return self.documents == self.seeds + self.records + self.undated + self.rejected

    def line(self) -> str:
        """One line for people."""
        what = f"{self.seeds} mentions" if self.name == WAITING else f"{self.records} results, {self.undated} undated"
        return f"{self.name}: {self.documents} documents: {what}, {self.rejected} rejected"


@frozen(kw_only=True)
class _Document:
    """A document: its mention, and where it is a result the document itself and its time (Unix seconds)."""

    seed: Seed
    document: Mapping[str, Any] | None = None
    checked_at: float | None = None


def migrate(source: str, store: Store | None, on_reject: Callable[[Reject], None]) -> list[MigrationCounts]:
    """Copy the database at a URL `mongodb://HOST:PORT/DB` into a store; without a store, only count. The old database
    is only read. Idempotent: links and records that the store has are left as they are. `on_reject` gets each document
    without a URL.

    Raises ConfigError for a database that can't be read or has none of the collections; StoreLost.
    """
    try:
        client = client_of(source, "migrate-legacy", WOULD_WORK)
    except StoreError as fault:
        raise ConfigError(str(fault)) from fault
    with client:
        try:
            database = client.get_default_database().with_options(codec_options=CODEC)
            return [_migrate(database, name, store, on_reject) for name in _names(database, source)]
        except PyMongoError as fault:
            raise ConfigError(f"migrate-legacy: {shown(source)} can't be read: {one_line(fault)}") from fault


def _names(database: Database[dict[str, Any]], source: str) -> list[str]:
    there = database.list_collection_names()
    names = [name for name in (WAITING, *CHECKED) if name in there]
    if not names:
        raise ConfigError(
            f"migrate-legacy: {shown(source)} has none of {', '.join((WAITING, *CHECKED))}; "
            "the database of the older link checker would work"
        )
    return names


def _migrate(
    database: Database[dict[str, Any]], name: str, store: Store | None, on_reject: Callable[[Reject], None]
) -> MigrationCounts:
    counts = MigrationCounts(name=name, documents=database[name].count_documents({}))
    documents = enumerate(database[name].find(sort=[("_id", 1)]), start=1)
    while part := list(islice(documents, BATCH)):
        rows = [_read(document, name, line) for line, document in part]
        found = [row for row in rows if isinstance(row, _Document)]
        for row in rows:
            if isinstance(row, Reject):
                on_reject(row)
        if store is not None:
            _copy(store, found, name)
        counts = _count(counts, found, len(rows) - len(found))
    return counts


def _read(document: dict[str, Any], name: str, line: int) -> _Document | Reject:
    mention = {field: document[field] for field in _MENTION if field in document}
    seed = seed_of(mention, name, line)
    if isinstance(seed, Reject):
        return evolve(seed, text=json.dumps(document, default=str)[:500])
    if name == WAITING:
        return _Document(seed=seed)
    return _Document(seed=seed, document=document, checked_at=_moment(document.get("timestamp")))


def _count(counts: MigrationCounts, batch: list[_Document], rejected: int) -> MigrationCounts:
    results = [row for row in batch if row.document is not None]
    dated = sum(row.checked_at is not None for row in results)
    return evolve(
        counts,
        seeds=counts.seeds + len(batch) - len(results),
        records=counts.records + dated,
        undated=counts.undated + len(results) - dated,
        rejected=counts.rejected + rejected,
    )


def _copy(store: Store, batch: list[_Document], name: str) -> None:
    entries = [link_entry(row.seed) for row in batch]
    store.add(entries)
    finished = []
    for row, entry in zip(batch, entries, strict=True):
        if row.document is not None and row.checked_at is not None:
            link = store.link(entry.key)
            assert link is not None  # it was just added
            finished.append(_finished(link, row.document, row.checked_at, name))
    store.finish(finished)


def _finished(link: DueLink, old: Mapping[str, Any], checked_at: float, name: str) -> Finished:
    """The old result as a record, and its link as after its first check: an old failure is suspected, not confirmed."""
    status = _number(old.get("status"), 100, 999)
    reason = reason_of(status, old)
    redirects = _number(old.get("redirectCount")) or 0
    target = urls.read(link.url)
    finding = Finding(
        verdict=judge(reason),
        status=status,
        method=_method(old.get("method")),
        redirects=redirects,
        final_url=None if redirects else target.url if isinstance(target, urls.Target) else link.url,
        timeout=reason == "timeout",
        duration_ms=_number(old.get("duration")),
        mime=bare_mime(_text(old.get("contentType")) or ""),
        content_length=_number(old.get("byteSize", old.get("contentLength"))),
        error=None if reason == "ok" else printable(_text(old.get("message")) or reason),
        at=checked_at,
    )
    planned = plan(LinkState(), None, finding, checked_at, Intervals(), None)
    record = recorded(link, finding, planned, checked_at, f"legacy {name}")
    return Finished(record=record, state=planned.state)


def reason_of(status: int | None, old: Mapping[str, Any]) -> str:
    """Our reason for an old result; `not_recorded` where nothing tells."""
    category = (_text(old.get("category")) or "").lower()
    if category in _CATEGORIES and (status is None or category != "ok"):
        return _CATEGORIES[category]
    if status is not None:
        return reason_of_status(status)
    message = (_text(old.get("message")) or "").lower()
    return next((reason for reason, words in _MESSAGES if any(word in message for word in words)), "not_recorded")


def _moment(value: Any) -> float | None:
    """A time of an old document (milliseconds, or a date) as Unix seconds; None for a value that is no time."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC).timestamp()
    milliseconds = _number(value, 1, LAST_MOMENT)
    return None if milliseconds is None else milliseconds / 1000


def _number(value: Any, least: int = 0, most: int = 2**63 - 1) -> int | None:
    """A whole number of an old document, which may be text; None where there is none from `least` to `most`."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if least <= number <= most and not isinstance(value, bool) else None


def _method(value: Any) -> str | None:
    """`HEAD` or `GET`; None for any other value, which a record can't have."""
    method = (_text(value) or "").strip().upper()
    return method if method in ("HEAD", "GET") else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None
