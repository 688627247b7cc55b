"""A MongoDB server that is killed, hangs, steps down or has a full disk: one line each, and nothing lost or twice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar

import pytest
from pymongo.errors import OperationFailure

from linkcrawl.errors import StoreError, StoreLost
from linkcrawl.ingest.ingest import BATCH
from linkcrawl.items import DueLink, Finished
from linkcrawl.stores.contract import Query, Totals
from linkcrawl.stores.opening import open_store
from tests.contract.making import check, entry, links
from tests.contract.mongodb import Client, Mongod, mongod

#: So that a server that hangs is noticed while a test waits.
QUICK = "serverSelectionTimeoutMS=3000&socketTimeoutMS=1500&heartbeatFrequencyMS=500"
LINKS = 50
T = TypeVar("T")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mongod]:
    with mongod(tmp_path_factory.mktemp("mongod")) as running:
        yield running


@pytest.fixture
def url(server: Mongod, request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"test_{abs(hash(request.node.name))}"
    yield f"{server.url}/{name}?{QUICK}"
    with Client(server.url) as client:
        client.drop_database(name)


def tried(call: Callable[[], T], within: float = 60.0) -> tuple[T, int]:
    """What a call gives when it is repeated until the store is there, as a crawl does; and how often it wasn't."""
    deadline = time.monotonic() + within
    for lost in count():
        try:
            return call(), lost
        except StoreLost:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    raise AssertionError


def batch_of(found: list[DueLink], number: int) -> list[Finished]:
    """The checks of a round."""
    return [check(one, 10.0 + number) for one in found]


def history_is_whole(url: str, number: int) -> None:
    store = open_store(url)
    times = [record.checked_at for record in store.records(Query(history=True))]
    assert times == [10.0 + nth for nth in range(number) for _ in range(LINKS)]
    assert {one.next_check_at for one in links(store)} == {10.0 + number - 1 + 604_800}
    assert store.books(5.0) == Totals(
        links=LINKS, active=LINKS, proxies=LINKS, checked=LINKS, later=LINKS, records=number * LINKS
    )
    store.close()


def test_killed_and_started_again_while_a_crawl_writes(server: Mongod, url: str) -> None:
    store = open_store(url)
    store.add([entry(n) for n in range(LINKS)])
    store.claim()
    number = losses = 0

    def ill_treat() -> None:
        for times in range(1, 21):
            server.kill()
            server.start()
            time.sleep(0.5)
            if times >= 3 and losses:  # the driver itself gets over what it was not just writing
                return

    treatment = threading.Thread(target=ill_treat)
    treatment.start()
    while treatment.is_alive():
        found, _ = tried(lambda: links(store))
        _, lost = tried(partial(store.finish, batch_of(found, number)))
        losses += lost
        number += 1
    treatment.join()
    store.close()
    assert losses
    history_is_whole(url, number)


def test_a_server_that_hangs_is_lost_and_found(server: Mongod, url: str) -> None:
    store = open_store(url)
    store.add([entry(n) for n in range(LINKS)])
    store.finish(batch_of(links(store), 0))
    second = batch_of(links(store), 1)
    server.pause()
    began = time.monotonic()
    try:
        with pytest.raises(StoreLost, match="timed out"):
            store.finish(second)
        assert time.monotonic() - began < 30
        with pytest.raises(StoreLost):
            store.backlog(1.0)
    finally:
        server.go_on()
    tried(lambda: store.finish(second))
    store.close()
    history_is_whole(url, 2)


def test_a_server_that_is_only_slow_is_waited_for(server: Mongod, url: str) -> None:
    store = open_store(url)
    store.add([entry(n) for n in range(LINKS)])
    batch = batch_of(links(store), 0)
    server.fail(["insert", "update"], 2, blockConnection=True, blockTimeMS=700)
    store.finish(batch)
    store.close()
    history_is_whole(url, 1)


@pytest.mark.parametrize("question", ["summary", "prune"])
def test_what_reads_everything_may_take_longer_than_an_answer(server: Mongod, url: str, question: str) -> None:
    store = open_store(url)
    store.add([entry(1)])
    store.finish(batch_of(links(store), 0))
    server.fail(["aggregate"], 2, blockConnection=True, blockTimeMS=2000)  # twice: the driver reads again by itself
    for _ in range(2):
        if question == "summary":
            assert store.summary(11.0).books.records == 1
        else:
            assert store.prune(0.0, 1e9) == 0
    store.close()


#: Names and numbers of the server's: https://github.com/mongodb/mongo/blob/v6.0/src/mongo/base/error_codes.yml
STATES = {
    "OutOfDiskSpace": 14031,
    "NotWritablePrimary": 10107,
    "PrimarySteppedDown": 189,
    "InterruptedAtShutdown": 11600,
    "ExceededTimeLimit": 262,
    "Unauthorized": 13,
    "UnknownError": 8,
}


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("command", ["update", "insert", "findAndModify", "delete"])
def test_a_server_that_cannot_write_now_is_lost(server: Mongod, url: str, state: str, command: str) -> None:
    store = open_store(url)
    store.add([entry(n) for n in range(LINKS)])
    batch = batch_of(links(store), 0)
    server.fail([command], 1, errorCode=STATES[state])
    with pytest.raises(StoreLost) as lost:
        store.finish(batch)
    assert str(lost.value).startswith(f"{server.url}/")
    assert "\n" not in str(lost.value)
    tried(lambda: store.finish(batch))
    store.close()
    history_is_whole(url, 1)


