"""The schema of a SQLite store: how its file is opened, its tables, and how an older one is brought up to date."""

from __future__ import annotations

import os
import sqlite3
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager

from linkcrawl.errors import StoreError, StoreLost
from linkcrawl.items import RecordField
from linkcrawl.stores.layout import ADDED_COLUMNS, ADDED_TABLES, INDEXED_REFUSALS, LAYOUT, added_fields, renamed_reasons
from linkcrawl.units import HOUR

#: Marks a SQLite file as a linkcrawl store (PRAGMA application_id); the letters `link`.
APPLICATION_ID = 0x6C696E6B
#: Seconds to wait for another process (`scrapy seed` beside a crawl) to end its transaction.
BUSY_TIMEOUT = 30.0
#: Seconds to wait for another process to bring a large store up to date.
MIGRATION_TIMEOUT = HOUR
#: Seconds between two tries for the one lock that SQLite itself doesn't wait for, and the number of tries.
WAL_RETRY, WAL_TRIES = 0.02, 1500
#: KiB of pages kept in memory: the inner pages of all indexes at six million links.
CACHE_KIB = 64 * 1024
#: Pages of the write-ahead log before it is copied into the file. Keys are random, so seeding writes the same index
#: pages again and again: copied once in 64 MiB instead of SQLite's 4, it was a third faster (measured).
CHECKPOINT_PAGES = 16_384

_FIRST = """
CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Dictionaries: texts that millions of rows share. Id 0 stands for "not given".
CREATE TABLE hosts (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE collections (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE providers (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE) STRICT;

CREATE TABLE links (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE,
    url TEXT NOT NULL,
    host_id INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    expected_mime TEXT,
    next_check_at REAL NOT NULL DEFAULT 0,
    last_checked_at REAL,
    last_record_id INTEGER,
    last_category TEXT,
    attempt INTEGER NOT NULL DEFAULT 0,
    interval REAL NOT NULL DEFAULT 0,
    hard_since REAL,
    hard_count INTEGER NOT NULL DEFAULT 0,
    hard_by_get INTEGER NOT NULL DEFAULT 0
) STRICT;
-- due(), backlog() and books() are answered from this index alone; its columns are in the order of due().
CREATE INDEX links_by_turn ON links (host_id, priority, next_check_at, id, last_checked_at);
CREATE INDEX links_by_time ON links (next_check_at);

-- A link's distinct collections and providers apart from its mentions: one landing page may be mentioned in a
-- hundred thousand records of one collection.
CREATE TABLE link_collections (
    link_id INTEGER NOT NULL,
    collection_id INTEGER NOT NULL,
    PRIMARY KEY (link_id, collection_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_of_collection ON link_collections (collection_id, link_id);
CREATE TABLE link_providers (
    link_id INTEGER NOT NULL,
    provider_id INTEGER NOT NULL,
    PRIMARY KEY (link_id, provider_id)
) STRICT, WITHOUT ROWID;

-- "" stands for "not given": NULLs would not be unique.
CREATE TABLE proxies (
    link_id INTEGER NOT NULL,
    collection_id INTEGER NOT NULL,
    provider_id INTEGER NOT NULL,
    record TEXT NOT NULL,
    resource_type TEXT NOT NULL,
    expected_mime TEXT NOT NULL,
    extra TEXT,
    PRIMARY KEY (link_id, collection_id, provider_id, record, resource_type, expected_mime)
) STRICT, WITHOUT ROWID;

-- Every check ever made; rows are only ever added. `collections` and `hops` are JSON.
-- The one foreign key guards the one id that comes from outside.
CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    link_id INTEGER NOT NULL REFERENCES links (id),
    checked_at REAL NOT NULL,
    category TEXT NOT NULL,
    reason TEXT NOT NULL,
    confirmed INTEGER NOT NULL,
    status INTEGER,
    method TEXT,
    redirects INTEGER NOT NULL,
    final_url TEXT,
    timeout INTEGER NOT NULL,
    duration_ms INTEGER,
    expected_mime TEXT,
    mime TEXT,
    mime_matches INTEGER,
    content_length INTEGER,
    error TEXT,
    attempt INTEGER NOT NULL,
    next_check_at REAL NOT NULL,
    crawler TEXT NOT NULL,
    collections TEXT NOT NULL,
    hops TEXT NOT NULL,
    UNIQUE (link_id, checked_at)
) STRICT;
CREATE INDEX records_by_time ON records (checked_at);

-- `pace` and `robots` are JSON, opaque here.
CREATE TABLE host_memory (
    host TEXT NOT NULL UNIQUE,
    head_useless_since REAL,
    last_end REAL,
    failing_since REAL,
    pace TEXT NOT NULL,
    robots TEXT NOT NULL
) STRICT;

CREATE TABLE orders (
    host TEXT NOT NULL PRIMARY KEY,
    act TEXT NOT NULL,
    at REAL NOT NULL,
    reason TEXT NOT NULL,
    until REAL
) STRICT;
"""


