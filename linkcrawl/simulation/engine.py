"""A crawl on a virtual clock: how long it takes, and how long any polite crawl takes at least. In seconds. Pure.

The frontier's own workbench decides which gate goes when; only the servers are made up, each with a constant answer
time. So a simulation shows what a crawl would do under a policy, rather than an estimate of it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count

from attrs import define, frozen

from linkcrawl.frontier.gates.workbench import Gate, Lane, Workbench

#: Tasks that a gate holds ready; the rest of its backlog is a number.
READY = 2

#: A task of the workbench: the gate that its request redirects to, None where the check ends.
RedirectGate = str | None


@frozen(kw_only=True)
class LinkGroup:
    """A number of links at one gate that are alike. `redirect_gate`: the gate that each redirects to, None for no
    redirect. `limits`: names of the shared limits that each check must clear."""

    links: int
    redirect_gate: RedirectGate = None
    limits: tuple[str, ...] = ()


def _at_once(moment: float) -> float:
    return moment


@frozen(kw_only=True)
class GateLoad:
    """The work at one gate. `delay`: from the end of an answer to the next request. `answer_time`: of each request.
    `robots`: robots.txt files to read first. `open_at`: from the moment when the gate is ready to the moment when it
    may go (quiet hours), infinite for never."""

    gate: str
    delay: float
    answer_time: float
    robots: int = 1
    groups: tuple[LinkGroup, ...] = ()
    open_at: Callable[[float], float] = _at_once


@frozen(kw_only=True)
class MinimumTime:
    """What one gate, or one shared limit, has to do, and the seconds that this alone takes. `requests`: of a limit, the
    checks that it spaces."""

    name: str
    requests: int
    delay: float
    seconds: float


@frozen(kw_only=True)
class SimulationResult:
    """How a crawl went. `makespan`: seconds from its start to its last answer; `ends`: the same for each gate. `bound`:
    no polite crawl takes less. `left`: links at gates that never open, which stay due."""

    requests: int
    makespan: float
    bound: float
    ends: Mapping[str, float]
    left: int


def minimum_times(loads: Sequence[GateLoad], limits: Mapping[str, float]) -> list[MinimumTime]:
    """The minimum time of every gate and limit, the longest first. A gate has its links, the redirects that come to it,
    and robots.txt files. `limits`: seconds between two checks, by name."""
    requests = {load.gate: load.robots for load in loads}
    starts = dict.fromkeys(limits, 0)
    for load in loads:
        for group in load.groups:
            requests[load.gate] += group.links
            if group.redirect_gate in requests:  # otherwise that gate never opens
                requests[group.redirect_gate] += group.links
            for limit in group.limits:
                starts[limit] += group.links
    times = [_gate_time(load, requests[load.gate]) for load in loads]
    times += [
        MinimumTime(name=name, requests=number, delay=limits[name], seconds=max(0, number - 1) * limits[name])
        for name, number in starts.items()
    ]
    return sorted(times, key=lambda time: -time.seconds)


def _gate_time(load: GateLoad, requests: int) -> MinimumTime:
    seconds = (requests - 1) * (load.delay + load.answer_time) + load.answer_time if requests else 0.0
    return MinimumTime(name=load.gate, requests=requests, delay=load.delay, seconds=seconds)


def lower_bound(loads: Sequence[GateLoad], limits: Mapping[str, float], concurrency: int) -> float:
    """The seconds that any polite crawl takes at least: the longest minimum time or, where that is more, the sum of all
    answer times divided by `concurrency`."""
    answer_times = {load.gate: load.answer_time for load in loads}
    times = minimum_times(loads, limits)
    work = sum(time.requests * answer_times.get(time.name, 0.0) for time in times)
    return max(max((time.seconds for time in times), default=0.0), work / concurrency)


def simulate(
    loads: Sequence[GateLoad], limits: Mapping[str, float], concurrency: int, *, began: float = 0.0
) -> SimulationResult:
    """Crawl all loads with at most `concurrency` requests in flight. `limits`: seconds between two checks, by name.
    `began`: Unix seconds of the start, for quiet hours."""
    never = {load.gate for load in loads if math.isinf(load.open_at(began))}
    crawl = _VirtualCrawl([load for load in loads if load.gate not in never], limits, began)
    while crawl.step(concurrency):
        pass
    left = sum(group.links for load in loads if load.gate in never for group in load.groups) + crawl.stranded
    return SimulationResult(
        requests=crawl.requests,
        makespan=max(crawl.ends.values(), default=began) - began,
        bound=lower_bound(crawl.loads, limits, concurrency),
        ends={name: end - began for name, end in crawl.ends.items()},
        left=left,
    )


@define(eq=False)
class _Backlog:
    """A gate's load, its links in order, and how many of them are not with the workbench yet."""

    load: GateLoad
    links: Iterator[LinkGroup]
    left: int


