"""Crawls on a virtual clock: gates and workbench together, whatever hosts answer, judged by an audit of their own."""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, cast

from attrs import define, evolve, field
from hypothesis import given, settings
from hypothesis import strategies as st

from linkcrawl.audit.log import AuditEntry, AuditLimit, Quotas
from linkcrawl.audit.verify import AuditVerifier, HostRules
from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import Gate, Workbench
from linkcrawl.frontier.in_flight import InFlight
from linkcrawl.frontier.ports import LocalOwnership, Task
from linkcrawl.frontier.router import HostRouter
from linkcrawl.frontier.shared_limits import SharedLimits
from linkcrawl.items import DueLink
from linkcrawl.network.resolver import Resolver
from linkcrawl.politeness.host_state import HostStateCache
from linkcrawl.politeness.policy.limits import WINDOWS, Quota
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.politeness.robots.cache import RobotsCache
from linkcrawl.session import Arguments
from tests.unit.frontier_kit import T0, Clock, FakeEngine, answer, config, policies, read_robots_of, silence

#: Two servers with two names each, one host by itself, and two of a policy group.
ADDRESSES = {
    "a.one.org": "192.0.2.1",
    "b.one.org": "192.0.2.1",
    "a.two.org": "192.0.2.2",
    "b.two.org": "192.0.2.2",
    "alone.org": "192.0.2.3",
    "x.group.org": "192.0.2.4",
    "y.group.org": "192.0.2.5",
}
#: What has to be kept at least, by the rules and files below: told here anew, not asked of what is tested.
FLOORS = {"b.two.org": 3.0, "alone.org": 0.25, "x.group.org": 2.0, "y.group.org": 2.0}
RULES = """
[[policy]]
name = "quick"
hosts = ["alone.org"]
delay = 0.25

[[policy]]
name = "group"
hosts = ["*.group.org"]
delay = 2.0
group = true

[[policy]]
name = "north"
collections = ["north"]
delay = 5.0
"""


@define
class Surroundings:
    """What a gatekeeper and a router ask of a session."""

    now: Clock = field(factory=Clock)
    config: Any = field(factory=config)
    policies: Policies = field(factory=lambda: policies(RULES))
    hosts: HostStateCache = field(factory=HostStateCache)
    robots: RobotsCache = field(factory=lambda: RobotsCache(token="linkcrawl", ttl=86400))
    arguments: Arguments = field(factory=Arguments)
    clean: bool = True
    started_at: float = T0
    skew: float = 0.0


@define
class Simulation:
    """A crawl: links wait in gates, requests take their time, and each end is noted. `permits`: requests at once."""

    permits: int
    at: Surroundings = field(factory=Surroundings)
    bench: Workbench[Task] = field(factory=Workbench)
    lines: list[AuditEntry] = field(factory=list)
    silences: list[tuple[str, float, float]] = field(factory=list)

    def run(self, links: list[DueLink], outcomes: list[tuple[str, float]]) -> None:
        at, flying = self.at, cast(list[tuple[float, int, Gate[Task], DueLink, AuditEntry, Outcome]], [])
        read_robots_of(at, "b.two.org", "User-agent: *\nCrawl-delay: 3\n", T0)
        keeper = Gatekeeper(at)
        for host, address in ADDRESSES.items():
            keeper.learn_addresses(host, (address,))
        router = HostRouter(
            cast(Any, at),
            bench=self.bench,
            keeper=keeper,
            limits=SharedLimits(cast(Any, at), self.bench, keeper, LocalOwnership()),
            in_flight=InFlight(self.bench),
            resolver=cast(Resolver, None),
            ownership=LocalOwnership(),
            engine=FakeEngine(),
        )
        router.place_links(links)
        count = 0
        while True:
            while len(flying) < self.permits and (taken := self.bench.take(at.now())) is not None:
                gate, link = taken[0], cast(DueLink, taken[1])
                kind, took = outcomes[count % len(outcomes)]
                count += 1
                end = at.now() + took
                line = self._line(keeper, gate, link)
                for limit in at.policies.of_link(link.host, link.collections).limits:
                    keeper.limit_started(limit.name)
                    self.bench.set_limit(limit.name, limit.delay, keeper.limit_opens(limit))
                heapq.heappush(flying, (end, count, gate, link, line, outcome(kind, end, took)))
            wake = self.bench.next_wake() if len(flying) < self.permits else None
            if not flying and (wake is None or wake == math.inf):
                return
            if not flying or (wake is not None and wake < flying[0][0]):
                at.now.at = max(at.now(), cast(float, wake))
                continue
            end, _, gate, link, line, came = heapq.heappop(flying)
            at.now.at = max(at.now(), end)
            self._note(line, came)
            self.bench.release(gate, keeper.completed(gate, link.host, came, 1.0).wake)

    def _line(self, keeper: Gatekeeper, gate: Gate[Task], link: DueLink) -> AuditEntry:
        """What the audit says of a request that goes now; its end and status are still to come."""
        applied, now = self.at.policies.of_link(link.host, link.collections), self.at.now()
        required, quotas = keeper.required(gate.name), keeper.pacing_limits(gate.name).quotas
        limits = tuple(AuditLimit(limit.name, limit.delay, rows(limit.quotas)) for limit in applied.limits)
        return AuditEntry(now, now, link.host, gate.name, required.seconds, "gate", limits, "HEAD", 0, rows(quotas))

    def _note(self, line: AuditEntry, came: Outcome) -> None:
        line = evolve(line, ended=self.at.now(), status=came.status or 0)
        self.lines.append(line)
        asked = came.headers.get("retry-after")
        if asked is not None:
            self.silences.append((line.gate, self.at.now(), self.at.now() + float(asked)))


