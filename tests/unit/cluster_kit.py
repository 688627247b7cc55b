"""A worker of a cluster without Redis: a coordinator that answers as a test says, under the real parts of a
frontier."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, evolve, field
from scrapy.http import Request

from linkcrawl.check.procedure import Check, Next, Rules, begin
from linkcrawl.clock import boot_time
from linkcrawl.cluster.coordinator import (
    HeartbeatReply,
    HostAddress,
    JoinReply,
    LeaseRelease,
    LeaseResult,
    Placements,
    TimeReading,
    WaitingTransfer,
)
from linkcrawl.cluster.lease_table import Lease
from linkcrawl.cluster.ownership import ClusterOwnership
from linkcrawl.cluster.worker import ClusterWorker
from linkcrawl.frontier.parts import Frontier
from linkcrawl.items import DueLink
from linkcrawl.politeness.policy.limits import SharedLimit
from linkcrawl.session import Session
from tests.unit.frontier_kit import T0, Clock, FakeEngine, frontier_of, read_robots_of, request_to, session

#: Of Redis' clock, which never jumps here.
TIME = TimeReading(now=T0, at=T0, error=0.0)
ALONE = HeartbeatReply(others=0, busy=0, load=0, agreed=True, paces=(), notifications=(), missing=(), time=TIME)


#: Where hosts are unless they have moved.
ONE = "192.0.2.1"


@define(eq=False)
class FakeCoordinator:
    """Redis, as one worker sees it. What is asked for is answered by these fields; `log` has the calls. `fault`, where
    set, is raised by the next call."""

    wait: float = 0.0
    standing: str = "taken"
    valid: bool = True
    reply: HeartbeatReply = ALONE
    transfers: list[WaitingTransfer] = field(factory=list)
    wanted: dict[str, bool] = field(factory=dict)
    waiting_gates: list[str] = field(factory=list)
    deaths: dict[str, int] = field(factory=dict)
    fault: Exception | None = None
    gates: dict[str, str] = field(factory=dict)
    moved: list[str] = field(factory=list)
    log: list[tuple[str, Any]] = field(factory=list)
    deadline: float = float("-inf")
    generation: str = "1"
    generation_of_join: str = "1"
    time: TimeReading = TIME
    blocked_by: str | None = None
    lease: float = 60.0
    calls: int = 0
    seconds: float = 0.0

    def _call(self, name: str, value: Any = None) -> None:
        self.calls += 1
        self.log.append((name, value))
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault

    def told(self, name: str) -> list[Any]:
        return [value for called, value in self.log if called == name]

    async def join(self, about: Mapping[str, Any], *, policies: str, pace: str, protocol: str) -> JoinReply:
        self._call("join", policies)
        if self.blocked_by is None:
            self.deadline = boot_time() + self.lease
            self.generation = self.generation_of_join
        return JoinReply(time=self.time, blocked_by=self.blocked_by)

    def declare_void(self) -> None:
        self.log.append(("void", None))

    async def heartbeat(
        self, *, busy: bool, load: int, policies: str, held: Sequence[str] = (), idle: bool = False
    ) -> HeartbeatReply:
        self._call("heartbeat", busy)
        self.deadline = boot_time() + self.lease
        return evolve(self.reply, time=self.time)

    async def leave(self) -> None:
        self._call("leave")

    async def close(self) -> None:
        self._call("close")

    async def place(self, hosts: Sequence[HostAddress], *, few: int, policies: str) -> Placements:
        self._call("place", tuple(each.host for each in hosts))
        found = {each.host: (each.group or self.gates.get(each.host, each.host), each.address or ONE) for each in hosts}
        return Placements(found=found, new=frozenset(), closing=())

    def take_moved(self) -> list[str]:
        moved, self.moved = self.moved, []
        return moved

    async def take(
        self, gates: Sequence[tuple[str, float, int]], now: float, *, wanted: bool = False
    ) -> list[LeaseResult]:
        self._call("take", tuple(gate for gate, _, _ in gates))
        return [LeaseResult(standing=self.standing, wait=0.0, deaths=self.deaths) for _ in gates]

    async def give(self, gates: Iterable[LeaseRelease]) -> None:
        self._call("give", tuple(release.gate for release in gates))

    async def transfer_gates(self, most: int) -> list[str]:
        return self.waiting_gates

    async def send(self, transfer: WaitingTransfer, home_gate: str, token: str, idempotency_key: str) -> None:
        self._call("send", (transfer, home_gate, token, idempotency_key))

    async def collect(self, gates: Sequence[str]) -> tuple[list[WaitingTransfer], dict[str, bool]]:
        self._call("collect", tuple(gates))
        found, self.transfers = self.transfers, []
        return found, self.wanted

    async def take_in(self, transfers: Sequence[WaitingTransfer], tickets: Sequence[tuple[str, str]]) -> list[bool]:
        self._call("take_in", tuple(transfer.gate for transfer in transfers))
        return [self.valid for _ in tickets]

    async def tickets(
        self,
        *,
        renewed: Sequence[tuple[str, str]] = (),
        watched: Sequence[tuple[str, str]] = (),
        ended: Sequence[tuple[str, str]] = (),
    ) -> tuple[list[bool], list[bool]]:
        self._call("tickets", (len(renewed), len(watched), len(ended)))
        return [self.valid] * len(renewed), [self.valid] * len(watched)

    async def acquire_permit(self, limits: Sequence[SharedLimit], permit: str, at: float) -> list[float]:
        self._call("acquire", permit)
        return [self.wait] * len(limits)

    async def settle_permit(self, limits: Sequence[SharedLimit], permit: str, at: float, *, used: bool) -> None:
        self._call("settle", (permit, used))

    async def report_in_flight(self, links: Mapping[str, str]) -> None:
        self._call("in flight", dict(links))


@define
class Cluster:
    """A worker whose session stands, on the parts of its frontier."""

    session: Session
    clock: Clock
    engine: FakeEngine
    coordinator: FakeCoordinator
    ownership: ClusterOwnership
    frontier: Frontier
    worker: ClusterWorker

    def lease(self, *hosts: str) -> None:
        """Lease the gates of hosts, each its own, whose robots.txt is known."""
        for host in hosts:
            self.frontier.keeper.looked_up.add(host)
            read_robots_of(self.session, host, "", self.clock())
            self.worker.table.leases[host] = Lease(hosts={host})
            self.worker.table.gate_of[host] = host
            self.frontier.router.gate(host)

    def link(self, number: int, host: str, **about: Any) -> DueLink:
        """A link that is out of the store, and not begun."""
        link = DueLink(id=number, url=f"http://{host}/{number}", host=host, **about)
        self.frontier.queue.hold(number, host)
        self.frontier.queue.hosts[host].ready += 1
        return link

    def hop(self, link: DueLink, host: str) -> Request:
        """The next request of a check of the link, which goes to a host; it is under way here."""
        self.worker.transfers.begin(link)
        self.frontier.feeder.check_began()
        return request_to(
            f"http://{host}/hop", link=link, check=check_to(f"http://{host}/hop"), lease_epoch=self.session.lease_epoch
        )


def check_to(url: str) -> Check:
    """A check that is about to ask for a URL."""
    step = begin(url, Rules())
    assert isinstance(step, Next)
    return step.check


async def opened(folder: Path, rules: str = "", coordinator: FakeCoordinator | None = None) -> Cluster:
    """A worker that has joined, with its loops at rest."""
    clock, redis, engine = Clock(), coordinator or FakeCoordinator(), FakeEngine()
    at = session(folder, clock, rules)
    ownership = ClusterOwnership(at, redis)  # type: ignore[arg-type]
    frontier = frontier_of(at, engine=engine, ownership=ownership)
    await ownership.open(frontier)
    worker = ownership._worker
    for loop in worker._loops:
        loop.cancel()
    redis.log.clear()
    return Cluster(at, clock, engine, redis, ownership, frontier, worker)


def run(folder: Path, act: Callable[[Cluster], Awaitable[None]], rules: str = "", **redis: Any) -> None:
    """Run an act with a worker."""

    async def main() -> None:
        cluster = await opened(folder, rules, FakeCoordinator(**redis))
        try:
            await asyncio.wait_for(act(cluster), 120)  # type: ignore[arg-type]
        finally:
            cluster.session.worker.close()

    asyncio.run(main())


async def settled(cluster: Cluster) -> None:
    """Until what the worker runs in the background has ended."""
    while tasks := [*cluster.worker._tasks, *cluster.worker.transfers._sending]:
        await asyncio.gather(*tasks, return_exceptions=True)
