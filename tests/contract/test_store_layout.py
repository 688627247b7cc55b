"""A store that an older version made is brought up to date, whatever happens meanwhile; one of a newer is refused.

The folder version_1 holds stores as the program wrote them before layouts had a second version: links 1, 4 (Ok), 2
(suspected Broken), 3 (`parked`), 6 (403), and 5, whose check a process of the MongoDB store kept as a batch, and died.
"""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import attrs
import pytest
from attrs import NOTHING
from bson import json_util
from pymongo.errors import WriteError

from linkcrawl.errors import StoreError, StoreLost
from linkcrawl.items import FIELDS_OF_RECORD, Category, Record
from linkcrawl.stores.contract import Query, Store
from linkcrawl.stores.layout import LAYOUT
from linkcrawl.stores.mongo import migration
from linkcrawl.stores.opening import open_existing, open_store
from tests.contract.cutting import cutter
from tests.contract.making import FOREVER, check, key, link, links
from tests.contract.mongodb import database, looking_at, server_url
from tests.contract.processes import ROOT, line, process
from tests.rights import held_to_permissions

OLD = Path(__file__).parent / "version_1"
T = 1_790_000_000.0


def old_sqlite(path: Path) -> str:
    """A store of version 1; its URL."""
    with closing(sqlite3.connect(path)) as db:
        db.executescript((OLD / "sqlite.sql").read_text())
        db.execute("PRAGMA journal_mode = WAL")
    return f"sqlite:///{path}"


def old_mongodb(url: str) -> str:
    """The same in a new database, with the validators of then."""
    with looking_at(url) as seen:
        for name, old in json_util.loads((OLD / "mongodb.json").read_text()).items():
            seen.create_collection(name, **old["options"])
            if old["documents"]:
                seen[name].insert_many(old["documents"])
    return url


@pytest.fixture(params=["mongodb", "sqlite"])
def new_old(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], str]]:
    """Gives the URL of another old store each time."""
    with ExitStack() as databases:
        made = 0

        def another() -> str:
            nonlocal made
            made += 1
            if request.param == "sqlite":
                return old_sqlite(tmp_path / f"old{made}.db")
            return old_mongodb(databases.enter_context(database(server_url())))

        yield another


@pytest.fixture
def old(new_old: Callable[[], str]) -> str:
    return new_old()


def told(store: Store) -> list[tuple[str, float, str, str, int]]:
    """What the history says, by link and time since T."""
    return sorted(
        (record.url[-1], record.checked_at - T, str(record.category), record.reason, record.verdict_version)
        for record in store.records(Query(history=True))
        if record.url[-1] != "5"
    )


HISTORY = [
    ("1", 0.0, "Ok", "ok", 1),
    ("1", 700_000.0, "Ok", "ok", 1),
    ("2", 1.5, "Broken", "http_404", 1),
    ("3", 2.0, "Undetermined", "poison_link", 1),
    ("4", 3.0, "Undetermined", "poison_link", 1),
    ("4", 30_000.0, "Ok", "ok", 1),
    ("6", 4.0, "Restricted_Access", "http_403", 1),
]


def is_up_to_date(url: str) -> bool:
    """Whether the store has the present version; then nothing of the old words is left in it."""
    if url.startswith("sqlite"):
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as db:
            if db.execute("PRAGMA user_version").fetchone()[0] != LAYOUT:
                return False
            assert db.execute("SELECT count(*) FROM records WHERE reason = 'parked'").fetchone() == (0,)
        return True
    with looking_at(url) as seen:
        schema: Any = seen["meta"].find_one({"_id": "schema"})
        if schema["version"] != LAYOUT:
            return False
        assert seen["records"].count_documents({"reason": "parked"}) == 0
        assert seen["links"].count_documents({"last.reason": "parked"}) == 0
        # but for link 5, whose batch of then is completed after the walk
        assert seen["records"].count_documents({"verdict_version": {"$exists": False}}) <= 1
    return True


