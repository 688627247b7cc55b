"""The queries of the SQLite store: due links, records by time, totals. Only SELECT statements."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from linkcrawl.items import FIELDS_OF_RECORD, HOPS, RETIRED, TEXTS, Category, DueLink, Record
from linkcrawl.stores.contract import (
    ASKED,
    REFUSALS,
    HostBacklog,
    KnownLink,
    LinkFilter,
    PlacedRecord,
    Position,
    Query,
    Totals,
)
from linkcrawl.stores.rows import after_prefix, from_json, glob, record_of, state_of
from linkcrawl.stores.sqlite.schema import REFUSED

# Links in one of the collections whose ids are in a JSON list: for statements that read many links …
_IN_COLLECTIONS = (
    "IN (SELECT link_id FROM link_collections WHERE collection_id IN (SELECT value FROM json_each(:collections)))"
)
# … and for those that read few: the list of a collection's links may be millions long.
_EACH_IN_COLLECTIONS = """EXISTS (
    SELECT 1 FROM link_collections
    WHERE link_id = links.id AND collection_id IN (SELECT value FROM json_each(:collections))
)"""
# Retired links that were mentioned last in one of them: in the mentions that were retired when the link was.
_LAST_IN_COLLECTIONS = """EXISTS (
    SELECT 1 FROM proxies
    WHERE link_id = links.id AND proxies.retired_at = links.retired_at
      AND collection_id IN (SELECT value FROM json_each(:collections))
)"""

_OF_HOSTS = """records.link_id IN (
    SELECT id FROM links INDEXED BY links_by_turn WHERE host_id IN (SELECT value FROM json_each(:hosts))
)"""
_OF_PROVIDERS = """EXISTS (
    SELECT 1 FROM link_providers
    WHERE link_id = links.id AND provider_id IN (SELECT value FROM json_each(:providers))
)"""
_LAST_OF_PROVIDERS = """EXISTS (
    SELECT 1 FROM proxies
    WHERE link_id = links.id AND proxies.retired_at = links.retired_at
      AND provider_id IN (SELECT value FROM json_each(:providers))
)"""

_DUE = """
SELECT id, url, :host AS host, priority, next_check_at, expected_mime, last_category, last_checked_at,
       attempt, interval, hard_since, hard_count, hard_by_get
FROM links INDEXED BY links_by_turn
WHERE host_id = :host_id AND priority = :priority AND {stretch} AND {condition}
ORDER BY next_check_at, id LIMIT :limit
"""
# The rest of one priority after a link. Not the row value (next_check_at, id) > (…): SQLite would seek by time alone,
# and a host's million links that were never checked have the same time.
_SAME_TIME = "next_check_at = :after_time AND id > :after_id"
_LATER = "next_check_at > :after_time"
_ALL = f"next_check_at >= {ASKED}"
_PRIORITY_BELOW = "SELECT max(priority) FROM links WHERE host_id = ? AND priority < ?"
_HIGHEST_PRIORITY = "SELECT max(priority) FROM links WHERE host_id = ?"

_NAMES_OF_LINKS = """
SELECT links.value, names.name
FROM json_each(?) AS links
JOIN link_{table} AS pairs ON pairs.link_id = links.value
JOIN {table} AS names ON names.id = pairs.{singular}_id
"""

_BACKLOG = """
SELECT hosts.name, counted.due
FROM (
    SELECT host_id, count(*) AS due FROM links INDEXED BY links_by_turn WHERE {condition} GROUP BY host_id
) AS counted
JOIN hosts ON hosts.id = counted.host_id
"""

_TOTALS = f"""
SELECT count(*) AS links, count(*) FILTER (WHERE next_check_at >= {RETIRED}) AS retired,
       count(last_checked_at) FILTER (WHERE next_check_at < {RETIRED}) AS checked,
       count(*) FILTER (WHERE next_check_at <= ?) AS due
