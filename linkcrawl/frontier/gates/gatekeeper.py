"""Which gate a host belongs to, what the gate must keep, and when it opens: policies, robots.txt and pace together.

PURE: the time is the context's.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable
from typing import Any

from attrs import define, evolve, field, frozen

from linkcrawl.check.outcome import Outcome
from linkcrawl.frontier.gates.addresses import Addresses
from linkcrawl.frontier.gates.availability import ALWAYS, HostAvailability, Hours
from linkcrawl.frontier.gates.context import CrawlContext
from linkcrawl.frontier.gates.workbench import Gate
from linkcrawl.items import Order
from linkcrawl.politeness.keys import MemoryKind, group_gate, kind_of, limit_key
from linkcrawl.politeness.pacing.delay import considered, delay, ready_at, required
from linkcrawl.politeness.pacing.hints import sample_of
from linkcrawl.politeness.pacing.persistence import (
    assume_just_requested,
    shifted,
    unblocked,
    with_refusal,
    without_refusals,
)
from linkcrawl.politeness.pacing.state import Delay, Event, Pace, PacingLimits, Wait
from linkcrawl.politeness.pacing.strictest import pacing_limits_of, strictest
from linkcrawl.politeness.pacing.tenants import (
    OWN,
    after_tenants_answer,
    bound_by_gate,
    bring,
    keep_tenant,
    server_pace,
    servers_limits,
    tenant_pace,
)
from linkcrawl.politeness.policy.limits import SharedLimit, count_request
from linkcrawl.politeness.policy.rules import Applied
from linkcrawl.urls.domains import registered_domain


@frozen(kw_only=True)
class Completed:
    """What the end of a request means for its gate. `wake`: when it opens again (Unix seconds); `refused`: the server
    has turned this request away; `events`: what people should know."""

    wake: float
    refused: bool
    events: tuple[Event, ...]


@define(eq=False)
class _Kept:
    """What a gate keeps.

    By tenant: `members`, its hosts; `strictest`, of what these ask for; `limits`, what it has to keep at this gate;
    `held_until` (Unix seconds), no request before that (under None: to nobody). `server`: what anybody has to keep
    there, None for a single tenant. `valid_until`: until when the limits hold. `of_host`: the tenant of each host of a
    group's gate. `assumed_at`: a request may have been sent then that nobody remembers. `delays`, `views`: computed
    once for the same pace and limits, the server's under None.
    """

    members: dict[str, set[str]] = field(factory=dict)
    strictest: dict[str, PacingLimits] = field(factory=dict)
    limits: dict[str, PacingLimits] = field(factory=dict)
    server: PacingLimits | None = None
    valid_until: float = -math.inf
    held_until: dict[str | None, float] = field(factory=dict)
    of_host: dict[str, str] = field(factory=dict)
    delays: dict[str | None, tuple[Pace, PacingLimits, Delay]] = field(factory=dict)
    views: dict[str | None, tuple[Pace, Pace]] = field(factory=dict)
    assumed_at: float | None = None


class Gatekeeper:
    """Keeps the pace of every gate, and which hosts a gate covers. The strictest floor of its hosts holds for all; what
    a host asks for holds for its tenant (politeness.pacing.tenants). Times are Unix seconds."""

    def __init__(self, context: CrawlContext):
        self._context = context
        self._paces: dict[str, Pace] = {}
        self._kept: dict[str, _Kept] = {}
        self._entered: dict[str, str] = {}  # the gate that each host was added to
        self.availability = HostAvailability(context)
        self._addresses = Addresses()
        self._groups: dict[str, str] = {}  # by address: the group rule of one of the hosts there
        #: Hosts whose addresses have been looked up, also without success.
        self.looked_up: set[str] = set()

    # Which host belongs to which gate.

    def gate_of(self, host: str) -> str:
        """The gate of a host: its policy group's; else the group's of a host at the same address; else that of the
        first host at that address. Its own where many registered domains share the address."""
        group = self._context.policies.of_host(host).gate
        if group is not None:
            return group_gate(group)
        if host in self.looked_up:
            group = self._groups.get(self._addresses.shared(host))
            return self._addresses.representative(host) if group is None else group_gate(group)
        before = self._context.hosts.gate(host)  # until its address has been looked up
        return host if kind_of(before) is MemoryKind.GROUP else before

    def address_of(self, host: str) -> str | None:
        """The address that the host's gate was chosen by; empty where its name has none, None where that isn't
        known."""
        return self._addresses.address(host)

    def learn_addresses(self, host: str, addresses: tuple[str, ...]) -> tuple[str, ...]:
        """Learn the addresses of a host's name, or the one that has answered; none where the name has none. Returns the
        hosts that belong to another gate now than when they were last asked."""
        self.looked_up.add(host)
        before = self._addresses.shared(host)
        moved = self._addresses.learn(host, addresses)
        now = self._addresses.shared(host)
        if before == now:
            return self._brought_to_group(host, now) or moved
        if not now and (crowded := self._addresses.address(host) or "") in self._groups:
            del self._groups[crowded]
            moved = (*moved, *self._addresses.at(crowded))
        group = self._groups.get(before)
        if group is not None and not any(map(self._in_group, self._addresses.at(before))):
            del self._groups[before]
            moved = (*moved, *self._addresses.at(before))
        return (*moved, *self._brought_to_group(host, now))

    def regroup(self) -> None:
        """Work out anew which address belongs to which group: policies have changed."""
        self._groups.clear()
        for host in sorted(self.looked_up):
            self._brought_to_group(host, self._addresses.shared(host))

    def _in_group(self, host: str) -> bool:
        return self._context.policies.of_host(host).gate is not None

    def _brought_to_group(self, host: str, address: str) -> tuple[str, ...]:
        """Remember a host's policy group. Returns the others at its address, which come into it."""
        group = self._context.policies.of_host(host).gate
        if group is None or not address or address in self._groups:
            return ()
        self._groups[address] = group
        return tuple(other for other in self._addresses.at(address) if other != host)

    def use_addresses(self, addresses: Addresses) -> None:
        """Go by these addresses, which all workers of a cluster share."""
        self._addresses = addresses

    def forget(self, gate: str) -> None:
        """Forget everything about a gate that another worker leases, or has leased meanwhile."""
        self._paces.pop(gate, None)
        self.forget_members(gate)
        self._kept.pop(gate, None)

    def assume_just_requested(self, gate: str, now: float) -> None:
        """Have the gate wait one full delay: a worker that died may have sent a request just now."""
        self._keep_of(gate).assumed_at = now
        self._paces[gate] = assume_just_requested(self.pace(gate), now)

    def forget_members(self, gate: str) -> None:
        """Forget which hosts the gate covers; they are added again."""
        kept = self._kept.pop(gate, None)
        if kept is not None:
            for hosts in kept.members.values():
                for host in hosts:
                    self._entered.pop(host, None)
            self._kept[gate] = _Kept(held_until=kept.held_until, assumed_at=kept.assumed_at)

    def entered(self, host: str) -> str | None:
        """The gate that the host was added to, which may be another than the one where it belongs now."""
        return self._entered.get(host)

    def leave(self, gate: str, host: str) -> None:
        """The host belongs to another gate now. What it has asked for here goes with it when it is added there."""
        kept, tenant = self._keep_of(gate), self.tenant(gate, host)
        kept.members[tenant].discard(host)
        if not kept.members[tenant]:
            del kept.members[tenant]
        kept.of_host.pop(host, None)
        kept.limits = {}
        del self._entered[host]

    def applied(self, host: str) -> Applied:
        """What the policies say of every request to a host."""
        return self._context.policies.of_host(host)

    def members(self, gate: str) -> frozenset[str]:
        """The hosts that were added to the gate."""
        kept = self._kept.get(gate)
        return frozenset(host for hosts in kept.members.values() for host in hosts) if kept else frozenset()

    def members_like(self, gate: str, host: str) -> frozenset[str]:
        """The hosts that were added to the gate and are bound by what this host asks for."""
        kept = self._kept.get(gate)
        return frozenset() if kept is None else frozenset(kept.members.get(self.tenant(gate, host), ()))

    def tenant(self, gate: str, host: str) -> str:
        """The tenant of a gate that a host is of: OWN where it is of the registered domain, or the policy group, that
        the gate is named after; else its registered domain."""
        if host == gate or not host:
            return OWN
        if kind_of(gate) is MemoryKind.HOST:
            domain = registered_domain(host)
            return OWN if domain == registered_domain(gate) else domain
        kept = self._keep_of(gate)
        tenant = kept.of_host.get(host)
        if tenant is None:
            domain = registered_domain(host)
            is_own = self._in_group(host) or kept.of_host.get(domain) == OWN
            tenant = kept.of_host[host] = OWN if is_own else domain
            if is_own:  # whoever is of the registered domain of one of the group
                kept.of_host.setdefault(domain, OWN)
        return tenant

    # What a gate must keep.

    def pacing_limits(self, gate: str, tenant: str = OWN) -> PacingLimits:
        """What requests of a tenant through this gate must keep, each number with its origin."""
        return self._limits_of(self._with_limits(gate), tenant)

    @staticmethod
    def _limits_of(kept: _Kept, tenant: str) -> PacingLimits:
        limits = kept.limits.get(tenant)
        return next(iter(kept.limits.values())) if limits is None else limits

    def _with_limits(self, gate: str) -> _Kept:
        kept = self._keep_of(gate)
        if not kept.limits or (kept.valid_until != math.inf and kept.valid_until <= self._context.now()):
            now = self._context.now()
            members = kept.members or {OWN: {gate}}
            kept.strictest = {
                tenant: strictest([self._host_limits(host) for host in sorted(hosts)])
                for tenant, hosts in members.items()
            }
            kept.valid_until = min(self._valid_until(host, now) for hosts in members.values() for host in hosts)
            self._combine(kept)
        return kept

    @staticmethod
    def _combine(kept: _Kept) -> None:
        """Have the floors and quotas of all tenants bind each of them."""
        if len(kept.strictest) == 1:
            kept.limits, kept.server = kept.strictest, None
            return
        kept.server = server = servers_limits(list(kept.strictest.values()))
        kept.limits = {tenant: bound_by_gate(own, server) for tenant, own in kept.strictest.items()}

    def _keep_of(self, gate: str) -> _Kept:
        kept = self._kept.get(gate)
        if kept is None:
            kept = self._kept[gate] = _Kept()
        return kept

    def _valid_until(self, host: str, now: float) -> float:
        """Until when a host's limits hold. A Request-rate may be for some hours of the day, to the minute."""
        hours = any(pace.keeps_hours for pace in self._context.hosts.robots_paces(host))
        return (now // 60 + 1) * 60 if hours else math.inf

    def _host_limits(self, host: str) -> PacingLimits:
        context, applied = self._context, self.applied(host)
        config, now = context.config, context.now()
        asked = context.hosts.robots_paces(host)
        delays = [pace.crawl_delay for pace in asked]
        rates = [pace.request_delay(now) for pace in asked]
        return PacingLimits(
            floor=config.delay if applied.floor is None else applied.floor,
            floor_from="DOWNLOAD_DELAY" if applied.floor is None else f"policy {applied.floor_from}",
            crawl_delay=max((seconds for seconds in delays if seconds is not None), default=None),
            request_rate_delay=max((seconds for seconds in rates if seconds is not None), default=None),
            agreed_delay=applied.crawl_delay,
            agreed_from=f"agreement: {applied.agreement}" if applied.agreement else "agreement",
            k=1 / config.target_concurrency,
            max_adaptive=config.max_adaptive_delay,
            quotas=applied.quotas,
            probation=config.probation,
        )

    def delay(self, gate: str, tenant: str = OWN) -> Delay:
        """The delay in force for a tenant, and where it comes from."""
        kept = self._with_limits(gate)
        return self._delay(kept, tenant, self.pace_of(gate, tenant), self._limits_of(kept, tenant))

    def servers_delay(self, gate: str) -> Delay:
        """The delay in force from any request through the gate to the next, whoever they go to."""
        kept = self._with_limits(gate)
        if kept.server is None:
            return self.delay(gate, self._only_tenant(kept))
        return self._delay(kept, None, self._server_pace(gate), kept.server)

    def bare_delay(self, gate: str) -> float:
        """Seconds from any request through the gate to the next that its floor and answer times ask for, whatever its
        hosts have asked for."""
        kept = self._with_limits(gate)
        return delay(self._server_pace(gate), kept.server or servers_limits(list(kept.limits.values()))).seconds

    @staticmethod
    def _delay(kept: _Kept, tenant: str | None, pace: Pace, limits: PacingLimits) -> Delay:
        known = kept.delays.get(tenant)
        if known is None or known[0] is not pace or known[1] is not limits:
            known = kept.delays[tenant] = (pace, limits, delay(pace, limits))
        return known[2]

    def considered(self, gate: str, tenant: str = OWN) -> list[Delay]:
        """All numbers that the delay in force is the largest of."""
        return considered(self.pace_of(gate, tenant), self.pacing_limits(gate, tenant))

    def required(self, gate: str, tenant: str = OWN) -> Delay:
        """The gap between the end of the gate's last request, whose cost counts, and a tenant's next one."""
        kept, pace = self._with_limits(gate), self.pace_of(gate, tenant)
        limits, server = self._limits_of(kept, tenant), kept.server
        own = required(pace, limits, self._delay(kept, tenant, pace, limits))
        if server is None:
            return own
        gates = self._server_pace(gate)
        anybodys = required(gates, server, self.servers_delay(gate))
        if pace.last_end is None or gates.last_end is None:
            return anybodys
        rest = pace.last_end + own.seconds - gates.last_end
        return anybodys if rest <= anybodys.seconds else Delay(seconds=rest, origin=own.origin)

    def pace(self, gate: str) -> Pace:
        """The pace of a gate, over restarts."""
        known = self._paces.get(gate)
        if known is None:
            known = self._context.hosts.pace(gate)
            if not self._context.clean:
                # a request may have been sent that was not stored: one full delay from our start
                known = assume_just_requested(known, self._context.started_at)
            self._paces[gate] = known
        return known

    def pace_of(self, gate: str, tenant: str) -> Pace:
        """The pace of a gate as a tenant has it."""
        return self._view(gate, tenant)

    def _server_pace(self, gate: str) -> Pace:
        return self._view(gate, None)

    def _view(self, gate: str, tenant: str | None) -> Pace:
        pace = self.pace(gate)
        if tenant == OWN and not pace.strangers and pace.own_end is None:
            return pace
        views = self._keep_of(gate).views
        known = views.get(tenant)
        if known is None or known[0] is not pace:
            known = views[tenant] = (pace, server_pace(pace) if tenant is None else tenant_pace(pace, tenant))
        return known[1]

    @staticmethod
    def _only_tenant(kept: _Kept) -> str:
        """The tenant of a gate that has a single one."""
        return next(iter(kept.members), OWN)

    def wait(self, gate: str, now: float) -> Wait:
        """When the gate may send, and why not before: by its pace, and by the first of its tenants."""
        kept = self._with_limits(gate)
        members = kept.members or {OWN: {gate}}
        tenants = [self._tenants_wait(gate, tenant, hosts, now) for tenant, hosts in members.items()]
        if kept.server is None:  # a single tenant's waits are the gate's
            return max(ALWAYS, *tenants, key=_at)
        return max(ALWAYS, self._servers_ready(gate), min(tenants, key=_at), key=_at)

    def _tenants_wait(self, gate: str, tenant: str, hosts: Iterable[str], now: float) -> Wait:
        return max(self._ready(gate, tenant), self.availability.of_gate(hosts, now), key=_at)

    def host_wait(self, gate: str, host: str, now: float) -> Wait:
        """When a host of the gate may be asked, and why not before."""
        own = self._ready(gate, self.tenant(gate, host))
        return max(ALWAYS, self._servers_ready(gate), own, self.availability.of_host(host, now), key=_at)

    def earliest_for(self, gate: str, host: str, now: float) -> float:
        """When a request to this host may go, `now` at the earliest. Its gate was opened by what held some time ago:
        quiet hours may have begun since, a Visit-time may have ended, a Request-rate may have come into force."""
        opens = max(now, self.availability.of_host(host, now).at)
        kept = self._kept.get(gate)
        if kept is not None and kept.limits and kept.valid_until <= now:
            opens = max(opens, self._servers_ready(gate).at, self._ready(gate, self.tenant(gate, host)).at)
        return opens

    def _ready(self, gate: str, tenant: str) -> Wait:
        """When a tenant may be asked by its own pace."""
        kept, pace = self._with_limits(gate), self.pace_of(gate, tenant)
        limits = self._limits_of(kept, tenant)
        return self._held(kept, tenant, ready_at(pace, limits, self._delay(kept, tenant, pace, limits)))

    def _servers_ready(self, gate: str) -> Wait:
        """When the gate may send anything by the pace of its server."""
        kept = self._with_limits(gate)
        if kept.server is None:
            return self._ready(gate, self._only_tenant(kept))
        return self._held(kept, None, ready_at(self._server_pace(gate), kept.server, self.servers_delay(gate)))

    @staticmethod
    def _held(kept: _Kept, tenant: str | None, ready: Wait) -> Wait:
        held_until = kept.held_until.get(tenant, -math.inf)
        return ready if ready.at >= held_until else Wait(at=held_until, why="one full delay is waited for")

    def is_shut(self, gate: str, host: str, now: float) -> bool:
        """True where a host of the gate is closed for longer than a task should wait for it in memory."""
        at = self.host_wait(gate, host, now).at
        return at == math.inf or (at > now and self.has_turned_away(gate, self.tenant(gate, host)))

    def has_turned_away(self, gate: str, tenant: str) -> bool:
        """True while the ban circuit keeps a tenant of the gate shut."""
        return self.pace_of(gate, tenant).blocked_since is not None

    def is_backing_off(self, gate: str) -> bool:
        """True where a tenant of the gate is asked less often because it was too much for it."""
        pace = self.pace(gate)
        return pace.back_off > 0 or any(stranger.back_off > 0 for stranger in pace.strangers.values())

    def paced_until(self, gate: str) -> float:
        """When the gate may send by its pace alone, without the hours and orders of its hosts."""
        return self._servers_ready(gate).at

    def is_shared(self, gate: str) -> bool:
        """True for a gate of several hosts."""
        kept = self._kept.get(gate)
        return kept is not None and (len(kept.members) > 1 or any(len(hosts) > 1 for hosts in kept.members.values()))

    def is_paused(self, host: str) -> bool:
        """True where a policy keeps the host shut for good."""
        return self.availability.is_paused(host)

    def opens(self, hours: Hours, now: float) -> float:
        """When these hours open."""
        return self.availability.opens(hours, now)

    # What changes.

    def put_off(self, host: str, until: float) -> None:
        """Leave the host alone until then: its robots.txt can't be read again just now."""
        self.availability.put_off[host] = until

    def add_host(self, gate: Gate[Any], host: str) -> None:
        """Add a host to its gate, which keeps the host's floor too from now on, and what it had still to wait for."""
        kept, tenant = self._keep_of(gate.name), self.tenant(gate.name, host)
        if host in kept.members.get(tenant, ()):
            return
        self._entered[host] = gate.name
        self._bring(gate.name, tenant, host)
        self._reopen(host, gate.name)
        if not kept.members:
            kept.members[tenant] = {host}
            self.recompute(gate)
            return
        # a gate may have thousands of hosts: its limits and the new host's are compared, not those of all
        now, limits = self._context.now(), self._host_limits(host)
        self._with_limits(gate.name)
        others = kept.members.setdefault(tenant, set())
        if others and gate.wake > now and len(kept.members) == 1:
            shut_for_others = self.availability.of_gate(others, now).at >= gate.wake
        else:
            shut_for_others = False
        others.add(host)
        known = kept.strictest.get(tenant)
        kept.strictest[tenant] = limits if known is None else strictest([known, limits])
        self._combine(kept)
        kept.valid_until = min(kept.valid_until, self._valid_until(host, now))
        gate.delay = self.servers_delay(gate.name).seconds
        if len(kept.members) > 1:
            self._open_tenants(gate, now)
            return
        if shut_for_others:
            gate.wake = min(gate.wake, self.availability.of_host(host, now).at)
        gate.wake = max(gate.wake, self._ready(gate.name, tenant).at)

    def _open_tenants(self, gate: Gate[Any], now: float) -> None:
        """Tell the workbench when each tenant may go, and the gate without regard to any of them."""
        if not gate.opens:  # it had a single tenant, whose waits were the gate's
            gate.wake = min(gate.wake, now + gate.delay)
        gate.wake = max(gate.wake, self._wake(gate, now))

    def _bring(self, gate: str, tenant: str, host: str) -> None:
        """Have a host that changes its gate bring its pace along: what it has asked for still holds."""
        before = self._context.hosts.gate(host)
        assumed_at = self._keep_of(gate).assumed_at
        if assumed_at is None and not self._context.clean:
            assumed_at = self._context.started_at
        if tenant != OWN and tenant not in self.pace(gate).strangers and assumed_at is not None:
            forgotten = assume_just_requested(self.pace_of(gate, tenant), assumed_at)
            self._keep(gate, keep_tenant(self.pace(gate), tenant, forgotten))
        if tenant != OWN and kind_of(gate) is MemoryKind.GROUP and tenant not in self.pace(gate).strangers:
            self._keep(gate, keep_tenant(self.pace(gate), tenant, Pace()))  # so that it is told from the group's own
        if before == gate:
            domain = registered_domain(host)
            if tenant == OWN and domain in self.pace(gate).strangers:  # it was a stranger before its group came here
                self._keep(gate, bring(self.pace(gate), OWN, self.pace_of(gate, domain)))
            return
        brought = self.pace_of(before, self._tenant_before(before, host))
        if brought != Pace():
            self._keep(gate, bring(self.pace(gate), tenant, brought))
        if host != gate:
            self._context.hosts.keep_gate(host, gate)

    def _tenant_before(self, gate: str, host: str) -> str:
        """The tenant of a gate that a host was of before, when policies may have been others."""
        if kind_of(gate) is MemoryKind.HOST:
            return self.tenant(gate, host)
        domain = registered_domain(host)
        return domain if domain in self.pace(gate).strangers else OWN

    def recompute(self, gate: Gate[Any]) -> None:
        """Compute anew what the gate must keep and when it opens: policies, a robots.txt or an order have changed."""
        kept, now = self._keep_of(gate.name), self._context.now()
        kept.limits = {}
        gate.delay = self.servers_delay(gate.name).seconds
        gate.wake = self._wake(gate, now)

    def _wake(self, gate: Gate[Any], now: float) -> float:
        """When the gate opens; where it has several tenants, `gate.opens` says when each of them may go."""
        members = self._keep_of(gate.name).members
        if len(members) <= 1:
            gate.opens = {}
            return self.wait(gate.name, now).at
        gate.opens = {tenant: self._tenants_wait(gate.name, tenant, hosts, now).at for tenant, hosts in members.items()}
        return self._servers_ready(gate.name).at

    def hold(self, gate: Gate[Any], *, since: float) -> None:
        """Have the gate, and each of its tenants, wait one full delay from then on: they may have been asked under
        another name, or the clock was wrong."""
        kept = self._with_limits(gate.name)
        held: dict[str | None, float] = {tenant: self.delay(gate.name, tenant).seconds for tenant in kept.limits}
        for tenant, seconds in (held | {None: self.servers_delay(gate.name).seconds}).items():
            kept.held_until[tenant] = max(kept.held_until.get(tenant, -math.inf), since + seconds)
        gate.wake = self._wake(gate, self._context.now())

    def shift(self, seconds: float, since: float) -> None:
        """The clock has been moved by `seconds`: whatever is remembered of this crawl (which began at `since`, on the
        clock of before) moves with it. Every gate is to be recomputed then."""
        self._context.hosts.shift(seconds, since)
        for gate, pace in self._paces.items():
            if pace.last_end is not None and pace.last_end >= since:
                self._keep(gate, shifted(pace, seconds))
        put_off = self.availability.put_off
        self.availability.put_off = {host: until + seconds for host, until in put_off.items()}
        for kept in self._kept.values():
            kept.limits = {}
            kept.held_until = {tenant: until + seconds for tenant, until in kept.held_until.items()}

    def handed_out(self, gate: str) -> None:
        """Remember that a request is on its way, for `scrapy hosts`."""
        self._context.hosts.asked(gate, self.pace(gate), self._context.now())

    def completed(self, gate: Gate[Any], host: str, outcome: Outcome, cost: float) -> Completed:
        """Take the end of a request into the gate's pace. `cost`: how many delays the request counts for."""
        now, tenant = self._context.now(), self.tenant(gate.name, host)
        sample = sample_of(outcome, now, cost)
        limits = self.pacing_limits(gate.name, tenant)
        pace, events = after_tenants_answer(self.pace(gate.name), tenant, limits, sample)
        self._keep(gate.name, pace)
        if outcome.status is not None or outcome.is_silence:
            self._context.hosts.learn_answer(host, outcome.status is not None, now)
        gate.delay = self.servers_delay(gate.name).seconds
        refused = sample.refused or (sample.shut and self.pace_of(gate.name, tenant).shut_ends > 0)
        return Completed(wake=self._wake(gate, now), refused=refused, events=events)

    def note_refusal(self, gate: str, tenant: str, link_id: int | str) -> None:
        """A link was refused by a tenant of the gate: should that become a ban, its record is to be taken back."""
        refused = with_refusal(self.pace_of(gate, tenant), link_id)
        self._keep(gate, keep_tenant(self.pace(gate), tenant, refused))

    def forget_refusals(self, gate: str, tenant: str, link_ids: Container[int | str]) -> None:
        """The records of these links were taken back."""
        left = without_refusals(self.pace_of(gate, tenant), link_ids)
        self._keep(gate, keep_tenant(self.pace(gate), tenant, left))

    def limit_opens(self, limit: SharedLimit) -> float:
        """When a shared limit allows the next start: by its delay, over restarts, and by its quotas."""
        pace, limits = self.pace(limit_key(limit.name)), pacing_limits_of(limit)
        return ready_at(pace, limits, delay(pace, limits)).at

    def limit_started(self, limit: str, *, counts: bool = True) -> None:
        """Something has started under the limit of this name. `counts`: towards its quotas; False where it has been
        counted when it was handed out."""
        key, now = limit_key(limit), self._context.now()
        pace = self.pace(key)
        counted = count_request(pace.counts, now) if counts else pace.counts
        self._keep(key, evolve(pace, last_end=now, counts=counted))

    def take_orders(self, orders: dict[str, Order]) -> list[str]:
        """Obey the orders of people, by host. Returns the names of the gates that they change something for."""
        before, self.availability.orders = self.availability.orders, orders
        changed = {host for host in {*orders, *before} if orders.get(host) != before.get(host)}
        for host in changed:
            self._reopen(host, self.gate_of(host))
        return sorted({self.gate_of(host) for host in changed})

    def _reopen(self, host: str, gate: str) -> None:
        """Open a gate that the ban circuit has blocked, where a later order says so."""
        order, tenant = self.availability.orders.get(host), self.tenant(gate, host)
        pace = self.pace_of(gate, tenant)
        if order is not None and order.reopens(pace.blocked_since):
            self._keep(gate, keep_tenant(self.pace(gate), tenant, unblocked(pace)))

    def _keep(self, gate: str, pace: Pace) -> None:
        """The gate's (or limit's) pace from now on, also over a restart."""
        self._paces[gate] = pace
        self._context.hosts.keep_pace(gate, pace)


def _at(wait: Wait) -> float:
    return wait.at