class _VirtualCrawl:
    """The virtual clock, the workbench, and the requests in flight. `stranded`: redirects to gates that never open."""

    def __init__(self, loads: Sequence[GateLoad], limits: Mapping[str, float], began: float):
        self.loads = loads
        self.ends: dict[str, float] = {}
        self.requests = 0
        self.stranded = 0
        self._now = began
        self._bench: Workbench[RedirectGate] = Workbench()
        self._in_flight: list[tuple[float, int, Gate[RedirectGate], RedirectGate]] = []
        self._order = count()
        self._backlogs: dict[str, _Backlog] = {}
        for name, delay in limits.items():
            self._bench.set_limit(name, delay)
        for load in loads:
            gate = self._bench.gate(load.gate, wake=load.open_at(began))
            gate.delay = load.delay
            links = sum(group.links for group in load.groups)
            backlog = self._backlogs[load.gate] = _Backlog(load, interleave(load.groups), links)
            for _ in range(load.robots):
                self._bench.offer(gate, None, lane=Lane.HOP)
            self._offer_links(gate, backlog)

    def step(self, concurrency: int) -> bool:
        """Send what may go now, then move the clock to the next event. False when nothing is left to happen."""
        while len(self._in_flight) < concurrency and (taken := self._bench.take(self._now)) is not None:
            gate, redirect_gate = taken
            backlog = self._backlogs[gate.name]
            end = self._now + backlog.load.answer_time
            heapq.heappush(self._in_flight, (end, next(self._order), gate, redirect_gate))
            if backlog.left and len(gate.lane(Lane.LINK)) < READY:
                self._offer_links(gate, backlog)
        wake = self._bench.next_wake() if len(self._in_flight) < concurrency else None
        if self._in_flight and (wake is None or self._in_flight[0][0] <= wake):
            self._answer(*heapq.heappop(self._in_flight))
            return True
        if wake is None or math.isinf(wake):
            return False
        self._now = wake
        return True

    def _answer(self, at: float, _: int, gate: Gate[RedirectGate], redirect_gate: RedirectGate) -> None:
        self._now = self.ends[gate.name] = at
        self.requests += 1
        load = self._backlogs[gate.name].load
        self._bench.release(gate, load.open_at(at + load.delay))
        if redirect_gate is None:
            return
        if redirect_gate in self._backlogs:
            self._bench.offer(self._bench.gates[redirect_gate], None, lane=Lane.HOP)
        else:
            self.stranded += 1

    def _offer_links(self, gate: Gate[RedirectGate], backlog: _Backlog) -> None:
        for _ in range(min(READY, backlog.left)):
            group = next(backlog.links)
            backlog.left -= 1
            self._bench.offer(gate, group.redirect_gate, limits=group.limits)
        gate.backlog = backlog.left


def interleave(groups: Sequence[LinkGroup]) -> Iterator[LinkGroup]:
    """The group of each link, one link after the other, with every group spread evenly over the whole, as the order of
    a store spreads them."""
    turns = [(0.5 / group.links, number, 1) for number, group in enumerate(groups) if group.links]
    heapq.heapify(turns)
    while turns:
        _, number, given = turns[0]
        group = groups[number]
        yield group
        if given < group.links:
            heapq.heapreplace(turns, ((given + 0.5) / group.links, number, given + 1))
        else:
            heapq.heappop(turns)
