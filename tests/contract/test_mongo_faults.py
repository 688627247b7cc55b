"""A MongoDB server that is killed, hangs, steps down or has a full disk: one line each, and nothing lost or twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import TypeVar

import pytest
from pymongo.errors import OperationFailure

from linkcrawl.items import DueLink, Finished
from linkcrawl.stores import Books, Query, StoreError, StoreLost, open_store
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
    assert store.books(5.0) == Books(links=LINKS, proxies=LINKS, checked=LINKS, later=LINKS, records=number * LINKS)
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


@pytest.mark.parametrize("question", ["summary", "thin"])
def test_what_reads_everything_may_take_longer_than_an_answer(server: Mongod, url: str, question: str) -> None:
    store = open_store(url)
    store.add([entry(1)])
    store.finish(batch_of(links(store), 0))
    server.fail(["aggregate"], 2, blockConnection=True, blockTimeMS=2000)  # twice: the driver reads again by itself
    for _ in range(2):
        if question == "summary":
            assert store.summary(11.0).books.records == 1
        else:
            assert store.thin(0.0, 1e9) == 0
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
