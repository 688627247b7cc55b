"""Which gate a host belongs to, what the gate must keep, and when it opens: policies, robots.txt and pace together.

PURE: the time is the context's.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable
from typing import Any

from attrs import evolve, frozen

from linkcrawl.check.outcome import Outcome
from linkcrawl.frontier.gates.addresses import Addresses
from linkcrawl.frontier.gates.availability import ALWAYS, HostAvailability, Hours
from linkcrawl.frontier.gates.context import CrawlContext
from linkcrawl.frontier.gates.workbench import Gate
from linkcrawl.items import Order
from linkcrawl.politeness.keys import MemoryKind, group_gate, kind_of, limit_key
from linkcrawl.politeness.pacing.delay import after_answer, considered, delay, ready_at, required
from linkcrawl.politeness.pacing.hints import sample_of
from linkcrawl.politeness.pacing.persistence import (
    assume_just_requested,
    merge,
    shifted,
    unblocked,
    with_refusal,
    without_refusals,
)
from linkcrawl.politeness.pacing.state import Delay, Event, Pace, PacingLimits, Wait
from linkcrawl.politeness.pacing.strictest import pacing_limits_of, strictest
from linkcrawl.politeness.policy.limits import SharedLimit, count_request
from linkcrawl.politeness.policy.rules import Applied


@frozen(kw_only=True)
class Completed:
    """What the end of a request means for its gate. `wake`: when it opens again (Unix seconds); `refused`: the server
    has turned this request away; `events`: what people should know."""

    wake: float
    refused: bool
    events: tuple[Event, ...]


class Gatekeeper:
    """Keeps the pace of every gate, and which hosts a gate covers. Where it covers several, the strictest limits hold
    for all. The arithmetic is politeness.pacing's. Times are Unix seconds."""

    def __init__(self, context: CrawlContext):
        self._context = context
        self._paces: dict[str, Pace] = {}
        self._members: dict[str, set[str]] = {}
        self._limits: dict[str, PacingLimits] = {}
        self._valid: dict[str, float] = {}  # until when the limits of a gate hold, where that has an end
        self._delays: dict[str, tuple[Pace, PacingLimits, Delay]] = {}  # computed once for the same pace and limits
        self.availability = HostAvailability(context)
        self._addresses = Addresses()
        self._groups: dict[str, str] = {}  # by the leader of an address: the group rule of one of the hosts there
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
            leader = self._addresses.leader(host)
            return group_gate(self._groups[leader]) if leader in self._groups else leader
        before = self._context.hosts.gate(host)  # until its address has been looked up
        return host if kind_of(before) is MemoryKind.GROUP else before

    def learn_addresses(self, host: str, addresses: tuple[str, ...]) -> bool:
        """Learn the addresses of a host; none where the name has none. Returns True where other hosts must leave their
        gate: many strangers share their address, or the host brings its policy group there."""
        self.looked_up.add(host)
        strangers = bool(self._addresses.learn(host, addresses))
        return self._brings_group(host) or strangers

    def regroup(self) -> None:
        """Work out anew which address belongs to which group: policies have changed, or hosts have left a gate."""
        self._groups.clear()
        for host in sorted(self.looked_up):
            self._brings_group(host)

    def _brings_group(self, host: str) -> bool:
        """Remember a host's policy group. Returns True where others at its address come into it."""
        group, leader = self._context.policies.of_host(host).gate, self._addresses.leader(host)
        if group is None or leader in self._groups:
            return False
        self._groups[leader] = group
        return leader != host

    def use_addresses(self, addresses: Addresses) -> None:
        """Go by these addresses, which all workers of a cluster share."""
        self._addresses = addresses

    def forget(self, gate: str) -> None:
        """Forget everything about a gate that another worker leases, or has leased meanwhile."""
        for known in (self._paces, self._members, self._limits, self._valid, self._delays):
            known.pop(gate, None)

    def assume_just_requested(self, gate: str, now: float) -> None:
        """Have the gate wait one full delay: a worker that died may have sent a request just now."""
        self._paces[gate] = assume_just_requested(self.pace(gate), now)

    def forget_members(self, gate: str) -> None:
        """Forget which hosts the gate covers; they are added again."""
        self._members.pop(gate, None)

    def applied(self, host: str) -> Applied:
        """What the policies say of every request to a host."""
        return self._context.policies.of_host(host)

    def members(self, gate: str) -> frozenset[str]:
        """The hosts that were added to the gate."""
        return frozenset(self._members.get(gate, ()))

    # What a gate must keep.

    def pacing_limits(self, gate: str) -> PacingLimits:
        """What requests through this gate must keep, each number with its origin."""
        known, valid_until = self._limits.get(gate), self._valid.get(gate)
        if known is None or (valid_until is not None and valid_until <= self._context.now()):
            known = self._limits[gate] = strictest([self._host_limits(host) for host in sorted(self._hosts(gate))])
            self._valid.pop(gate, None)
            self._bound_validity(gate, self._hosts(gate))
        return known

    def _bound_validity(self, gate: str, hosts: Iterable[str]) -> None:
        """Have a gate's limits hold until the minute is over, where a Request-rate of these hosts is for some hours of
        the day."""
        if any(pace.keeps_hours for host in hosts for pace in self._context.hosts.robots_paces(host)):
            minute_ends = (self._context.now() // 60 + 1) * 60
            self._valid[gate] = min(self._valid.get(gate, math.inf), minute_ends)

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

    def delay(self, gate: str) -> Delay:
        """The delay in force, and where it comes from."""
        return self._delay(gate, self.pace(gate), self.pacing_limits(gate))

    def _delay(self, gate: str, pace: Pace, limits: PacingLimits) -> Delay:
        known = self._delays.get(gate)
        if known is None or known[0] is not pace or known[1] is not limits:
            known = self._delays[gate] = (pace, limits, delay(pace, limits))
        return known[2]

    def considered(self, gate: str) -> list[Delay]:
        """All numbers that the delay in force is the largest of."""
        return considered(self.pace(gate), self.pacing_limits(gate))

    def required(self, gate: str) -> Delay:
        """The gap between the end of the last request, whose cost counts, and the next one."""
        pace, limits = self.pace(gate), self.pacing_limits(gate)
        return required(pace, limits, self._delay(gate, pace, limits))

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

    def wait(self, gate: str, now: float) -> Wait:
        """When the gate may send, and why not before: by its pace, and by the first of its hosts that may be asked."""
        waits = (self._ready(gate), self.availability.of_gate(self._hosts(gate), now))
        return max(ALWAYS, *waits, key=lambda wait: wait.at)

    def host_wait(self, gate: str, host: str, now: float) -> Wait:
        """When a host of the gate may be asked, and why not before."""
        waits = (self._ready(gate), self.availability.of_host(host, now))
        return max(ALWAYS, *waits, key=lambda wait: wait.at)

    def earliest_for(self, gate: str, host: str, now: float) -> float:
        """When a request to this host may go, `now` at the earliest. Its gate was opened by what held some time ago:
        quiet hours may have begun since, a Visit-time may have ended, a Request-rate may have come into force."""
        opens = max(now, self.availability.of_host(host, now).at)
        valid_until = self._valid.get(gate)
        if valid_until is not None and valid_until <= now:
            opens = max(opens, self._ready(gate).at)
        return opens

    def _ready(self, gate: str) -> Wait:
        pace, limits = self.pace(gate), self.pacing_limits(gate)
        return ready_at(pace, limits, self._delay(gate, pace, limits))

    def is_shut(self, gate: str, host: str, now: float) -> bool:
        """True where a host of the gate is closed for longer than a task should wait for it in memory."""
        at = self.host_wait(gate, host, now).at
        return at == math.inf or (at > now and self.pace(gate).blocked_since is not None)

    def paced_until(self, gate: str) -> float:
        """When the gate may send by its pace alone, without the hours and orders of its hosts."""
        return self._ready(gate).at

    def is_shared(self, gate: str) -> bool:
        """True for a gate of several hosts."""
        return len(self._members.get(gate, ())) > 1

    def _hosts(self, gate: str) -> set[str]:
        return self._members.get(gate) or {gate}

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
        """Add a host to its gate, which keeps the host's limits too from now on, and what it had still to wait for."""
        if host in self._members.setdefault(gate.name, set()):
            return
        self._members[gate.name].add(host)
        self._bring(gate.name, host)
        self._reopen(host, gate.name)
        if len(self._members[gate.name]) == 1:
            self.recompute(gate)
            return
        # a gate may have thousands of hosts: its limits and the new host's are compared, not those of all
        now = self._context.now()
        self._limits[gate.name] = strictest([self.pacing_limits(gate.name), self._host_limits(host)])
        gate.delay = self.delay(gate.name).seconds
        self._bound_validity(gate.name, [host])
        if gate.wake > now and self.availability.of_gate(self._members[gate.name] - {host}, now).at >= gate.wake:
            gate.wake = min(gate.wake, self.availability.of_host(host, now).at)  # shut for its other hosts only
        gate.wake = max(gate.wake, self._ready(gate.name).at)

    def _bring(self, gate: str, host: str) -> None:
        """Have a host that changes its gate bring its pace along: what it has asked for still holds."""
        before = self._context.hosts.gate(host)
        if before == gate:
            return
        brought = self.pace(before)
        if brought != Pace():
            self._keep(gate, merge(self.pace(gate), brought))
        if host != gate:
            self._context.hosts.keep_gate(host, gate)

    def recompute(self, gate: Gate[Any]) -> None:
        """Compute anew what the gate must keep and when it opens: policies, a robots.txt or an order have changed."""
        self._limits.pop(gate.name, None)
        gate.delay = self.delay(gate.name).seconds
        gate.wake = self.wait(gate.name, self._context.now()).at

    def shift(self, seconds: float, since: float) -> None:
        """The clock has been moved by `seconds`: whatever is remembered of this crawl (which began at `since`, on the
        clock of before) moves with it. Every gate is to be recomputed then."""
        self._context.hosts.shift(seconds, since)
        for gate, pace in self._paces.items():
            if pace.last_end is not None and pace.last_end >= since:
                self._keep(gate, shifted(pace, seconds))
        put_off = self.availability.put_off
        self.availability.put_off = {host: until + seconds for host, until in put_off.items()}
        self._valid.clear()
        self._limits.clear()

    def handed_out(self, gate: str) -> None:
        """Remember that a request is on its way, for `scrapy hosts`."""
        self._context.hosts.asked(gate, self.pace(gate), self._context.now())

    def completed(self, gate: Gate[Any], host: str, outcome: Outcome, cost: float) -> Completed:
        """Take the end of a request into the gate's pace. `cost`: how many delays the request counts for."""
        now = self._context.now()
        sample = sample_of(outcome, now, cost)
        pace, events = after_answer(self.pace(gate.name), self.pacing_limits(gate.name), sample)
        self._keep(gate.name, pace)
        if outcome.status is not None or outcome.is_silence:
            self._context.hosts.learn_answer(host, outcome.status is not None, now)
        gate.delay = self.delay(gate.name).seconds
        return Completed(wake=self.wait(gate.name, now).at, refused=sample.refused, events=events)

    def note_refusal(self, gate: str, link_id: int | str) -> None:
        """A link was refused at the gate: should that become a ban, its record is to be taken back."""
        self._keep(gate, with_refusal(self.pace(gate), link_id))

    def forget_refusals(self, gate: str, link_ids: Container[int | str]) -> None:
        """The records of these links were taken back."""
        self._keep(gate, without_refusals(self.pace(gate), link_ids))

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
        order, pace = self.availability.orders.get(host), self.pace(gate)
        if order is not None and order.reopens(pace.blocked_since):
            self._keep(gate, unblocked(pace))

    def _keep(self, gate: str, pace: Pace) -> None:
        """The gate's (or limit's) pace from now on, also over a restart."""
        self._paces[gate] = pace
        self._context.hosts.keep_pace(gate, pace)