FROM links INDEXED BY links_by_turn
"""

_RECORDS = """
SELECT records.*, links.url AS url FROM records JOIN links ON links.id = records.link_id {join}
{where}
ORDER BY records.checked_at, records.id {limit}
"""
# The range begins at the position's time, which an index finds; the rest leaves out what stands before.
_AFTER = "records.checked_at >= :after_at AND (records.checked_at > :after_at OR records.id > :after_id)"

#: Keys of links in one statement: SQLite takes 32,766 values in one.
KEYS_TOGETHER = 1000
_BEFORE = """
LEFT JOIN records AS before ON before.id = (
    SELECT id FROM records AS earlier
    WHERE earlier.link_id = records.link_id AND earlier.checked_at < records.checked_at
    ORDER BY earlier.checked_at DESC LIMIT 1
)
"""
_CHANGED = (
    "(before.id IS NULL OR before.category IS NOT records.category OR before.status IS NOT records.status"
    " OR before.final_url IS NOT records.final_url)"
)
_LATEST = """NOT EXISTS (
    SELECT 1 FROM records AS later
    WHERE later.link_id = records.link_id AND later.checked_at > records.checked_at {until}
)"""


#: Fields of a record that a column holds as JSON text.
JSON_COLUMNS = tuple(part.name for part in FIELDS_OF_RECORD if part.type in (TEXTS, HOPS))


class Globs:
    """Ids of the collections whose names match a glob, as a JSON list. Those of the last glob are cached until a
    collection is added: a crawl with `-a collection` asks for the same ones thousands of times. Not by SQLite's GLOB,
    which knows `[a-z]` too and ends at a NUL."""

    def __init__(self) -> None:
        self._asked: tuple[str, int] | None = None
        self._ids = "[]"

    def ids(self, db: sqlite3.Connection, pattern: str) -> str:
        newest = db.execute("SELECT max(id) FROM collections").fetchone()[0] or 0
        if self._asked != (pattern, newest):
            fits = glob(pattern).fullmatch
            rows = db.execute("SELECT id, name FROM collections WHERE id <= ?", (newest,))
            self._ids = json.dumps([row[0] for row in rows if fits(row[1])])
            self._asked = (pattern, newest)
        return self._ids


def _due_condition(
    db: sqlite3.Connection, now: float, link_filter: LinkFilter, globs: Globs, in_collections: str
) -> tuple[str, dict[str, Any]]:
    """The condition of a LinkFilter as SQL, and its values."""
    if link_filter.recheck_before is None:
        condition, values = "next_check_at <= :now", {"now": now}
    else:
        condition, values = (
            "last_checked_at IS NULL OR last_checked_at < :before",
            {"before": link_filter.recheck_before},
        )
        if link_filter.recheck_after is not None:
            condition, values = (
                f"{condition} OR last_checked_at > :after",
                {**values, "after": link_filter.recheck_after},
            )
        condition = f"next_check_at < {RETIRED} AND ({condition})"
    if link_filter.collection is None:
        return condition, values
    return f"{condition} AND {in_collections}", {**values, "collections": globs.ids(db, link_filter.collection)}


def checks_by_hour(db: sqlite3.Connection, since: float, until: float) -> dict[int, int]:
    """See Store.checks_by_hour."""
    rows = db.execute(
        "SELECT CAST(checked_at / 3600 AS INTEGER) * 3600, count(*) FROM records "
        "WHERE checked_at >= ? AND checked_at < ? GROUP BY 1",
        (since, until),
    )
    return dict(map(tuple, rows))


def backlog(db: sqlite3.Connection, now: float, link_filter: LinkFilter, globs: Globs) -> list[HostBacklog]:
    """See Store.backlog."""
    condition, values = _due_condition(db, now, link_filter, globs, f"id {_IN_COLLECTIONS}")
    rows = db.execute(_BACKLOG.format(condition=condition), values)
    fits = glob("*" if link_filter.host is None else link_filter.host).fullmatch
    return [HostBacklog(host=host, due=due) for host, due in rows if fits(host)]


def due(
    db: sqlite3.Connection,
    host: str,
    now: float,
    limit: int,
    link_filter: LinkFilter,
    after: DueLink | None,
    globs: Globs,
) -> list[DueLink]:
    """See Store.due. It makes one seek in the index for each priority of the host, however many links there are."""
    found = db.execute("SELECT id FROM hosts WHERE name = ?", (host,)).fetchone()
    if found is None or (link_filter.host is not None and not glob(link_filter.host).fullmatch(host)):
        return []
    condition, values = _due_condition(db, now, link_filter, globs, _EACH_IN_COLLECTIONS)
    values |= {"host_id": found[0], "host": host}
    if after is not None:
        values |= {"after_time": after.next_check_at, "after_id": after.id}
    rows: list[sqlite3.Row] = []
    for priority, stretch in _stretches(db, found[0], after):
        if len(rows) >= limit:
            break
        values |= {"priority": priority, "limit": limit - len(rows)}
        rows += db.execute(_DUE.format(stretch=stretch, condition=condition), values)
    return due_links(db, rows)


def _stretches(db: sqlite3.Connection, host_id: int, after: DueLink | None) -> Iterator[tuple[int, str]]:
    """The ranges of the index, in order, that hold a host's links after a link: priority, and a condition in it."""
    if after is None:
        priority = db.execute(_HIGHEST_PRIORITY, (host_id,)).fetchone()[0]
    else:
        yield after.priority, _SAME_TIME
        yield after.priority, _LATER
        priority = db.execute(_PRIORITY_BELOW, (host_id, after.priority)).fetchone()[0]
    while priority is not None:
        yield priority, _ALL
        priority = db.execute(_PRIORITY_BELOW, (host_id, priority)).fetchone()[0]


