"""What is SQLite's own: URLs and paths, faults of file and disk, versions of the schema, query plans."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from linkcrawl.errors import StoreBusy, StoreError, StoreLost
from linkcrawl.stores.contract import REFUSALS, LinkFilter, Query, Store
from linkcrawl.stores.opening import open_existing, open_store
from linkcrawl.stores.sqlite import reading, schema
from linkcrawl.stores.sqlite.store import SqliteStore
from tests.contract.making import FOREVER, check, entry, link, links
from tests.contract.processes import line, process
from tests.rights import held_to_permissions


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "links.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}"


def test_three_slashes_are_relative_four_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    open_store("sqlite:///here.db").close()
    open_store(f"sqlite:///{tmp_path}/a b%20ü.db").close()
    assert {file.name for file in tmp_path.glob("*.db")} == {"here.db", "a b%20ü.db"}


@pytest.mark.parametrize(
    "url",
    ["sqlite:", "sqlite://", "sqlite:///", "sqlite://host/x.db", "sqlite:///x.db?mode=ro", "sqlite:///x.db#a",
     "sqlite:///:memory:", "sqlite:///a\0b", "postgres://x/y", ""],
)  # fmt: skip
def test_a_url_that_is_not_understood_is_refused(url: str) -> None:
    with pytest.raises(StoreError, match=r"LINKCRAWL_STORE: .*sqlite:///") as refused:
        open_store(url)
    assert "\n" not in str(refused.value)


def _no_database(path: Path) -> None:
    path.write_bytes(b"url,collection\nhttps://a.example/,C\n" * 100)


def _folder(path: Path) -> None:
    path.mkdir()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _another_program(path: Path) -> None:
    db = sqlite3.connect(path)
    db.execute("CREATE TABLE bookmarks (url)")
    db.close()


def _damaged(path: Path) -> None:
    open_store(f"sqlite:///{path}").close()
    path.write_bytes(path.read_bytes()[:100] + os.urandom(8000))


@pytest.mark.parametrize("make", [_no_database, _folder, _pipe, _another_program, _damaged])
def test_what_is_no_store_is_refused_in_one_line_and_left_alone(
    path: Path, url: str, make: Callable[[Path], None]
) -> None:
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(StoreError) as refused:
        open_store(url)
    assert str(path) in str(refused.value)
    assert "\n" not in str(refused.value)
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"{tmp_path}/absent"):
        open_store(f"sqlite:///{tmp_path}/absent/links.db")


@pytest.mark.parametrize("what", ["the file", "the folder of a new file", "the folder of a file", "both"])
@held_to_permissions
def test_a_path_that_cannot_be_written_is_refused(path: Path, url: str, what: str) -> None:
    if "new" not in what:
        open_store(url).close()
    if what in ("the file", "both"):
        path.chmod(0o444)
    if what != "the file":
        path.parent.chmod(0o555)
    with pytest.raises(StoreError, match=r"links\.db can't be used: .* that this user may write to, would work"):
        open_store(url)
    path.parent.chmod(0o755)


@held_to_permissions
def test_a_store_that_may_only_be_read_is_read(path: Path, url: str) -> None:
    with closing(open_store(url)) as store:
        store.add([entry(1)])
    path.chmod(0o444)
    with closing(open_existing(url)) as store:
        assert store.books(0.0).links == 1
        with pytest.raises(StoreLost, match="readonly"):
            store.add([entry(2)])


def test_a_file_that_is_deleted_in_use_is_lost_and_can_come_back(path: Path, url: str) -> None:
    store = open_store(url)
    path.rename(path.with_suffix(".away"))
    with pytest.raises(StoreLost, match=str(path)):
        store.add([entry(1)])
    with pytest.raises(StoreLost):
        list(store.records())
    assert not path.exists()
    path.with_suffix(".away").rename(path)
    assert store.add([entry(1)]).new == 1
    store.close()


FULL_DISK = """
import resource
store.add([entry(1, 'other.example')])
found = link(store, 1, 'other.example')
_, most = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, most))
batches = 0
try:
    while batches < 1000:
        store.add([entry(1000 * (batches + 1) + n) for n in range(1000)])
        batches += 1
