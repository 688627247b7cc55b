"""The claim on a MongoDB store as crawls on several machines see it: a lease, which ends when nobody renews it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from linkcrawl.errors import ClaimLost, StoreBusy
from linkcrawl.stores import process_identity as holder
from linkcrawl.stores.contract import ClusterName
from linkcrawl.stores.mongo.claim import MARGIN, Claim
from linkcrawl.stores.mongo.schema import open_database
from tests.contract.mongodb import database, server_url

LEASE = 4.0  # a busy machine renews within it
OF_ANOTHER = {
    "id": "another",
    "host": "elsewhere",
    "pid": 7,
    "machine": "three",
    "started": 1,
    "until": datetime.now(UTC) + timedelta(hours=1),
}
THIS_PROCESS = """
import json
from linkcrawl.stores.process_identity import this_process
print(json.dumps(this_process()), flush=True)
input()
"""


@pytest.fixture
def claim_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Claim]]:
    """Makes a claim on one store for a crawl on the machine of that name; no machine sees the processes of others."""
    opened = []
    with database(server_url()) as url:

        def claim(machine: str, lease: float = LEASE) -> Claim:
            monkeypatch.setattr(holder, "_machine", lambda: machine)
            opened.append(open_database(url))
            return Claim(opened[-1]["meta"], "the store", lease)

        yield claim
    for one in opened:
        one.client.close()


def stop_renewing(claim: Claim) -> None:
    """As a crawl that was killed, or whose machine sleeps."""
    claim._ending.set()
    assert claim._thread is not None
    claim._thread.join()


def test_a_living_crawl_elsewhere_keeps_its_claim(claim_of: Callable[[str], Claim]) -> None:
    first, second = claim_of("one"), claim_of("two")
    first.take()
    for _ in range(3):
        began = time.monotonic()
        with pytest.raises(StoreBusy, match=r"another crawl \(process \d+ on .+\) holds this store \(the store\)"):
            second.take()
        assert time.monotonic() - began < LEASE + 10  # the renewal gives it away, else the lease's end
        first.check()
    first.release()
    second.take()
    second.release()


def test_the_claim_of_a_dead_crawl_elsewhere_lapses(claim_of: Callable[[str], Claim]) -> None:
    first, second = claim_of("one"), claim_of("two")
    first.take()
    assert first.is_held
    stop_renewing(first)
    second.take()
    assert (first.is_held, second.is_held) == (False, True), "before anybody asks a server"
    second.check()
    with pytest.raises(ClaimLost, match="lost: another crawl"):
        first.check()
    second.release()
    with pytest.raises(ClaimLost):  # for good: what it knows of hosts is old
        first.check()
    first.release()


def test_a_crawl_that_could_not_renew_keeps_what_nobody_took(claim_of: Callable[[str], Claim]) -> None:
    first = claim_of("one", 0.2)
    first.take()
    stop_renewing(first)
    time.sleep(0.5)
    first.check()
    first.release()


def test_losing_the_claim_is_noticed_without_being_asked(claim_of: Callable[[str], Claim]) -> None:
    first, second = claim_of("one", 0.3), claim_of("two")
    first.take()
    thread = first._thread
    assert thread is not None
    first._meta.replace_one({"_id": "claim"}, OF_ANOTHER)
    thread.join(30)
    assert not thread.is_alive()
    with pytest.raises(ClaimLost, match=r"process 7 on elsewhere"):
        first.check()
    first.release()
    with pytest.raises(StoreBusy):
        second.take()


def test_a_process_is_alive_until_it_ends() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", THIS_PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        told = json.loads(other.stdout.readline())
        assert holder.is_alive(told) is True
        assert holder.is_alive({**told, "started": told["started"] + 1}) is False  # another with its pid
        assert holder.is_alive({**told, "machine": "elsewhere"}) is None
        other.kill()
        other.wait()
    assert holder.is_alive(told) is False
    assert holder.is_alive(holder.this_process()) is True


def test_a_claim_counts_as_held_until_shortly_before_another_can_take_it(claim_of: Callable[[str], Claim]) -> None:
    first = claim_of("one")
    first.take()
    stop_renewing(first)
    first._renewed -= LEASE - MARGIN
    assert not first.is_held
    first.check()  # nobody has taken it: it is renewed
    assert first.is_held
    first.release()


def cluster(server: str = "run/0", host: str = "localhost") -> ClusterName:
    return ClusterName(url=f"redis://{host}:6379/0", server=server)


def test_workers_that_reach_one_redis_by_different_names_hold_one_claim(claim_of: Callable[[str], Claim]) -> None:
    first, second = claim_of("one"), claim_of("two")
    first.take(cluster())
    began = time.monotonic()
    second.take(cluster(host="127.0.0.1"))
    assert time.monotonic() - began < LEASE / 2
    for claim in (first, second):
        claim._renew_or_lose()
        claim.check()
    first.release()
    second.check()
    second.release()


@pytest.mark.parametrize("kind", ["another server by the same name", "another database"])
def test_workers_of_another_redis_are_another_crawl(claim_of: Callable[[str], Claim], kind: str) -> None:
    first, second = claim_of("one", lease=1.5), claim_of("two", lease=1.5)
    first.take(cluster())
    with pytest.raises(StoreBusy, match="a worker that meets others at another Redis: all workers of a store need the"):
        second.take(cluster("another/0" if kind.startswith("another server") else "run/1"))
    first.check()
    first.release()


def test_after_a_restart_of_redis_a_worker_waits_until_the_others_have_noticed(
    claim_of: Callable[[str], Claim],
) -> None:
    first, new = claim_of("one", lease=60.0), claim_of("two", lease=60.0)
    first.take(cluster("before/0"))
    noticed = threading.Timer(0.5, first.rename, (cluster("after/0"),))
    noticed.start()
    began = time.monotonic()
    new.take(cluster("after/0", host="127.0.0.1"))
    assert time.monotonic() - began >= 0.4
    noticed.join()
    for claim in (first, new):
        claim.check()
        claim.release()


def test_where_redis_does_not_say_which_server_it_is_its_url_tells(claim_of: Callable[[str], Claim]) -> None:
    first, same, other = (claim_of(name, lease=1.5) for name in ("one", "two", "three"))
    first.take(cluster(""))
    same.take(cluster(""))
    with pytest.raises(StoreBusy):
        other.take(cluster("", host="elsewhere"))
    for claim in (first, same):
        claim.check()
        claim.release()
