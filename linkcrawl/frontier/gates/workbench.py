"""PURE. Which gate may go now, and when is the next one: gates in heaps by wake time and by work left.

A *gate* is a set of hosts that share one delay and one place in flight. It hands out one task at a time: `take` closes
it, `release` says when it may go again. Tasks of a gate go by lane: hops of checks under way first (a check that waits
holds memory), then on-demand links, then the others, each in the order given.

A *limit* spaces tasks start to start over any number of gates (a collection's delay). A task may have to clear
several; a gate whose tasks all wait for limits lets others pass and comes back when the first limit strikes.

Work-conserving: as long as any task may go, `take` gives one. Among gates that may go it prefers the one with the
most time of work left (tasks x delay), the order that ends a crawl soonest when permits are scarce. All steps cost
O(log gates). Time is whatever the caller's clock counts in seconds; it only ever comes in as an argument.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable
from enum import IntEnum
from typing import Generic, TypeVar

from attrs import define, field, frozen

Task = TypeVar("Task")


class Lane(IntEnum):
    """Which tasks of a gate go first."""

    HOP, ON_DEMAND, LINK = range(3)


class GateState(IntEnum):
    """Where a gate is: it has nothing to do, waits for its time, for a limit, may go, or has a request in flight."""

    IDLE, WAITING, RATE_LIMITED, READY, IN_FLIGHT = range(5)


@frozen
class QueuedTask(Generic[Task]):
    """A task in a gate's lane, and the limits that it must clear."""

    task: Task
    limits: tuple[str, ...]


@define(eq=False)
class RateLimit:
    """A delay in seconds between two starts, and the gates that wait for it to strike."""

    delay: float
    ready_at: float = float("-inf")
    parked: deque[str] = field(factory=deque)


@define(eq=False)
class Gate(Generic[Task]):
    """A gate as the workbench sees it. `backlog`: work left that is not in its lanes yet; `stamp`: its heap entry's."""

    name: str
    wake: float
    delay: float = 0.0
    backlog: int = 0
    in_flight: int = 0
    place: GateState = GateState.IDLE
    stamp: int = 0
    woken_by: str | None = None
    lanes: tuple[deque[QueuedTask[Task]], ...] = field(factory=lambda: (deque(), deque(), deque()))

    def __len__(self) -> int:
        return sum(len(lane) for lane in self.lanes)

    @property
    def work_left(self) -> float:
        """Seconds that this gate will take for what it has, at least; its count where it has no delay."""
        return (len(self) + self.backlog) * max(self.delay, 1e-6)


