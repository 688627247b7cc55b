"""Whatever happens to Redis, a gate is one worker's at a time, and no wait is cut short: random histories of workers
that lease and give back, are cut off or killed, over a Redis that is emptied, restarted, put back, or loses keys."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import pytest
import redis as sync_redis
from attrs import define, field

from linkcrawl.clock import boot_time
from linkcrawl.cluster import coordinator
from linkcrawl.cluster.coordinator import PREFIX, Coordinator, LeaseRelease
from linkcrawl.errors import SessionLost
from tests.contract.test_servers import redis_database

#: Seconds: of a lease, before whose end (MARGIN) its holder stops, and of one history.
LEASE, MARGIN, HISTORY = 0.3, 0.02, 1.6
GATES = [f"gate{number}" for number in range(6)]
WORKERS = 4


@pytest.fixture
def client() -> Iterator[sync_redis.Redis]:
    with sync_redis.Redis.from_url(redis_database()) as client:
        client.flushdb()
        yield client
        client.flushdb()


@define(eq=False)
class Worker:
    """One that knows what it holds as long as its lease lasts. `cut_off_until`: by the steady clock."""

    ledger: Coordinator
    joined: bool = False
    held: set[str] = field(factory=set)
    cut_off_until: float = 0.0

    @property
    def believes(self) -> set[str]:
        return self.held if boot_time() < self.ledger.deadline else set()

    def forget(self) -> None:
        self.joined = False
        self.held.clear()


@define(eq=False)
class History:
    client: sync_redis.Redis
    luck: random.Random
    workers: list[Worker]
    #: When each gate that was given back may send, by the steady clock.
    wakes: dict[str, float] = field(factory=dict)
    taken: int = 0
    damages: int = 0
    before: dict[bytes, bytes] = field(factory=dict)

    async def step(self) -> None:
        worker = self.luck.choice(self.workers)
        if boot_time() < worker.cut_off_until:
            return
        if boot_time() >= worker.ledger.deadline:
            worker.forget()
        try:
            await self.act(worker)
        except SessionLost:
            worker.forget()

    async def act(self, worker: Worker) -> None:
        what = self.luck.random()
        if not worker.joined:
            await worker.ledger.join({}, policies="p", pace="{}", protocol="1")
            worker.joined = True
        elif what < 0.35:
            held = sorted(worker.held)
            reply = await worker.ledger.heartbeat(busy=True, load=len(held), policies="p", held=held)
            if reply.missing:
                worker.ledger.declare_void()
                worker.forget()
        elif what < 0.7:
            await self.take(worker)
        elif what < 0.9:
            await self.give(worker)
        elif what < 0.95:
            worker.cut_off_until = boot_time() + self.luck.uniform(0.0, 1.5 * LEASE)
        else:  # killed, and another one started
            worker.forget()
            worker.ledger.deadline = float("-inf")
            worker.ledger.generation = ""

    async def take(self, worker: Worker) -> None:
        gates = self.luck.sample(GATES, 3)
        asked_at = boot_time()
        for gate, found in zip(gates, await worker.ledger.take([(gate, 0.0, 1) for gate in gates], 1e12), strict=True):
            if found.standing == "taken":
                others = [other for other in self.workers if other is not worker and gate in other.believes]
                assert not others, f"{gate} is leased by two"
                if found.wait is not None:
                    assert asked_at + found.wait >= self.wakes[gate] - 0.005, f"a wait of {gate} was cut short"
                worker.held.add(gate)
                self.taken += 1

    async def give(self, worker: Worker) -> None:
        gates = {gate for gate in worker.held if self.luck.random() < 0.5}
        worker.held -= gates  # whatever the answer says
        waits = {gate: self.luck.uniform(0.0, 0.1) for gate in gates}
        await worker.ledger.give([LeaseRelease(gate=gate, wait=wait, done=False) for gate, wait in waits.items()])
        self.wakes |= {gate: boot_time() + wait - 0.01 for gate, wait in waits.items()}

    def damage(self, kind: str) -> None:
        self.damages += 1
        generation = self.client.get(f"{PREFIX}generation") or b""
        if kind == "emptied":
            self.client.flushdb()
        elif kind == "a replica behind":
            self.client.flushdb()
            for key, value in self.before.items():
                self.client.restore(key, 0, value)
            self.restart()
        else:
            self.client.delete(f"{PREFIX}{generation.decode()}:{kind}")

    def restart(self) -> None:
        for key in self.client.scan_iter(f"{PREFIX}*:state"):
            self.client.hset(key, "run_id", "of before")

    def remember(self) -> None:
        self.before = {key: value for key in self.client.scan_iter("*") if (value := self.client.dump(key)) is not None}


@pytest.mark.parametrize("kind", ["emptied", "a replica behind", "gates", "workers"])
def test_a_gate_is_one_workers_whatever_happens_to_redis(
    client: sync_redis.Redis, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(coordinator, "MARGIN", MARGIN)
    luck = random.Random(kind)

    async def main() -> None:
        url = redis_database()
        history = History(client, luck, [Worker(Coordinator.connect(url, LEASE)) for _ in range(WORKERS)])
        end, damaged_at, remembered_at = boot_time() + HISTORY, boot_time() + 2 * LEASE, 0.0
        while boot_time() < end or history.taken < 5:
            await history.step()
            if boot_time() > remembered_at:
                history.remember()
                remembered_at = boot_time() + LEASE / 2
            if boot_time() > damaged_at:
                history.damage(kind)
                damaged_at = boot_time() + luck.uniform(1.1, 1.6) * LEASE
        assert history.damages
        for worker in history.workers:
            await worker.ledger.close()

    asyncio.run(asyncio.wait_for(main(), 60))
