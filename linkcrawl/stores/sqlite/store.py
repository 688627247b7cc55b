"""The store in one SQLite file: enough for one machine with a catalogue of millions of links.

Writers and readers don't block each other (WAL). A crawl claims the store by a lock on a file beside it, which the
system releases when the process ends. The schema and its versions are in `schema`.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager

from linkcrawl.errors import StoreError, StoreLost
from linkcrawl.items import RECORD_FIELDS, RETIRED, DueLink, Finished, HostMemory, Order, Record, Rejudged, RobotsFile
from linkcrawl.stores.contract import (
    AddCounts,
    CheckProgress,
    CheckRequest,
    ClusterName,
    HostBacklog,
    KnownLink,
    LinkEntry,
    LinkFilter,
    PlacedRecord,
    Position,
    Proxy,
    Purged,
    Query,
    Retired,
    Summary,
    Totals,
)
from linkcrawl.stores.rows import from_json, record_document, state_document, text, to_json
from linkcrawl.stores.sqlite import asking, orders, purging, reading, rejudging, retiring
from linkcrawl.stores.sqlite.bulk_inserter import BulkInserter
from linkcrawl.stores.sqlite.copying import SqliteCopyable
from linkcrawl.stores.sqlite.file import hold, identity, is_held, path_of
from linkcrawl.stores.sqlite.mentions import proxies
from linkcrawl.stores.sqlite.schema import connect, faults, open_file
from linkcrawl.stores.sqlite.summary import summary

_RECORD_COLUMNS = ("link_id", *(name for name in RECORD_FIELDS if name != "url"))
_ADD_RECORD = (
    f"INSERT INTO records ({', '.join(_RECORD_COLUMNS)}) VALUES (:{', :'.join(_RECORD_COLUMNS)}) "
    "ON CONFLICT (link_id, checked_at) DO NOTHING"
)
# A record that is older than the link's latest joins the history only; unless a clock was put back, and that latest is
# the one that the check began on.
# A retired link stays retired.
_MOVE_LINK = f"""
UPDATE links
SET next_check_at = iif(next_check_at < {RETIRED}, :next_check_at, next_check_at),
    last_checked_at = :checked_at, last_record_id = :record_id,
    last_category = :category, attempt = :attempt, interval = :interval,
    hard_since = :hard_since, hard_count = :hard_count, hard_by_get = :hard_by_get
WHERE id = :link_id AND (last_checked_at IS NULL OR last_checked_at < :checked_at OR last_checked_at = :before)
"""
_REMEMBER = """
INSERT INTO host_memory (host, head_useless_since, last_end, failing_since, failing_days, pace, robots)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (host) DO UPDATE SET head_useless_since = excluded.head_useless_since, last_end = excluded.last_end,
    failing_since = excluded.failing_since, failing_days = excluded.failing_days, pace = excluded.pace,
    robots = excluded.robots
