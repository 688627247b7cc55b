"""Clocks over all workers: the first request of a check asks Redis whether it may begin, and so does every request to a
host that a rule groups with collections.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from uuid import uuid4

import redis
from attrs import frozen
from scrapy.http import Request

from linkcrawl.cluster.context import WorkerContext
from linkcrawl.frontier.gates.workbench import Gate, Lane
from linkcrawl.frontier.ports import context_of
from linkcrawl.frontier.router import Task
from linkcrawl.items import DueLink
from linkcrawl.politeness.policy.limits import SharedLimit

#: Seconds that a gate is put off while Redis is asked for it: it comes back with the answer.
HOUR = 3600.0
#: Seconds between two tries to say what came of a grant while Redis is away, and until one that has not been used is
#: given back: nobody else may begin a check of the collection meanwhile.
RETRY, UNUSED = 0.5, 3.0


#: What a grant is for.
Key = int | str | Request


@frozen
class Permit:
    """Leave to begin a check, or to send another request. `limits`: names and delays in seconds; `at`: Unix seconds."""

    name: str
    limits: tuple[SharedLimit, ...]
    at: float


class RatePermits:
    """`spawn` runs something beside, and deals with what it raises. `feeds`: whether checks may begin in a gate."""

    def __init__(
        self,
        parts: WorkerContext,
        spawn: Callable[[Callable[[], Awaitable[None]]], None],
        feeds: Callable[[str], bool],
    ):
        self._parts = parts
        self._session, self._ledger = parts.session, parts.ledger
        self._spawn = spawn
        self._feeds = feeds
        self._granted: dict[Key, Permit] = {}  # those not used yet
        self._used: dict[Key, Permit] = {}
        self._asking: Counter[str] = Counter()

    def clear(self) -> None:
        """What was granted is void."""
        self._granted.clear()
        self._used.clear()
        self._asking.clear()

    def is_asking(self, gate: str) -> bool:
        """Whether a task of the gate is not in it, because Redis is asked for it."""
        return self._asking[gate] > 0

    def asks(self, gate: Gate[Task], task: Task, lane: Lane, limits: tuple[SharedLimit, ...]) -> bool:
        """Whether a task has to wait for a word of Redis that it may clear its limits; its gate waits with it."""
        grant = self._granted.pop(_key(task), None)
        if grant is not None:
            self._used[_key(task)] = grant
            return False
        opens, gate.wake = gate.wake, self._session.now() + HOUR
        self._asking[gate.name] += 1
        wish = Permit(uuid4().hex, limits, self._session.now())
        self._spawn(lambda: self._ask(gate, task, lane, wish, opens))
        return True

    def struck(self, task: Task, *, begun: bool) -> None:
        """What was granted has been sent; or it isn't for now, and others may. Any other: nothing is done."""
        grant = self._used.pop(_key(task), None)
        if grant is not None:
            self._tell(grant, begun=begun)

    def give_back_unused(self) -> None:
        """What was granted for checks that do not begin after all (their gate is another's, rules have changed)."""
        now = self._session.now()
        for key, grant in list(self._granted.items()):
            if now - grant.at > UNUSED:
                del self._granted[key]
                self._tell(grant, begun=False)

    def _tell(self, grant: Permit, *, begun: bool) -> None:
        epoch = self._session.lease_epoch
        self._spawn(lambda: self._strike(grant, begun, epoch))

    async def _strike(self, grant: Permit, begun: bool, epoch: int) -> None:
        while epoch == self._session.lease_epoch:
            try:
                await self._ledger.settle(grant.limits, grant.name, grant.at, used=begun)
            except redis.RedisError:  # unsaid, nobody else could begin a check of the collection
                await asyncio.sleep(RETRY)
            else:
                return

    async def _ask(self, gate: Gate[Task], task: Task, lane: Lane, wish: Permit, opens: float) -> None:
        epoch, wait = self._session.lease_epoch, None
        try:
            wait = await self._ledger.grant(wish.limits, wish.name, wish.at)
        finally:
            if epoch == self._session.lease_epoch:
                self._asking[gate.name] -= 1
                self._answered(gate, task, lane, wish, wait)
                self._parts.bench.retime(gate, opens)
                self._session.wake_engine()

    def _answered(self, gate: Gate[Task], task: Task, lane: Lane, wish: Permit, wait: float | None) -> None:
        is_left = isinstance(task, DueLink) and not self._feeds(gate.name)  # it stays due, and is not out any more
        if wait is None or (wait == 0 and is_left):  # what is not known may have been granted
            self._tell(wish, begun=False)
        if is_left:
            return
        names: tuple[str, ...] = ()
        if wait == 0:
            self._granted[_key(task)] = wish
        else:
            names = tuple(limit.name for limit in wish.limits)
            opens = self._session.now() + (1.0 if wait is None else wait)
            for limit in wish.limits:
                self._parts.bench.set_limit(limit.name, limit.delay, opens)
        self._parts.bench.offer(gate, task, lane=lane, limits=names, first=True)


def _key(task: Task) -> Key:
    """The link for a check that begins, be it known by its link or by its first request; else the request."""
    if isinstance(task, DueLink):
        return task.id
    context = context_of(task)
    return task if context.link is None or not context.starts_limits else context.link.id
