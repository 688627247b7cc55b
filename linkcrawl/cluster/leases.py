"""Leases gates in Redis, has them fed from the store, and gives them back; each worker gets a fair share of those with
work.

A gate's way (taken, opened, closed, given back) is one state, and every step of it may fail between Redis and the
store: a gate that Redis has given and that is not known here would be nobody's."""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

import redis
from scrapy.http import Request

from linkcrawl.cluster.balancing import AT_ONCE, WORTH, Candidates, Throughput, excess
from linkcrawl.cluster.coordinator import Coordinator, HeartbeatReply, LeaseRelease, LeaseResult, WaitingTransfer
from linkcrawl.cluster.handover import Handover, PendingLeases
from linkcrawl.cluster.lease_table import Lease, LeaseTable
from linkcrawl.cluster.placement import GatePlacement
from linkcrawl.cluster.rate_permits import RatePermits
from linkcrawl.cluster.transfers import CheckTransfers
from linkcrawl.errors import StoreLost
from linkcrawl.frontier.gates.workbench import Gate, GateState, Lane
from linkcrawl.frontier.parts import Frontier
from linkcrawl.frontier.ports import RoutedTask, Task, context_of, host_of
from linkcrawl.items import HostMemory
from linkcrawl.politeness.pacing.persistence import gate_of_row
from linkcrawl.session import Session

#: Gates that transferred checks wait for which are looked at in one round.
TRANSFER_GATES = 50


