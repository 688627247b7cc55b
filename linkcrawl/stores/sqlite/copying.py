"""The SQLite store as the source or the target of a copy."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from linkcrawl.items import RECORD_FIELDS
from linkcrawl.stores.copying import ROWS, SUMS, CopiedLink, CopiedMention, CopiedRecord, CopyProgress
from linkcrawl.stores.rows import record_document, state_document, state_of, to_json
from linkcrawl.stores.sqlite import reading
from linkcrawl.stores.sqlite.bulk_inserter import DictionaryTable
from linkcrawl.stores.sqlite.schema import faults

_COUNTS = (
    "SELECT count(*) FROM links",
    "SELECT count(*) FROM links WHERE retired_at IS NOT NULL",
    "SELECT count(*) FROM proxies",
    "SELECT count(*) FROM records",
    "SELECT count(*) FROM host_memory",
    "SELECT count(*) FROM robots",
    "SELECT count(*) FROM orders",
    "SELECT count(*) FROM harvests",
    "SELECT count(*) FROM check_requests",
)
_LINKS = """
SELECT links.*, hosts.name AS host FROM links JOIN hosts ON hosts.id = host_id WHERE key > ? ORDER BY key LIMIT ?
"""
_MENTIONS = """
SELECT proxies.*, collections.name AS collection, providers.name AS provider FROM proxies
LEFT JOIN collections ON collections.id = collection_id
LEFT JOIN providers ON providers.id = provider_id
WHERE link_id IN (SELECT value FROM json_each(?))
"""
_NAMES = """
SELECT link_id, name FROM link_{0}s JOIN {0}s ON {0}s.id = {0}_id WHERE link_id IN (SELECT value FROM json_each(?))
"""
_RECORDS = """
SELECT records.*, links.url AS url, links.key AS key, links.last_record_id = records.id AS is_latest
FROM records JOIN links ON links.id = records.link_id WHERE {after} ORDER BY records.checked_at, records.id LIMIT ?
"""
_REQUESTED = "SELECT request_id, lower(hex(key)), checked_at FROM requested_checks JOIN links ON links.id = link_id"
_LINK_COLUMNS = (
    "key", "url", "host_id", "priority", "expected_mime", "next_check_at", "retired_at", "last_checked_at",
    "last_category", "attempt", "interval", "hard_since", "hard_count", "hard_by_get",
)  # fmt: skip
_ADD_LINK = f"INSERT INTO links ({', '.join(_LINK_COLUMNS)}) VALUES ({', '.join('?' * len(_LINK_COLUMNS))})"
_ADD_MENTION = """
INSERT INTO proxies (link_id, collection_id, provider_id, record, resource_type, expected_mime, extra, retired_at,
                     harvest)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_RECORD_COLUMNS = ("link_id", *(name for name in RECORD_FIELDS if name != "url"))
_ADD_RECORD = f"INSERT INTO records ({', '.join(_RECORD_COLUMNS)}) VALUES (:{', :'.join(_RECORD_COLUMNS)})"
#: The tables of ROWS whose rows stand in columns of other names.
_TABLES = {"hosts": "host_memory"}
_COPY = "copy"


