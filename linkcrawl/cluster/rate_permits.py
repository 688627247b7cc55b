"""Permits for shared limits over all workers. Redis is asked for one before the first request of a check that must keep
limits, and before every request to a host that a rule groups with collections.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from uuid import uuid4

import redis
from attrs import frozen
from scrapy.http import Request

from linkcrawl.cluster.coordinator import Coordinator
from linkcrawl.cluster.lease_table import LeaseTable
from linkcrawl.frontier.gates.workbench import Gate, Lane
from linkcrawl.frontier.parts import Frontier
from linkcrawl.frontier.ports import Task, context_of, host_of
from linkcrawl.frontier.shared_limits import limits_of
from linkcrawl.items import DueLink
from linkcrawl.politeness.policy.limits import SharedLimit
from linkcrawl.units import HOUR

#: Seconds that a gate waits at most while Redis is asked for its task: it comes back with the answer.
ASKING = HOUR
#: Seconds between two tries to report a permit while Redis is away, and until a permit that has not been used is given
#: back: nobody else may begin a check of the collection meanwhile.
RETRY, UNUSED = 0.5, 3.0
#: Seconds until the next try where Redis could not be asked.
AGAIN = 1.0

#: What a permit is for: the id of a link whose check begins, or a request.
Key = int | str | Request


@frozen
class Permit:
    """Leave to begin a check, or to send another request. `name` tells it from all others; `asked_at`: Unix seconds."""

    name: str
    limits: tuple[SharedLimit, ...]
    asked_at: float


class RatePermits:
    """This worker's permits. `spawn` runs a coroutine function in the background, and deals with what it raises."""

    def __init__(
        self,
        frontier: Frontier,
        coordinator: Coordinator,
        table: LeaseTable,
        spawn: Callable[[Callable[[], Awaitable[None]]], None],
    ):
        self._session, self._bench, self._engine = frontier.session, frontier.bench, frontier.engine
        self._coordinator, self._keeper = coordinator, frontier.keeper
        self._table = table
        self._spawn = spawn
        self._unused: dict[Key, Permit] = {}
        self._in_use: dict[Key, Permit] = {}
        self._asking: Counter[str] = Counter()  # tasks by gate

    def clear(self) -> None:
        """All permits are void."""
        self._unused.clear()
        self._in_use.clear()
        self._asking.clear()

    def is_asking(self, gate: str) -> bool:
        """True while Redis is asked for a task of the gate, which is not at the gate meanwhile."""
        return self._asking[gate] > 0

    def acquire(self, gate: Gate[Task], task: Task, lane: Lane) -> bool:
        """True where a task has its permit, or needs none. Else Redis is asked, and the gate waits with the task."""
        limits = limits_of(self._session.policies, task)
        if not limits:
            return True
        key = _key(task)
        permit = self._unused.pop(key, None)
        if permit is not None:
            self._in_use[key] = permit
            return True
        wake, gate.wake = gate.wake, self._session.now() + ASKING
        self._asking[gate.name] += 1
        permit, epoch = Permit(uuid4().hex, limits, self._session.now()), self._session.lease_epoch
        self._spawn(lambda: self._ask(gate, task, lane, permit, wake, epoch))
        return False

    def settle(self, task: Task, *, used: bool) -> None:
        """Report a task's permit as used, or return it. No-op without a permit."""
        permit = self._in_use.pop(_key(task), None)
        if permit is not None:
            self._report(permit, used=used)

    def return_unused(self) -> None:
        """Return permits of checks that don't begin after all: their gate is another worker's, or rules have
        changed."""
        now = self._session.now()
        for key, permit in list(self._unused.items()):
            if now - permit.asked_at > UNUSED:
                del self._unused[key]
                self._report(permit, used=False)

    def _report(self, permit: Permit, *, used: bool) -> None:
        epoch = self._session.lease_epoch
        self._spawn(lambda: self._settle(permit, used, epoch))

    async def _settle(self, permit: Permit, used: bool, epoch: int) -> None:
        while epoch == self._session.lease_epoch:
            try:
                await self._coordinator.settle_permit(permit.limits, permit.name, permit.asked_at, used=used)
            except redis.RedisError:  # unreported, nobody else could begin a check of the collection
                await asyncio.sleep(RETRY)
            else:
                return

    async def _ask(self, gate: Gate[Task], task: Task, lane: Lane, permit: Permit, wake: float, epoch: int) -> None:
        if epoch != self._session.lease_epoch:
            return  # the session was lost before this has begun
        waits = None
        try:
            waits = await self._coordinator.acquire_permit(permit.limits, permit.name, permit.asked_at)
        finally:
            if epoch == self._session.lease_epoch:
                self._asking[gate.name] -= 1
                self._on_answer(gate, task, lane, permit, waits)
                # hosts may have come to the gate meanwhile, and it may have gone on with them
                self._bench.retime(gate, max(wake, self._keeper.paced_until(gate.name)))
                self._engine.wake()

    def _on_answer(
        self, gate: Gate[Task], task: Task, lane: Lane, permit: Permit, waits: Sequence[float] | None
    ) -> None:
        """`waits`: seconds that each limit has to wait, all 0 with the permit; None: Redis could not be asked."""
        is_left = isinstance(task, DueLink) and not self._table.feeds(gate.name)  # the link stays due
        granted = waits is not None and not any(waits)
        if waits is None or (granted and is_left):  # without an answer, Redis may have given the permit all the same
            self._report(permit, used=False)
        if is_left:
            return
        names: tuple[str, ...] = ()
        if granted:
            self._unused[_key(task)] = permit
        else:
            names, now = tuple(limit.name for limit in permit.limits), self._session.now()
            for limit, wait in zip(permit.limits, waits or [AGAIN] * len(names), strict=True):
                self._bench.set_limit(limit.name, limit.delay, now + wait)
        tenant = self._keeper.tenant(gate.name, host_of(task))
        self._bench.offer(gate, task, lane=lane, limits=names, first=True, tenant=tenant)


def _key(task: Task) -> Key:
    """The link's id for a check that begins, be it known by its link or by its first request; else the request."""
    if isinstance(task, DueLink):
        return task.id
    context = context_of(task)
    return task if context.link is None or not context.starts_limits else context.link.id