except StoreLost as fault:
    say(fault)
say(batches)
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
store.finish([check(found, 10.0)])
say(store.add([entry(1000 * (batches + 1) + n) for n in range(1000)]).new)
"""


def test_a_full_disk_is_a_lost_store_that_comes_back(url: str, path: Path) -> None:
    with process(url, FULL_DISK) as running:
        fault, batches, new = line(running), int(line(running)), int(line(running))
    assert fault in (f"{path}: database or disk is full", f"{path}: disk I/O error")
    assert batches > 0
    assert new == 1000  # of the batch that was lost nothing had stayed
    store = open_store(url)
    books = store.books(10.0)
    assert (books.links, books.proxies, books.records) == (1 + 1000 * (batches + 1), 1 + 1000 * (batches + 1), 1)
    store.close()


def test_a_locked_store_is_lost_for_the_moment(url: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "BUSY_TIMEOUT", 0.05)
    store = open_store(url)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreLost, match="locked"):
        store.add([entry(1)])
    other.execute("ROLLBACK")
    other.close()
    assert store.add([entry(1)]).new == 1
    store.close()


def test_one_file_has_one_lock_whatever_name_it_goes_by(url: str, path: Path) -> None:
    first = open_store(url)
    first.claim()
    path.with_name("alias.db").symlink_to(path)
    second = open_store(f"sqlite:///{path.with_name('alias.db')}")
    with pytest.raises(StoreBusy, match=str(os.getpid())):
        second.claim()
    first.close()
    second.close()


def test_a_claim_that_could_not_be_written_is_no_claim(url: str, path: Path) -> None:
    first, second = open_store(url), open_store(url)
    path.rename(path.with_suffix(".away"))
    with pytest.raises(StoreLost):
        first.claim()
    path.with_suffix(".away").rename(path)
    second.claim()
    with pytest.raises(StoreBusy):
        first.claim()
    second.close()
    first.claim()
    assert not first.was_clean()
    first.close()


def _pragma(store: SqliteStore, name: str) -> Any:
    return store._db.execute(f"PRAGMA {name}").fetchone()[0]


def test_what_was_said_to_be_stored_survives_a_power_failure(url: str) -> None:
    store = SqliteStore.open(url)
    assert _pragma(store, "journal_mode") == "wal"
    assert _pragma(store, "synchronous") == 2  # FULL
    store.close()


# -- versions ---------------------------------------------------------------------------------------------------


def test_a_newer_store_is_refused_with_both_versions(url: str, path: Path) -> None:
    open_store(url).close()
    db = sqlite3.connect(path)
    db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreError, match=rf"{path} has version 99.* {len(schema.MIGRATIONS)}\b"):
        open_store(url)


ADDED = "CREATE TABLE added (x TEXT DEFAULT 'a;b') STRICT; -- one; more\nINSERT INTO added VALUES ('1;2');\n"


def test_an_older_store_is_migrated_once_and_keeps_its_links(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(url)
    store.add([entry(1, collection="C")])
    store.close()
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, ADDED))
    for _ in range(2):
        migrated = SqliteStore.open(url)
        assert _pragma(migrated, "user_version") == len(schema.MIGRATIONS)
        assert [tuple(row) for row in migrated._db.execute("SELECT x FROM added")] == [("1;2",)]
        assert links(migrated)[0].collections == ("C",)
        migrated.close()


def test_a_migration_that_fails_leaves_the_store_as_it_was(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    released = schema.MIGRATIONS
    open_store(url).close()
    monkeypatch.setattr(schema, "MIGRATIONS", (*released, ADDED + "CREATE TABLE links (x);\n"))
    with pytest.raises(StoreError, match="already exists"):
        open_store(url)
    monkeypatch.setattr(schema, "MIGRATIONS", released)
    store = SqliteStore.open(url)
    assert _pragma(store, "user_version") == len(released)
    assert store._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'added'").fetchone() is None
    store.close()


# -- plans ------------------------------------------------------------------------------------------------------


def _plans(store: SqliteStore, call: Callable[[Store], object]) -> list[str]:
    """The query plans of every statement that a call runs."""
    run: list[str] = []
    store._db.set_trace_callback(run.append)
    call(store)
    store._db.set_trace_callback(None)
    assert run
    return [
        f"{step['detail']} <- {sql}"
        for sql in run
        if sql.lstrip().startswith("SELECT")
        for step in store._db.execute(f"EXPLAIN QUERY PLAN {sql}")
    ]


@pytest.fixture
def filled(url: str) -> Iterator[SqliteStore]:
    store = SqliteStore.open(url)
    store.add([entry(n, priority=n % 3, collection=f"C{n}") for n in range(30)])
    store.finish([check(found, 10.0) for found in links(store)[:15]])
    yield store
    store.close()


@pytest.mark.parametrize("ended_at", [(), ("http://a.example/", "https://a.example/")])
@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize("reasons", [("bot_challenge",), REFUSALS])
def test_refusals_are_read_without_other_records(
    filled: SqliteStore, ended_at: tuple[str, ...], history: bool, reasons: tuple[str, ...]
) -> None:
    query = Query(reasons=reasons, history=history, ended_at=ended_at)
    plans = _plans(filled, lambda store: list(reading.records(filled._db, query)))
    assert any("SEARCH records USING INDEX records_refused (reason=?" in plan for plan in plans)
    assert not [plan for plan in plans if "SCAN" in plan.partition("<-")[0]]


def test_the_index_of_refusals_has_them_all() -> None:
    assert f"reason IN {REFUSALS}" == schema.REFUSED


NARROWED = [
    LinkFilter(),
    LinkFilter(collection="C*"),
    LinkFilter(recheck_before=5.0),
    LinkFilter(collection="C1", host="a*"),
]


@pytest.mark.parametrize("narrow", NARROWED)
@pytest.mark.parametrize("paged", [False, True])
def test_due_looks_at_a_hosts_own_links_only(filled: SqliteStore, narrow: LinkFilter, paged: bool) -> None:
    after = link(filled, 3) if paged else None
    plans = _plans(filled, lambda store: store.due("a.example", 1.0, 5, narrow, after))
    assert any("SEARCH links USING INDEX links_by_turn (host_id=? AND priority=?" in plan for plan in plans)
    for plan in plans:
        assert "SCAN links" not in plan.replace("SCAN links VIRTUAL", "")  # json_each, named so
        assert "SCAN link_" not in plan
        assert "TEMP B-TREE" not in plan


@pytest.mark.parametrize("narrow", NARROWED)
def test_backlog_and_books_are_answered_from_an_index_alone(filled: SqliteStore, narrow: LinkFilter) -> None:
    plans = _plans(filled, lambda store: store.backlog(1.0, narrow))
    scans = [plan for plan in plans if plan.startswith("SCAN links")]
    assert scans
    assert all(plan.startswith("SCAN links USING COVERING INDEX links_by_turn") for plan in scans)
    assert not any("TEMP B-TREE" in plan for plan in plans)


def test_when_the_next_link_is_due_is_one_seek(filled: SqliteStore) -> None:
    [plan] = _plans(filled, lambda store: store.next_due_at(FOREVER))
    assert plan.startswith("SEARCH links USING COVERING INDEX links_by_time (next_check_at>?)")


def test_a_late_page_costs_no_more_than_the_first(url: str) -> None:
    store = SqliteStore.open(url)
    for start in range(0, 20_000, 5000):
        store.add([entry(n) for n in range(start, start + 5000)])
    everything = links(store)

    def steps(call: Callable[[], object]) -> int:
        taken = 0

        def tick() -> int:
            nonlocal taken
            taken += 1
            return 0

        store._db.set_progress_handler(tick, 10)
        call()
        store._db.set_progress_handler(None, 0)
        return taken

    first = steps(lambda: store.due("a.example", 1.0, 10))
    late = steps(lambda: store.due("a.example", 1.0, 10, after=everything[-20]))
    assert 0 < late < first * 3
    store.close()


def test_a_command_that_only_reads_makes_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store"):
        open_existing(f"sqlite:///{tmp_path}/mistyped.db")
    assert not list(tmp_path.iterdir())
    open_store(f"sqlite:///{tmp_path}/links.db").close()
    open_existing(f"sqlite:///{tmp_path}/links.db").close()