def link(db: sqlite3.Connection, key: bytes) -> DueLink | None:
    """See Store.link."""
    of_key = "SELECT links.*, name AS host FROM links JOIN hosts ON hosts.id = host_id WHERE key = ?"
    row = db.execute(of_key, (key,)).fetchone()
    return None if row is None else due_links(db, [row])[0]


def due_links(db: sqlite3.Connection, rows: Sequence[sqlite3.Row]) -> list[DueLink]:
    """Rows of `links`, with the name of the host, as links."""
    ids = [row["id"] for row in rows]
    collections = _names_of_links(db, ids, "collections", "collection")
    providers = _names_of_links(db, ids, "providers", "provider")
    return [
        DueLink(
            id=row["id"],
            url=row["url"],
            host=row["host"],
            priority=row["priority"],
            next_check_at=row["next_check_at"],
            collections=tuple(sorted(collections[row["id"]])),
            providers=tuple(sorted(providers[row["id"]])),
            expected_mime=row["expected_mime"],
            state=state_of(dict(row)),
            last_category=None if row["last_category"] is None else Category(row["last_category"]),
            last_checked_at=row["last_checked_at"],
        )
        for row in rows
    ]


def _names_of_links(db: sqlite3.Connection, ids: list[int], table: str, singular: str) -> dict[int, list[str]]:
    names: dict[int, list[str]] = defaultdict(list)
    if ids:
        for link_id, name in db.execute(_NAMES_OF_LINKS.format(table=table, singular=singular), (json.dumps(ids),)):
            names[link_id].append(name)
    return names


def _in_batches(keys: Sequence[bytes]) -> Iterator[list[bytes]]:
    rest = iter(keys)
    while some := list(islice(rest, KEYS_TOGETHER)):
        yield some


def lookup(db: sqlite3.Connection, keys: Sequence[bytes]) -> dict[bytes, KnownLink]:
    """See Store.lookup. The caller's transaction makes it one snapshot."""
    known: dict[bytes, KnownLink] = {}
    for some in _in_batches(keys):
        marks = ", ".join("?" * len(some))
        of_keys = f"SELECT links.*, name AS host FROM links JOIN hosts ON hosts.id = host_id WHERE key IN ({marks})"
        rows = db.execute(of_keys, some).fetchall()
        ids = json.dumps([row["last_record_id"] for row in rows if row["last_record_id"] is not None])
        latest_of = (
            "SELECT records.*, links.url AS url FROM records JOIN links ON links.id = records.link_id "
            "WHERE records.id IN (SELECT value FROM json_each(?))"
        )
        latest = {row["link_id"]: record(row) for row in db.execute(latest_of, (ids,))}
        for row, link in zip(rows, due_links(db, rows), strict=True):
            known[row["key"]] = KnownLink(link=link, record=latest.get(row["id"]))
    return known


def records(db: sqlite3.Connection, query: Query) -> Iterator[Record]:
    """See Store.records."""
    return map(record, _rows(db, query))


def page(db: sqlite3.Connection, query: Query, limit: int, after: Position | None) -> list[PlacedRecord]:
    """See Store.page."""
    rows = _rows(db, query, limit, after)
    return [PlacedRecord(record=record(row), position=Position(row["checked_at"], row["id"])) for row in rows]


def _rows(
    db: sqlite3.Connection, query: Query, limit: int | None = None, after: Position | None = None
) -> Iterator[sqlite3.Row]:
    where, join = [], ""
    values: dict[str, Any] = {"since": query.since, "until": query.until, "category": query.category}
    if after is not None:
        where.append(_AFTER)
        values |= {"after_at": after.at, "after_id": after.number}
    if query.since is not None:
        where.append("records.checked_at >= :since")
    if query.until is not None:
        where.append("records.checked_at < :until")
    if query.category is not None:
        where.append("records.category = :category")
    if query.link is None:
        where.append(f"links.next_check_at {'>=' if query.retired else '<'} {RETIRED}")
    else:
        where.append("records.link_id = :link")
        values["link"] = query.link
    if query.collection is not None:
        of_many = f"records.link_id {_IN_COLLECTIONS}" if limit is None else _EACH_IN_COLLECTIONS
        where.append(_LAST_IN_COLLECTIONS if query.retired else of_many)
        values["collections"] = Globs().ids(db, query.collection)
    where += _of_links(db, query, values) + _of_facts(query, values)
    if query.redirected:
        where.append("records.redirects > 0")
    if query.reasons:
        values |= {f"reason_{number}": reason for number, reason in enumerate(query.reasons)}
        where.append(f"records.reason IN ({', '.join(f':reason_{number}' for number in range(len(query.reasons)))})")
        if set(query.reasons) <= set(REFUSALS):
            where.append(f"records.{REFUSED}")
    if query.ended_at:
        ranges = ["records.final_url IS NULL"]
        for number, start in enumerate(query.ended_at):
            values |= {f"start_{number}": start, f"end_{number}": after_prefix(start)}
            ranges.append(f"(records.final_url >= :start_{number} AND records.final_url < :end_{number})")
        where.append(f"({' OR '.join(ranges)})")
    if not query.history:
        where.append(_LATEST.format(until="" if query.until is None else "AND later.checked_at < :until"))
    if query.changed:
        join = _BEFORE
        where.append(_CHANGED)
    statement = _RECORDS.format(
        join=join, where="WHERE " + " AND ".join(where) if where else "", limit="" if limit is None else "LIMIT :limit"
    )
    if limit is not None:
        values["limit"] = limit
        if query.link is None:
            statement = statement.replace(
                "FROM records JOIN links", "FROM records INDEXED BY records_by_time JOIN links"
            )
    return iter(db.execute(statement, values))