#: The tables that came later than the first version (stores.layout).
_LATER = {
    "robots": """
-- `entry` is JSON, opaque here.
CREATE TABLE robots (
    authority TEXT NOT NULL PRIMARY KEY,
    until REAL NOT NULL,
    entry TEXT NOT NULL
) STRICT;
""",
    "harvests": """
-- Harvests that were said to be complete. `ended_at`: null while its sources are being read, and for ever after a kill.
CREATE TABLE harvests (id INTEGER PRIMARY KEY, began_at REAL NOT NULL, ended_at REAL) STRICT;
-- Answers at once whether any mention is retired, and which links a collection has lost.
CREATE INDEX proxies_retired ON proxies (collection_id, link_id) WHERE retired_at IS NOT NULL;
CREATE INDEX links_retired ON links (retired_at) WHERE retired_at IS NOT NULL;
""",
    "check_requests": """
CREATE TABLE check_requests (
    id TEXT NOT NULL PRIMARY KEY,
    asked_at REAL NOT NULL,
    by TEXT NOT NULL,
    reason TEXT NOT NULL
) STRICT;
""",
    "requested_checks": """
-- The links of each request. `checked_at`: of the record that answers it, null until then.
CREATE TABLE requested_checks (
    request_id TEXT NOT NULL,
    link_id INTEGER NOT NULL,
    checked_at REAL,
    PRIMARY KEY (request_id, link_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX requested_open ON requested_checks (link_id) WHERE checked_at IS NULL;
""",
}

#: The columns that came later, by table.
_LATER_COLUMNS = {
    "host_memory": {"failing_days": "TEXT NOT NULL DEFAULT '[]'"},  # JSON
    "links": {"retired_at": "REAL"},
    # `harvest`: the last harvest that mentioned it (harvests.id), 0 for none
    "proxies": {"retired_at": "REAL", "harvest": "INTEGER NOT NULL DEFAULT 0"},
}

#: The condition of the index of refusals. A query has to say it in the same words to be answered from there.
REFUSED = "reason IN ('bot_challenge', 'rate_limited', 'host_blocked', 'http_403')"
_REFUSALS = f"CREATE INDEX records_refused ON records (reason, checked_at, final_url) WHERE {REFUSED};\n"


def _script(version: int) -> str:
    """What brings a store from the version before to this one. A version that was released stays as it is."""
    if version == 1:
        return _FIRST
    lines = [f"ALTER TABLE records ADD COLUMN {_column(part)};" for part in added_fields(version)]
    lines += [
        f"ALTER TABLE {table} ADD COLUMN {name} {_LATER_COLUMNS[table][name]};"
        for table, names in ADDED_COLUMNS.get(version, {}).items()
        for name in names
    ]
    lines += [
        f"UPDATE records SET reason = {_literal(new)} WHERE reason = {_literal(old)};"
        for old, new in renamed_reasons(version).items()
    ]
    lines += [_REFUSALS] if version == INDEXED_REFUSALS else []
    return "".join(f"{line}\n" for line in lines) + "".join(_LATER[name] for name in ADDED_TABLES.get(version, ()))


def _column(part: RecordField) -> str:
    """A field that came later than the first version as a column; rows of before get its default."""
    must = "" if part.null else " NOT NULL"
    default = "" if part.default is None else f" DEFAULT {_literal(part.default)}"
    return f"{part.name} {part.type.sql}{must}{default}"


def _literal(value: str | float) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return str(value + 0)  # SQLite has 1 for True


#: The nth script brings a store from version n-1 to version n (PRAGMA user_version).
MIGRATIONS: tuple[str, ...] = tuple(map(_script, range(1, LAYOUT + 1)))


@contextmanager
def faults(path: str) -> Iterator[None]:
    """Turns errors of SQLite that the file, the disk or another process causes into StoreLost, on one line."""
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError, sqlite3.DataError, sqlite3.NotSupportedError):
        raise  # faults of the program, not of the store
    except sqlite3.DatabaseError as fault:
        raise StoreLost(f"{path}: {' '.join(str(fault).split())}") from fault


