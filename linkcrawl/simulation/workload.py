"""What there is to crawl, counted by kinds of links, and the loads that a simulation makes of it under policies."""

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
from linkcrawl.politeness.pacing.persistence import GATE
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.simulation.engine import GateLoad, Part
from linkcrawl.sources.checkpoint import Checkpoint
from linkcrawl.status.snapshot import StoreSnapshot
from linkcrawl.stores.contract import LinkFilter, Store


@frozen
class HostKind:
    """Links alike: their host, collections and providers, and the host that they redirect to ("" for none)."""

    host: str
    collections: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    onward: str = ""


Workload = Counter[HostKind]


def of_store(store: Store, policies: Policies, now: float) -> Workload:
    """What is due in a store. Collections are told apart where a rule spaces them; providers and redirects are not."""
    work: Workload = Counter({HostKind(line.host): line.due for line in store.backlog(now) if line.host})
    for name in store.collections():
        if not policies.of_link("", (name,)).limits:
            continue
        for line in store.backlog(now, LinkFilter(collection=_literal(name))):
            known = min(line.due, work[HostKind(line.host)])  # a link of several such collections is counted once
            work[HostKind(line.host, (name,))] += known
            work[HostKind(line.host)] -= known
    return +work


def _literal(name: str) -> str:
    return name.replace("*", "?")


def of_sources(names: Iterable[str]) -> Workload:
    """The distinct links of sources that can be requested. Holds 16 bytes and some for each. Raises ConfigError."""
    kinds: dict[bytes, HostKind] = {}
    shared: dict[HostKind, HostKind] = {}
    for name in names:
        sources.check_source(name)
        for row in sources.peek(name):
            if isinstance(row, Reject | Checkpoint):
                continue
            made = link_entry(row)
            if made.host:
                kind = _mentioned(kinds.get(made.key) or HostKind(made.host), row.collection, row.provider)
                kinds[made.key] = shared.setdefault(kind, kind)
    return Counter(kinds.values())


def _mentioned(kind: HostKind, collection: str | None, provider: str | None) -> HostKind:
    return evolve(kind, collections=_with(kind.collections, collection), providers=_with(kind.providers, provider))


def _with(names: tuple[str, ...], name: str | None) -> tuple[str, ...]:
    return names if name is None or name in names else tuple(sorted((*names, name)))


def of_catalogue(path: Path, links: int, hosts: int) -> tuple[Workload, dict[str, float]]:
    """A catalogue of so many links behind so many hosts, in the shape of a profile (benchmarks/catalogue_profile.json):
    a part behind a resolver, whose links redirect to the others, which follow Zipf's law. Also the answer times of the
    hosts in seconds. Raises ConfigError."""
    profile = _profile(path)
    resolver, share = str(profile["resolver"]), float(profile["resolver_share"])
    weights = [1 / rank ** float(profile["zipf"]) for rank in range(1, hosts)]
    names = [f"host{rank}.example.org" for rank in range(1, hosts)]
    work: Workload = Counter()
    for name, weight in zip(names, weights, strict=True):
        part = weight / sum(weights)
        work[HostKind(resolver, onward=name)] = round(links * share * part)
        work[HostKind(name)] = round(links * (1 - share) * part)
    seconds = dict.fromkeys(names, float(profile["mean_ms"]) / 1000)
    return +work, {**seconds, resolver: float(profile["resolver_mean_ms"]) / 1000}


def _profile(path: Path) -> Mapping[str, Any]:
    wanted = ("resolver", "resolver_share", "resolver_mean_ms", "zipf", "mean_ms")
    try:
        profile: Any = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(f"--catalogue: {str(path)!r} can't be read as JSON: {error}") from None
    missing = [name for name in wanted if not isinstance(profile, dict) or name not in profile]
    if missing:
        raise ConfigError(f"--catalogue: {str(path)!r} has no {', '.join(missing)}; an object with them would work")
    return profile  # type: ignore[no-any-return]


class LoadBuilder:
    """Makes loads of a workload: the gatekeeper says what each gate must keep, as it does in a crawl."""

    def __init__(self, outlook: StoreSnapshot, seconds: Mapping[str, float]):
        """`seconds`: answer times by host, where they are known better than from what is remembered."""
        self._outlook, self._seconds = outlook, seconds
        self._keeper = Gatekeeper(outlook)
        self._keeper.take_orders(dict(outlook.orders))
        self._memory = {known.host: known.pace for known in outlook.hosts}  # opening gates changes it
        self._hosts: dict[str, set[str]] = {}
        self._parts: dict[str, Counter[tuple[str | None, tuple[str, ...]]]] = {}
        self.limits: dict[str, float] = {}
        #: Why each gate has its delay.
        self.origins: dict[str, str] = {}

    def loads(self, work: Workload, unknown: float) -> list[GateLoad]:
        """The loads, and `limits` and `origins` on the way. `unknown`: answer time of hosts that never answered."""
        for kind, number in work.items():
            gate = self._gate(kind.host)
            onward = self._gate(kind.onward) if kind.onward else None
            limits = self._outlook.policies.of_link(kind.host, kind.collections, kind.providers).limits
            self.limits.update({limit.name: limit.spacing for limit in limits})
            self._parts[gate][onward, tuple(limit.name for limit in limits)] += number
        return [self._load(gate, hosts, unknown) for gate, hosts in self._hosts.items()]

    def _gate(self, host: str) -> str:
        name = self._keeper.name(host)
        if name == host:  # hosts that shared a server's address when they were last asked share it still
            name = self._memory.get(host, {}).get(GATE, host)
        if host not in self._hosts.setdefault(name, set()):
            self._hosts[name].add(host)
            self._keeper.add_host(Gate(name, 0.0), host)
            self._parts.setdefault(name, Counter())
        return name

    def _load(self, gate: str, hosts: set[str], unknown: float) -> GateLoad:
        known = self._keeper.pace(gate).answer_time
        service = max((self._seconds[host] for host in hosts if host in self._seconds), default=known or unknown)
        limits = self._keeper.pacing_limits(gate)
        one = delay(evolve(self._keeper.pace(gate), answer_time=service), limits)
        self.origins[gate] = one.origin
        return GateLoad(
            gate=gate,
            delay=max([one.seconds, *(quota.spacing - service for quota in limits.quotas)]),
            service=service,
            robots=len(hosts),
            parts=tuple(
                Part(links=number, onward=onward, limits=limits)
                for (onward, limits), number in self._parts[gate].items()
            ),
            open_at=self._opening(gate, hosts),
        )

    def _opening(self, gate: str, hosts: set[str]) -> Callable[[float], float]:
        """When a gate may go that is ready at a moment: never, where it is paused or blocked."""
        if math.isinf(self._keeper.wait(gate, self._outlook.now()).at):
            return lambda moment: math.inf
        quiet = [applied for applied in map(self._keeper.applied, sorted(hosts)) if applied.quiet]
        return (lambda moment: max(applied.open_at(moment) for applied in quiet)) if quiet else _at_once


def _at_once(moment: float) -> float:
    return moment