def _of_links(db: sqlite3.Connection, query: Query, values: dict[str, Any]) -> list[str]:
    """The conditions of a query about the links of records, collections aside; puts their values among `values`."""
    where = []
    if query.host is not None:
        values["hosts"] = _ids(db, "hosts", query.host)
        where.append(_OF_HOSTS)
    if query.provider is not None:
        values["providers"] = _ids(db, "providers", query.provider)
        where.append(_LAST_OF_PROVIDERS if query.retired else _OF_PROVIDERS)
    if query.due_at is not None:
        values["due_at"] = query.due_at
        where.append("links.next_check_at <= :due_at")
    return where


def _of_facts(query: Query, values: dict[str, Any]) -> list[str]:
    """The conditions of a query about `confirmed`, statuses and media types."""
    where = []
    if query.confirmed is not None:
        where.append(f"records.confirmed = {int(query.confirmed)}")
    if query.statuses:
        numbers = ", ".join(str(int(status)) for status in query.statuses if status is not None)
        without = " OR records.status IS NULL" if None in query.statuses else ""
        where.append(f"(records.status IN ({numbers}){without})")
    if query.mismatched:
        where.append("records.mime_matches = 0")
    for name, mime in (("expected_mime", query.expected_mime), ("mime", query.mime)):
        if mime is not None:
            values[name] = mime
            where.append(f"records.{name} = :{name}")
    return where


def _ids(db: sqlite3.Connection, table: str, pattern: str) -> str:
    """Ids of the names in a dictionary that match a glob, as a JSON list."""
    fits = glob(pattern).fullmatch
    return json.dumps([row[0] for row in db.execute(f"SELECT id, name FROM {table}") if fits(row[1])])


def latest(db: sqlite3.Connection, key: bytes) -> Record | None:
    """See Store.latest."""
    row = db.execute(
        "SELECT records.*, links.url AS url FROM links JOIN records ON records.id = links.last_record_id "
        "WHERE links.key = ?",
        (key,),
    ).fetchone()
    return None if row is None else record(row)


def history(db: sqlite3.Connection, key: bytes) -> Iterator[Record]:
    """See Store.history."""
    chosen = (
        "SELECT records.*, links.url AS url FROM links JOIN records ON records.link_id = links.id "
        "WHERE links.key = ? ORDER BY checked_at, records.id"
    )
    return map(record, db.execute(chosen, (key,)))


def record(row: sqlite3.Row) -> Record:
    """A row of `records`, with its link's url."""
    document = dict(row)
    document |= {name: from_json(document[name]) for name in JSON_COLUMNS}
    return record_of(document["link_id"], document["url"], document)


def books(db: sqlite3.Connection, now: float) -> Totals:
    """See Store.books. The caller's transaction makes the counts be of one moment."""
    links, retired, checked, due_now = db.execute(_TOTALS, (now,)).fetchone()
    active = links - retired
    return Totals(
        links=links,
        active=active,
        retired=retired,
        proxies=db.execute("SELECT count(*) FROM proxies").fetchone()[0] - _retired_mentions(db),
        checked=checked,
        never_checked=active - checked,
        due=due_now,
        later=active - due_now,
        records=db.execute("SELECT count(*) FROM records").fetchone()[0],
    )


def knows_retiring(db: sqlite3.Connection) -> bool:
    """False for an older store that may only be read: nothing of it is retired."""
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = 'proxies_retired'").fetchone() is not None


def _retired_mentions(db: sqlite3.Connection) -> int:
    if not knows_retiring(db):
        return 0
    counted = "SELECT count(*) FROM proxies INDEXED BY proxies_retired WHERE retired_at IS NOT NULL"
    return int(db.execute(counted).fetchone()[0])
