"""Every host as an operator sees it: its delay and whose word that is, what it waits for, how long its links take.

The numbers are the gatekeeper's own, asked without a crawl.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import StrEnum
from typing import Any

from attrs import frozen

from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import Gate
from linkcrawl.items import Order, iso
from linkcrawl.politeness.pacing.persistence import in_flight
from linkcrawl.politeness.pacing.state import Delay, Pace, WaitKind
from linkcrawl.status.snapshot import StoreSnapshot
from linkcrawl.text import span

#: Seconds besides LINKCRAWL_TIMEOUT that a request may be on its way: looking its name up takes 10 at most, and what a
#: crawl remembers is stored every 4.
SLACK = 15.0


class State(StrEnum):
    """What a host is doing."""

    READY = "ready"
    WAITING = "waiting"
    IN_FLIGHT = "in flight"
    BLOCKED = "blocked"
    QUIET = "quiet"


@frozen(kw_only=True)
class HostStatus:
    """A host at a moment. Times are Unix seconds.

    `gate`, `members`: its gate, and the hosts that are known to share that. `delay`: in force, for a request of cost 1.
    `wake`: when a request may go; None where it may now, or for as long as it is blocked. `why`: not before; empty
    where it may. `due`: links of this host. `eta`: when the gate will have asked for all that are due there, one
    request a link: no crawl can be sooner. None where nothing is due or it is blocked.
    """

    host: str
    gate: str
    members: tuple[str, ...]
    state: State
    delay: Delay
    wake: float | None
    why: str
    due: int
    eta: float | None
    order: Order | None

    def row(self) -> dict[str, Any]:
        """The view for JSON."""
        order = self.order
        return {
            "host": self.host,
            "gate": self.gate,
            "shared_by": len(self.members),
            "state": str(self.state),
            "delay": round(self.delay.seconds, 3),
            "origin": self.delay.origin,
            "wake": None if self.wake is None else iso(self.wake),
            "why": self.why,
            "due": self.due,
            "eta": None if self.eta is None else iso(self.eta),
            "order": None if order is None else order_row(order),
        }


def order_row(order: Order) -> dict[str, Any]:
    """A person's order for JSON."""
    until = None if order.until is None else iso(order.until)
    return {"act": str(order.act), "at": iso(order.at), "reason": order.reason, "until": until}


class HostStatusReport:
    """The gates of all hosts that the store knows, and of those asked for besides."""

    def __init__(self, outlook: StoreSnapshot, *others: str):
        self.outlook = outlook
        self._now = outlook.now()
        self.keeper = Gatekeeper(outlook)
        self.keeper.take_orders(dict(outlook.orders))
        remembered = (memory.host for memory in outlook.hosts)
        hosts = {*outlook.due, *outlook.orders, *filter(_is_host, remembered), *others}
        self._gates: dict[str, list[str]] = {}
        for host in sorted(hosts):
            name = self.keeper.name(host)
            self._gates.setdefault(name, []).append(host)
            self.keeper.add_host(Gate(name, -math.inf), host)

    def hosts(self) -> Iterator[HostStatus]:
        """All of them, those that take longest first, then by name."""
        views = [view for gate in self._gates for view in self._views(gate)]
        views.sort(key=lambda view: (-(view.eta or 0.0), view.host))
        return iter(views)

    def host(self, host: str) -> HostStatus:
        """One of them."""
        return next(view for view in self._views(self.keeper.name(host)) if view.host == host)

    def pace(self, view: HostStatus) -> Pace:
        """What is remembered of a host's gate."""
        return self.keeper.pace(view.gate)

    def _views(self, gate: str) -> Iterator[HostStatus]:
        members = tuple(self._gates[gate])
        for host in members:
            state, wake, why = self._standing(gate, host)
            eta = None if state is State.BLOCKED and wake is None else self._eta(gate, wake)
            due = self.outlook.due.get(host, 0)
            yield HostStatus(
                host=host,
                gate=gate,
                members=members,
                state=state,
                delay=self.keeper.delay(gate),
                wake=wake,
                why=why,
                due=due,
                eta=eta if due else None,
                order=self.outlook.orders.get(host),
            )

    def _standing(self, gate: str, host: str) -> tuple[State, float | None, str]:
        now, pace = self._now, self.keeper.pace(gate)
        wait = self.keeper.host_wait(gate, host, now)
        until = None if wait.at == math.inf else wait.at
        if pace.blocked_since is not None:
            why = f"turned us away since {iso(pace.blocked_since)}; "
            return State.BLOCKED, until, why + ("to be unblocked by a person" if until is None else "on probation then")
        if wait.at > now and wait.kind is not WaitKind.WAITING:
            return State(str(wait.kind)), until, wait.why
        if in_flight(pace, now, self.outlook.config.timeout + SLACK):
            return State.IN_FLIGHT, None, f"asked {span(now - (pace.asked_at or now))} ago"
        return (State.WAITING, until, wait.why) if wait.at > now else (State.READY, None, "")

    def _eta(self, gate: str, wake: float | None) -> float:
        links = sum(self.outlook.due.get(host, 0) for host in self._gates[gate])
        delay, service = self.keeper.delay(gate).seconds, self.keeper.pace(gate).answer_time or 0.0
        seconds = (links - 1) * (delay + service) + service
        quotas = self.keeper.pacing_limits(gate).quotas
        seconds = max([seconds, *(quota.least_seconds(links) for quota in quotas)])
        return max(wake or 0.0, self._now) + seconds


def _is_host(name: str) -> bool:
    """Host memory also holds what is known of group gates and limits, whose names have a space."""
    return " " not in name
