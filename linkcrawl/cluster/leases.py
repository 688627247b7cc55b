"""Which gates a worker leases: fair shares of those with work, taken from Redis, fed from the store, given back.

The file is longer than others because a gate's way (taken, opened, closed, given back) is one state, and every step of
it may fail between Redis and the store: a gate that Redis has given and that is not known here would be nobody's.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping

import redis
from attrs import define, field
from scrapy.http import Request

from linkcrawl.cluster.balancing import AT_ONCE, WORTH, Candidates, Throughput, excess
from linkcrawl.cluster.context import WorkerContext
from linkcrawl.cluster.coordinator import HeartbeatReply, LeaseRelease, LeaseResult, WaitingTransfer
from linkcrawl.cluster.handover import Handover, PendingLeases
from linkcrawl.cluster.placement import GatePlacement
from linkcrawl.cluster.transfers import CheckTransfers
from linkcrawl.errors import StoreLost
from linkcrawl.frontier.gates.workbench import Gate, GateState, Lane
from linkcrawl.frontier.ports import context_of
from linkcrawl.frontier.router import RoutedTask, Task, host_of
from linkcrawl.items import HostMemory
from linkcrawl.politeness.pacing.persistence import GATE

#: Gates that hops wait for which are looked at in one round.
HOP_GATES = 50


@define(eq=False)
class Lease:
    """A gate of ours: its hosts, and by link id how many sessions died over it."""

    hosts: set[str] = field(factory=set)
    deaths: dict[str, int] = field(factory=dict)


class Leases:
    """This worker's gates. `arrive` takes over checks whose next hop is ours."""

    def __init__(
        self,
        parts: WorkerContext,
        travels: CheckTransfers,
        arrive: Callable[[Iterable[WaitingTransfer]], Awaitable[None]],
    ):
        self._parts = parts
        self._session, self._ledger, self._bench, self._keeper = parts.session, parts.ledger, parts.bench, parts.keeper
        self._queue, self._feeder, self._desk = parts.queue, parts.feeder, parts.desk
        self._offer, self._remember = parts.offer, parts.remember
        self._travels, self._arrive = travels, arrive
        self.places = GatePlacement(parts)
        self._candidates = Candidates(parts, lambda host: host in self._gate_of)
        self._leases: dict[str, Lease] = {}
        self._gate_of: dict[str, str] = {}
        self._closing: dict[str, float] = {}  # since when
        self._regrouping: set[str] = set()
        self._leaving: dict[str, LeaseRelease] = {}
        self._parting: set[str] = set()  # hosts of gates that are leaving
        self._wants = PendingLeases(parts)
        self._handover = Handover(parts, travels, self._wants)
        self._bells: set[str] = set()
        #: Whether Redis is asked for a task of a gate: it is not idle then.
        self.is_asking: Callable[[str], bool] = lambda gate: False
        #: Whether leases of before Redis was restarted may still be used, as the last round has seen it.
        self.is_shut = False
        self._opening = 0
        self._throughput = Throughput()
        #: Gates of ours with work, as the last round has seen them.
        self.load = 0

    # What others ask.

    def has(self, gate: str) -> bool:
        """Whether requests may go through the gate."""
        return gate in self._leases

    def feeds(self, gate: str) -> bool:
        """Whether checks may begin there."""
        return gate in self._leases and gate not in self._closing

    def feeds_host(self, host: str) -> bool:
        """Whether due links of the host are to be fetched."""
        gate = self._gate_of.get(host)
        return gate is not None and self.feeds(gate)

    def knows(self, name: str) -> bool:
        """Whether what is remembered of this host or gate is ours to store."""
        return name in self._leases or name in self._gate_of or name in self._leaving or name in self._parting

    def deaths(self, gate: str, link_id: int | str) -> int:
        """How many sessions died over a link."""
        lease = self._leases.get(gate)
        return 0 if lease is None else lease.deaths.get(str(link_id), 0)

    @property
    def is_busy(self) -> bool:
        """Whether a gate is about to come or go, and a crawl that ends waits for it."""
        now, patience = self._session.now(), self._session.config.patience
        closing = any(now - since < patience for since in self._closing.values())
        return bool(self._wants.may_come or self._leaving or self._opening or closing)

    @property
    def is_regrouping(self) -> bool:
        """Whether a gate of policies of before is still ours: by the new ones its hosts may be in another's."""
        self._regrouping = {name for name in self._regrouping if name in self._leases or name in self._leaving}
        return bool(self._regrouping)

    def has_room(self, beat: HeartbeatReply) -> bool:
        """Whether gates are known that may be free, and are our share."""
        if not self._candidates or self._queue.spent or not beat.agreed or self.is_shut:
            return False
        return self._candidates.room(beat, len(self._leases)) > 0

    def __len__(self) -> int:
        return len(self._leases)

    def want(self, gate: str, placed: RoutedTask) -> None:
        """A task that can't be passed on (robots.txt that redirects there) needs the gate itself."""
        if isinstance(placed.task, Request) and context_of(placed.task).robots is not None and self.is_regrouping:
            self._handover.give_up(placed.task)  # nobody leases it before ours are given back, and those wait for this
        else:
            self._wants.add(gate, placed)

    def ring(self, gates: Iterable[str]) -> None:
        """Others have something for these gates."""
        self._bells.update(gates)

    def close_all(self) -> None:
        """Policies have changed: begin no more checks, and pass on those that wait. Each gate goes back when what is in
        flight there has ended."""
        self._regrouping.update(self._leases)
        self._handover.start_over()
        for name in self._leases:
            self._close(name)

    def pass_on(self, request: Request) -> None:
        """Pass a request on to whoever leases its gate."""
        self._handover.pass_on(request)

    def clear(self) -> None:
        """All are lost."""
        for name in self._leases:
            self._keeper.forget(name)
        self._leases.clear()
        self._gate_of.clear()
        self._closing.clear()
        self._regrouping.clear()
        self._leaving.clear()
        self._wants.clear()
        self._bells.clear()
        self._candidates.clear()
        self._parting.clear()
        self.places.clear()
        self.load = 0

    # Taking.

    async def take(self, beat: HeartbeatReply, *, all_of_them: bool = False) -> None:
        """Lease what is our share of the gates that have work. `all_of_them`: nobody else is at work."""
        self.is_shut = False
        if not beat.agreed or self.is_regrouping:
            return
        self._candidates.renew()
        room = len(self._candidates) if all_of_them else self._candidates.room(beat, self.load)
        if self._queue.spent:
            room = 0
        await self._take_wanted()
        gates: dict[str, set[str]] = defaultdict(set)
        epoch = self._session.lease_epoch
        for gate in await self._ledger.waited_for(HOP_GATES):
            if gate not in self._leases and gate not in self._leaving:
                gates[gate] = set()
        room = min(room, AT_ONCE) + len(gates)
        while self._candidates and len(gates) < room:
            rest = await self._sort(self._candidates.pop(), gates, room)
            if epoch != self._session.lease_epoch:
                return
            self._candidates.put_back(rest)
            if rest:
                break
        await self._take(gates)
        self._candidates.look_for_more()

    async def _sort(self, hosts: list[str], gates: dict[str, set[str]], room: int) -> list[str]:
        """Put hosts with their gates, as long as there is room; the hosts that are left."""
        epoch = self._session.lease_epoch
        await self.places.locate(hosts)
        if epoch != self._session.lease_epoch:
            return []
        for place, host in enumerate(hosts):
            if host not in self._keeper.known:  # its name takes long to look up
                self._candidates.are_held([host])
                continue
            gate = self._keeper.name(host)
            if gate in self._leases:
                await self.adopt(host)
            elif gate in gates or len(gates) < room:
                gates[gate].add(host)
            else:
                return hosts[place:]
        return []

    async def _take_wanted(self) -> None:
        for gate, waiting in self._wants.items():
            if gate in self._leases:
                taken = True
            else:
                (answer,) = await self._ask([(gate, 0.0, 0)], wanted=True)
                taken = answer.standing == "taken"
                if taken:
                    await self._open({gate: {host_of(placed.task) for placed in waiting}}, {gate: answer})
            if taken:
                for placed in self._wants.pop(gate):
                    self._offer(placed)

    async def _ask(self, gates: list[tuple[str, float, int]], *, wanted: bool = False) -> list[LeaseResult]:
        """Ask Redis for gates. One that is ours and isn't open here is given back: an answer of Redis was lost."""
        try:
            answers = await self._ledger.take(gates, wanted=wanted)
        except (redis.RedisError, OSError):
            self._give_back(name for name, _, _ in gates)
            raise
        self._give_back(name for (name, _, _), answer in zip(gates, answers, strict=True) if answer.standing == "mine")
        return answers

    def _give_back(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._leases:
                self._leaving.setdefault(name, LeaseRelease(gate=name, wait=None, done=False))

    async def _take(self, gates: Mapping[str, set[str]]) -> None:
        names = list(gates)
        if not names:
            return
        epoch = self._session.lease_epoch
        due = {name: sum(self._queue.hosts[host].due for host in hosts) for name, hosts in gates.items()}
        given = await self._ask([(name, self._candidates.seen_at, due[name]) for name in names])
        if epoch != self._session.lease_epoch:
            return
        answers = dict(zip(names, given, strict=True))
        for name, answer in answers.items():
            self.is_shut |= answer.standing == "shut"
            if answer.standing in ("held", "shut"):
                self._candidates.are_held(gates[name])
            elif answer.standing == "empty":
                for host in gates[name]:
                    self._queue.hosts[host].due = 0
        taken = {name: answer for name, answer in answers.items() if answer.standing == "taken"}
        await self._open({name: gates[name] for name in taken}, taken)

    async def _open(self, hosts: Mapping[str, set[str]], taken: Mapping[str, LeaseResult]) -> None:
        """Gates that are ours now: all that is known of their hosts out of the store, then their links."""
        if not taken:
            return
        self._opening += 1
        try:
            if not await load_host_state(self._parts, {*hosts, *(host for each in hosts.values() for host in each)}):
                return
            for name, answer in taken.items():
                self._enter(name, hosts[name], answer)
            await self._arrive(
                WaitingTransfer(gate=name, text=text) for name, answer in taken.items() for text in answer.hops
            )
        finally:
            self._opening -= 1
        self._session.wake_engine()

    async def adopt(self, host: str) -> None:
        """A host whose gate is leased already comes to it, with all that is remembered."""
        name = self._keeper.name(host)
        if name not in self._leases or host in self._leases[name].hosts:
            return
        if await load_host_state(self._parts, {host}, self.knows) and name in self._leases:
            self._join(name, {host})

    def _enter(self, name: str, hosts: set[str], taken: LeaseResult) -> None:
        now = self._session.now()
        self._leases[name] = Lease(deaths=dict(taken.deaths))
        gate = self._bench.gate(name)
        self._keeper.forget(name)
        if taken.wait is None:  # its last holder died, or nobody knows: it may have been asked just now
            self._keeper.assume_just_requested(name, now)
        self._travels.expect(taken.out, name)
        self._join(name, hosts)
        wake = self._keeper.wait(name, now).at
        gate.delay = self._keeper.delay(name).seconds
        self._bench.retime(gate, wake if taken.wait is None else max(wake, now + taken.wait))

    def _join(self, name: str, hosts: set[str]) -> None:
        """Hosts whose gate is ours are fed."""
        gate = self._bench.gate(name)
        for host in sorted(hosts):
            self._leases[name].hosts.add(host)
            self._gate_of[host] = name
            self._keeper.add_host(gate, host)
            if host in self._queue.hosts:
                self._feeder.wants_refill(self._queue.hosts[host])

    # Giving.

    async def answer_bells(self) -> None:
        """Fetch the hops that wait for gates of ours, and let go of those that others need."""
        bells = set(self._bells)
        if not bells:
            return
        hops, wanted = await self._ledger.collect(sorted(bells))
        self._bells -= bells
        for gate, comes_before_us in wanted.items():
            if gate not in self._leases:
                continue
            if gate not in self._closing:
                self._close(gate)
            if comes_before_us:  # else each would wait for what the other has
                self._handover.give_way(self._leases[gate].hosts)
        await self._arrive(hop for hop in hops if self.feeds(hop.gate))

    async def give(self, beat: HeartbeatReply) -> None:
        """Give back what has nothing to do, and what is more than our share."""
        idle = [name for name, lease in self._leases.items() if self._is_idle(name, lease)]
        for name in idle:
            self._leave(name)
        self.load = len(self._leases)
        self._close_surplus(beat)
        await self._give_leaving()

    async def give_all(self) -> None:
        """The crawl ends: everything goes back; checks under way begin anew another time."""
        for name in list(self._leases):
            self._leave(name)
        await self._give_leaving()

    async def _give_leaving(self) -> None:
        if not self._leaving:
            return
        await self._remember()
        leaving = dict(self._leaving)
        await self._ledger.give(leaving.values())
        for name in leaving:
            self._leaving.pop(name, None)
        if not self._leaving:
            self._parting.clear()

    def _leave(self, name: str) -> None:
        lease = self._leases.pop(name)
        gate = self._bench.gates[name]
        # A gate that was leased for a hop only may have links that this worker knows nothing of.
        seen = [self._queue.hosts[host] for host in lease.hosts if host in self._queue.hosts]
        done = bool(seen) and all(queue.due == 0 for queue in seen)
        self._bench.drain(gate)
        self._queue.give_back(lease.hosts)
        self._travels.give_back(name)
        for host in lease.hosts:
            self._gate_of.pop(host, None)
        self._parting |= lease.hosts
        self._keeper.known -= lease.hosts  # whoever comes there again brings what others have learned
        self._closing.pop(name, None)
        if not done:  # if nobody else takes it, we may again
            self._candidates.are_held(host for host in lease.hosts if host in self._queue.hosts)
        # What holds by hours and orders the next one knows as well, and it may be over by then.
        now, paced = self._session.now(), self._keeper.paced_until(name)
        longest = now + gate.delay if math.isinf(paced) else max(paced, now + gate.delay)
        self._leaving[name] = LeaseRelease(gate=name, wait=min(gate.wake, longest) - now, done=done)

    def _close(self, name: str) -> None:
        """Begin no more checks in a gate, and pass on those that wait. The links in it stay due."""
        self._closing.setdefault(name, self._session.now())
        self._handover.empty(name)
        self._queue.give_back(self._leases[name].hosts, keep=self._travels.keeps())

    def _close_surplus(self, beat: HeartbeatReply) -> None:
        """Every second of the gates that are many more than our share, so that large and small ones go alike."""
        self._throughput.see(time.monotonic(), self._travels.ended)
        given = 0 if beat.others == 0 or self._closing else excess(beat, self.load)
        if not given or self._throughput.seconds(self._left()) < WORTH:
            return
        giveable = [name for name in self._leases if not self._bench.gates[name].lanes[Lane.HOP]]
        giveable.sort(key=lambda name: -self._bench.gates[name].work_left)
        chosen = giveable[1::2] + giveable[::2]
        for name in chosen[:given]:
            self._close(name)

    def _left(self) -> int:
        """Checks that are left in our gates, about."""
        return sum(len(gate) + gate.backlog for gate in (self._bench.gates[name] for name in self._leases))

    def _is_idle(self, name: str, lease: Lease) -> bool:
        gate: Gate[Task] = self._bench.gates[name]
        if gate.place is not GateState.IDLE or name in self._wants or self.is_asking(name):
            return False
        if self._travels.is_sending_from(name) or self._travels.is_arriving(name):
            return False
        if any(self._desk.waits_for(host) for host in lease.hosts):
            return False
        hosts = [self._queue.hosts[host] for host in lease.hosts if host in self._queue.hosts]
        if name not in self._closing and not self._queue.spent and not all(queue.drained for queue in hosts):
            return False
        return not any(self._travels.is_under_way(host) for host in lease.hosts)


#: Seconds between two tries to reach a lost store.
RETRY = 0.25


async def load_host_state(
    parts: WorkerContext, names: set[str], known: Callable[[str], bool] = lambda name: False
) -> bool:
    """Load what is remembered under these names, and under the gates that these hosts were in before; what is `known`
    here is newer. False where everything was lost meanwhile."""
    session, epoch = parts.session, parts.session.lease_epoch
    found = await _remembered(parts, names)
    before = {str(memory.pace[GATE]) for memory in found if GATE in memory.pace} - names
    if before:
        found += await _remembered(parts, before)
    if epoch != session.lease_epoch:
        return False
    new = [memory for memory in found if not known(memory.host)]
    session.hosts.load(new)
    for memory in new:
        for authority, row in memory.robots.items():
            session.robots.restore(authority, row)
    return True


async def _remembered(parts: WorkerContext, names: set[str]) -> list[HostMemory]:
    """Patiently: a gate that has been leased must be opened."""
    session, epoch = parts.session, parts.session.lease_epoch
    while epoch == session.lease_epoch:
        try:
            return await session.worker.call(lambda: list(session.store.hosts(sorted(names))))
        except StoreLost:
            await asyncio.sleep(RETRY)
    return []