class Leases:
    """Leases gates and gives them back; the LeaseTable has those that are leased."""

    def __init__(
        self,
        frontier: Frontier,
        coordinator: Coordinator,
        *,
        table: LeaseTable,
        transfers: CheckTransfers,
        permits: RatePermits,
    ):
        self._session, self._engine = frontier.session, frontier.engine
        self._bench, self._keeper, self._queue = frontier.bench, frontier.keeper, frontier.queue
        self._feeder, self._robots, self._router = frontier.feeder, frontier.robots, frontier.router
        self._host_states, self._withdrawals = frontier.host_states, frontier.withdrawals
        self._coordinator = coordinator
        self._table, self._transfers, self._permits = table, transfers, permits
        self.placement = GatePlacement(frontier, coordinator, table, close=self._close_if_ours)
        self._candidates = Candidates(frontier, lambda host: host in table.gate_of)
        self._pending = PendingLeases(frontier.session)
        self._handover = Handover(frontier, transfers, self._pending)
        self._notifications: set[str] = set()
        #: True while leases of a generation before may still be used, as the last round has seen it.
        self.is_shut = False
        #: True while links are due whose checks were lost with another worker, and are begun anew before long, as the
        #: last round has seen it.
        self.has_lapsing = False
        #: True where others lease gates with due links, as the last round has seen it.
        self.has_held = False
        self._opening = 0
        self._throughput = Throughput()
        #: Gates of ours with work, as the last round has seen them.
        self.load = 0

    # What others ask.

    @property
    def is_busy(self) -> bool:
        """True while a gate is about to come or go, and a crawl that ends waits for it."""
        return bool(self._pending.may_come or self._opening) or self._table.is_moving

    @property
    def waits_for_others(self) -> bool:
        """True while hosts have due links whose gates could not be leased, as the last round has seen it."""
        return self.is_shut or len(self._candidates) > 0

    def may_take_more(self, heartbeat: HeartbeatReply) -> bool:
        """True where gates that may be free are within this worker's share."""
        if not self._candidates or self._queue.spent or not heartbeat.agreed or self.is_shut:
            return False
        return self._candidates.spare_share(heartbeat, len(self._table)) > 0

    def request_lease(self, gate: str, routed: RoutedTask) -> None:
        """A task that can't be passed on (a robots.txt that redirects there) needs the gate itself."""
        task = routed.task
        if isinstance(task, Request) and context_of(task).robots is not None and self._table.is_regrouping:
            # nobody leases the gate before ours are given back, and those wait for this task
            self._handover.abandon_robots(task)
        else:
            self._pending.add(gate, routed)

    def notify(self, gates: Iterable[str]) -> None:
        """Other workers have sent checks to these gates, or need them."""
        self._notifications.update(gates)

    def close_all(self) -> None:
        """Policies have changed: begin no more checks, and pass on those that wait. Each gate goes back when what is in
        flight there has ended."""
        self._table.regroup()
        self._handover.requeue_all()
        for name in self._table.leases:
            self._close(name)

    def recompute(self) -> None:
        """What paces requests has changed: each of our gates waits one full delay of now."""
        now = self._session.now()
        for name in self._table.leases:
            gate = self._bench.gates[name]
            self._keeper.recompute(gate)
            if gate.state is not GateState.IN_FLIGHT:
                self._bench.retime(gate, max(gate.wake, now + gate.delay))

    def pass_on(self, request: Request) -> None:
        """Pass a request on to whoever leases its gate."""
        self._handover.pass_on(request)

    def clear(self) -> None:
        """All leases are lost."""
        for name in self._table.leases:
            self._keeper.forget(name)
        self._table.clear()
        self._pending.clear()
        self._notifications.clear()
        self._candidates.clear()
        self.placement.clear()
        self.load = 0

    # Taking.

    async def take(self, heartbeat: HeartbeatReply, *, all_of_them: bool = False) -> None:
        """Lease what is our share of the gates that have work. `all_of_them`: nobody else is at work. Raises
        SessionLost, redis.RedisError."""
        self.is_shut = self.has_lapsing = self.has_held = False
        if not heartbeat.agreed or self._table.is_regrouping:
            return
        self._candidates.reload()
        room = len(self._candidates) if all_of_them else self._candidates.spare_share(heartbeat, self.load)
        if self._queue.spent:
            room = 0
        await self._take_pending()
        gates: dict[str, set[str]] = defaultdict(set)
        epoch = self._session.lease_epoch
        for gate in await self._coordinator.transfer_gates(TRANSFER_GATES):
            if not self._table.has(gate) and gate not in self._table.releasing:
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
        self._candidates.refresh_if_empty()

    async def _sort(self, hosts: list[str], gates: dict[str, set[str]], room: int) -> list[str]:
        """Put hosts with their gates, as long as there is room; the hosts that are left."""
        epoch = self._session.lease_epoch
        await self.placement.locate(hosts)
        if epoch != self._session.lease_epoch:
            return []
        for index, host in enumerate(hosts):
            if host not in self._keeper.looked_up:  # its name takes long to look up
                self._candidates.mark_leased([host])
                continue
            gate = self._keeper.gate_of(host)
            if self._table.has(gate):
                await self.adopt(host)
            elif gate in gates or len(gates) < room:
                gates[gate].add(host)
            else:
                return hosts[index:]
        return []

    async def _take_pending(self) -> None:
        for gate, waiting in self._pending.items():
            if self._table.has(gate):
                is_ours = True
            else:
                (result,) = await self._ask([(gate, 0.0, 0)], wanted=True)
                is_ours = result.standing == "taken"
                if is_ours:
                    hosts = {host_of(routed.task) for routed in waiting}
                    await self._open({gate: self._still_at(gate, hosts)}, {gate: result})
            if is_ours:
                for routed in self._pending.pop(gate):
                    self._router.place(routed.task, first=routed.first)

    async def _ask(self, gates: list[tuple[str, float, int]], *, wanted: bool = False) -> list[LeaseResult]:
        """Ask Redis for gates. One that is ours and isn't open here is given back: an answer of Redis was lost."""
        try:
            results = await self._coordinator.take(gates, self._session.now(), wanted=wanted)
        except (redis.RedisError, OSError):
            self._give_back(name for name, _, _ in gates)
            raise
        self._give_back(name for (name, _, _), result in zip(gates, results, strict=True) if result.standing == "mine")
        self.placement.follow_moves()
        return results

    def _give_back(self, names: Iterable[str]) -> None:
        for name in names:
            if not self._table.has(name):
                self._table.releasing.setdefault(name, LeaseRelease(gate=name, wait=None, done=False))

    async def _take(self, gates: Mapping[str, set[str]]) -> None:
        names = list(gates)
        if not names:
            return
        epoch = self._session.lease_epoch
        due = {name: sum(self._queue.hosts[host].due for host in hosts) for name, hosts in gates.items()}
        asked = await self._ask([(name, self._candidates.seen_at, due[name]) for name in names])
        if epoch != self._session.lease_epoch:
            return
        results = dict(zip(names, asked, strict=True))
        for name, result in results.items():
            self.is_shut |= result.standing == "shut"
            self.has_held |= result.standing == "held"
            if result.standing in ("held", "shut"):
                self._candidates.mark_leased(gates[name])
            elif result.standing in ("empty", "lapsing"):
                self.has_lapsing |= result.standing == "lapsing"
                for host in gates[name]:
                    self._queue.hosts[host].due = 0
        taken = {name: result for name, result in results.items() if result.standing == "taken"}
        for name in taken:
            self._candidates.mark_leased(gates[name] - self._still_at(name, gates[name]))
        await self._open({name: self._still_at(name, gates[name]) for name in taken}, taken)

    def _still_at(self, gate: str, hosts: set[str]) -> set[str]:
        """Of the hosts that a gate was asked for those that haven't moved meanwhile."""
        return {host for host in hosts if host in self._keeper.looked_up and self._keeper.gate_of(host) == gate}

    async def _open(self, hosts: Mapping[str, set[str]], taken: Mapping[str, LeaseResult]) -> None:
        """Gates that are ours now: all that is known of their hosts out of the store, then their links."""
        if not taken:
            return
        self._opening += 1
        try:
            names = {*hosts, *(host for gate_hosts in hosts.values() for host in gate_hosts)}
            if not await load_host_state(self._session, names):
                return
            self._withdrawals.resume(taken)  # before an order that unblocks the gate is known
            for name, result in taken.items():
                self._enter(name, hosts[name], result)
            await self._transfers.receive(
                WaitingTransfer(gate=name, text=text) for name, result in taken.items() for text in result.transfers
            )
        finally:
            self._opening -= 1
        self._engine.wake()

    async def adopt(self, host: str) -> None:
        """Add a host to its gate, which is leased here already, and load what the store remembers of the host."""
        name = self._keeper.gate_of(host)
        if not self._table.has(name) or host in self._table.leases[name].hosts:
            return
        if await load_host_state(self._session, {host}, self._table.knows) and self._table.has(name):
            self._join(name, {host})

    def _enter(self, name: str, hosts: set[str], result: LeaseResult) -> None:
        now = self._session.now()
        self._table.leases[name] = Lease(deaths=dict(result.deaths))
        gate = self._bench.gate(name)
        self._keeper.forget(name)
        if result.wait is None:  # its last holder died, or nobody knows: it may have been asked just now
            self._keeper.assume_just_requested(name, now)
        self._transfers.reserve(result.tickets, name)
        self._join(name, hosts)
        wake = self._keeper.wait(name, now).at
        gate.delay = self._keeper.servers_delay(name).seconds
        waited_for = result.wait
        if waited_for is not None and gate.opens:  # what one of its hosts was asked for stands in its pace
            waited_for = min(waited_for, self._keeper.bare_delay(name))
            wake = gate.wake
        self._bench.retime(gate, wake if waited_for is None else max(wake, now + waited_for))

    def _join(self, name: str, hosts: set[str]) -> None:
        """Hosts whose gate is ours are fed."""
        gate = self._bench.gate(name)
        for host in sorted(hosts):
            self._table.leases[name].hosts.add(host)
            self._table.gate_of[host] = name
            self._keeper.add_host(gate, host)
            if host in self._queue.hosts:
                self._feeder.wants_refill(self._queue.hosts[host])

    # Giving.

    async def handle_notifications(self) -> None:
        """Take in the checks that wait for gates of ours, and close the gates that others need. Raises SessionLost,
        redis.RedisError."""
        notified = set(self._notifications)
        if not notified:
            return
        transfers, wanted = await self._coordinator.collect(sorted(notified))
        self._notifications -= notified
        for gate, comes_before_us in wanted.items():
            if not self._table.has(gate):
                continue
            if gate not in self._table.closing:
                self._close(gate)
            if comes_before_us:  # else each would wait for what the other has
                self._handover.yield_lease(self._table.leases[gate].hosts)
        await self._transfers.receive(transfer for transfer in transfers if self._table.feeds(transfer.gate))

    async def give(self, heartbeat: HeartbeatReply) -> None:
        """Give back gates that have nothing to do, and those beyond our share. Raises SessionLost, redis.RedisError,
        StoreLost."""
        for name in [name for name, lease in self._table.leases.items() if self._is_idle(name, lease)]:
            self._release(name)
        self.load = len(self._table)
        self._close_excess(heartbeat)
        await self._give_released()

    async def give_all(self) -> None:
        """The crawl ends: everything goes back; checks under way begin anew another time. Raises as `give`."""
        for name in list(self._table.leases):
            self._release(name)
        await self._give_released()

    async def _give_released(self) -> None:
        table = self._table
        if not table.releasing:
            return
        await self._host_states.save()
        releasing = dict(table.releasing)
        await self._coordinator.give(releasing.values())
        for name in releasing:
            table.releasing.pop(name, None)
        if not table.releasing:
            table.released_hosts.clear()

    def _release(self, name: str) -> None:
        table = self._table
        lease = table.leases.pop(name)
        gate = self._bench.gates[name]
        # A gate that was leased for a transferred check only may have links that this worker knows nothing of.
        seen = [self._queue.hosts[host] for host in lease.hosts if host in self._queue.hosts]
        done = bool(seen) and all(queue.due == 0 for queue in seen)
        self._bench.drain(gate)
        self._queue.give_back(lease.hosts)
        self._transfers.release(name)
        for host in lease.hosts:
            table.gate_of.pop(host, None)
        table.released_hosts |= lease.hosts
        self._keeper.looked_up -= lease.hosts  # whoever comes there again brings what others have learned
        table.closing.pop(name, None)
        if not done:  # if nobody else takes it, we may again
            self._candidates.mark_leased(host for host in lease.hosts if host in self._queue.hosts)
        # Don't pass on waits from quiet hours or orders: the next holder computes those itself.
        now, paced = self._session.now(), self._keeper.paced_until(name)
        longest = now + gate.delay if math.isinf(paced) else max(paced, now + gate.delay)
        table.releasing[name] = LeaseRelease(gate=name, wait=min(gate.wake, longest) - now, done=done)

    def _close(self, name: str) -> None:
        """Begin no more checks at a gate, and pass on those that wait. Its links stay due."""
        self._table.closing.setdefault(name, self._session.now())
        self._handover.drain(name)
        self._queue.give_back(self._table.leases[name].hosts, keep=self._transfers.held_links())

    def _close_if_ours(self, name: str) -> None:
        if self._table.has(name) and name not in self._table.closing:
            self._close(name)

    def relocate(self, host: str, addresses: tuple[str, ...]) -> None:
        """A host's name leads to these addresses now, or this one has answered: it leaves its gate, which is ours. Its
        links stay due, and hops that go to it wait until all workers have agreed on its new gate."""
        name = self._keeper.entered(host)
        if name is None or not self._table.has(name) or not self.placement.move(host, addresses):
            return
        gate, table = self._bench.gates[name], self._table
        waits_until = min(gate.wake, self._session.now() + self._keeper.bare_delay(name))
        waiting = self._bench.drain(gate)
        self._keeper.leave(name, host)
        table.leases[name].hosts.discard(host)
        table.gate_of.pop(host, None)
        table.released_hosts.add(host)
        self._queue.give_back([host], keep=self._transfers.held_links())
        self._keeper.recompute(gate)
        gate.wake = max(gate.wake, waits_until)
        if gate.state is not GateState.IN_FLIGHT:
            self._bench.retime(gate, gate.wake)
        for lane, task in waiting:
            if host_of(task) != host:
                self._router.offer(RoutedTask(task=task, lane=lane))
            elif isinstance(task, Request):
                self._router.place(task)
        if host in self._queue.hosts:
            self._candidates.mark_leased([host])
        self._engine.wake()

    def _close_excess(self, heartbeat: HeartbeatReply) -> None:
        """Close every second of the gates that are many more than our share, so that large and small ones go alike."""
        self._throughput.see(time.monotonic(), self._transfers.ended)
        count = 0 if heartbeat.others == 0 or self._table.closing else excess(heartbeat, self.load)
        if not count or self._throughput.seconds(self._checks_left()) < WORTH:
            return
        giveable = [name for name in self._table.leases if not self._bench.gates[name].has(Lane.HOP)]
        giveable.sort(key=lambda name: -self._bench.gates[name].work_left)
        chosen = giveable[1::2] + giveable[::2]
        for name in chosen[:count]:
            self._close(name)

    def _checks_left(self) -> int:
        """Checks that are left at our gates, about."""
        return sum(len(gate) + gate.backlog for gate in (self._bench.gates[name] for name in self._table.leases))

    def _is_idle(self, name: str, lease: Lease) -> bool:
        gate: Gate[Task] = self._bench.gates[name]
        if gate.state is not GateState.IDLE or name in self._pending or self._permits.is_asking(name):
            return False
        if self._transfers.is_sending_from(name) or self._transfers.is_arriving(name):
            return False
        if any(self._robots.waits_for(host) for host in lease.hosts):
            return False
        hosts = [self._queue.hosts[host] for host in lease.hosts if host in self._queue.hosts]
        if self._table.feeds(name) and not self._queue.spent and not all(queue.drained for queue in hosts):
            return False
        return not any(self._transfers.is_under_way(host) for host in lease.hosts)


#: Seconds between two tries to reach a lost store.
RETRY = 0.25


async def load_host_state(session: Session, names: set[str], known: Callable[[str], bool] = lambda name: False) -> bool:
    """Load what the store remembers of hosts and gates by these names, and of the gates that these hosts were in
    before; what is `known` here is newer. False where all leases were lost meanwhile."""
    epoch = session.lease_epoch
    found = await _remembered(session, names)
    before = {gate for memory in found if (gate := gate_of_row(memory.pace)) is not None} - names
    if before:
        found += await _remembered(session, before)
    if epoch != session.lease_epoch:
        return False
    new = [memory for memory in found if not known(memory.host)]
    session.hosts.load(new)
    for memory in new:
        for scheme in ("http", "https"):
            session.robots.forget(f"{scheme}://{memory.host}")
    return True


async def _remembered(session: Session, names: set[str]) -> list[HostMemory]:
    """Try until the store is back: a gate that has been leased must be opened."""
    epoch = session.lease_epoch
    while epoch == session.lease_epoch:
        try:
            return await session.worker.call(lambda: list(session.store.hosts(sorted(names))))
        except StoreLost:
            await asyncio.sleep(RETRY)
    return []
