"""PURE. Decides which gate may go now, and when the next one may.

A *gate* is a set of hosts that share one delay and one request in flight. It hands out one task at a time: `take`
closes it, `release` says when it may go again. A gate's tasks go by lane: hops of checks under way first (a waiting
check holds memory), then links that somebody asked for, then the others; within a lane in the order given.

A *limit* (a collection's delay) spaces tasks from start to start, over any number of gates. A task may have to keep
several. A gate whose tasks must all wait for limits comes back when the first of these allows a start; other gates pass
meanwhile.

Where strangers share a gate, each *tenant* has a wake time of its own besides (`Gate.opens`): while one of them is shut
the others' tasks go, and of those that may go in one lane the one that has waited longest for its turn.

As long as any task may go, `take` gives one. Of several gates it prefers the one with the most time of work left (tasks
times delay), which ends a crawl soonest when few requests may be in flight. Every step costs O(log gates). Times are
seconds of the caller's clock, and only ever arguments.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable
from enum import IntEnum
from math import inf
from typing import Generic, TypeVar

from attrs import define, field, frozen

from linkcrawl.politeness.pacing.tenants import OWN

Task = TypeVar("Task")


class Lane(IntEnum):
    """The order in which a gate's tasks go."""

    HOP, ON_DEMAND, LINK = range(3)


class GateState(IntEnum):
    """IDLE: without a task. WAITING: for its wake time. RATE_LIMITED: for a limit. READY: may go. IN_FLIGHT: has handed
    out a task that has not been released."""

    IDLE, WAITING, RATE_LIMITED, READY, IN_FLIGHT = range(5)


@frozen
class QueuedTask(Generic[Task]):
    """A task in a gate's lane, and the names of the limits that it must keep."""

    task: Task
    limits: tuple[str, ...]


#: A tenant's tasks, one queue for each Lane.
Lanes = tuple[deque[QueuedTask[Task]], ...]


@define(eq=False)
class RateLimit:
    """A delay in seconds between two starts. `ready_at`: when the next may be; `gates`: those that wait for that."""

    name: str
    delay: float
    ready_at: float = float("-inf")
    gates: deque[str] = field(factory=deque)

    def is_due(self, now: float) -> bool:
        """True when a start is allowed."""
        return self.ready_at <= now


def _empty() -> Lanes[Task]:
    return deque(), deque(), deque()