def test_a_write_that_the_majority_does_not_confirm_is_lost(server: Mongod, url: str) -> None:
    store = open_store(url)
    store.add([entry(n) for n in range(LINKS)])
    batch = batch_of(links(store), 0)
    server.fail(["insert"], 1, writeConcernError={"code": 64, "errmsg": "waiting for replication timed out"})
    with pytest.raises(StoreLost, match="waiting for replication timed out"):
        store.finish(batch)
    store.finish(batch)
    store.close()
    history_is_whole(url, 1)


def test_a_fault_of_the_program_is_no_lost_store(server: Mongod, url: str) -> None:
    store = open_store(url)
    server.fail(["aggregate"], 1, errorCode=2)
    with pytest.raises(OperationFailure, match="failCommand"):
        store.backlog(1.0)
    assert store.backlog(1.0) == []
    store.close()


def test_opening_a_server_that_refuses_is_one_line(server: Mongod, url: str) -> None:
    server.fail(["createIndexes"], 1, errorCode=13)
    with pytest.raises(StoreError, match="can't be used") as refused:
        open_store(url)
    assert "\n" not in str(refused.value)


def test_a_claim_outlives_a_server_that_was_away(server: Mongod, url: str) -> None:
    store = open_store(url)
    store.claim()
    server.kill()
    with pytest.raises(StoreLost):
        store.mark_clean()
    server.start()
    tried(store.mark_clean)
    store.backlog(1.0)
    store.close()


def test_a_replica_set_whose_primary_steps_down(tmp_path: Path) -> None:
    with mongod(tmp_path, "--replSet", "rs") as server:
        with Client(server.url, directConnection=True) as client:
            member = {"_id": 0, "host": f"127.0.0.1:{server.port}"}
            client.admin.command("replSetInitiate", {"_id": "rs", "members": [member]})
        url = f"{server.url}/test?replicaSet=rs&serverSelectionTimeoutMS=30000&w=1"
        store = open_store(url)
        store.add([entry(n) for n in range(LINKS)])
        found = links(store)
        for number in range(6):
            if number in (2, 4):
                with Client(server.url, directConnection=True) as client:
                    client.admin.command("replSetStepDown", 2, force=True)
            tried(partial(store.finish, batch_of(found, number)))
        store.close()
        history_is_whole(url, 6)


@pytest.fixture
def seeding(url: str, tmp_path: Path) -> Iterator[Callable[[int], subprocess.Popen[str]]]:
    """Starts `scrapy seed -` with this patience."""
    started = ExitStack()

    def start(patience: int) -> subprocess.Popen[str]:
        settings = {"SCRAPY_SETTINGS_MODULE": "linkcrawl.settings", "LINKCRAWL_STORE": url, "PYTHONPATH": os.getcwd()}
        command = [sys.executable, "-m", "scrapy", "seed", "-", "-s", f"LINKCRAWL_PATIENCE={patience}"]
        pipe = subprocess.PIPE
        process = started.enter_context(
            subprocess.Popen(
                command, cwd=tmp_path, env=os.environ | settings, stdin=pipe, stdout=pipe, stderr=pipe, text=True
            )
        )
        started.callback(process.kill)
        return process

    with started:
        yield start


#: Links that are given at first: more than what is read ahead.
BEFORE = 10 * BATCH


def give(process: subprocess.Popen[str], numbers: range) -> None:
    assert process.stdin
    process.stdin.writelines(f'{{"url": "https://a.example/{n}"}}\n' for n in numbers)
    process.stdin.flush()


def give_the_rest(process: subprocess.Popen[str], numbers: range) -> None:
    assert process.stdin
    give(process, numbers)
    process.stdin.close()


def taken_up(url: str, number: int) -> None:
    """Wait until so many links are in the store."""
    deadline = time.monotonic() + 60
    with Client(url) as client:
        while client.get_default_database()["links"].count_documents({}) < number:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_seeds_wait_for_a_server_that_restarts(
    server: Mongod, url: str, seeding: Callable[[int], subprocess.Popen[str]]
) -> None:
    process = seeding(300)
    give(process, range(BEFORE))
    taken_up(url, BATCH)
    server.kill()
    rest = threading.Thread(target=give_the_rest, args=(process, range(BEFORE, 2 * BEFORE)))
    rest.start()
    assert process.stderr
    assert process.stderr.readline().startswith("linkcrawl: the store is lost, waiting for it: mongodb://127.0.0.1")
    server.start()
    rest.join()
    assert process.wait(120) == 0
    assert process.stdout
    assert process.stdout.read() == f"{2 * BEFORE} read, {2 * BEFORE} new, 0 known, 0 rejected\n"
    taken_up(url, 2 * BEFORE)


def test_seeds_give_up_after_their_patience_and_say_how_far_they_came(
    server: Mongod, url: str, seeding: Callable[[int], subprocess.Popen[str]]
) -> None:
    process = seeding(1)
    give(process, range(BEFORE))
    taken_up(url, BATCH)
    server.kill()
    try:
        out, err = process.communicate(timeout=120)
    finally:
        server.start()
    assert process.returncode == 1
    read, new = map(int, re.findall("[0-9]+", out)[:2])
    assert out == f"{read} read, {new} new, 0 known, 0 rejected\n"
    assert BATCH <= new == read < BEFORE
    assert [line.partition(": mongodb:")[0] for line in err.splitlines()] == [
        "linkcrawl: the store is lost, waiting for it",
        "linkcrawl",
    ]