def goes_on(store: Store) -> None:
    """An old store serves as one that was made today."""
    assert told(store) == HISTORY
    assert store.latest(key(3)) == next(found for found in store.records() if found.url[-1] == "3")
    words = {tally.reason for part in store.summary(T + 1e7).collections for tally in part.tallies}
    assert words == {"ok", "http_404", "poison_link", "http_403"}
    states = {
        found.url[-1]: (found.state.attempt, found.state.hard_count, found.last_category) for found in links(store)
    }
    del states["5"]
    assert states == {
        "1": (0, 0, Category.OK),
        "2": (1, 1, Category.BROKEN),
        "3": (1, 0, Category.UNDETERMINED),
        "4": (0, 0, Category.OK),
        "6": (1, 0, Category.RESTRICTED),
    }
    assert store.withdraw([link(store, 6).id], T, "host_blocked", "why", T + 9) == 1  # an old record is changed
    finished = check(link(store, 2), T + 90_000, verdict_version=7)
    store.finish([finished])
    assert store.latest(key(2)) == finished.record
    assert store.proxies([link(store, 1).id])[link(store, 1).id][0].extra == {"colour": "red"}
    assert store.orders()["b.example"].reason == "too slow"
    assert next(iter(store.hosts())).pace == {"floor": 1}


def test_an_old_store_is_brought_up_to_date_and_goes_on(old: str, opened: Callable[[str], Store]) -> None:
    store = opened(old)
    assert is_up_to_date(old)
    goes_on(store)
    store.close()
    again = opened(old)
    assert again.latest(key(2)).verdict_version == 7  # type: ignore[union-attr]
    assert again.books(FOREVER).links == 6


def test_a_batch_of_then_is_completed() -> None:
    with database(server_url()) as url, closing(open_store(old_mongodb(url))) as store:
        completed = store.latest(key(5))
        assert completed is not None
        assert (completed.checked_at, completed.reason, completed.verdict_version) == (T + 9, "ok", 1)
        assert link(store, 5).last_checked_at == T + 9
        goes_on(store)


def test_several_may_open_an_old_store_at_once(old: str, opened: Callable[[str], Store]) -> None:
    with ExitStack() as running:
        others = [running.enter_context(process(old, "say(len(list(store.records(Query(history=True)))))"))]
        others += [running.enter_context(process(old, "say(len(list(store.records(Query(history=True)))))"))]
        store = opened(old)
        counts = {line(other) for other in others}
    assert counts <= {"7", "8"}
    assert counts
    assert is_up_to_date(old)
    goes_on(store)


DYING = """
import os, signal, sys
from linkcrawl.stores.mongo import migration
from linkcrawl.stores.sqlite import schema
from linkcrawl.stores.opening import open_store
import pymongo.monitoring
url, dies_at = sys.argv[1], int(sys.argv[2])
migration.STRETCH = 2
count = 0
def step(*_):
    global count
    count += 1
    if count == dies_at:
        os.kill(os.getpid(), signal.SIGKILL)
class Listener(pymongo.monitoring.CommandListener):
    def started(self, event): step()
    def succeeded(self, event): step()
    def failed(self, event): step()
pymongo.monitoring.register(Listener())
connect = schema.connect
def traced(*args, **kwargs):
    db = connect(*args, **kwargs)
    db.set_trace_callback(step)
    return db
schema.connect = traced
open_store(url).close()
print(count, flush=True)
"""


def test_killed_in_the_middle_it_goes_on(new_old: Callable[[], str], opened: Callable[[str], Store]) -> None:
    def run(url: str, dies_at: int) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", DYING, url, str(dies_at)]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)

    rehearsal = run(new_old(), 0)
    assert rehearsal.returncode == 0, rehearsal.stderr
    steps = int(rehearsal.stdout)
    for part in (0.2, 0.35, 0.5, 0.65, 0.8, 0.95):
        url = new_old()
        assert run(url, int(steps * part)).returncode == -signal.SIGKILL, part
        store = opened(url)
        assert is_up_to_date(url), part
        goes_on(store)


def test_interrupted_at_each_command_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """MongoDB only: an answer is lost, so a step that was made is made again."""
    monkeypatch.setattr(migration, "STRETCH", 2)
    halfway = 0
    for nth in range(1, 100):
        with database(server_url()) as url, cutter(old_mongodb(url)) as (cut, through):
            cut.cut_answer(nth)
            try:
                open_store(through).close()
            except (StoreError, StoreLost):
                halfway += not is_up_to_date(url)
            seen = len(cut.commands)
            cut.cut_answer(0)
            with closing(open_store(through)) as store:
                assert is_up_to_date(url)
                goes_on(store)
        if seen < nth:
            break
    assert halfway >= 10
    assert seen < nth