class SqliteCopyable:
    """See stores.copying.Copyable. `db`: the store's connection, with no transaction open."""

    def __init__(self, db: sqlite3.Connection, path: str):
        self._db = db
        self._path = path
        self._names = {table: DictionaryTable(table) for table in ("hosts", "collections", "providers")}

    def sums(self) -> dict[str, int]:
        with faults(self._path):
            return {what: self._db.execute(count).fetchone()[0] for what, count in zip(SUMS, _COUNTS, strict=True)}

    def links(self, after: bytes, limit: int) -> list[CopiedLink]:
        with faults(self._path):
            rows = self._db.execute(_LINKS, (after, limit)).fetchall()
            ids = json.dumps([row["id"] for row in rows])
            mentions = defaultdict(list)
            for row in self._db.execute(_MENTIONS, (ids,)):
                mentions[row["link_id"]].append(_mention(row))
            collections, providers = self._named("collection", ids), self._named("provider", ids)
        return [
            CopiedLink(
                key=row["key"],
                url=row["url"],
                host=row["host"],
                priority=row["priority"],
                expected_mime=row["expected_mime"],
                next_check_at=row["next_check_at"],
                retired_at=row["retired_at"],
                last_checked_at=row["last_checked_at"],
                last_category=row["last_category"],
                state=state_of(dict(row)),
                collections=tuple(sorted(collections[row["id"]])),
                providers=tuple(sorted(providers[row["id"]])),
                mentions=tuple(mentions[row["id"]]),
            )
            for row in rows
        ]

    def _named(self, of: str, ids: str) -> dict[int, list[str]]:
        names = defaultdict(list)
        for link_id, name in self._db.execute(_NAMES.format(of), (ids,)):
            names[link_id].append(name)
        return names

    def records(self, after: tuple[float, int] | None, limit: int) -> list[CopiedRecord]:
        condition = "(records.checked_at, records.id) > (?, ?)" if after is not None else "TRUE"
        with faults(self._path):
            rows = self._db.execute(_RECORDS.format(after=condition), (*(after or ()), limit)).fetchall()
        return [
            CopiedRecord(
                key=row["key"],
                record=reading.record(row),
                place=(row["checked_at"], row["id"]),
                is_latest=bool(row["is_latest"]),
            )
            for row in rows
        ]

    def rows(self, table: str) -> Iterator[tuple[Any, ...]]:
        statement = f"SELECT {', '.join(ROWS[table])} FROM {_TABLES.get(table, table)}"
        if table == "requested_checks":
            statement = _REQUESTED
        with faults(self._path):
            yield from map(tuple, self._db.execute(statement).fetchall())

    def progress(self) -> CopyProgress | None:
        with faults(self._path):
            row = self._db.execute("SELECT value FROM meta WHERE name = ?", (_COPY,)).fetchone()
        return None if row is None else CopyProgress.of(json.loads(row[0]))

    def add_links(self, links: Sequence[CopiedLink], progress: CopyProgress) -> None:
        with self._transaction() as db:
            for link in links:
                self._add_link(db, link)
            _note(db, progress)

    def _add_link(self, db: sqlite3.Connection, link: CopiedLink) -> None:
        def ids(table: str, name: str | None) -> int:
            return self._names[table].id(db, name) if name else 0

        state = state_document(link.state)
        values = (
            link.key, link.url, self._names["hosts"].id(db, link.host), link.priority, link.expected_mime,
            link.next_check_at, link.retired_at, link.last_checked_at, link.last_category,
            *(state[name] for name in ("attempt", "interval", "hard_since", "hard_count", "hard_by_get")),
        )  # fmt: skip
        link_id = db.execute(_ADD_LINK, values).lastrowid
        for of, names in (("collection", link.collections), ("provider", link.providers)):
            pairs = [(link_id, ids(f"{of}s", name)) for name in names]
            db.executemany(f"INSERT INTO link_{of}s (link_id, {of}_id) VALUES (?, ?)", pairs)
        db.executemany(
            _ADD_MENTION,
            (
                (
                    link_id,
                    ids("collections", mention.collection),
                    ids("providers", mention.provider),
                    mention.record or "",
                    mention.resource_type or "",
                    mention.expected_mime or "",
                    mention.extra,
                    mention.retired_at,
                    mention.harvest,
                )
                for mention in link.mentions
            ),
        )

    def add_records(self, records: Sequence[CopiedRecord], first: int, progress: CopyProgress) -> None:
        with self._transaction() as db:
            for copied in records:
                link_id = db.execute("SELECT id FROM links WHERE key = ?", (copied.key,)).fetchone()[0]
                document = record_document(copied.record)
                document |= {name: to_json(document[name]) for name in reading.JSON_COLUMNS}
                record_id = db.execute(_ADD_RECORD, {**document, "link_id": link_id}).lastrowid
                if copied.is_latest:
                    db.execute("UPDATE links SET last_record_id = ? WHERE id = ?", (record_id, link_id))
            _note(db, progress)

    def add_rows(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        columns, values = ", ".join(ROWS[table]), ", ".join("?" * len(ROWS[table]))
        if table == "requested_checks":
            columns, values = "request_id, link_id, checked_at", "?, (SELECT id FROM links WHERE key = ?), ?"
            rows = [(request, bytes.fromhex(link), checked_at) for request, link, checked_at in rows]
        with self._transaction() as db:
            db.executemany(f"INSERT OR REPLACE INTO {_TABLES.get(table, table)} ({columns}) VALUES ({values})", rows)

    def note(self, progress: CopyProgress | None) -> None:
        with self._transaction() as db:
            _note(db, progress)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with faults(self._path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                for names in self._names.values():
                    names.forget()
                raise


def _mention(row: sqlite3.Row) -> CopiedMention:
    return CopiedMention(
        collection=row["collection"],
        provider=row["provider"],
        record=row["record"] or None,
        resource_type=row["resource_type"] or None,
        expected_mime=row["expected_mime"] or None,
        extra=row["extra"],
        retired_at=row["retired_at"],
        harvest=row["harvest"],
    )


def _note(db: sqlite3.Connection, progress: CopyProgress | None) -> None:
    if progress is None:
        db.execute("DELETE FROM meta WHERE name = ?", (_COPY,))
    else:
        value = json.dumps(progress.document())
        db.execute("INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)", (_COPY, value))
