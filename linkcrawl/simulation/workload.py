"""The links of a crawl, counted by kind, and the load of each gate that a simulation makes of them under policies."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from linkcrawl import sources
from linkcrawl.errors import ConfigError
from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import Gate
from linkcrawl.ingest.ingest import link_entry
from linkcrawl.items import Reject
from linkcrawl.politeness.pacing.delay import delay
from linkcrawl.politeness.pacing.persistence import gate_of_row
from linkcrawl.politeness.pacing.state import Delay
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.simulation.engine import GateLoad, LinkGroup
from linkcrawl.sources.checkpoint import Checkpoint
from linkcrawl.status.snapshot import StoreSnapshot
from linkcrawl.stores.contract import LinkFilter, Store


@frozen
class LinkKind:
    """Links that are alike: their host key, collections and providers, and the host that they redirect to ("" for no
    redirect)."""

    host: str
    collections: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    redirect_host: str = ""


#: The number of links of each kind.
Workload = Counter[LinkKind]


def of_store(store: Store, policies: Policies, now: float) -> Workload:
    """The due links of a store. Their collections count where a rule spaces them; providers and redirects don't."""
    work: Workload = Counter({LinkKind(line.host): line.due for line in store.backlog(now) if line.host})
    for name in store.collections():
        if not policies.of_link("", (name,)).limits:
            continue
        for line in store.backlog(now, LinkFilter(collection=_literal(name))):
            moved = min(line.due, work[LinkKind(line.host)])  # a link of several such collections counts in the first
            work[LinkKind(line.host, (name,))] += moved
            work[LinkKind(line.host)] -= moved
    return +work


def _literal(name: str) -> str:
    return name.replace("*", "?")


def of_sources(names: Iterable[str]) -> Workload:
    """The distinct links of sources that can be requested. Memory grows by some 16 bytes a link. Raises ConfigError."""
    kinds: dict[bytes, LinkKind] = {}
    shared: dict[LinkKind, LinkKind] = {}
    for name in names:
        sources.check_source(name)
        for row in sources.peek(name):
            if isinstance(row, Reject | Checkpoint):
                continue
            entry = link_entry(row)
            if entry.host:
                kind = _mentioned(kinds.get(entry.key) or LinkKind(entry.host), row.collection, row.provider)
                kinds[entry.key] = shared.setdefault(kind, kind)
    return Counter(kinds.values())


def _mentioned(kind: LinkKind, collection: str | None, provider: str | None) -> LinkKind:
    return evolve(kind, collections=_with(kind.collections, collection), providers=_with(kind.providers, provider))


def _with(names: tuple[str, ...], name: str | None) -> tuple[str, ...]:
    return names if name is None or name in names else tuple(sorted((*names, name)))


def of_catalogue(path: Path, links: int, hosts: int) -> tuple[Workload, dict[str, float]]:
    """A made-up catalogue with so many links and hosts, in the shape of a profile
    (benchmarks/catalogue_profile.json): some links are at a resolver and redirect to the other hosts, which follow
    Zipf's law. Also returns the answer time of each host in seconds. Raises ConfigError."""
    profile = _profile(path)
    resolver, resolver_share = str(profile["resolver"]), float(profile["resolver_share"])
    weights = [1 / rank ** float(profile["zipf"]) for rank in range(1, hosts)]
    names = [f"host{rank}.example.org" for rank in range(1, hosts)]
    work: Workload = Counter()
    for name, weight in zip(names, weights, strict=True):
        share = weight / sum(weights)
        work[LinkKind(resolver, redirect_host=name)] = round(links * resolver_share * share)
        work[LinkKind(name)] = round(links * (1 - resolver_share) * share)
    answer_times = dict.fromkeys(names, float(profile["mean_ms"]) / 1000)
    return +work, {**answer_times, resolver: float(profile["resolver_mean_ms"]) / 1000}


def _profile(path: Path) -> Mapping[str, Any]:
    names = ("resolver", "resolver_share", "resolver_mean_ms", "zipf", "mean_ms")
    try:
        profile: Any = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"--catalogue: {str(path)!r} can't be read as JSON: {error}") from None
    missing = [name for name in names if not isinstance(profile, dict) or name not in profile]
    if missing:
        raise ConfigError(f"--catalogue: {str(path)!r} has no {', '.join(missing)}; an object with them would work")
    return profile  # type: ignore[no-any-return]