def connect(path: str, *, read_only: bool = False) -> sqlite3.Connection:
    """A connection in autocommit mode, with explicit BEGIN and COMMIT. Threads may share it, one at a time. Raises
    sqlite3.Error."""
    # a URI with a mode: a reader must not make a new file in the place of one that has gone
    mode = "rw" if read_only else "rwc"
    db = sqlite3.connect(
        f"file:{_escaped(path)}?mode={mode}",
        uri=True,
        timeout=BUSY_TIMEOUT,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        db.row_factory = sqlite3.Row
        db.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        if read_only:
            db.execute("PRAGMA query_only = ON")
        else:
            # FULL: committed transactions survive a power failure too (with NORMAL a WAL may lose its tail)
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA foreign_keys = ON")
            db.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    except sqlite3.Error:
        db.close()
        raise
    return db


def _escaped(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def open_file(path: str, *, to_write: bool = True) -> sqlite3.Connection:
    """The store at `path`, made where there is none, brought up to date where it is older.

    Raises StoreError for a path that can't be used (or written to, where it is opened `to_write`), a file that is no
    store, or a store of a newer version.
    """
    _refuse_path(path)
    try:
        db = connect(path)
        try:
            _migrate_if_may(db, path, to_write)
            if to_write:
                _try_writing(db)
        except BaseException:
            db.close()
            raise
    except sqlite3.Error as fault:
        raise StoreError(
            f"LINKCRAWL_STORE: {path} can't be used: {fault}; a store, or a new file in a folder that this user may "
            "write to, would work"
        ) from fault
    return db


def _refuse_path(path: str) -> None:
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise StoreError(f"LINKCRAWL_STORE: the folder {folder} does not exist; make it, or name another path")
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    except OSError as fault:
        raise StoreError(f"LINKCRAWL_STORE: {path} can't be opened: {fault.strerror}") from fault
    if not stat.S_ISREG(mode):
        what = "a folder" if stat.S_ISDIR(mode) else "not a file"
        raise StoreError(f"LINKCRAWL_STORE: {path} is {what}; the path of a file would work")


def _migrate_if_may(db: sqlite3.Connection, path: str, must: bool) -> None:
    """Migrate. Unless it `must`, an older store that this user may not write to is read as it is."""
    try:
        migrate(db, path)
    except sqlite3.OperationalError as fault:
        if must or fault.sqlite_errorcode & 0xFF != sqlite3.SQLITE_READONLY or not _version(db):
            raise


def migrate(db: sqlite3.Connection, path: str) -> None:
    """Run the migrations that are missing, each in one transaction with its version number. Several processes may do so
    at once. Raises sqlite3.Error, or StoreError where the file isn't ours or is newer."""
    _refuse_foreign(db, path)
    _use_wal(db)
    if _version(db) == len(MIGRATIONS):
        return
    db.execute(f"PRAGMA busy_timeout = {int(MIGRATION_TIMEOUT * 1000)}")
    for version in range(_version(db) + 1, len(MIGRATIONS) + 1):
        _run(db, version)
    db.execute(f"PRAGMA busy_timeout = {int(BUSY_TIMEOUT * 1000)}")


def _run(db: sqlite3.Connection, version: int) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        if _version(db) < version:  # else another process has just run it
            for statement in statements(MIGRATIONS[version - 1]):
                db.execute(statement)
            db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            db.execute(f"PRAGMA user_version = {version}")
        db.execute("COMMIT")
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _use_wal(db: sqlite3.Connection) -> None:
    """Switch to WAL. Where several processes make a new store at once, SQLite doesn't wait for the lock that this
    needs, whatever its time limit. Raises sqlite3.Error."""
    for tries_left in reversed(range(WAL_TRIES)):
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as fault:
            if not tries_left or fault.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            time.sleep(WAL_RETRY)


def _try_writing(db: sqlite3.Connection) -> None:
    """Find out now whether the file can be written: SQLite only reads it at BEGIN IMMEDIATE. Raises sqlite3.Error."""
    db.execute("BEGIN IMMEDIATE")
    try:
        db.execute(f"PRAGMA user_version = {_version(db)}")
    finally:
        db.execute("ROLLBACK")


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _refuse_foreign(db: sqlite3.Connection, path: str) -> None:
    db.execute("BEGIN")  # one snapshot for all three: another process may be making the store just now
    version = _version(db)
    application = db.execute("PRAGMA application_id").fetchone()[0]
    empty = db.execute("SELECT 1 FROM sqlite_master").fetchone() is None
    db.execute("ROLLBACK")
    if application != APPLICATION_ID and (version or not empty):
        raise StoreError(f"LINKCRAWL_STORE: {path} is an SQLite database of another program; a new path would work")
    if version > len(MIGRATIONS):
        raise StoreError(
            f"LINKCRAWL_STORE: {path} has version {version}, made by a newer linkcrawl; this one knows versions up to "
            f"{len(MIGRATIONS)}: upgrade linkcrawl, or name another path"
        )


def statements(script: str) -> Iterator[str]:
    """The statements of a script. (`executescript` would commit the transaction that it runs in.)"""
    collected = ""
    for line in script.splitlines(keepends=True):
        collected += line
        if sqlite3.complete_statement(collected):
            yield collected
            collected = ""
