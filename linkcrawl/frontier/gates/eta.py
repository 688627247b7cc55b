"""PURE. Where the gates of a crawl stand, and how long their work will take at least.

The arithmetic is that of the bound (docs/politeness.md): a crawl lasts as long as its slowest gate, and as long as all
its requests take when CONCURRENT_REQUESTS of them are in flight.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

from attrs import frozen

from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import Gate, GateState


@frozen(kw_only=True)
class FrontierStats:
    """Gates by what they do, and the work left. `waiting`: for their delay, a silence or a limit; `blocked`: until a
    person unblocks them; their links are not counted in `due`, nor in `eta` those of gates that stay closed for longer
    than the crawl is patient. `eta`: seconds. `slowest`: the gate that `eta` waits for, and its own seconds.
    """

    ready: int
    waiting: int
    in_flight: int
    blocked: int
    due: int
    eta: float
    slowest: tuple[str, float] | None


def frontier_stats(
    gates: Iterable[Gate[Any]], now: float, *, service: float, permits: int, patience: float
) -> FrontierStats:
    """Read the gates once. `service`: seconds that a check takes without waiting, on average; `permits`:
    CONCURRENT_REQUESTS; `patience`: LINKCRAWL_PATIENCE, seconds."""
    places = dict.fromkeys(GateState, 0)
    blocked = due = within = 0
    longest, slowest = 0.0, None
    for gate in gates:
        left = len(gate) + gate.backlog
        if gate.wake == inf and gate.state is not GateState.IN_FLIGHT:
            blocked += bool(left)
            continue
        places[gate.state] += 1
        due += left
        wait = max(0.0, gate.wake - now)
        if not left or wait > patience:
            continue
        within += left
        seconds = wait + left * service + (left - 1) * gate.delay
        if seconds > longest:
            longest, slowest = seconds, gate.name
    return FrontierStats(
        ready=places[GateState.READY],
        waiting=places[GateState.WAITING] + places[GateState.RATE_LIMITED],
        in_flight=places[GateState.IN_FLIGHT],
        blocked=blocked,
        due=due,
        eta=max(longest, within * service / max(1, permits)),
        slowest=None if slowest is None else (slowest, longest),
    )


@frozen(kw_only=True)
class RecheckCycle:
    """One round over the `links` of all `hosts` behind a gate, a request each. `gap`: seconds from one answer to the
    next, the server's own time included. `interval`: seconds after which a good link is first asked again."""

    gate: str
    hosts: int
    links: int
    gap: float
    interval: float

    @property
    def seconds(self) -> float:
        """How long the round takes at the delay in force."""
        return self.links * self.gap

    @property
    def can_be_met(self) -> bool:
        """Whether it ends before its first links are due again."""
        return self.seconds <= self.interval


def recheck_cycles(links: Mapping[str, int], keeper: Gatekeeper, interval: float) -> list[RecheckCycle]:
    """The recheck cycles of all gates, the longest first. `links`: by host, whether due or not. `keeper`: one that no
    crawl uses, for it opens gates of its own. `interval`: the plan's, where no policy rule has another."""
    hosts: dict[str, list[str]] = {}
    for host in links:
        name = keeper.name(host)
        hosts.setdefault(name, []).append(host)
        keeper.add_host(Gate(name, -math.inf), host)
    found = [
        RecheckCycle(
            gate=gate,
            hosts=len(members),
            links=sum(links[host] for host in members),
            gap=keeper.delay(gate).seconds + (keeper.pace(gate).answer_time or 0.0),
            interval=min(keeper.applied(host).recheck.get("ok", interval) for host in members),
        )
        for gate, members in hosts.items()
    ]
    return sorted(found, key=lambda each: -each.seconds)
