"""Routes every task to the gate of its host, whose name is resolved first where servers are shared."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from scrapy.http import Request

from linkcrawl import urls
from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import Gate, GateState, Lane, Workbench
from linkcrawl.frontier.in_flight import InFlight
from linkcrawl.frontier.ports import Engine, Ownership, RequestContext, RoutedTask, Task, host_of
from linkcrawl.frontier.shared_limits import SharedLimits
from linkcrawl.frontier.tasks import INTERNAL_ERROR, start_task
from linkcrawl.items import DueLink
from linkcrawl.network.fault import Fault
from linkcrawl.network.resolver import Resolver
from linkcrawl.network.transport import CONTEXT
from linkcrawl.session import Session
from linkcrawl.stores.contract import ASKED
from linkcrawl.urls.domains import hostname_of

logger = logging.getLogger(__name__)


class HostRouter:
    """Offers tasks to their gates. A host that is met for the first time waits until its address is known: hosts that
    share one server share one gate from their first request on."""

    def __init__(
        self,
        session: Session,
        *,
        bench: Workbench[Task],
        keeper: Gatekeeper,
        limits: SharedLimits,
        in_flight: InFlight,
        resolver: Resolver,
        ownership: Ownership,
        engine: Engine,
    ):
        self._session = session
        self._bench = bench
        self._keeper = keeper
        self._limits = limits
        self._in_flight = in_flight
        self._resolver = resolver
        self._ownership = ownership
        self._engine = engine
        self._link_lane = Lane.ON_DEMAND if session.arguments.recheck else Lane.LINK
        self._unresolved: dict[str, list[RoutedTask]] = {}
        self._lookups: set[asyncio.Task[None]] = set()

    @property
    def is_looking_up(self) -> bool:
        """True while tasks wait for an address."""
        return bool(self._unresolved)

    def lane_of(self, task: Task) -> Lane:
        """The lane of a task at its gate."""
        if isinstance(task, Request):
            return Lane.HOP
        return Lane.ON_DEMAND if task.next_check_at == ASKED else self._link_lane

    def promote(self, link: DueLink) -> None:
        """A link that may wait at its gate already was asked for: it goes before those that weren't."""
        gate = self._bench.gates.get(self._keeper.gate_of(link.host))
        if gate is not None:
            self._bench.promote(gate, lambda task: isinstance(task, DueLink) and task.id == link.id)

    def enqueue(self, request: Request) -> bool:
        """Have a request wait for the host that it goes to: a hop, or another component's. False for a URL that can't
        be requested."""
        if CONTEXT not in request.meta:
            target = urls.read(request.url)
            if isinstance(target, urls.Refused):
                return False
            request.meta[CONTEXT] = RequestContext(target=target, lease_epoch=self._session.lease_epoch)
        self.place(request)
        return True

    def place_links(self, links: Iterable[DueLink]) -> None:
        """Put due links into their gates."""
        for link in links:
            self.place(link)

    def place(self, task: Task, *, first: bool = False) -> None:
        """Put a task into its gate, at once or when its host's address is known. `first`: ahead of its lane."""
        routed, host = RoutedTask(task=task, lane=self.lane_of(task), first=first), host_of(task)
        if host in self._unresolved:
            self._unresolved[host].append(routed)
        elif host in self._keeper.looked_up or not host:
            self.offer(routed)
        else:
            self._unresolved[host] = [routed]
            lookup = start_task(
                f"looking up {host}", self._look_up(host), on_fault=lambda: self._engine.close(INTERNAL_ERROR)
            )
            self._lookups.add(lookup)
            lookup.add_done_callback(self._lookups.discard)

    def gate(self, host: str) -> Gate[Task]:
        """The gate of a host, opened for it where that is new."""
        gate = self._bench.gate(self._keeper.gate_of(host))
        before = gate.wake, gate.opens
        self._keeper.add_host(gate, host)
        if (gate.wake, gate.opens) != before and gate.state is not GateState.IN_FLIGHT:
            self._bench.retime(gate, gate.wake)  # it may be waiting for another time
        return gate

    def offer(self, routed: RoutedTask) -> None:
        """Put a task into the gate of a host whose address is known."""
        task = routed.task
        if self._ownership.routes_elsewhere(self._keeper.gate_of(host_of(task)), routed):
            return
        gate, limits = self.gate(host_of(task)), self._limits.prepare(task)
        tenant = self._keeper.tenant(gate.name, host_of(task))
        self._bench.offer(gate, task, lane=routed.lane, limits=limits, first=routed.first, tenant=tenant)

    def regroup(self) -> None:
        """Hosts may belong to other gates now: move all that waits. A gate that is new waits one full delay, for its
        hosts may have been asked a moment ago under another name."""
        if not self._ownership.regroup():
            return
        now = self._session.now()
        self._keeper.regroup()
        for gate in list(self._bench.gates.values()):
            self._keeper.forget_members(gate.name)
            for lane, task in self._bench.drain(gate):
                self.offer(RoutedTask(task=task, lane=lane))
        for gate in self._bench.gates.values():
            self._keeper.recompute(gate)
            self._hold(gate, now)
        self._in_flight.follow(self.gate)

    def relocate(self, host: str, addresses: tuple[str, ...]) -> None:
        """A host's name leads to these addresses now, or this one has answered: it, and whoever else is concerned, go
        to the gates where they belong."""
        if not self._ownership.relocates(host, addresses):
            self._move(self._keeper.learn_addresses(host, addresses))

    def _move(self, hosts: Iterable[str]) -> None:
        """These hosts belong to other gates now. What waits for them goes there, and what their gates have still to
        wait for holds there too: a request in flight, its delay, and what the hosts themselves have asked for."""
        keeper, now = self._keeper, self._session.now()
        left: dict[str, float] = {}  # gates that hosts leave, and until when their server has to wait at least
        moving = []
        for host in dict.fromkeys(hosts):
            name = keeper.entered(host)
            if name != keeper.gate_of(host):
                moving.append((host, name))
            if name is not None and name != keeper.gate_of(host):
                left[name] = min(self._bench.gates[name].wake, now + keeper.bare_delay(name))
                keeper.leave(name, host)
        waiting = [drained for name in left for drained in self._bench.drain(self._bench.gates[name])]
        known = set(self._bench.gates)
        entered = {}
        for host, name in moving:
            gate = self.gate(host)
            if name is not None:
                self._wait_until(gate, left[name])
            if gate.name not in known:
                entered[gate.name] = gate
        for name, until in left.items():
            gate = self._bench.gates[name]
            keeper.recompute(gate)
            self._wait_until(gate, until)
            entered[name] = gate
        for gate in entered.values():  # their server may have been asked a moment ago under another name
            self._hold(gate, now)
        for lane, task in waiting:
            self.offer(RoutedTask(task=task, lane=lane))
        self._in_flight.follow(self.gate)

    def _wait_until(self, gate: Gate[Task], until: float) -> None:
        """Have a gate send nothing before then, whatever else it waits for."""
        gate.wake = max(gate.wake, until)
        if gate.state is not GateState.IN_FLIGHT:
            self._bench.retime(gate, gate.wake)

    def _hold(self, gate: Gate[Task], since: float) -> None:
        self._keeper.hold(gate, since=since)
        if gate.state is not GateState.IN_FLIGHT:
            self._bench.retime(gate, gate.wake)

    # What robots.txt has decided (robots_fetcher.RobotsWaiters).

    def resume(self, authority: str, waiting: Iterable[Request]) -> None:
        """robots.txt of an authority is known: its host's gate keeps its delay, and requests that waited for it have
        their turn again."""
        host = urls.read(authority)
        if isinstance(host, urls.Target):
            gate = self.gate(host.host)
            self._keeper.recompute(gate)
            self._bench.retime(gate, gate.wake)  # it may be waiting already, for the delay of before
        for request in reversed(list(waiting)):
            self.place(request, first=True)

    def postpone(self, authority: str, until: float, waiting: Iterable[Request]) -> None:
        """robots.txt of an authority is asked for again at `until` (Unix seconds): its host is left alone until
        then."""
        host = urls.read(authority)
        if isinstance(host, urls.Target):
            self._keeper.put_off(host.host, until)
        self.resume(authority, waiting)

    def close(self) -> None:
        """Look up nothing more."""
        for lookup in self._lookups:
            lookup.cancel()

    async def _look_up(self, host: str) -> None:
        moved = await self._locate(host)
        self._move((*moved, host) if moved else ())
        for routed in self._unresolved.pop(host):
            self.offer(routed)
        self._engine.wake()

    async def _locate(self, host: str) -> tuple[str, ...]:
        """Learn the address of a host. Returns the hosts that have to leave their gate because of it."""
        if await self._ownership.place_host(host):
            return ()
        try:
            answer = await self._resolver.resolve(hostname_of(host))
        except Exception:  # its links fail at the same name, each with a record; the other hosts go on
            logger.exception("A fault of ours kept %s from being looked up", host)
            return self._keeper.learn_addresses(host, ())
        return self._keeper.learn_addresses(host, () if isinstance(answer, Fault) else tuple(map(str, answer)))