def rows(quotas: Iterable[Quota]) -> Quotas:
    return tuple(quota.row for quota in quotas)


def outcome(kind: str, end: float, took: float) -> Outcome:
    match kind:
        case "silence":
            return silence(Failure.TIMEOUT_ANSWER, at=end, took=took)
        case "retry":
            return answer(429, at=end, took=took, retry_after="20")
        case status:
            return answer(int(status), at=end, took=took)


LINKS = st.lists(
    st.tuples(st.sampled_from(sorted(ADDRESSES)), st.booleans()),
    min_size=2,
    max_size=25,
)
OUTCOMES = st.lists(
    st.tuples(
        st.sampled_from(["200", "200", "200", "404", "503", "403", "retry", "silence"]),
        st.sampled_from([0.01, 0.1, 0.5, 4.0]),
    ),
    min_size=1,
    max_size=30,
)


def links_of(drawn: list[tuple[str, bool]]) -> list[DueLink]:
    return [
        DueLink(id=number, url=f"http://{host}/{number}", host=host, collections=("north",) if north else ())
        for number, (host, north) in enumerate(drawn)
    ]


def rules(host: str) -> HostRules:
    return HostRules(gap=FLOORS.get(host, 1.0), origin="the test")


@settings(max_examples=150, deadline=None)
@given(LINKS, OUTCOMES, st.sampled_from([1, 2, 100]))
def test_no_gap_is_ever_too_short(
    drawn: list[tuple[str, bool]], outcomes: list[tuple[str, float]], permits: int
) -> None:
    simulation = Simulation(permits=permits)
    simulation.run(links_of(drawn), outcomes)
    proof = AuditVerifier(rules)
    for line in simulation.lines:
        proof.add(line)
    assert [scope for scope in proof.scopes() if scope.violations] == []
    for gate, since, until in simulation.silences:
        early = [line for line in simulation.lines if line.gate == gate and since < line.sent < until]
        assert early == [], "Retry-After"


#: Few requests of the group and few checks of the collection in each window, the shorter the fewer.
QUOTAS = RULES + "".join(
    f"""
[[policy]]
name = "{window.key} of the group"
hosts = ["*.group.org"]
{window.key} = {2 + 2 * number}

[[policy]]
name = "{window.key} of the collection"
collections = ["north"]
{window.key} = {3 + 2 * number}
"""
    for number, window in enumerate(WINDOWS)
)


@settings(max_examples=60, deadline=None)
@given(LINKS, st.lists(st.tuples(st.just("200"), st.sampled_from([0.01, 4.0])), min_size=1, max_size=5))
def test_no_quota_is_ever_exceeded_and_every_link_is_asked_in_time(
    drawn: list[tuple[str, bool]], outcomes: list[tuple[str, float]]
) -> None:
    simulation = Simulation(permits=100, at=Surroundings(policies=policies(QUOTAS)))
    simulation.run(links_of(drawn), outcomes)
    assert len(simulation.lines) == len(drawn)
    proof = AuditVerifier(rules)
    for line in simulation.lines:
        proof.add(line)
    scopes = proof.scopes()
    for number, window in enumerate(WINDOWS):
        checks = Counter(window.number(line.sent) for line in simulation.lines if line.limits)
        assert max(checks.values(), default=0) <= 3 + 2 * number
    assert [scope for scope in scopes if scope.violations] == []
    counted = {(scope.kind, scope.name): scope.requests for scope in scopes if "quota" in scope.kind}
    group, north = sum("group" in host for host, _ in drawn), sum(is_north for _, is_north in drawn)
    assert counted == {
        name: number
        for name, number in {("gate quota", "policy group"): group, ("limit quota", "collection north"): north}.items()
        if number
    }


@settings(max_examples=60, deadline=None)
@given(LINKS, OUTCOMES)
def test_every_link_is_asked_unless_its_host_has_turned_away(
    drawn: list[tuple[str, bool]], outcomes: list[tuple[str, float]]
) -> None:
    simulation = Simulation(permits=100)
    simulation.run(links_of(drawn), outcomes)
    asked: dict[str, int] = defaultdict(int)
    for line in simulation.lines:
        asked[line.host] += 1
    for host in ADDRESSES:
        wanted = sum(name == host for name, _ in drawn)
        if asked[host] < wanted:
            blocked = [gate for gate in simulation.bench.gates.values() if gate.wake == math.inf]
            assert blocked, "only a ban keeps links from being asked"


def test_two_names_of_one_server_take_turns() -> None:
    simulation = Simulation(permits=100)
    simulation.run(links_of([("a.one.org", False), ("b.one.org", False)] * 5), [("200", 0.1)])
    starts = [line.sent - T0 for line in simulation.lines]
    assert [round(second - first, 3) for first, second in pairwise(starts)] == [1.1] * 9
