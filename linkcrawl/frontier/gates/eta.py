"""PURE. The state of a crawl's gates, and the least time that their work takes.

A crawl lasts as long as its slowest gate, and as long as all its requests take with CONCURRENT_REQUESTS in flight.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Any

from attrs import frozen

from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import Gate, GateState
from linkcrawl.politeness.pacing.state import Delay


@frozen(kw_only=True)
class FrontierStats:
    """How many gates are in which state, and the work left.

    `waiting`: for their delay, a silence or a limit. `blocked`: until a person unblocks them; `due` leaves out their
    links. `eta`: seconds until the work is done, without gates that stay closed for longer than the crawl's patience.
    `slowest`: the gate that `eta` waits for, and its seconds.
    """

    ready: int
    waiting: int
    in_flight: int
    blocked: int
    due: int
    eta: float
    slowest: tuple[str, float] | None


def frontier_stats(
    gates: Iterable[Gate[Any]], now: float, *, response_time: float, concurrency: int, patience: float
) -> FrontierStats:
    """Count the gates. `response_time`: seconds that a request takes on average, waiting not included; `concurrency`:
    CONCURRENT_REQUESTS; `patience`: LINKCRAWL_PATIENCE, seconds."""
    states = dict.fromkeys(GateState, 0)
    blocked = due = in_time = 0
    longest, slowest = 0.0, None
    for gate in gates:
        left = len(gate) + gate.backlog
        opens_at = gate.opens_at
        if opens_at == inf and gate.state is not GateState.IN_FLIGHT:
            blocked += bool(left)
            continue
        states[gate.state] += 1
        due += left
        wait = max(0.0, opens_at - now)
        if not left or wait > patience:
            continue
        in_time += left
        seconds = wait + left * response_time + (left - 1) * gate.delay
        if seconds > longest:
            longest, slowest = seconds, gate.name
    return FrontierStats(
        ready=states[GateState.READY],
        waiting=states[GateState.WAITING] + states[GateState.RATE_LIMITED],
        in_flight=states[GateState.IN_FLIGHT],
        blocked=blocked,
        due=due,
        eta=max(longest, in_time * response_time / max(1, concurrency)),
        slowest=None if slowest is None else (slowest, longest),
    )


@frozen(kw_only=True)
class RecheckCycle:
    """One request for each of the `links` of the `hosts` behind a gate. `gap`: seconds from one answer to the next;
    `interval`: seconds after which a good link is due again."""

    gate: str
    hosts: int
    links: int
    gap: float
    interval: float

    @property
    def seconds(self) -> float:
        """How long the cycle takes at the delay in force."""
        return self.links * self.gap

    @property
    def can_be_met(self) -> bool:
        """True where it ends before its first links are due again."""
        return self.seconds <= self.interval


def recheck_cycles(links: Mapping[str, int], keeper: Gatekeeper, interval: float) -> list[RecheckCycle]:
    """The longest recheck cycle of each gate, the longest first: of all its hosts by its server's delay, or of those
    that a longer one binds. `links`: by host, due or not. `keeper`: not a crawl's own,
    for hosts are added to its gates. `interval`: seconds, where no policy says otherwise."""
    hosts: dict[str, list[str]] = {}
    for host in links:
        gate = keeper.gate_of(host)
        hosts.setdefault(gate, []).append(host)
        keeper.add_host(Gate(gate, -math.inf), host)
    found = [
        RecheckCycle(
            gate=gate,
            hosts=len(members),
            links=sum(links[host] for host in members),
            gap=delay.seconds + (keeper.pace(gate).answer_time or 0.0),
            interval=min(keeper.applied(host).recheck.get("ok", interval) for host in members),
        )
        for gate, all_hosts in hosts.items()
        for delay, members in _bound_hosts(gate, all_hosts, keeper)
    ]
    longest: dict[str, RecheckCycle] = {}
    for cycle in sorted(found, key=lambda cycle: -cycle.seconds):
        longest.setdefault(cycle.gate, cycle)
    return list(longest.values())


def _bound_hosts(gate: str, hosts: list[str], keeper: Gatekeeper) -> Iterator[tuple[Delay, list[str]]]:
    """The delays that hold at a gate, and the hosts that each binds: its server's all, a tenant's its own."""
    yield keeper.servers_delay(gate), hosts
    tenants: dict[str, list[str]] = {}
    for host in hosts:
        tenants.setdefault(keeper.tenant(gate, host), []).append(host)
    for tenant, members in tenants.items():
        yield keeper.delay(gate, tenant), members