class Workbench(Generic[Task]):
    """The gates of a crawl."""

    def __init__(self) -> None:
        self.gates: dict[str, Gate[Task]] = {}
        self._limits: dict[str, RateLimit] = {}
        self._waiting: list[tuple[float, int, str, bool]] = []  # (time, stamp, gate or limit, is it a limit)
        self._ready: list[tuple[float, int, str]] = []  # (-work left, stamp, gate)
        self._stamps = 0

    def gate(self, name: str, *, wake: float = float("-inf")) -> Gate[Task]:
        """The gate of this name; opened, with this wake time, where it doesn't exist yet."""
        gate = self.gates.get(name)
        if gate is None:
            gate = self.gates[name] = Gate(name, wake)
        return gate

    def set_limit(self, name: str, delay: float, ready_at: float = float("-inf")) -> None:
        """Make a limit, or change its delay from its next start on. It does not strike before `ready_at`."""
        limit = self._limits.get(name)
        if limit is None:
            self._limits[name] = RateLimit(delay, ready_at)
        else:
            limit.delay = delay
            limit.ready_at = max(limit.ready_at, ready_at)

    def offer(
        self,
        gate: Gate[Task],
        task: Task,
        *,
        lane: Lane = Lane.LINK,
        limits: tuple[str, ...] = (),
        first: bool = False,
    ) -> None:
        """Give a gate a task. `first`: ahead of its lane (it had its turn before and was put back)."""
        waiting = QueuedTask(task, limits)
        if first:
            gate.lanes[lane].appendleft(waiting)
        else:
            gate.lanes[lane].append(waiting)
        if gate.place in (GateState.IDLE, GateState.RATE_LIMITED):
            self._await_wake(gate)

    def take(self, now: float) -> tuple[Gate[Task], Task] | None:
        """The next task that may go now; its gate stays closed until `release`. None where nothing may go."""
        while True:
            self._strike(now)
            taken = self._take_ready(now)
            # a gate that passed a limit's turn on may have left it to one that can go at once
            if taken is not None or not self._waiting or self._waiting[0][0] > now:
                return taken

    def put_back(self, gate: Gate[Task], task: Task, limits: tuple[str, ...] = (), lane: Lane = Lane.HOP) -> None:
        """Give back a task that can't go after all: it is its gate's next. Then release the gate."""
        gate.lanes[lane].appendleft(QueuedTask(task, limits))

    def refund(self, limits: Iterable[str], now: float) -> None:
        """The task taken just now does not start what its limits space: they have not struck for it."""
        for name in limits:
            self._limits[name].ready_at = now
            if self._limits[name].parked:
                heapq.heappush(self._waiting, (now, 0, name, True))

    def commit(self, limits: Iterable[str], now: float) -> None:
        """What the limits were started for begins only now."""
        for name in limits:
            limit = self._limits[name]
            limit.ready_at = max(limit.ready_at, now + limit.delay)

    def hold(self, gate: Gate[Task]) -> None:
        """A request that another gate handed out belongs to this one now: it stays closed until that is released."""
        gate.in_flight += 1
        gate.place = GateState.IN_FLIGHT
        self._stamp(gate)

    def release(self, gate: Gate[Task], wake: float) -> None:
        """A request of the gate has ended, or was never sent: once none is left, it may go again at `wake`."""
        gate.wake = wake
        gate.in_flight -= 1
        if not gate.in_flight:
            self._settle(gate)

    def retime(self, gate: Gate[Task], wake: float) -> None:
        """Move the wake time of a gate that is not in flight (a changed policy, a silence)."""
        gate.wake = wake
        if gate.place in (GateState.WAITING, GateState.READY):
            self._await_wake(gate)

    def shift(self, seconds: float) -> None:
        """The caller's clock has been moved: all times move with it, so that nothing waits shorter or longer."""
        for gate in self.gates.values():
            gate.wake += seconds
        for limit in self._limits.values():
            limit.ready_at += seconds
        self._waiting = [(at + seconds, stamp, name, is_limit) for at, stamp, name, is_limit in self._waiting]

    def next_wake(self) -> float | None:
        """When the next gate or limit comes up; a time gone by where one may go at once, None where none waits."""
        if self._has_ready():
            return float("-inf")
        while self._waiting:
            at, stamp, name, is_limit = self._waiting[0]
            if is_limit or self.gates[name].stamp == stamp:
                return at
            heapq.heappop(self._waiting)
        return None

    def drain(self, gate: Gate[Task]) -> list[tuple[Lane, Task]]:
        """Take all waiting tasks from a gate, in their order; what is in flight stays there."""
        tasks = [(lane, waiting.task) for lane in Lane for waiting in gate.lanes[lane]]
        for queue in gate.lanes:
            queue.clear()
        name, gate.woken_by = gate.woken_by, None
        if name is not None and self._limits[name].parked:  # its turn is the next one's
            heapq.heappush(self._waiting, (self._limits[name].ready_at, 0, name, True))
        if gate.place is not GateState.IN_FLIGHT:
            self._settle(gate)
        return tasks

    # Inside.

    def _take_ready(self, now: float) -> tuple[Gate[Task], Task] | None:
        while self._ready:
            _, stamp, name = heapq.heappop(self._ready)
            gate = self.gates.get(name)
            if gate is None or gate.stamp != stamp or gate.place is not GateState.READY:
                continue
            waiting = self._pick(gate, now)
            if waiting is not None:
                gate.place, gate.in_flight = GateState.IN_FLIGHT, 1
                for limit in waiting.limits:
                    self._start(self._limits[limit], limit, now)
            self._pass_turn_on(gate, now)
            if waiting is not None:
                return gate, waiting.task
        return None

    def _has_ready(self) -> bool:
        while self._ready:
            _, stamp, name = self._ready[0]
            if self.gates[name].stamp == stamp and self.gates[name].place is GateState.READY:
                return True
            heapq.heappop(self._ready)
        return False

    def _stamp(self, gate: Gate[Task]) -> int:
        self._stamps += 1
        gate.stamp = self._stamps
        return self._stamps

    def _settle(self, gate: Gate[Task]) -> None:
        if len(gate):
            self._await_wake(gate)
        else:
            gate.place = GateState.IDLE
            self._stamp(gate)

    def _await_wake(self, gate: Gate[Task]) -> None:
        gate.place = GateState.WAITING
        heapq.heappush(self._waiting, (gate.wake, self._stamp(gate), gate.name, False))

    def _strike(self, now: float) -> None:
        """Move whatever's time has come from waiting to ready."""
        while self._waiting and self._waiting[0][0] <= now:
            _, stamp, name, is_limit = heapq.heappop(self._waiting)
            if is_limit:
                self._wake_parked(self._limits[name], name, now)
                continue
            gate = self.gates[name]
            if gate.stamp == stamp and gate.place is GateState.WAITING:
                self._make_ready(gate)

    def _make_ready(self, gate: Gate[Task]) -> None:
        gate.place = GateState.READY
        heapq.heappush(self._ready, (-gate.work_left, self._stamp(gate), gate.name))

    def _pick(self, gate: Gate[Task], now: float) -> QueuedTask[Task] | None:
        """The gate's first task that clears its limits; else park the gate with the limit that strikes first."""
        first_limit: str | None = None
        for lane in gate.lanes:
            for index, waiting in enumerate(lane):
                late = max(waiting.limits, key=self._strikes_at, default=None)
                if late is None or self._strikes_at(late) <= now:
                    del lane[index]
                    return waiting
                if first_limit is None or self._strikes_at(late) < self._strikes_at(first_limit):
                    first_limit = late
        if first_limit is None:
            self._settle(gate)
        else:
            self._park(gate, first_limit)
        return None

    def _strikes_at(self, limit: str) -> float:
        return self._limits[limit].ready_at

    def _park(self, gate: Gate[Task], name: str) -> None:
        gate.place = GateState.RATE_LIMITED
        self._stamp(gate)
        limit = self._limits[name]
        limit.parked.append(gate.name)
        if len(limit.parked) == 1:
            heapq.heappush(self._waiting, (limit.ready_at, 0, name, True))

    def _start(self, limit: RateLimit, name: str, now: float) -> None:
        limit.ready_at = now + limit.delay
        if limit.parked:
            heapq.heappush(self._waiting, (limit.ready_at, 0, name, True))

    def _wake_parked(self, limit: RateLimit, name: str, now: float) -> None:
        """One gate of those that wait goes on; it re-arms the limit when it starts, or passes the turn on here."""
        if limit.ready_at > now:  # started or put off meanwhile
            if limit.parked:
                heapq.heappush(self._waiting, (limit.ready_at, 0, name, True))
            return
        while limit.parked:
            gate = self.gates[limit.parked.popleft()]
            if gate.place is GateState.RATE_LIMITED:
                gate.woken_by = name
                self._make_ready(gate)
                break

    def _pass_turn_on(self, gate: Gate[Task], now: float) -> None:
        """A gate that a limit woke, and that took another task, leaves the turn to the next gate parked there."""
        name, gate.woken_by = gate.woken_by, None
        if name is not None and self._limits[name].ready_at <= now and self._limits[name].parked:
            heapq.heappush(self._waiting, (now, 0, name, True))