class LoadBuilder:
    """Makes the loads of a workload. Delays and waits are the gatekeeper's, as in a crawl.

    `answer_times`: seconds by host, where they are known better than from host memory. `default_answer_time`: seconds,
    of hosts that were never asked.
    """

    def __init__(self, snapshot: StoreSnapshot, answer_times: Mapping[str, float], default_answer_time: float):
        self._snapshot = snapshot
        self._answer_times = answer_times
        self._default_answer_time = default_answer_time
        self._keeper = Gatekeeper(snapshot)
        self._keeper.take_orders(dict(snapshot.orders))
        #: The gate that each host was in when it was last met; add_host changes what the snapshot knows of that.
        self._gates_before = {memory.host: gate_of_row(memory.pace) for memory in snapshot.hosts}
        self._hosts: dict[str, set[str]] = {}
        self._loads: dict[str, str] = {}  # by host: its gate, or a name of its own where it is shut for good
        self._links: Counter[str] = Counter()  # requests by host, robots.txt aside
        self._groups: dict[str, Counter[tuple[str | None, tuple[str, ...]]]] = {}
        #: Seconds between two checks, by shared limit; filled by `loads`.
        self.limits: dict[str, float] = {}
        #: Where each gate's delay comes from; filled by `loads`.
        self.origins: dict[str, str] = {}

    def loads(self, work: Workload) -> list[GateLoad]:
        """The load of each gate."""
        for kind, number in work.items():
            gate = self._load_of(kind.host)
            self._links[kind.host] += number
            redirect_gate = None
            if kind.redirect_host:
                redirect_gate = self._load_of(kind.redirect_host)
                self._links[kind.redirect_host] += number
            limits = self._snapshot.policies.of_link(kind.host, kind.collections, kind.providers).limits
            self.limits.update({limit.name: limit.spacing for limit in limits})
            self._groups[gate][redirect_gate, tuple(limit.name for limit in limits)] += number
        return [self._load(gate, hosts) for gate, hosts in self._hosts.items()]

    def _load_of(self, host: str) -> str:
        """The name of the load that a host's requests are part of: its gate's, or its own where it is shut for good."""
        if host not in self._loads:
            gate = self._keeper.gate_of(host)
            if gate == host:  # hosts that shared a server's address in an earlier crawl share it still
                gate = self._gates_before.get(host) or host
            self._keeper.add_host(Gate(gate, 0.0), host)
            is_shut = math.isinf(self._keeper.host_wait(gate, host, self._snapshot.now()).at)
            name = self._loads[host] = f"{host}, shut" if is_shut else gate
            self._hosts.setdefault(name, set()).add(host)
            self._groups.setdefault(name, Counter())
        return self._loads[host]

    def _load(self, name: str, hosts: set[str]) -> GateLoad:
        keeper, some_host = self._keeper, min(hosts)
        gate = keeper.entered(some_host) or some_host
        given = [self._answer_times[host] for host in hosts if host in self._answer_times]
        answer_time = max(given, default=keeper.pace(gate).answer_time or self._default_answer_time)
        in_force = self._delay(gate, hosts, answer_time)
        quotas = keeper.pacing_limits(gate, keeper.tenant(gate, some_host)).quotas
        self.origins[name] = in_force.origin
        return GateLoad(
            gate=name,
            delay=max([in_force.seconds, *(quota.spacing - answer_time for quota in quotas)]),
            answer_time=answer_time,
            robots=len(hosts),
            groups=tuple(
                LinkGroup(links=number, redirect_gate=redirect_gate, limits=names)
                for (redirect_gate, names), number in self._groups[name].items()
            ),
            open_at=self._opening(hosts, is_shut=name != gate),
        )

    def _delay(self, gate: str, hosts: set[str], answer_time: float) -> Delay:
        """The delay from any request of these hosts to the next, on average. Strangers take turns while one of them has
        to wait for longer than the others: it weighs as much as it has requests."""
        keeper = self._keeper
        requests: Counter[str] = Counter()
        for host in hosts:
            requests[keeper.tenant(gate, host)] += self._links[host] + 1
        delays = []
        for tenant, number in requests.items():
            pace = evolve(keeper.pace_of(gate, tenant), answer_time=answer_time)
            own = delay(pace, keeper.pacing_limits(gate, tenant))
            delays.append(Delay(seconds=own.seconds * number / requests.total(), origin=own.origin))
        if len(delays) > 1:
            delays.append(keeper.servers_delay(gate))
        return max(delays, key=lambda one: one.seconds)

    def _opening(self, hosts: set[str], *, is_shut: bool) -> Callable[[float], float]:
        """GateLoad's `open_at`: never for hosts that are paused or blocked, else by quiet hours."""
        if is_shut:
            return lambda moment: math.inf
        quiet = [applied for applied in map(self._keeper.applied, sorted(hosts)) if applied.quiet]
        return lambda moment: max((applied.open_at(moment) for applied in quiet), default=moment)