@define(eq=False)
class Gate(Generic[Task]):
    """A gate as the workbench sees it. `wake`: when it may go; `opens`: when each of its tenants may, of those that may
    not at any time; `delay`: seconds between two of its requests; `backlog`: tasks left that are not in its lanes yet;
    `stamp`: of its valid heap entry; `woken_by`: the limit whose turn it has; `lanes`: by tenant, the one that had its
    turn last at the end."""

    name: str
    wake: float
    delay: float = 0.0
    backlog: int = 0
    in_flight: int = 0
    state: GateState = GateState.IDLE
    stamp: int = 0
    woken_by: str | None = None
    opens: dict[str, float] = field(factory=dict)
    lanes: dict[str, Lanes[Task]] = field(factory=lambda: {OWN: _empty()})

    def __len__(self) -> int:
        return sum(len(lane) for lanes in self.lanes.values() for lane in lanes)

    def lane(self, lane: Lane, tenant: str = OWN) -> deque[QueuedTask[Task]]:
        """The tasks of a tenant that wait in this lane."""
        lanes = self.lanes.get(tenant)
        if lanes is None:
            lanes = self.lanes[tenant] = _empty()
        return lanes[lane]

    def has(self, lane: Lane) -> bool:
        """True where a task of anybody waits in this lane."""
        return any(lanes[lane] for lanes in self.lanes.values())

    @property
    def opens_at(self) -> float:
        """When the first of its tasks may go, limits aside."""
        if not self.opens:
            return self.wake
        tenants = [self.opens.get(tenant, -inf) for tenant, lanes in self.lanes.items() if any(lanes)]
        return max(self.wake, min(tenants, default=-inf))

    @property
    def work_left(self) -> float:
        """Seconds that the tasks left take at least; for a gate without a delay a small number that grows with them."""
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
        """The gate of this name; a new one gets this wake time."""
        gate = self.gates.get(name)
        if gate is None:
            gate = self.gates[name] = Gate(name, wake)
        return gate

    def set_limit(self, name: str, delay: float, ready_at: float = float("-inf")) -> None:
        """Make a limit, or change its delay from the next start on. Nothing starts under it before `ready_at`."""
        limit = self._limits.get(name)
        if limit is None:
            self._limits[name] = RateLimit(name, delay, ready_at)
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
        tenant: str = OWN,
    ) -> None:
        """Give a gate a task of one of its tenants. `first`: ahead of its lane, as it has had its turn before."""
        waiting, queue = QueuedTask(task, limits), gate.lane(lane, tenant)
        if first:
            queue.appendleft(waiting)
        else:
            queue.append(waiting)
        if gate.state in (GateState.IDLE, GateState.RATE_LIMITED) or (gate.opens and gate.state is GateState.WAITING):
            self._await_wake(gate)

    def take(self, now: float) -> tuple[Gate[Task], Task] | None:
        """The next task that may go now; its gate stays closed until `release`. None where nothing may go."""
        while True:
            self._advance(now)
            taken = self._take_ready(now)
            # a gate that did not use a limit's turn may have left it to one that can go at once
            if taken is not None or not self._waiting or self._waiting[0][0] > now:
                return taken

    def promote(self, gate: Gate[Task], chosen: Callable[[Task], bool]) -> None:
        """Move the first chosen task from the lane of links into that of links that somebody asked for. No-op where no
        such task waits."""
        for lanes in gate.lanes.values():
            for waiting in lanes[Lane.LINK]:
                if chosen(waiting.task):
                    lanes[Lane.LINK].remove(waiting)
                    lanes[Lane.ON_DEMAND].append(waiting)
                    return

    def put_back(
        self,
        gate: Gate[Task],
        task: Task,
        limits: tuple[str, ...] = (),
        lane: Lane = Lane.HOP,
        tenant: str = OWN,
    ) -> None:
        """Give back a task that can't go after all: it is its gate's next. The caller releases the gate."""
        gate.lane(lane, tenant).appendleft(QueuedTask(task, limits))

    def refund(self, limits: Iterable[str], now: float) -> None:
        """The task taken last does not start after all: others may start under its limits."""
        for name in limits:
            self._limits[name].ready_at = now
            self._arm(self._limits[name])

    def commit(self, limits: Iterable[str], now: float) -> None:
        """A task that was taken earlier starts only now: its limits count from here."""
        for name in limits:
            limit = self._limits[name]
            limit.ready_at = max(limit.ready_at, now + limit.delay)

    def hold(self, gate: Gate[Task]) -> None:
        """A request that another gate handed out belongs to this gate now, which stays closed until it is released."""
        gate.in_flight += 1
        gate.state = GateState.IN_FLIGHT
        self._stamp(gate)

    def release(self, gate: Gate[Task], wake: float) -> None:
        """A request of the gate has ended, or was never sent. Once none is in flight, the gate may go at `wake`."""
        gate.wake = wake
        gate.in_flight -= 1
        if not gate.in_flight:
            self._reschedule(gate)

    def retime(self, gate: Gate[Task], wake: float) -> None:
        """Change the wake time of a gate that is not in flight; its tenants' have been changed."""
        gate.wake = wake
        if gate.state in (GateState.WAITING, GateState.READY) or (gate.opens and gate.state is GateState.RATE_LIMITED):
            self._await_wake(gate)

    def shift(self, seconds: float) -> None:
        """The caller's clock has been moved by so many seconds: all times move with it, and no wait changes."""
        for gate in self.gates.values():
            gate.wake += seconds
            gate.opens = {tenant: at + seconds for tenant, at in gate.opens.items()}
        for limit in self._limits.values():
            limit.ready_at += seconds
        self._waiting = [(at + seconds, stamp, name, is_limit) for at, stamp, name, is_limit in self._waiting]

    def next_wake(self) -> float | None:
        """When to call `take` next: minus infinity where a gate may go now, None where none waits."""
        if self._has_ready():
            return float("-inf")
        while self._waiting:
            at, stamp, name, is_limit = self._waiting[0]
            if is_limit or self.gates[name].stamp == stamp:
                return at
            heapq.heappop(self._waiting)
        return None

    def drain(self, gate: Gate[Task], tenant: str | None = None) -> list[tuple[Lane, Task]]:
        """Take all tasks (of one tenant, where it is named) out of a gate's lanes, in their order; what is in flight
        stays."""
        drained = [lanes for name, lanes in gate.lanes.items() if tenant is None or name == tenant]
        tasks = [(lane, waiting.task) for lane in Lane for lanes in drained for waiting in lanes[lane]]
        for lanes in drained:
            for queue in lanes:
                queue.clear()
        name, gate.woken_by = gate.woken_by, None
        if name is not None:  # its turn is the next gate's
            self._arm(self._limits[name])
        if gate.state is not GateState.IN_FLIGHT:
            self._reschedule(gate)
        return tasks

    # Inside.

    def _take_ready(self, now: float) -> tuple[Gate[Task], Task] | None:
        while self._ready:
            _, stamp, gate_name = heapq.heappop(self._ready)
            gate = self.gates.get(gate_name)
            if gate is None or gate.stamp != stamp or gate.state is not GateState.READY:
                continue
            waiting = self._pick(gate, now)
            if waiting is not None:
                gate.state, gate.in_flight = GateState.IN_FLIGHT, 1
                for name in waiting.limits:
                    limit = self._limits[name]
                    limit.ready_at = now + limit.delay
                    self._arm(limit)
            self._pass_turn_on(gate, now)
            if waiting is not None:
                return gate, waiting.task
        return None

    def _has_ready(self) -> bool:
        while self._ready:
            _, stamp, name = self._ready[0]
            if self.gates[name].stamp == stamp and self.gates[name].state is GateState.READY:
                return True
            heapq.heappop(self._ready)
        return False

    def _stamp(self, gate: Gate[Task]) -> int:
        self._stamps += 1
        gate.stamp = self._stamps
        return self._stamps

    def _reschedule(self, gate: Gate[Task]) -> None:
        """A gate that is neither in flight nor ready any more waits for its wake time, or for a task."""
        if len(gate):
            self._await_wake(gate)
        else:
            gate.state = GateState.IDLE
            self._stamp(gate)

    def _await_wake(self, gate: Gate[Task]) -> None:
        gate.state = GateState.WAITING
        heapq.heappush(self._waiting, (gate.opens_at, self._stamp(gate), gate.name, False))

    def _advance(self, now: float) -> None:
        """Make ready what has waited until now."""
        while self._waiting and self._waiting[0][0] <= now:
            _, stamp, name, is_limit = heapq.heappop(self._waiting)
            if is_limit:
                self._wake_one(self._limits[name], now)
                continue
            gate = self.gates[name]
            if gate.stamp == stamp and gate.state in (GateState.WAITING, GateState.RATE_LIMITED):
                self._make_ready(gate)

    def _make_ready(self, gate: Gate[Task]) -> None:
        gate.state = GateState.READY
        heapq.heappush(self._ready, (-gate.work_left, self._stamp(gate), gate.name))

    def _pick(self, gate: Gate[Task], now: float) -> QueuedTask[Task] | None:
        """The first task of a tenant that may go whose limits are all due. Where there is none, the gate waits for the
        limit that is the first to be what a task waits for, and for the next of its tenants."""
        earliest: RateLimit | None = None
        opens = inf
        for lane in Lane:
            for tenant, lanes in gate.lanes.items():
                shut_until = gate.opens.get(tenant, -inf) if gate.opens else -inf
                if shut_until > now:
                    opens = min(opens, shut_until) if lanes[lane] else opens
                    continue
                for index, waiting in enumerate(lanes[lane]):
                    last = max(map(self._limits.__getitem__, waiting.limits), key=_ready_at, default=None)
                    if last is None or last.is_due(now):
                        del lanes[lane][index]
                        if len(gate.lanes) > 1:
                            gate.lanes[tenant] = gate.lanes.pop(tenant)
                        return waiting
                    if earliest is None or last.ready_at < earliest.ready_at:
                        earliest = last
        if earliest is None:
            self._reschedule(gate)
        else:
            self._await_limit(gate, earliest)
            if opens < inf:
                heapq.heappush(self._waiting, (opens, gate.stamp, gate.name, False))
        return None

    def _await_limit(self, gate: Gate[Task], limit: RateLimit) -> None:
        gate.state = GateState.RATE_LIMITED
        self._stamp(gate)
        limit.gates.append(gate.name)
        if len(limit.gates) == 1:
            self._arm(limit)

    def _arm(self, limit: RateLimit) -> None:
        """Come back to a limit that gates wait for when it is due."""
        if limit.gates:
            heapq.heappush(self._waiting, (limit.ready_at, 0, limit.name, True))

    def _wake_one(self, limit: RateLimit, now: float) -> None:
        """Make one of the gates ready that wait for a limit. The gate arms the limit again when its task starts, or
        passes its turn on."""
        if not limit.is_due(now):  # started or put off meanwhile
            self._arm(limit)
            return
        while limit.gates:
            gate = self.gates[limit.gates.popleft()]
            if gate.state is GateState.RATE_LIMITED:
                gate.woken_by = limit.name
                self._make_ready(gate)
                break

    def _pass_turn_on(self, gate: Gate[Task], now: float) -> None:
        """A gate that a limit woke and that took another task leaves the turn to the next gate that waits for it."""
        name, gate.woken_by = gate.woken_by, None
        if name is not None and self._limits[name].is_due(now):
            self._arm(self._limits[name])


def _ready_at(limit: RateLimit) -> float:
    return limit.ready_at
