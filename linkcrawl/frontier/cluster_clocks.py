"""Clocks of collections over all workers: the first request of a check asks Redis whether it may begin."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from linkcrawl.frontier.cluster_parts import Parts
from linkcrawl.frontier.placing import Task
from linkcrawl.frontier.workbench import Gate, Lane
from linkcrawl.items import DueLink
from linkcrawl.politeness.policy import Clock

#: Seconds that a gate is put off while Redis is asked for it: it comes back with the answer.
HOUR = 3600.0


class Grants:
    """`spawn` runs something beside; what it raises is dealt with there."""

    def __init__(self, parts: Parts, spawn: Callable[[Callable[[], Awaitable[None]]], None]):
        self._parts = parts
        self._spawn = spawn
        self._granted: set[int | str] = set()

    def clear(self) -> None:
        """What was granted is void."""
        self._granted.clear()

    def asks(self, gate: Gate[Task], task: Task, lane: Lane, clocks: tuple[Clock, ...]) -> bool:
        """Whether the first request of a check has to wait for a word of Redis that it may clear its clocks; its gate
        waits with it."""
        link = task if isinstance(task, DueLink) else task.meta["link"]
        if link.id in self._granted:
            self._granted.discard(link.id)
            return False
        opens, gate.wake = gate.wake, self._parts.session.now() + HOUR
        self._spawn(lambda: self._ask(gate, task, lane, clocks, opens))
        return True

    def struck(self, clocks: tuple[tuple[str, float], ...], *, begun: bool) -> None:
        """A check that was granted has been sent; or it isn't for now, and others may."""
        now = self._parts.session.now()
        self._spawn(lambda: self._parts.ledger.struck(clocks, now, begun=begun))

    async def _ask(self, gate: Gate[Task], task: Task, lane: Lane, clocks: tuple[Clock, ...], opens: float) -> None:
        epoch, now = self._parts.session.epoch, self._parts.session.now()
        wait: float | None = None
        try:
            asked = [(clock.name, clock.delay, clock.max_per_day or 0) for clock in clocks]
            wait = await self._parts.ledger.grant(asked, now)
        finally:
            if epoch == self._parts.session.epoch:
                self._answered(gate, task, lane, clocks, wait)
                self._parts.bench.retime(gate, opens)
                self._parts.session.nudge()

    def _answered(
        self, gate: Gate[Task], task: Task, lane: Lane, clocks: tuple[Clock, ...], wait: float | None
    ) -> None:
        names: tuple[str, ...] = ()
        if wait == 0:
            self._granted.add(task.id if isinstance(task, DueLink) else task.meta["link"].id)
        else:
            names = tuple(clock.name for clock in clocks)
            opens = self._parts.session.now() + (1.0 if wait is None else wait)
            for clock in clocks:
                self._parts.bench.set_clock(clock.name, clock.delay, opens)
        self._parts.bench.offer(gate, task, lane=lane, clocks=names, first=True)
