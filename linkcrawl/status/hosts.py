"""The status of every host: its delay and what set it, what the host waits for, how long its links will take.

The numbers are the gatekeeper's own, computed without a crawl. The values here hold no layout: `status.render` makes
text of them, their `row` methods JSON.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from attrs import evolve, field, frozen

from linkcrawl.config import LOCAL, Config
from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import Gate
from linkcrawl.items import Order, iso
from linkcrawl.politeness.keys import MemoryKind, kind_of
from linkcrawl.politeness.pacing.persistence import in_flight
from linkcrawl.politeness.pacing.state import Delay, WaitKind
from linkcrawl.politeness.policy.limits import DAYS, Quota, SharedLimit, requests_in
from linkcrawl.politeness.policy.rules import Policy
from linkcrawl.politeness.robots.cache import RobotsEntry
from linkcrawl.status.refusals import walls_by_host
from linkcrawl.status.snapshot import StoreSnapshot
from linkcrawl.status.texts import head_text
from linkcrawl.stores.contract import LinkFilter, Store
from linkcrawl.text import span

if TYPE_CHECKING:
    from linkcrawl.status.cluster import ClusterStatus

#: Seconds besides LINKCRAWL_TIMEOUT that a request may be in flight: name look-up takes up to 10, and a running crawl
#: stores host memory every 4.
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

    `gate`: the name of its gate; `members`: the known hosts of that gate, this one included; `strangers`: those of them
    that are of other registered domains, and bind it by their floor and answer times only. `delay`: in force, for a
    request of cost 1. `wake`: when the next request may go; None where it may go now, or where a block has no end.
    `why`: the reason for `wake`, "" where a request may go. `due`: due links of this host. `eta`: when the gate will
    have checked all its due links, at one request a link; no crawl can be sooner. None where nothing is due or a block
    has no end. `order`: a person's last order. `walls`: links behind each wall that the host shows, by product.
    `leased_by`: the worker that leases the gate, "" for no worker; None without a cluster.
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
    walls: Mapping[str, int] = field(factory=dict)
    leased_by: str | None = None
    strangers: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """The status for JSON."""
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
            "order": None if self.order is None else _order_row(self.order),
            "walls": dict(self.walls),
            **({} if self.leased_by is None else {"leased_by": self.leased_by or None}),
        }


def _order_row(order: Order) -> dict[str, Any]:
    until = None if order.until is None else iso(order.until)
    return {"act": str(order.act), "at": iso(order.at), "reason": order.reason, "until": until}


def delay_rows(delays: tuple[Delay, ...]) -> list[dict[str, Any]]:
    """Delays for JSON."""
    return [{"seconds": round(delay.seconds, 3), "origin": delay.origin} for delay in delays]


@frozen(kw_only=True)
class QuotaStatus:
    """A quota of a gate, and the requests in its present window."""

    quota: Quota
    requests: int


@frozen(kw_only=True)
class HostDetails:
    """All that is known of one host. Times are Unix seconds, durations seconds.

    `policies`: the rules that match. `considered`: every number of which the largest is the delay in force.
    `answers_slower`: the gate's answers take longer than they used to. `last_cost`: delays that the last request
    counted for. `requests_today`: of the gate on this day (UTC). `answer_time`: smoothed. `turned_away_since`: the ban
    circuit is open. `failing_since`: no request was answered. `robots`: the robots.txt files that were read, by
    authority. `head_useless`: HEAD fails there where GET works.
    """

    status: HostStatus
    policies: tuple[Policy, ...]
    considered: tuple[Delay, ...]
    answers_slower: bool
    last_cost: float
    requests_today: int
    quotas: tuple[QuotaStatus, ...]
    last_request: float | None
    answer_time: float | None
    turned_away_since: float | None
    failing_since: float | None
    robots: Mapping[str, RobotsEntry]
    head_useless: bool

    def row(self) -> dict[str, Any]:
        """The details for JSON."""
        return {
            **self.status.row(),
            "members": list(self.status.members),
            "strangers": list(self.status.strangers),
            "policies": [rule.name for rule in self.policies],
            "considered": delay_rows(self.considered),
            "answer_time": self.answer_time,
            "requests_today": self.requests_today,
            "quotas": [
                {"key": status.quota.window.key, "most": status.quota.most, "requests": status.requests}
                for status in self.quotas
            ],
            "robots": [_robots_row(authority, entry) for authority, entry in self.robots.items()],
            "head": head_text(self.head_useless),
            "failing_since": None if self.failing_since is None else iso(self.failing_since),
            "last_request": None if self.last_request is None else iso(self.last_request),
        }


def _robots_row(authority: str, entry: RobotsEntry) -> dict[str, Any]:
    return {
        "authority": authority,
        "note": entry.note,
        "crawl_delay": None if entry.robots is None else entry.robots.pace.crawl_delay,
        "asked_at": iso(entry.asked_at),
        "expires_at": iso(entry.expires_at),
    }


@frozen(kw_only=True)
class CollectionForecast:
    """When the due links of a collection will have been checked. `due`: its due links, of which `blocked` wait at hosts
    whose block has no end. `eta`: Unix seconds, when the last of the other hosts has checked all its own links; None
    where there is no such host."""

    collection: str
    due: int
    blocked: int
    eta: float | None


def forecast_collection(collection: str, hosts: list[HostStatus]) -> CollectionForecast:
    """The forecast from the status of a collection's hosts, whose `due` counts links of the collection only."""
    return CollectionForecast(
        collection=collection,
        due=sum(host.due for host in hosts),
        blocked=sum(host.due for host in hosts if host.eta is None),
        eta=max((host.eta for host in hosts if host.eta is not None), default=None),
    )


