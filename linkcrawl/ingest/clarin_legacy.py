"""The database of CLARIN's older link checker, taken over: its links, its results and their history.

`linksToBeChecked` holds mentions of links; `linksChecked` the last result of each, `linksCheckedHistory` the ones
before, both with the mention (url, record, collection, expectedMimeType) and the facts: status, contentType, byteSize,
duration (ms), timestamp (ms), method, redirectCount, category, message. The facts are kept, and judged anew by
our table; only where there is no status do the old category and message decide.
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

from linkcrawl.check.conclude import recorded
from linkcrawl.check.fields import bare_mime
from linkcrawl.check.procedure import Finding
from linkcrawl.check.recheck import Intervals, plan
from linkcrawl.check.verdict import judge, reason_of_answer
from linkcrawl.errors import ConfigError, StoreError
from linkcrawl.ingest.ingest import entry
from linkcrawl.items import LAST_MOMENT, DueLink, Finished, LinkState, Reject, Seed
from linkcrawl.sources.databases import CODEC, seed_of
from linkcrawl.stores.contract import Store
from linkcrawl.stores.mongo.schema import client_of, one_line, shown
from linkcrawl.text import one_line as printable

WAITING = "linksToBeChecked"
#: Those that hold results, oldest first.
CHECKED = ("linksCheckedHistory", "linksChecked")
WOULD_WORK = "mongodb://HOST:PORT/DB"
BATCH = 1000

_MENTION = ("url", "record", "collection", "expectedMimeType")
#: What old messages say where there was no status: Java's exceptions, and words of people.
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
class Moved:
    """What became of the documents of one old collection: documents = seeds or records + undated + rejected.

    `undated`: results without a time, of which only the link was taken over.
    """

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
        """For people."""
        what = f"{self.seeds} mentions" if self.name == WAITING else f"{self.records} results, {self.undated} undated"
        return f"{self.name}: {self.documents} documents: {what}, {self.rejected} rejected"


@frozen(kw_only=True)
class _Result:
    """A document read: its mention, and its result where it has one."""

    seed: Seed
    document: Mapping[str, Any] | None = None
    checked_at: float | None = None


def migrate(source: str, store: Store | None, rejected: Callable[[Reject], None]) -> list[Moved]:
    """Take over the database of a URL `mongodb://HOST:PORT/DB` into a store; None only counts. Nothing of the old
    database is changed. Again, it changes nothing: links and records that are there already are left as they are.
    `rejected` is told of documents that have no URL.

    Raises ConfigError for a database that can't be read or has none of the collections; StoreLost.
    """
    try:
        client = client_of(source, "migrate-legacy", WOULD_WORK)
    except StoreError as fault:
        raise ConfigError(str(fault)) from fault
    with client:
        try:
            database = client.get_default_database().with_options(codec_options=CODEC)
            return [_move(database, name, store, rejected) for name in _names(database, source)]
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


def _move(
    database: Database[dict[str, Any]], name: str, store: Store | None, rejected: Callable[[Reject], None]
) -> Moved:
    moved = Moved(name=name, documents=database[name].count_documents({}))
    documents = enumerate(database[name].find(sort=[("_id", 1)]), start=1)
    while part := list(islice(documents, BATCH)):
        rows = [_read(document, name, line) for line, document in part]
        results = [row for row in rows if isinstance(row, _Result)]
        for row in rows:
            if isinstance(row, Reject):
                rejected(row)
        if store is not None:
            _take_over(store, results, name)
        moved = _counted(moved, results, len(rows) - len(results))
    return moved


def _read(document: dict[str, Any], name: str, line: int) -> _Result | Reject:
    mention = {field: document[field] for field in _MENTION if field in document}
    seed = seed_of(mention, name, line)
    if isinstance(seed, Reject):
        return evolve(seed, text=json.dumps(document, default=str)[:500])
    if name == WAITING:
        return _Result(seed=seed)
    return _Result(seed=seed, document=document, checked_at=_moment(document.get("timestamp")))


def _counted(one: Moved, batch: list[_Result], rejected: int) -> Moved:
    checked = [row for row in batch if row.document is not None]
    dated = sum(row.checked_at is not None for row in checked)
    return evolve(
        one,
        seeds=one.seeds + len(batch) - len(checked),
        records=one.records + dated,
        undated=one.undated + len(checked) - dated,
        rejected=one.rejected + rejected,
    )


def _take_over(store: Store, batch: list[_Result], name: str) -> None:
    entries = [entry(row.seed) for row in batch]
    store.add(entries)
    finished = []
    for row, one in zip(batch, entries, strict=True):
        if row.document is not None and row.checked_at is not None:
            link = store.link(one.key)
            assert link is not None  # as it was added
            finished.append(_finished(link, row.document, row.checked_at, name))
    store.finish(finished)


def _finished(link: DueLink, old: Mapping[str, Any], checked_at: float, name: str) -> Finished:
    """The old result as a record, and its link as after a first check: an old failure is suspected, not confirmed."""
    status = _number(old.get("status"), 100, 999)
    reason = reason_of(status, old)
    redirects = _number(old.get("redirectCount")) or 0
    finding = Finding(
        verdict=judge(reason),
        status=status,
        method=_method(old.get("method")),
        redirects=redirects,
        final_url=None if redirects else link.url,
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
    """Why an old result was as it was."""
    category = (_text(old.get("category")) or "").lower()
    if category in _CATEGORIES and (status is None or category != "ok"):
        return _CATEGORIES[category]
    if status is not None:
        return reason_of_answer(status, {})
    message = (_text(old.get("message")) or "").lower()
    return next((reason for reason, words in _MESSAGES if any(word in message for word in words)), "not_recorded")


def _moment(value: Any) -> float | None:
    """A time of an old document, milliseconds or a date, as Unix seconds; None for what can't be one."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC).timestamp()
    milliseconds = _number(value, 1, LAST_MOMENT)
    return None if milliseconds is None else milliseconds / 1000


def _number(value: Any, least: int = 0, most: int = 2**63 - 1) -> int | None:
    """A whole number of an old document, which may be text; None for none, and for one that can't be meant."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if least <= number <= most and not isinstance(value, bool) else None


def _method(value: Any) -> str | None:
    """`HEAD` or `GET`, which alone a record may have."""
    method = (_text(value) or "").strip().upper()
    return method if method in ("HEAD", "GET") else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None
