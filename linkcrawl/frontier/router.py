"""Every task in the gate of the host that it goes to: the names of hosts resolved first, where servers are shared."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from attrs import frozen
from scrapy.http import Request

from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import Gate, GateState, Lane, Workbench
from linkcrawl.frontier.ports import context_of
from linkcrawl.items import DueLink
from linkcrawl.network.fault import Fault
from linkcrawl.network.resolver import Resolver
from linkcrawl.politeness.policy.limits import SharedLimit
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.session import Session
from linkcrawl.urls.domains import hostname_of

if TYPE_CHECKING:
    from linkcrawl.cluster.worker import ClusterWorker

Task = DueLink | Request


@frozen(kw_only=True)
class RoutedTask:
    """A task on its way to a gate."""

    task: Task
    lane: Lane
    first: bool = False


def host_of(task: Task) -> str:
    """The host key that a task's request goes to."""
    return task.host if isinstance(task, DueLink) else context_of(task).target.host


def limits_of(policies: Policies, task: Task) -> tuple[SharedLimit, ...]:
    """The limits that a task has to clear: those of its check's collections and providers where the check begins with
    it (also where it has not gone yet for want of robots.txt), and those of its host."""
    if isinstance(task, DueLink):
        link = task
    else:
        context = context_of(task)
        if not context.starts_limits or context.link is None:
            return policies.of_host(context.target.host).limits
        link = context.link  # the first request of a check goes to the link's own host
    return policies.of_link(link.host, link.collections, link.providers).limits


class HostRouter:
    """Offers tasks to their gates. A host that is met for the first time waits until its address is known: hosts that
    share one server share one gate from their first request on."""

    def __init__(self, session: Session, bench: Workbench[Task], keeper: Gatekeeper, resolver: Resolver):
        self._session = session
        self._bench = bench
        self._keeper = keeper
        self._resolver = resolver
        #: Which gates are ours, where workers share them; None: all are.
        self.cluster: ClusterWorker | None = None
        #: Told when hosts have come to other gates.
        self.regrouped: Callable[[], None] = lambda: None
        self._unresolved: dict[str, list[RoutedTask]] = {}
        self._lookups: set[asyncio.Task[None]] = set()

    @property
    def is_looking_up(self) -> bool:
        """Whether tasks wait for an address."""
        return bool(self._unresolved)

    def place(self, task: Task, lane: Lane, *, first: bool = False) -> None:
        """Put a task into its gate, at once or when its host's address is known."""
        placed, host = RoutedTask(task=task, lane=lane, first=first), host_of(task)
        if host in self._unresolved:
            self._unresolved[host].append(placed)
        elif host in self._keeper.known or not host:
            self.offer(placed)
        else:
            self._unresolved[host] = [placed]
            lookup = asyncio.get_running_loop().create_task(self._look_up(host))
            self._lookups.add(lookup)
            lookup.add_done_callback(self._lookups.discard)

    def gate(self, host: str) -> Gate[Task]:
        """The gate of a host, opened for it where that is new."""
        gate = self._bench.gate(self._keeper.name(host))
        before = gate.wake
        self._keeper.add_host(gate, host)
        if gate.wake != before:
            self._bench.retime(gate, gate.wake)  # it may be waiting for another time
        return gate

    def regroup(self) -> None:
        """Hosts may belong to other gates now: move all that waits. A gate that is new waits one full delay, for its
        hosts may have been asked a moment ago under another name."""
        if self.cluster is not None:
            self.cluster.regroup()
            return
        now = self._session.now()
        self._keeper.regroup()
        for gate in list(self._bench.gates.values()):
            self._keeper.forget_members(gate.name)
            for lane, task in self._bench.drain(gate):
                self.offer(RoutedTask(task=task, lane=lane))
        for gate in self._bench.gates.values():
            self._keeper.recompute(gate)
            if gate.place is not GateState.IN_FLIGHT:
                self._bench.retime(gate, max(gate.wake, now + gate.delay))
        self.regrouped()

    def close(self) -> None:
        """Look up nothing more."""
        for lookup in self._lookups:
            lookup.cancel()

    async def _look_up(self, host: str) -> None:
        strangers = await self._locate(host)
        for placed in self._unresolved.pop(host):
            self.offer(placed)
        if strangers:
            self.regroup()
        self._session.wake_engine()

    async def _locate(self, host: str) -> bool:
        """Learn the address of a host; whether other hosts have to leave their gate because of it."""
        if self.cluster is not None:
            await self.cluster.locate(host)
            return False
        answer = await self._resolver.resolve(hostname_of(host))
        return self._keeper.learn(host, () if isinstance(answer, Fault) else tuple(map(str, answer)))

    def offer(self, placed: RoutedTask) -> None:
        """Put a task into the gate of a host whose address is known."""
        task = placed.task
        if self.cluster is not None and self.cluster.has_elsewhere(self._keeper.name(host_of(task)), placed):
            return
        gate = self.gate(host_of(task))
        limits = limits_of(self._session.policies, task)
        for limit in limits:
            self._bench.set_limit(limit.name, limit.delay, self._keeper.limit_opens(limit))
        names = tuple(limit.name for limit in limits)
        self._bench.offer(gate, task, lane=placed.lane, limits=names, first=placed.first)
