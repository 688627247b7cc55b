"""PURE. A crawl on a virtual clock: how long it takes, against the least that politeness allows.

The frontier's own workbench decides what goes when; only servers are imagined, each with one answer time. So what an
operator is told of a policy before it is in force is what the crawl would do, not an estimate beside it. Seconds.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count

from attrs import define, frozen

from linkcrawl.frontier.gates.workbench import Gate, Lane, Workbench

#: Tasks that a gate holds ready; the rest of its work is a number.
READY = 2

#: What a task leads to: the gate of the hop that follows, None where the check ends.
Onward = str | None


@frozen(kw_only=True)
class Part:
    """So many links alike: the gate that each redirects to, and the limits that each must clear."""

    links: int
    onward: Onward = None
    limits: tuple[str, ...] = ()


def _always(moment: float) -> float:
    return moment


@frozen(kw_only=True)
class GateLoad:
    """The work at one gate. `delay`: from the end of an answer to the next request; `service`: what an answer takes.
    `robots`: robots.txt files to read first. `open_at`: when it may go if it is ready at a moment (quiet hours);
    infinite for never."""

    gate: str
    delay: float
    service: float
    robots: int = 1
    parts: tuple[Part, ...] = ()
    open_at: Callable[[float], float] = _always


@frozen(kw_only=True)
class Chain:
    """What one gate or limit alone has to do: requests (starts, for a limit), and the least time it takes."""

    name: str
    requests: int
    delay: float
    seconds: float


@frozen(kw_only=True)
class SimulationResult:
    """How a crawl went: seconds from its start, `ends` by gate. `bound`: no polite crawl could be shorter. `left`:
    links at gates that never open."""

    requests: int
    makespan: float
    bound: float
    ends: Mapping[str, float]
    left: int


def chains(loads: Sequence[GateLoad], limits: Mapping[str, float]) -> list[Chain]:
    """Every gate's and limit's own time, longest first: the links, the hops that come to a gate, and robots.txt."""
    requests = {load.gate: load.robots for load in loads}
    starts = dict.fromkeys(limits, 0)
    for load in loads:
        for part in load.parts:
            requests[load.gate] += part.links
            if part.onward in requests:  # else it never opens
                requests[part.onward] += part.links
            for limit in part.limits:
                starts[limit] += part.links
    own = [_chain(load, requests[load.gate]) for load in loads]
    own += [
        Chain(name=name, requests=number, delay=limits[name], seconds=max(0, number - 1) * limits[name])
        for name, number in starts.items()
    ]
    return sorted(own, key=lambda chain: -chain.seconds)


def _chain(load: GateLoad, requests: int) -> Chain:
    seconds = (requests - 1) * (load.delay + load.service) + load.service if requests else 0.0
    return Chain(name=load.gate, requests=requests, delay=load.delay, seconds=seconds)


def bound(loads: Sequence[GateLoad], limits: Mapping[str, float], concurrency: int) -> float:
    """The longest chain, or all answer times shared out over the requests at once, whichever is more."""
    service = {load.gate: load.service for load in loads}
    each = chains(loads, limits)
    work = sum(chain.requests * service.get(chain.name, 0.0) for chain in each)
    return max(max((chain.seconds for chain in each), default=0.0), work / concurrency)


@define(eq=False)
class _Feed:
    """A gate's load, and its links in the order in which they are dealt out."""

    load: GateLoad
    links: Iterator[Part]
    left: int


def simulate(
    loads: Sequence[GateLoad], limits: Mapping[str, float], concurrency: int, *, began: float = 0.0
) -> SimulationResult:
    """Let all loads be crawled, `concurrency` requests at once. `began`: Unix seconds, for quiet hours."""
    never = {load.gate for load in loads if math.isinf(load.open_at(began))}
    run = _Run([load for load in loads if load.gate not in never], limits, began)
    while run.step(concurrency):
        pass
    left = sum(part.links for load in loads if load.gate in never for part in load.parts) + run.stranded
    return SimulationResult(
        requests=run.requests,
        makespan=max(run.ends.values(), default=began) - began,
        bound=bound(run.loads, limits, concurrency),
        ends={name: end - began for name, end in run.ends.items()},
        left=left,
    )


class _Run:
    """The virtual clock, the requests in flight, and the workbench."""

    def __init__(self, loads: Sequence[GateLoad], limits: Mapping[str, float], began: float):
        self.loads = loads
        self.ends: dict[str, float] = {}
        self.requests = 0
        self.stranded = 0
        self._now = began
        self._bench: Workbench[Onward] = Workbench()
        self._flying: list[tuple[float, int, Gate[Onward], Onward]] = []
        self._order = count()
        self._feeds: dict[str, _Feed] = {}
        for name, delay in limits.items():
            self._bench.set_limit(name, delay)
        for load in loads:
            gate = self._bench.gate(load.gate, wake=load.open_at(began))
            gate.delay = load.delay
            feed = self._feeds[load.gate] = _Feed(load, dealt(load.parts), sum(part.links for part in load.parts))
            for _ in range(load.robots):
                self._bench.offer(gate, None, lane=Lane.HOP)
            self._top_up(gate, feed)

    def step(self, concurrency: int) -> bool:
        """Send what may go now, then move the clock to the next event. False once nothing is left to happen."""
        while len(self._flying) < concurrency and (taken := self._bench.take(self._now)) is not None:
            gate, onward = taken
            feed = self._feeds[gate.name]
            heapq.heappush(self._flying, (self._now + feed.load.service, next(self._order), gate, onward))
            if feed.left and len(gate.lanes[Lane.LINK]) < READY:
                self._top_up(gate, feed)
        wake = self._bench.next_wake() if len(self._flying) < concurrency else None
        if self._flying and (wake is None or self._flying[0][0] <= wake):
            self._end(*heapq.heappop(self._flying))
            return True
        if wake is None or math.isinf(wake):
            return False
        self._now = wake
        return True

    def _end(self, at: float, _: int, gate: Gate[Onward], onward: Onward) -> None:
        self._now = self.ends[gate.name] = at
        self.requests += 1
        load = self._feeds[gate.name].load
        self._bench.release(gate, load.open_at(at + load.delay))
        if onward is None:
            return
        if onward in self._feeds:
            self._bench.offer(self._bench.gates[onward], None, lane=Lane.HOP)
        else:
            self.stranded += 1

    def _top_up(self, gate: Gate[Onward], feed: _Feed) -> None:
        for _ in range(min(READY, feed.left)):
            part = next(feed.links)
            feed.left -= 1
            self._bench.offer(gate, part.onward, limits=part.limits)
        gate.backlog = feed.left


def dealt(parts: Sequence[Part]) -> Iterator[Part]:
    """Every link of these parts, each part spread evenly over the whole, as a store's order spreads them."""
    turns = [(0.5 / part.links, number, 1) for number, part in enumerate(parts) if part.links]
    heapq.heapify(turns)
    while turns:
        _, number, dealt_out = turns[0]
        part = parts[number]
        yield part
        if dealt_out < part.links:
            heapq.heapreplace(turns, ((dealt_out + 0.5) / part.links, number, dealt_out + 1))
        else:
            heapq.heappop(turns)
