"""Every task in the gate of the host that it goes to: the names of hosts resolved first, where servers are shared."""

from __future__ import annotations

import asyncio

from attrs import frozen
from scrapy.http import Request

from linkcrawl.frontier.gates import Gatekeeper
from linkcrawl.frontier.workbench import Gate, Lane, Place, Workbench
from linkcrawl.items import DueLink
from linkcrawl.network.fault import Fault
from linkcrawl.network.resolver import Resolver
from linkcrawl.session import Session

Task = DueLink | Request


@frozen(kw_only=True)
class Placed:
    """A task on its way to a gate."""

    task: Task
    lane: Lane
    first: bool = False


def host_of(task: Task) -> str:
    """The host key that a task's request goes to."""
    return task.host if isinstance(task, DueLink) else str(task.meta["host"])


class Placer:
    """Offers tasks to their gates. A host that is met for the first time waits until its address is known: hosts that
    share one server share one gate from their first request on."""

    def __init__(self, session: Session, bench: Workbench[Task], keeper: Gatekeeper, resolver: Resolver):
        self._session = session
        self._bench = bench
        self._keeper = keeper
        self._resolver = resolver
        self._unresolved: dict[str, list[Placed]] = {}
        self._lookups: set[asyncio.Task[None]] = set()

    @property
    def is_looking_up(self) -> bool:
        """Whether tasks wait for an address."""
        return bool(self._unresolved)

    def place(self, task: Task, lane: Lane, *, first: bool = False) -> None:
        """Put a task into its gate, at once or when its host's address is known."""
        placed, host = Placed(task=task, lane=lane, first=first), host_of(task)
        if host in self._unresolved:
            self._unresolved[host].append(placed)
        elif host in self._keeper.known or not host:
            self._offer(placed)
        else:
            self._unresolved[host] = [placed]
            lookup = asyncio.get_running_loop().create_task(self._look_up(host))
            self._lookups.add(lookup)
            lookup.add_done_callback(self._lookups.discard)

    def gate(self, host: str) -> Gate[Task]:
        """The gate of a host, opened for it where that is new."""
        gate = self._bench.gate(self._keeper.name(host))
        self._keeper.open(gate, host)
        return gate

    def regroup(self) -> None:
        """Hosts may belong to other gates now: move all that waits. A gate that is new waits one full delay, for its
        hosts may have been asked a moment ago under another name."""
        now = self._session.now()
        for gate in list(self._bench.gates.values()):
            self._keeper.forget_members(gate.name)
            for lane, task in self._bench.drain(gate):
                self._offer(Placed(task=task, lane=lane))
        for gate in self._bench.gates.values():
            self._keeper.renew(gate)
            if gate.place is not Place.IN_FLIGHT:
                self._bench.retime(gate, max(gate.wake, now + gate.delay))

    def close(self) -> None:
        """Look up nothing more."""
        for lookup in self._lookups:
            lookup.cancel()

    async def _look_up(self, host: str) -> None:
        name = host if host.endswith("]") else host.rpartition(":")[0] if ":" in host.rpartition("]")[2] else host
        answer = await self._resolver.resolve(name.strip("[]"))
        addresses = () if isinstance(answer, Fault) else tuple(map(str, answer))
        strangers = self._keeper.learn(host, addresses)
        for placed in self._unresolved.pop(host):
            self._offer(placed)
        if strangers:
            self.regroup()
        self._session.nudge()

    def _offer(self, placed: Placed) -> None:
        task = placed.task
        gate = self.gate(host_of(task))
        clocks: tuple[str, ...] = ()
        if isinstance(task, DueLink):
            clocks = self._clocks(task)
        self._bench.offer(gate, task, lane=placed.lane, clocks=clocks, first=placed.first)

    def _clocks(self, link: DueLink) -> tuple[str, ...]:
        """The clocks of its collections and providers that the link's check has to clear."""
        applied = self._session.policies.of_link(link.host, link.collections, link.providers)
        for clock in applied.clocks:
            self._bench.set_clock(clock.name, clock.delay, self._keeper.clock_opens(clock))
        return tuple(clock.name for clock in applied.clocks)