"""


class SqliteStore:
    """The store contract (stores.contract.Store) on one file."""

    def __init__(self, path: str, db: sqlite3.Connection):
        self._path = path
        self._db = db
        self._file = identity(path)
        self._side_files: dict[str, tuple[int, int] | None] = {}  # those of SQLite's WAL, once they are there
        self._inserter = BulkInserter()
        self._globs = reading.Globs()
        self._lock: int | None = None
        self._before_was_clean: bool | None = None

    @classmethod
    def open(cls, url: str, *, to_write: bool = True) -> SqliteStore:
        """The store of a URL `sqlite:///relative.db` or `sqlite:////absolute.db`. Raises StoreError, also for one that
        can't be written where it is opened `to_write`."""
        path = path_of(url)
        return cls(path, open_file(path, to_write=to_write))

    def copyable(self) -> SqliteCopyable:
        return SqliteCopyable(self._db, self._path)

    def close(self) -> None:
        self._db.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    # -- one crawl at a time ------------------------------------------------------------------------------------

    def claim(self, shared: ClusterName | None = None) -> None:
        if shared is not None:
            raise StoreError(
                f"LINKCRAWL_STORE: {self._path}: SQLite serves one process, not a cluster; "
                "mongodb://HOST:PORT/DB would work"
            )
        if self._lock is not None:
            return
        lock = hold(f"{self._path}.lock")
        try:
            self._before_was_clean = self._read_clean()
            self._write_clean(False)
        except BaseException:
            os.close(lock)
            raise
        self._lock = lock

    def was_clean(self) -> bool:
        return self._read_clean() if self._before_was_clean is None else self._before_was_clean

    def mark_clean(self) -> None:
        self._write_clean(True)

    def is_claimed(self) -> bool:
        return self._lock is not None or is_held(f"{self._path}.lock")

    @property
    def may_send(self) -> bool:
        return True  # the system keeps the lock as long as this process lives

    def _read_clean(self) -> bool:
        with faults(self._path):
            row = self._db.execute("SELECT value FROM meta WHERE name = 'clean'").fetchone()
        return row is None or row["value"] == "1"

    def _write_clean(self, clean: bool) -> None:
        with self._transaction() as db:
            db.execute(
                "INSERT INTO meta (name, value) VALUES ('clean', ?) "
                "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (str(int(clean)),),
            )

    # -- writing ------------------------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit all of the block or nothing. The write lock is taken first, so that what the block reads doesn't
        change."""
        with faults(self._path):
            self._check_files()
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                self._inserter.forget()
                if self._db.in_transaction:  # SQLite itself has rolled back after a full disk
                    self._db.execute("ROLLBACK")
                raise

    def _check_files(self) -> None:
        """Raise StoreLost where the store's files are no longer those that are open: SQLite itself would write on into
        deleted ones. What a deleted WAL holds is written to the store's file, which nobody else can do any more."""
        self._check_file()
        names = [f"{self._path}{suffix}" for suffix in ("-wal", "-shm")]
        for name, before in self._side_files.items():
            if identity(name) != before:
                if not any(map(os.path.exists, names)):  # else another process uses a WAL of its own
                    self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                raise StoreLost(f"{name} was deleted or replaced while in use")
        found = {name: identity(name) for name in names if name not in self._side_files}
        self._side_files |= {name: known for name, known in found.items() if known is not None}

    def _check_file(self) -> None:
        """Raise StoreLost where the file was deleted or replaced: SQLite would go on with the one that is open."""
        if identity(self._path) != self._file:
            raise StoreLost(f"{self._path} was deleted or replaced while in use")

    def add(self, entries: Sequence[LinkEntry], harvest: int = 0) -> AddCounts:
        with self._transaction() as db:
            return self._inserter.add(db, entries, harvest)

    def begin_harvest(self, now: float) -> int:
        with self._transaction() as db:
            return retiring.begin(db, now)

    def end_harvest(self, harvest: int, now: float) -> None:
        with self._transaction() as db:
            retiring.end(db, harvest, now)

    def mark(self, entries: Sequence[LinkEntry], harvest: int) -> None:
        with self._transaction() as db:
            self._inserter.mark(db, entries, harvest)

    def known(self, keys: Collection[bytes]) -> set[bytes]:
        with faults(self._path):
            return self._inserter.known(self._db, keys)

    def retirements(self) -> int:
        with faults(self._path):
            return retiring.retirements(self._db)

    def retired_among(self, link_ids: Sequence[int | str]) -> set[int | str]:
        active = f"SELECT id FROM links WHERE id IN (SELECT value FROM json_each(?)) AND next_check_at < {RETIRED}"
        with faults(self._path):
            return set(link_ids) - {row[0] for row in self._db.execute(active, (json.dumps(list(link_ids)),))}

    def history(self, key: bytes) -> Iterator[Record]:
        with faults(self._path), self._snapshot() as db:
            yield from reading.history(db, key)

    def retired_before(self, moment: float) -> Iterator[bytes]:
        with faults(self._path), self._snapshot() as db:
            yield from purging.retired_before(db, moment)

    def only_in(self, names: Sequence[str]) -> Iterator[bytes]:
        with faults(self._path), self._snapshot() as db:
            yield from purging.only_in(db, names)

    def purge(self, keys: Collection[bytes], *, dry_run: bool = False) -> Purged:
        if dry_run:
            with faults(self._path):
                return purging.count(self._db, keys)
        with self._transaction() as db:
            retiring.count(db)
            return purging.purge(db, keys)

    def purge_mentions(self, names: Sequence[str], *, dry_run: bool = False) -> int:
        if dry_run:
            with faults(self._path):
                return purging.count_mentions(self._db, names)
        with self._transaction() as db:
            return purging.purge_mentions(db, names)

    def links_of(self, collection: str) -> int:
        with faults(self._path):
            return retiring.links_of(self._db, collection)

    def lost(self, harvest: int, collection: str, before: Sequence[str] = ()) -> Iterator[bytes]:
        with faults(self._path), self._snapshot() as db:
            yield from retiring.lost(db, harvest, collection, before)

    def retire(self, harvest: int, collection: str, now: float) -> Retired:
        with self._transaction() as db:
            return retiring.retire(db, harvest, collection, now)

    def retire_mentions(self, entries: Sequence[LinkEntry], now: float) -> Retired:
        with self._transaction() as db:
            return retiring.retire_mentions(db, entries, now)

    def finish(self, finished: Sequence[Finished]) -> frozenset[int | str]:
        with self._transaction() as db:
            for check in finished:
                _finish(db, check)
        return frozenset()  # one crawl has claimed the file: nobody else checks its links

    def remember(self, memories: Iterable[HostMemory]) -> None:
        with self._transaction() as db:
            db.executemany(
                _REMEMBER,
                (
                    (
                        text(memory.host),
                        memory.head_useless_since,
                        memory.last_end,
                        memory.failing_since,
                        to_json(memory.failing_days),
                        to_json(dict(memory.pace)),
                        to_json(dict(memory.robots)),
                    )
                    for memory in memories
                ),
            )

    def remember_robots(self, files: Iterable[RobotsFile]) -> None:
        with self._transaction() as db:
            db.executemany(
                "INSERT INTO robots (authority, until, entry) VALUES (?, ?, ?) "
                "ON CONFLICT (authority) DO UPDATE SET until = excluded.until, entry = excluded.entry",
                ((text(file.authority), file.until, to_json(dict(file.entry))) for file in files),
            )

    def forget_robots(self, now: float) -> int:
        with self._transaction() as db:
            return db.execute("DELETE FROM robots WHERE until < ?", (now,)).rowcount

    def give_order(self, order: Order) -> None:
        with self._transaction() as db:
            orders.give(db, order)

    def orders(self) -> dict[str, Order]:
        with faults(self._path):
            return orders.orders(self._db)

    def ask(self, request: CheckRequest, link_ids: Sequence[int | str]) -> int:
        with self._transaction() as db:
            return asking.ask(db, request, link_ids)

    def asked(self, limit: int, after: int | str | None = None) -> list[DueLink]:
        with faults(self._path):
            return asking.asked(self._db, limit, after)

    def check_request(self, request_id: str) -> CheckRequest | None:
        with faults(self._path):
            return asking.check_request(self._db, request_id)

    def progress(self, request_id: str) -> CheckProgress:
        with faults(self._path), self._snapshot() as db:
            return asking.progress(db, request_id)

    def answers(self, request_id: str) -> Iterator[Record]:
        with faults(self._path), self._snapshot() as db:
            yield from asking.answers(db, request_id)

    def withdraw(self, link_ids: Sequence[int | str], since: float, reason: str, error: str, now: float) -> int:
        with self._transaction() as db:
            return orders.withdraw(db, link_ids, since, reason, error, now)

    def rejudge(self, rejudged: Sequence[Rejudged]) -> frozenset[int | str]:
        with self._transaction() as db:
            return rejudging.rejudge(db, rejudged)

    def prune(self, since: float, until: float) -> int:
        with self._transaction() as db:
            return orders.prune(db, since, until)

    # -- reading ------------------------------------------------------------------------------------------------

    def backlog(self, now: float, link_filter: LinkFilter = LinkFilter()) -> list[HostBacklog]:
        with faults(self._path):
            return reading.backlog(self._db, now, link_filter, self._globs)

    def due(
        self, host: str, now: float, limit: int, link_filter: LinkFilter = LinkFilter(), after: DueLink | None = None
    ) -> list[DueLink]:
        with faults(self._path):
            return reading.due(self._db, text(host), now, limit, link_filter, after, self._globs)

    def next_due_at(self, now: float) -> float | None:
        with faults(self._path):
            row = self._db.execute("SELECT min(next_check_at) FROM links WHERE next_check_at > ?", (now,)).fetchone()
        moment: float | None = row[0]
        return None if moment == RETIRED else moment

    def recall_future(self, after: float, now: float) -> tuple[int, float]:
        with self._transaction() as db:
            return orders.recall_future(db, after, now)

    def revision(self) -> int:
        with faults(self._path):
            return int(self._db.execute("PRAGMA data_version").fetchone()[0])

    def link(self, key: bytes) -> DueLink | None:
        with faults(self._path):
            return reading.link(self._db, key)

    def latest(self, key: bytes) -> Record | None:
        with faults(self._path):
            return reading.latest(self._db, key)

    def judged_before(self, version: int, limit: int, after: int | str | None = None) -> list[tuple[DueLink, Record]]:
        with faults(self._path), self._snapshot() as db:
            return rejudging.judged_before(db, version, limit, after)

    def proxies(self, link_ids: Sequence[int | str]) -> dict[int | str, list[Proxy]]:
        with faults(self._path):
            return proxies(self._db, link_ids)

    def checks_by_hour(self, since: float, until: float) -> dict[int, int]:
        with faults(self._path):
            return reading.checks_by_hour(self._db, since, until)

    def books(self, now: float) -> Totals:
        with faults(self._path), self._snapshot() as db:
            return reading.books(db, now)

    def collections(self) -> list[str]:
        with faults(self._path):
            return sorted(row["name"] for row in self._db.execute("SELECT name FROM collections"))

    def summary(self, now: float, top: int = 100) -> Summary:
        with faults(self._path), self._snapshot() as db:
            return summary(db, now, top)

    def records(self, query: Query = Query()) -> Iterator[Record]:
        with faults(self._path), self._snapshot() as db:
            yield from reading.records(db, query)

    def page(self, query: Query, limit: int, after: Position | None = None) -> list[PlacedRecord]:
        with faults(self._path), self._reading() as db:
            return reading.page(db, query, limit, after)

    def lookup(self, keys: Sequence[bytes]) -> dict[bytes, KnownLink]:
        with faults(self._path), self._reading() as db:
            return reading.lookup(db, keys)

    def fingerprint(self) -> str:
        with faults(self._path):
            self._check_file()
            return str(self._db.execute("PRAGMA data_version").fetchone()[0])

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """One snapshot on the store's own connection: for what is read at once, since opening another takes longer than
        reading a link does."""
        self._check_file()
        self._db.execute("BEGIN")
        try:
            yield self._db
        finally:
            self._db.execute("COMMIT")

    def hosts(self, names: Sequence[str] | None = None) -> Iterator[HostMemory]:
        chosen = "" if names is None else "WHERE host IN (SELECT value FROM json_each(?)) "
        given = () if names is None else (json.dumps([text(name) for name in names]),)
        with faults(self._path), self._snapshot() as db:
            for row in db.execute(f"SELECT * FROM host_memory {chosen}ORDER BY host", given):
                # an older store that may only be read has no days
                days = from_json(row["failing_days"]) if "failing_days" in row.keys() else ()  # noqa: SIM118
                yield HostMemory(
                    host=row["host"],
                    head_useless_since=row["head_useless_since"],
                    last_end=row["last_end"],
                    failing_since=row["failing_since"],
                    failing_days=tuple(days),
                    pace=from_json(row["pace"]),
                    robots=from_json(row["robots"]),
                )

    def robots(self, authorities: Sequence[str]) -> list[RobotsFile]:
        wanted = json.dumps([text(authority) for authority in authorities])
        chosen = "SELECT * FROM robots WHERE authority IN (SELECT value FROM json_each(?)) ORDER BY authority"
        with faults(self._path):
            if not self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'robots'").fetchone():
                return []  # an older store that may only be read
            return [
                RobotsFile(authority=row["authority"], until=row["until"], entry=from_json(row["entry"]))
                for row in self._db.execute(chosen, (wanted,))
            ]

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """Another connection, which reads one snapshot whatever is written meanwhile."""
        with closing(connect(self._path, read_only=True)) as db:
            db.execute("BEGIN")
            yield db


def _finish(db: sqlite3.Connection, check: Finished) -> None:
    record = check.record
    document = record_document(record) | {"link_id": record.link_id}
    document |= {name: to_json(document[name]) for name in reading.JSON_COLUMNS}
    try:
        added = db.execute(_ADD_RECORD, document)
    except sqlite3.IntegrityError as fault:
        if "FOREIGN KEY" not in str(fault):
            raise
        raise LookupError(f"a check has ended of link {record.link_id!r}, which is not in this store") from fault
    if added.rowcount:
        asking.answer(db, record.link_id, record.checked_at)
        before = None if check.of is None else check.of.last_checked_at
        moved = document | state_document(check.state) | {"record_id": added.lastrowid, "before": before}
        db.execute(_MOVE_LINK, moved)
        if before is not None and before > record.checked_at:
            orders.put_before(db, record.link_id, record.checked_at)
