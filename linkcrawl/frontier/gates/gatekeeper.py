"""Which gate a host belongs to, what it must keep, and when it opens again: policy, robots.txt and pace together."""

from __future__ import annotations

import math
from typing import Any

from attrs import evolve, frozen

from linkcrawl.check.outcome import Outcome
from linkcrawl.frontier.gates.addresses import Addresses
from linkcrawl.frontier.gates.availability import ALWAYS, HostAvailability, robots_of
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
    """Keeps a Pace for every gate and the hosts that it covers. The arithmetic is politeness.pacing's; here it is fed,
    asked, and remembered. Where a gate covers several hosts, the strictest of them holds for all."""

    def __init__(self, session: CrawlContext):
        self._session = session
        self._paces: dict[str, Pace] = {}
        self._members: dict[str, set[str]] = {}
        self._limits: dict[str, PacingLimits] = {}
        self._valid: dict[str, float] = {}  # until when limits hold
        self._delays: dict[str, tuple[Pace, PacingLimits, Delay]] = {}  # worked out once for the same pace and limits
        self.availability = HostAvailability(session)
        self._addresses = Addresses()
        self._groups: dict[str, str] = {}  # by the first host at an address: the group rule that one there belongs to
        #: Hosts whose address has been asked for, whatever came of it.
        self.known: set[str] = set()

    # Who belongs where.

    def name(self, host: str) -> str:
        """The gate of a host: its policy group; else that of a host at its server's address that has one; else that of
        the first host known there; its own where many registered domains live there."""
        group = self._session.policies.of_host(host).gate
        if group is not None:
            return group_gate(group)
        if host in self.known:
            leader = self._addresses.leader(host)
            return group_gate(self._groups[leader]) if leader in self._groups else leader
        before = self._session.hosts.gate(host)  # as far as is known while its address isn't
        return host if kind_of(before) is MemoryKind.GROUP else before

    def learn(self, host: str, addresses: tuple[str, ...]) -> bool:
        """The addresses of a host, none where it has none. True where hosts have to leave the gate that they had:
        many strangers turn out to live at their address, or the host brings its policy group there."""
        self.known.add(host)
        strangers = bool(self._addresses.learn(host, addresses))
        return self._brings_group(host) or strangers

    def regroup(self) -> None:
        """Policies have changed, or hosts have left the gate of their address."""
        self._groups.clear()
        for host in sorted(self.known):
            self._brings_group(host)

    def _brings_group(self, host: str) -> bool:
        """Take note of a host's policy group; whether others at its address come into it."""
        group, leader = self._session.policies.of_host(host).gate, self._addresses.leader(host)
        if group is None or leader in self._groups:
            return False
        self._groups[leader] = group
        return leader != host

    def share(self, addresses: Addresses) -> None:
        """Have others say which hosts share an address (workers of a cluster must say the same)."""
        self._addresses = addresses

    def forget(self, gate: str) -> None:
        """The gate is another worker's, or was: nothing that is known of it here counts."""
        for known in (self._paces, self._members, self._limits, self._valid, self._delays):
            known.pop(gate, None)

    def assume_just_requested(self, gate: str, now: float) -> None:
        """The gate may have been asked just now by someone who didn't live to tell: one full delay."""
        self._paces[gate] = assume_just_requested(self.pace(gate), now)

    def forget_members(self, gate: str) -> None:
        """Which hosts the gate covers is to be worked out anew."""
        self._members.pop(gate, None)

    def applied(self, host: str) -> Applied:
        """What the policy rules say of every request to a host."""
        return self._session.policies.of_host(host)

    def members(self, gate: str) -> frozenset[str]:
        """The hosts that the gate has been opened for."""
        return frozenset(self._members.get(gate, ()))

    # What a gate must keep.

    def pacing_limits(self, gate: str) -> PacingLimits:
        """What requests through this gate must keep, each number with its origin."""
        known, now = self._limits.get(gate), self._session.now()
        if known is None or self._valid.get(gate, math.inf) <= now:
            known = self._limits[gate] = strictest([self._host_limits(host) for host in sorted(self._hosts(gate))])
            self._valid[gate] = min(self._valid_until(host, now) for host in self._hosts(gate))
        return known

    def _valid_until(self, host: str, now: float) -> float:
        """How long a host's limits hold: a Request-rate may be for some hours of the day, to the minute."""
        hours = any(robots.keeps_hours for robots in robots_of(self._session.robots, host))
        return (now // 60 + 1) * 60 if hours else math.inf

    def _host_limits(self, host: str) -> PacingLimits:
        session, applied = self._session, self.applied(host)
        config, now = session.config, session.now()
        asked = robots_of(session.robots, host)
        delays = [robots.crawl_delay for robots in asked]
        rates = [robots.request_delay(now) for robots in asked]
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
        pace, limits = self.pace(gate), self.pacing_limits(gate)
        known = self._delays.get(gate)
        if known is None or known[0] is not pace or known[1] is not limits:
            known = self._delays[gate] = (pace, limits, delay(pace, limits))
        return known[2]

    def considered(self, gate: str) -> list[Delay]:
        """Every number that the delay in force is the largest of."""
        return considered(self.pace(gate), self.pacing_limits(gate))

    def required(self, gate: str) -> Delay:
        """The gap that the next request must leave to the end of the last one, its cost included."""
        return required(self.pace(gate), self.pacing_limits(gate), self.delay(gate))

    def pace(self, gate: str) -> Pace:
        """How the gate has answered up to now, over restarts."""
        known = self._paces.get(gate)
        if known is None:
            known = self._session.hosts.pace(gate)
            if not self._session.clean:
                # a request may have been sent that nobody has noted: one full delay from our start
                known = assume_just_requested(known, self._session.started_at)
            self._paces[gate] = known
        return known

    def wait(self, gate: str, now: float) -> Wait:
        """When the gate may send, and why not before: its pace, and the first of its hosts that may be asked."""
        waits = (self._ready(gate), self.availability.of_gate(self._hosts(gate), now))
        return max(ALWAYS, *waits, key=lambda wait: wait.at)

    def host_wait(self, gate: str, host: str, now: float) -> Wait:
        """When a host behind the gate may be asked, and why not before."""
        waits = (self._ready(gate), self.availability.of_host(host, now))
        return max(ALWAYS, *waits, key=lambda wait: wait.at)

    def earliest_for(self, gate: str, host: str, now: float) -> float:
        """When a request to a host may go that its gate has let go by what it knew when it last worked out its time:
        `now` at the earliest. Quiet hours may have begun since, Visit-time ended, a Request-rate come into force."""
        opens = max(now, self.availability.of_host(host, now).at)
        if self._valid.get(gate, math.inf) <= now:
            opens = max(opens, self._ready(gate).at)
        return opens

    def _ready(self, gate: str) -> Wait:
        return ready_at(self.pace(gate), self.pacing_limits(gate), self.delay(gate))

    def is_shut(self, gate: str, host: str, now: float) -> bool:
        """Whether a host behind the gate is closed for longer than anything should wait for it in memory."""
        at = self.host_wait(gate, host, now).at
        return at == math.inf or (at > now and self.pace(gate).blocked_since is not None)

    def paced_until(self, gate: str) -> float:
        """When the gate may send by its pace alone (Unix seconds), whatever hours and orders say of its hosts."""
        return self._ready(gate).at

    def is_shared(self, gate: str) -> bool:
        """Whether several hosts are behind the gate."""
        return len(self._members.get(gate, ())) > 1

    def _hosts(self, gate: str) -> set[str]:
        return self._members.get(gate) or {gate}

    # What changes.

    def add_host(self, gate: Gate[Any], host: str) -> None:
        """A host comes to its gate: the gate keeps its limits too from now on, and what it still had to wait for."""
        if host in self._members.setdefault(gate.name, set()):
            return
        self._members[gate.name].add(host)
        self._bring(gate.name, host)
        self._reopen(host, gate.name)
        if len(self._members[gate.name]) == 1:
            self.recompute(gate)
            return
        # one host more; to work out anew what thousands have said, each time that one comes, would take too long
        now = self._session.now()
        self._limits[gate.name] = strictest([self.pacing_limits(gate.name), self._host_limits(host)])
        gate.delay = self.delay(gate.name).seconds
        self._valid[gate.name] = min(self._valid.get(gate.name, math.inf), self._valid_until(host, now))
        if gate.wake > now and self.availability.of_gate(self._members[gate.name] - {host}, now).at >= gate.wake:
            gate.wake = min(gate.wake, self.availability.of_host(host, now).at)  # shut for its other hosts only
        gate.wake = max(gate.wake, self._ready(gate.name).at)

    def _bring(self, gate: str, host: str) -> None:
        """Nothing that a host has asked for is forgotten because its gate has another name than before."""
        before = self._session.hosts.gate(host)
        if before == gate:
            return
        brought = self.pace(before)
        if brought != Pace():
            self._keep(gate, merge(self.pace(gate), brought))
        if host != gate:
            self._session.hosts.keep_gate(host, gate)

    def recompute(self, gate: Gate[Any]) -> None:
        """Something has changed for the gate (a host more, policies, robots.txt, an order): work out anew what it must
        keep and when it opens."""
        self._limits.pop(gate.name, None)
        gate.delay = self.delay(gate.name).seconds
        gate.wake = self.wait(gate.name, self._session.now()).at

    def shift(self, seconds: float, since: float) -> None:
        """The clock has been moved by `seconds`: whatever is remembered of this crawl (which began at `since`, on the
        clock of before) moves with it. Every gate is to be recomputed then."""
        self._session.hosts.shift(seconds, since)
        self._session.robots.shift(seconds, since)
        for gate, pace in self._paces.items():
            if pace.last_end is not None and pace.last_end >= since:
                self._keep(gate, shifted(pace, seconds))
        put_off = self.availability.put_off
        self.availability.put_off = {host: until + seconds for host, until in put_off.items()}
        self._valid.clear()
        self._limits.clear()

    def handed_out(self, gate: str) -> None:
        """A request is on its way: people who look should see it."""
        self._session.hosts.asked(gate, self.pace(gate), self._session.now())

    def completed(self, gate: Gate[Any], host: str, outcome: Outcome, cost: float) -> Completed:
        """Take note of what came of a request; `cost`: how many delays it is worth."""
        now = self._session.now()
        sample = sample_of(outcome, now, cost)
        pace, events = after_answer(self.pace(gate.name), self.pacing_limits(gate.name), sample)
        self._keep(gate.name, pace)
        self._session.hosts.learn_answer(host, outcome.status is not None, now)
        gate.delay = self.delay(gate.name).seconds
        return Completed(wake=self.wait(gate.name, now).at, refused=sample.refused, events=events)

    def limit_opens(self, limit: SharedLimit) -> float:
        """When a limit may strike next by what is known from before this crawl, and by its checks of today."""
        pace, limits = self.pace(limit_key(limit.name)), pacing_limits_of(limit)
        return ready_at(pace, limits, delay(pace, limits)).at

    def limit_started(self, limit: str, *, counts: bool = True) -> None:
        """A check has cleared the limit of this name just now. `counts`: for today; it has already where it is sent."""
        key, now = limit_key(limit), self._session.now()
        pace = self.pace(key)
        counted = count_request(pace.counts, now) if counts else pace.counts
        self._keep(key, evolve(pace, last_end=now, counts=counted))

    def take_orders(self, orders: dict[str, Order]) -> list[str]:
        """Orders of people, by host key; the names of the gates that they change something for."""
        before, self.availability.orders = self.availability.orders, orders
        changed = {host for host in {*orders, *before} if orders.get(host) != before.get(host)}
        for host in changed:
            self._reopen(host, self.name(host))
        return sorted({self.name(host) for host in changed})

    def _reopen(self, host: str, gate: str) -> None:
        """Obey the order that stands for a host, where it re-opens a gate that the ban circuit has blocked before."""
        order, pace = self.availability.orders.get(host), self.pace(gate)
        if order is not None and order.reopens(pace.blocked_since):
            self._keep(gate, unblocked(pace))

    def _keep(self, gate: str, pace: Pace) -> None:
        """The gate's (or limit's) pace from now on, also over a restart."""
        self._paces[gate] = pace
        self._session.hosts.keep_pace(gate, pace)