def test_a_walk_goes_on_from_where_it_was_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migration, "STRETCH", 2)
    with database(server_url()) as url, cutter(old_mongodb(url)) as (cut, through):
        cut.cut_answer(1_000_000)
        rehearsal = open_store(through)
        updates = [place for place, name in enumerate(cut.commands, start=1) if name == "update"]
        rehearsal.close()
    with database(server_url()) as url, cutter(old_mongodb(url)) as (cut, through):
        cut.cut_answer(updates[5])  # in the third stretch
        with pytest.raises((StoreError, StoreLost)):
            open_store(through)
        with looking_at(url) as seen:
            progress: Any = seen["meta"].find_one({"_id": "migration to 2"})
            assert progress["records"] > ""
        cut.cut_answer(1_000_000)
        open_store(through).close()
        assert cut.commands.count("update") < len(updates)


def test_a_worker_of_the_version_before_may_go_on_writing(opened: Callable[[str], Store]) -> None:
    """MongoDB, which many write to: what it writes after the walk is understood, and the server takes it."""
    with database(server_url()) as url:
        store = opened(old_mongodb(url))
        with looking_at(url) as seen:
            document: Any = seen["records"].find_one({"url": "https://a.example/3"})
            del document["verdict_version"]
            document |= {"_id": "late", "n": 90, "reason": "parked", "checked_at": document["checked_at"]}
            document["link"] = "00000000000000000000000000000001"
            seen["records"].insert_one(document)
            seen["meta"].update_one({"_id": "records"}, {"$inc": {"next": 91}})
        late = [record for record in store.records(Query(history=True)) if record.reason == "poison_link"]
        assert [record.verdict_version for record in late] == [1, 1, 1]


@held_to_permissions
def test_an_old_store_that_may_only_be_read_is_read(tmp_path: Path) -> None:
    url = old_sqlite(tmp_path / "old.db")
    (tmp_path / "old.db").chmod(0o444)
    with closing(open_existing(url)) as store:
        assert told(store) == HISTORY
        assert [memory.failing_days for memory in store.hosts()] == [()]
    with pytest.raises(StoreError, match="can't be used"):
        open_store(url)
    assert not is_up_to_date(url)


@pytest.mark.parametrize("where", ["version", "becomes"])
def test_a_newer_store_is_refused_from_the_moment_on_that_it_becomes_one(where: str) -> None:
    with database(server_url()) as url:
        open_store(url).close()
        with looking_at(url) as seen:
            seen["meta"].update_one({"_id": "schema"}, {"$set": {where: LAYOUT + 1}})
        with pytest.raises(StoreError) as refused:
            open_store(url)
    assert f"has version {LAYOUT + 1}, made by a newer linkcrawl" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_columns_have_the_types_of_their_fields(tmp_path: Path) -> None:
    for url in (old_sqlite(tmp_path / "old.db"), f"sqlite:///{tmp_path}/new.db"):
        open_store(url).close()
        with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as db:
            columns = {name: (kind, not must) for _, name, kind, must, _, _ in db.execute("PRAGMA table_info(records)")}
        del columns["id"], columns["link_id"]
        fields = {part.name: (part.type.sql, part.null) for part in FIELDS_OF_RECORD if part.name != "url"}
        assert columns == fields


def test_a_field_that_came_later_has_a_default() -> None:
    for part in FIELDS_OF_RECORD:
        assert (part.default is NOTHING) == (part.since == 1), part.name
    assert {part.name for part in attrs.fields(Record)} - {part.name for part in FIELDS_OF_RECORD} == {"link_id"}


def test_a_foreign_type_is_refused_by_the_server(opened: Callable[[str], Store]) -> None:
    with database(server_url()) as url:
        opened(old_mongodb(url))
        with looking_at(url) as seen:
            for wrong in ({"status": "200"}, {"verdict_version": None}, {"hops": None}):
                document: Any = seen["records"].find_one({"url": "https://a.example/1"})
                with pytest.raises(WriteError, match="failed validation"):
                    seen["records"].insert_one(document | wrong | {"_id": "x"})