def hosts_of_collection(store: Store, hosts: list[HostStatus], collection: str, now: float) -> list[HostStatus]:
    """The hosts with due links of some collections, whose `due` counts those links only. `collection`: a glob; `now`:
    Unix seconds. Raises StoreLost."""
    due = {line.host: line.due for line in store.backlog(now, LinkFilter(collection=collection))}
    return [evolve(status, due=due[status.host]) for status in hosts if status.host in due]


def cluster_of(config: Config) -> ClusterStatus | None:
    """The workers of the cluster that LINKCRAWL_FRONTIER names; None where it names none. Raises ConfigError where
    Redis can't be asked."""
    if config.frontier == LOCAL:
        return None
    from linkcrawl.status.cluster import cluster_status  # it needs the extra `redis`

    return cluster_status(config.frontier)


class HostStatusReport:
    """Computes the status of the hosts that a store knows, and of others that are asked for.

    `walls`: links behind walls, by host and product (`status.refusals.walls_by_host`). `holders`: the worker that
    leases each gate, by gate; None without a cluster.
    """

    def __init__(
        self,
        snapshot: StoreSnapshot,
        *others: str,
        walls: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
        holders: Mapping[str, str] | None = None,
    ):
        self._snapshot = snapshot
        self._now = snapshot.now()
        self._walls = walls
        self._holders = holders
        self._keeper = Gatekeeper(snapshot)
        self._keeper.take_orders(dict(snapshot.orders))
        remembered = (memory.host for memory in snapshot.hosts)
        hosts = {
            *snapshot.due,
            *snapshot.orders,
            *(key for key in remembered if kind_of(key) is MemoryKind.HOST),
            *filter(None, walls),
            *others,
        }
        self._gates: dict[str, list[str]] = {}
        for host in sorted(hosts):
            gate = self._keeper.gate_of(host)
            self._gates.setdefault(gate, []).append(host)
            self._keeper.add_host(Gate(gate, -math.inf), host)

    @classmethod
    def read(cls, store: Store, snapshot: StoreSnapshot, *others: str, cluster: ClusterStatus | None = None) -> Self:
        """The report with all that the store and the cluster know: walls, the workers that lease gates, and orders that
        were given since the snapshot. Raises StoreLost."""
        return cls(
            evolve(snapshot, orders=store.orders()),
            *others,
            walls=walls_by_host(store),
            holders=None if cluster is None else cluster.holders,
        )

    def hosts(self) -> list[HostStatus]:
        """All hosts, the latest ETA first, then by name."""
        found = [status for gate in self._gates for status in self._of_gate(gate)]
        return sorted(found, key=lambda status: (-(status.eta or 0.0), status.host))

    def host(self, host: str) -> HostStatus:
        """The status of one host."""
        return next(status for status in self._of_gate(self._keeper.gate_of(host)) if status.host == host)

    def details(self, host: str) -> HostDetails:
        """All that is known of one host."""
        status, snapshot = self.host(host), self._snapshot
        tenant, memory = self._keeper.tenant(status.gate, host), snapshot.hosts.get(host)
        pace, gates = self._keeper.pace_of(status.gate, tenant), self._keeper.pace(status.gate)
        return HostDetails(
            status=status,
            policies=self._keeper.applied(host).rules,
            considered=tuple(self._keeper.considered(status.gate, tenant)),
            answers_slower=pace.slowdown != 1,
            last_cost=pace.last_cost,
            requests_today=requests_in(pace.counts, DAYS, self._now),
            quotas=tuple(
                QuotaStatus(quota=quota, requests=requests_in(pace.counts, quota.window, self._now))
                for quota in self._keeper.pacing_limits(status.gate, tenant).quotas
            ),
            last_request=gates.last_end,
            answer_time=pace.answer_time,
            turned_away_since=pace.blocked_since,
            failing_since=memory.failing_since,
            robots=dict(self._robots_of(host)),
            head_useless=snapshot.hosts.head_useless(host, self._now),
        )

    def opens_at(self, limit: SharedLimit) -> float:
        """When a limit lets the next check start, Unix seconds."""
        return self._keeper.limit_opens(limit)

    def _of_gate(self, gate: str) -> Iterator[HostStatus]:
        members = tuple(self._gates[gate])
        tenants = {host: self._keeper.tenant(gate, host) for host in members}
        for host in members:
            state, wake, why = self._state(gate, host)
            due = self._snapshot.due.get(host, 0)
            eta = None if not due or (state is State.BLOCKED and wake is None) else self._eta(gate, host, wake)
            yield HostStatus(
                host=host,
                gate=gate,
                members=members,
                strangers=tuple(other for other in members if tenants[other] != tenants[host]),
                state=state,
                delay=self._keeper.delay(gate, tenants[host]),
                wake=wake,
                why=why,
                due=due,
                eta=eta,
                order=self._snapshot.orders.get(host),
                walls=self._walls.get(host, {}),
                leased_by=None if self._holders is None else self._holders.get(gate, ""),
            )

    def _state(self, gate: str, host: str) -> tuple[State, float | None, str]:
        now, pace = self._now, self._keeper.pace_of(gate, self._keeper.tenant(gate, host))
        wait = self._keeper.host_wait(gate, host, now)
        until = None if wait.at == math.inf else wait.at
        if pace.blocked_since is not None:
            why = f"turned us away since {iso(pace.blocked_since)}; "
            return State.BLOCKED, until, why + ("to be unblocked by a person" if until is None else "on probation then")
        if wait.at > now and wait.kind is not WaitKind.WAITING:
            return State(str(wait.kind)), until, wait.why
        gates = self._keeper.pace(gate)
        if in_flight(gates, now, self._snapshot.config.timeout + SLACK):
            return State.IN_FLIGHT, None, f"asked {span(now - (gates.asked_at or now))} ago"
        return (State.WAITING, until, wait.why) if wait.at > now else (State.READY, None, "")

    def _eta(self, gate: str, host: str, wake: float | None) -> float:
        """When the gate's links are done by its server's delay, or those of the host's own tenant by theirs."""
        keeper, tenant = self._keeper, self._keeper.tenant(gate, host)
        answer_time = keeper.pace(gate).answer_time or 0.0
        all_of_them = sum(self._snapshot.due.get(member, 0) for member in self._gates[gate])
        own = sum(self._snapshot.due.get(member, 0) for member in keeper.members_like(gate, host))
        seconds = max(
            (links - 1) * (delay.seconds + answer_time) + answer_time
            for links, delay in ((all_of_them, keeper.servers_delay(gate)), (own, keeper.delay(gate, tenant)))
        )
        quotas = keeper.pacing_limits(gate, tenant).quotas
        seconds = max([seconds, *(quota.least_seconds(all_of_them) for quota in quotas)])
        return max(wake or 0.0, self._now) + seconds

    def _robots_of(self, host: str) -> Iterator[tuple[str, RobotsEntry]]:
        for scheme in ("http", "https"):
            entry = self._snapshot.robots.get(f"{scheme}://{host}")
            if entry is not None:
                yield f"{scheme}://{host}", entry
