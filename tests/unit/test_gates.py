"""Gates: who shares one, what it must keep, when it opens, and that nothing of it is forgotten."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from linkcrawl.check.outcome import UNSENT, Failure
from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import Gate
from linkcrawl.items import Act, HostMemory, Order
from linkcrawl.politeness.pacing.state import Blocked, WaitKind
from linkcrawl.politeness.policy.limits import DAYS, WINDOWS, Quota, SharedLimit, Window
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.session import Session
from tests.unit.frontier_kit import T0, Clock, answer, policies, read_robots_of, session, silence

Open = Callable[..., Session]
GROUP = '[[policy]]\nname = "museum"\nhosts = ["*.museum.example"]\ndelay = 2.0\ngroup = true\n'


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def opened(tmp_path: Path, clock: Clock) -> Iterator[Open]:
    sessions: list[Session] = []

    def open_one(rules: str = "", **more: Any) -> Session:
        sessions.append(session(tmp_path, clock, rules, **more))
        return sessions[-1]

    yield open_one
    for each in sessions:
        each.worker.close()


def gate_of(keeper: Gatekeeper, host: str) -> Gate[Any]:
    gate: Gate[Any] = Gate(keeper.gate_of(host), -math.inf)
    keeper.add_host(gate, host)
    return gate


def gates_of(keeper: Gatekeeper, hosts: list[str]) -> dict[str, Gate[Any]]:
    """All hosts in their gates, one Gate for each name."""
    gates: dict[str, Gate[Any]] = {}
    for host in hosts:
        gate = gates.setdefault(keeper.gate_of(host), Gate(keeper.gate_of(host), -math.inf))
        keeper.add_host(gate, host)
    return gates


def kept(at: Session) -> list[HostMemory]:
    """What the store would give back to the next crawl."""
    at.store.remember(at.hosts.take_changed())
    return list(at.store.hosts())


# Who shares a gate.


def test_a_policy_group_of_forty_hosts_is_one_gate_with_the_delay_of_its_rule(opened: Open) -> None:
    keeper = Gatekeeper(opened(GROUP))
    gates = gates_of(keeper, [f"h{number}.museum.example" for number in range(40)])
    assert list(gates) == ["policy museum"]
    assert len(keeper.members("policy museum")) == 40
    assert keeper.delay("policy museum").seconds == 2.0
    assert keeper.delay("policy museum").origin == "policy museum"


def test_eighty_names_at_one_address_are_one_gate(opened: Open) -> None:
    keeper = Gatekeeper(opened())
    names = [f"h{number}.museum.example" for number in range(80)]
    assert not any(keeper.learn_addresses(name, ("192.0.2.1",)) for name in names)
    assert list(gates_of(keeper, names)) == [names[0]]


def test_an_address_of_many_strangers_chains_nobody(opened: Open) -> None:
    keeper = Gatekeeper(opened())
    names = [f"www.site{number}.example" for number in range(20)]
    told = [bool(keeper.learn_addresses(name, ("192.0.2.1",))) for name in names]
    assert told.count(True) == 1, "once, when it turned out"
    assert {keeper.gate_of(name) for name in names} == set(names)


def test_a_host_without_an_address_is_its_own_gate(opened: Open) -> None:
    keeper = Gatekeeper(opened())
    assert not keeper.learn_addresses("nowhere.example", ())
    assert keeper.gate_of("nowhere.example") == "nowhere.example"


def test_several_addresses_are_told_in_any_order(opened: Open) -> None:
    keeper = Gatekeeper(opened())
    keeper.learn_addresses("a.example", ("192.0.2.2", "192.0.2.1"))
    keeper.learn_addresses("b.example", ("192.0.2.1", "192.0.2.2"))
    assert keeper.gate_of("b.example") == "a.example"


@pytest.mark.parametrize("order", list(permutations(["a.museum.example", "b.other.example", "c.third.example"])))
def test_whoever_is_at_the_address_of_a_group_is_in_its_gate(opened: Open, order: tuple[str, ...]) -> None:
    """One server is asked by one gate, in whatever order its names are met."""
    keeper = Gatekeeper(opened(GROUP))
    moved = [bool(keeper.learn_addresses(name, ("192.0.2.1",))) for name in order]
    assert moved == [name == "a.museum.example" and position > 0 for position, name in enumerate(order)]
    assert {keeper.gate_of(name) for name in order} == {"policy museum"}
    assert not keeper.learn_addresses("elsewhere.example", ("192.0.2.9",))
    assert keeper.gate_of("elsewhere.example") == "elsewhere.example"


def test_a_group_at_an_address_of_many_strangers_has_none_of_them(opened: Open) -> None:
    keeper = Gatekeeper(opened(GROUP))
    strangers = [f"www.site{number}.example" for number in range(6)]
    for name in (strangers[0], "a.museum.example", *strangers[1:]):
        keeper.learn_addresses(name, ("192.0.2.1",))
    keeper.regroup()
    assert [keeper.gate_of(name) for name in strangers] == strangers
    assert keeper.gate_of("a.museum.example") == "policy museum"


@pytest.mark.parametrize(
    ("rule", "paused"),
    [
        ("paused = true", True),
        ('quiet = ["daily 00:00-24:00 UTC"]', True),
        ('quiet = ["daily 00:00-23:59 UTC"]', False),
        ("delay = 3", False),
    ],
)
def test_hours_without_an_end_are_a_pause_and_no_block(opened: Open, rule: str, paused: bool) -> None:
    keeper = Gatekeeper(opened(f'[[policy]]\nname = "p"\nhosts = ["a.example"]\n{rule}\n'))
    assert keeper.is_paused("a.example") is paused
    assert not keeper.is_paused("b.example")


def test_a_group_that_is_no_more_leaves_the_address_to_its_hosts(opened: Open) -> None:
    at = opened(GROUP)
    keeper = Gatekeeper(at)
    for name in ("b.other.example", "a.museum.example"):
        keeper.learn_addresses(name, ("192.0.2.1",))
    at.policies = Policies()
    keeper.regroup()
    assert {keeper.gate_of(name) for name in ("b.other.example", "a.museum.example")} == {"b.other.example"}


# What it must keep.


def test_the_strictest_host_of_a_gate_holds_for_all(opened: Open, clock: Clock) -> None:
    at = opened('[[policy]]\nname = "slow"\nhosts = ["c.example"]\ndelay = 7\nmax_per_day = 50\n')
    keeper = Gatekeeper(at)
    for name in ("a.example", "b.a.example", "c.example", "d.example"):
        keeper.learn_addresses(name, ("192.0.2.1",))
    gates = gates_of(keeper, ["a.example", "b.a.example", "d.example"])
    assert keeper.delay("a.example").seconds == 1.0
    read_robots_of(at, "b.a.example", "User-agent: *\nCrawl-delay: 5\n", clock())
    keeper.recompute(gates["a.example"])
    assert (keeper.delay("a.example").seconds, keeper.delay("a.example").origin) == (5.0, "Crawl-delay")
    assert keeper.delay("a.example", "d.example").seconds == 1.0
    keeper.add_host(gates["a.example"], "c.example")
    assert (keeper.delay("a.example").seconds, keeper.delay("a.example").origin) == (7.0, "policy slow")
    assert keeper.pacing_limits("a.example").quotas == (Quota(window=DAYS, most=50),)
    assert gates["a.example"].delay == 7.0
    assert keeper.delay("a.example", "d.example").seconds == 7.0, "the floor is the gate's, the Crawl-delay is not"
    assert keeper.delay("a.example", "d.example").origin == "policy slow"


def test_hosts_that_come_one_by_one_are_each_asked_once(opened: Open) -> None:
    """A gate of thousands of hosts: what is known of their robots.txt isn't gone through again for each that comes."""
    at = opened(GROUP)
    asked = []
    paces = at.hosts.robots_paces
    at.hosts.robots_paces = lambda host: asked.append(host) or paces(host)  # type: ignore[method-assign, func-returns-value]
    gates_of(Gatekeeper(at), [f"h{number}.museum.example" for number in range(1000)])
    assert len(asked) <= 4 * 1000


@pytest.mark.parametrize(
    ("rules", "robots", "seconds", "origin"),
    [
        ("", "", 1.0, "DOWNLOAD_DELAY"),
        ("", "Crawl-delay: 0.2", 1.0, "DOWNLOAD_DELAY"),
        ("", "Crawl-delay: 3600", 3600.0, "Crawl-delay"),
        ("", "Request-rate: 1/30", 30.0, "Request-rate"),
        ("delay = 0.3", "", 0.3, "policy p"),
        ("delay = 0.3", "Crawl-delay: 2", 2.0, "Crawl-delay"),
        ('crawl_delay = 0.5\nagreement = "mail"', "Crawl-delay: 60", 1.0, "DOWNLOAD_DELAY"),
        ('delay = 0.1\ncrawl_delay = 0.5\nagreement = "mail"', "Crawl-delay: 60", 0.5, "agreement: mail"),
        ('crawl_delay = 9\nagreement = "mail"', "", 9.0, "agreement: mail"),
    ],
)
def test_whose_delay_it_is(opened: Open, clock: Clock, rules: str, robots: str, seconds: float, origin: str) -> None:
    at = opened(f'[[policy]]\nname = "p"\nhosts = ["a.example"]\n{rules}\n' if rules else "")
    read_robots_of(at, "a.example", f"User-agent: *\n{robots}\n", clock())
    keeper = Gatekeeper(at)
    gate = gate_of(keeper, "a.example")
    assert (keeper.delay(gate.name).seconds, keeper.delay(gate.name).origin) == (seconds, origin)
    assert seconds in [number.seconds for number in keeper.considered(gate.name)]


def test_robots_of_both_schemes_count(opened: Open, clock: Clock) -> None:
    at = opened()
    read_robots_of(at, "a.example", "User-agent: *\nCrawl-delay: 3\n", clock())
    keeper = Gatekeeper(at)
    assert keeper.delay("a.example").seconds == 3.0


def test_an_expensive_request_is_paid_for_by_the_next(opened: Open, clock: Clock) -> None:
    keeper = Gatekeeper(opened())
    gate = gate_of(keeper, "a.example")
    ended = keeper.completed(gate, "a.example", answer(took=0.01), cost=4.0)
    assert ended.wake == clock() + 4.0
    assert keeper.required("a.example").seconds == 4.0
    keeper.completed(gate, "a.example", answer(took=0.01), cost=1.0)
    assert keeper.required("a.example").seconds == 1.0


@pytest.mark.parametrize("failure", list(Failure))
@pytest.mark.parametrize("stale", [False, True])
def test_what_a_server_was_not_asked_is_no_silence_of_it(opened: Open, failure: Failure, stale: bool) -> None:
    at = opened()
    keeper = Gatekeeper(at)
    keeper.completed(gate_of(keeper, "a.example"), "a.example", evolve(silence(failure), stale=stale), cost=1.0)
    assert (at.hosts.silence("a.example") is None) is (stale or failure in UNSENT)


def test_what_was_not_asked_ends_no_silence(opened: Open) -> None:
    at = opened()
    keeper = Gatekeeper(at)
    for failure in (Failure.TIMEOUT_CONNECT, Failure.FORBIDDEN_ADDRESS):
        keeper.completed(gate_of(keeper, "a.example"), "a.example", silence(failure), cost=1.0)
    assert at.hosts.silence("a.example") is not None
    keeper.completed(gate_of(keeper, "a.example"), "a.example", answer(500), cost=1.0)
    assert at.hosts.silence("a.example") is None


# When it opens, and why not before.


@pytest.mark.parametrize(
    ("rule", "opens", "why", "standing"),
    [
        ("paused = true", math.inf, "paused by policy p", WaitKind.BLOCKED),
        ('quiet = ["mon 11:00-13:00 UTC"]', T0 + 3600, "quiet hours", WaitKind.QUIET),
        ('quiet = ["mon 23:00-11:00 UTC"]', -math.inf, "", WaitKind.WAITING),
        ('quiet = ["daily 00:00-24:00 UTC"]', math.inf, "quiet hours", WaitKind.QUIET),
    ],
)
def test_rules_close_a_gate(opened: Open, clock: Clock, rule: str, opens: float, why: str, standing: WaitKind) -> None:
    keeper = Gatekeeper(opened(f'[[policy]]\nname = "p"\nhosts = ["a.example"]\n{rule}\n'))
    gate = gate_of(keeper, "a.example")
    wait = keeper.wait(gate.name, clock())
    assert wait.kind is standing
    if why:
        assert (wait.at, wait.why) == (opens, why)
    else:
        assert wait.at <= clock()


def test_visit_time_closes_a_gate(opened: Open, clock: Clock) -> None:
    at = opened()
    read_robots_of(at, "a.example", "User-agent: *\nVisit-time: 1400-1600\n", clock())
    keeper = Gatekeeper(at)
    gate_of(keeper, "a.example")
    wait = keeper.wait("a.example", clock())
    assert (wait.at, wait.kind) == (T0 + 2 * 3600, WaitKind.QUIET)


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.key)
def test_a_full_quota_closes_a_gate_until_the_next_window(opened: Open, clock: Clock, window: Window) -> None:
    keeper = Gatekeeper(opened(f'[[policy]]\nname = "p"\nhosts = ["a.example"]\n{window.key} = 3\n'))
    end = (T0 // window.seconds + 1) * window.seconds
    gate = gate_of(keeper, "a.example")
    wakes = [keeper.completed(gate, "a.example", answer(), cost=1.0).wake for _ in range(3)]
    assert wakes[:2] == [T0 + 1, T0 + 1]
    assert wakes[2] == end
    assert keeper.wait("a.example", clock()).why == f"{window.key} of 3 is reached"
    clock.at = end
    assert keeper.wait("a.example", clock()).at <= clock()
    assert keeper.completed(gate, "a.example", answer(at=end), cost=1.0).wake == end + 1, "the next one counts anew"


def test_a_block_ends_by_itself_or_by_an_order(opened: Open, clock: Clock) -> None:
    keeper = Gatekeeper(opened())
    gate_of(keeper, "a.example")
    block = Order(host="a.example", act=Act.BLOCK, at=clock(), reason="asked", until=clock() + 60)
    assert keeper.take_orders({"a.example": block}) == ["a.example"]
    assert (keeper.wait("a.example", clock()).at, keeper.wait("a.example", clock()).why) == (T0 + 60, "blocked: asked")
    assert keeper.take_orders({"a.example": block}) == [], "nothing new"
    clock.at = T0 + 60
    assert keeper.wait("a.example", clock()).at <= clock()
    keeper.take_orders({"a.example": Order(host="a.example", act=Act.BLOCK, at=clock())})
    assert keeper.wait("a.example", clock()).at == math.inf
    keeper.take_orders({"a.example": Order(host="a.example", act=Act.UNBLOCK, at=clock())})
    assert keeper.wait("a.example", clock()).at <= clock()


def test_an_edited_policy_holds_from_the_next_request_on(opened: Open, clock: Clock) -> None:
    at = opened()
    keeper = Gatekeeper(at)
    gate = gate_of(keeper, "a.example")
    keeper.completed(gate, "a.example", answer(), cost=1.0)
    at.policies = policies('[[policy]]\nname = "p"\nhosts = ["a.example"]\ndelay = 30\n')
    keeper.recompute(gate)
    assert (gate.delay, gate.wake) == (30.0, T0 + 30)


# What is remembered.


def ban(keeper: Gatekeeper, gate: Gate[Any], host: str, clock: Clock) -> list[object]:
    events: list[object] = []
    for status in [200] * 6 + [403] * 8:
        clock.at += 1
        events += keeper.completed(gate, host, answer(status, at=clock()), cost=1.0).events
    return events


def test_a_ban_stays_over_restarts_until_a_person_lifts_it(opened: Open, clock: Clock) -> None:
    at = opened()
    keeper = Gatekeeper(at)
    events = ban(keeper, gate_of(keeper, "a.example"), "a.example", clock)
    assert events == [Blocked(since=T0 + 7)]
    assert keeper.wait("a.example", clock()).kind is WaitKind.BLOCKED

    early = Order(host="a.example", act=Act.UNBLOCK, at=T0)
    keeper.take_orders({"a.example": early})
    assert keeper.wait("a.example", clock()).at == math.inf, "given before the ban, it is about another one"

    again = Gatekeeper(opened(memories=kept(at)))
    gate_of(again, "a.example")
    assert again.wait("a.example", clock()).at == math.inf
    again.take_orders({"a.example": Order(host="a.example", act=Act.UNBLOCK, at=clock())})
    assert again.wait("a.example", clock()).at <= clock() + 1.0


def test_an_order_reopens_a_ban_that_is_learned_of_later(opened: Open, clock: Clock) -> None:
    """As by a worker that comes to a gate when another has been turned away there, and a person has unblocked it."""
    at = opened()
    keeper = Gatekeeper(at)
    ban(keeper, gate_of(keeper, "a.example"), "a.example", clock)
    later = opened()
    again = Gatekeeper(later)
    again.take_orders({"a.example": Order(host="a.example", act=Act.UNBLOCK, at=clock())})
    later.hosts.load(kept(at))
    again.forget("a.example")
    gate_of(again, "a.example")
    assert again.wait("a.example", clock()).at <= clock() + 1.0


def test_an_order_reopens_a_ban_of_the_gate_before_addresses_are_known(opened: Open, clock: Clock) -> None:
    at = opened()
    keeper = Gatekeeper(at)
    for name in ("a.example", "b.example"):
        keeper.learn_addresses(name, ("192.0.2.1",))
    gates = gates_of(keeper, ["a.example", "b.example"])
    ban(keeper, gates["a.example"], "b.example", clock)
    again = Gatekeeper(opened(memories=kept(at)))
    again.take_orders({"b.example": Order(host="b.example", act=Act.UNBLOCK, at=clock())})
    for name in ("b.example", "a.example"):  # the other one comes first, and so leads
        again.learn_addresses(name, ("192.0.2.1",))
    gates_of(again, ["b.example", "a.example"])
    assert again.wait("b.example", clock()).at < math.inf


def test_what_a_server_asked_for_holds_whatever_its_gate_is_called_next(opened: Open, clock: Clock) -> None:
    at = opened()
    keeper = Gatekeeper(at)
    for name in ("a.example", "b.example"):
        keeper.learn_addresses(name, ("192.0.2.1",))
    gates = gates_of(keeper, ["a.example", "b.example"])
    keeper.completed(gates["a.example"], "b.example", answer(429, retry_after="900"), cost=1.0)
    memories = kept(at)
    for later in (opened(memories=memories), opened(GROUP.replace("*.museum.example", "b.example"), memories=memories)):
        again = Gatekeeper(later)
        again.learn_addresses("b.example", ("192.0.2.1",))
        name = gate_of(again, "b.example").name
        assert again.wait(name, clock()).at == T0 + 900, name
        assert again.pace(name).back_off > 0


def test_hosts_that_leave_a_group_take_along_what_it_has_to_wait_for(opened: Open, clock: Clock) -> None:
    at = opened(GROUP)
    keeper = Gatekeeper(at)
    hosts = ["a.museum.example", "b.museum.example"]
    gate = gates_of(keeper, hosts)["policy museum"]
    keeper.completed(gate, hosts[0], answer(503, retry_after="600"), cost=1.0)
    at.policies = policies("")
    keeper.forget_members("policy museum")
    for host in hosts:
        assert keeper.gate_of(host) == host
        gate_of(keeper, host)
        assert keeper.wait(host, clock()).at == T0 + 600


def test_after_a_crash_every_gate_waits_one_full_delay(opened: Open, clock: Clock) -> None:
    memory = HostMemory(host="a.example", robots={})
    for clean, wake in ((True, 0.0), (False, T0 + 1.0)):
        keeper = Gatekeeper(opened(memories=[memory], clean=clean))
        gate_of(keeper, "a.example")
        gate_of(keeper, "new.example")
        assert max(keeper.wait("a.example", clock()).at, 0.0) == wake
        assert max(keeper.wait("new.example", clock()).at, 0.0) == wake


def test_crawl_delay_and_back_off_survive_a_restart(opened: Open, clock: Clock) -> None:
    at = opened()
    read_robots_of(at, "a.example", "User-agent: *\nCrawl-delay: 20\n", clock())
    keeper = Gatekeeper(at)
    keeper.completed(gate_of(keeper, "a.example"), "a.example", answer(503), cost=1.0)
    again = Gatekeeper(opened(memories=kept(at)))
    gate_of(again, "a.example")
    assert again.delay("a.example").seconds == keeper.delay("a.example").seconds == 40.0
    assert again.wait("a.example", clock()).at == T0 + 40.0


def test_a_request_on_its_way_is_remembered(opened: Open, clock: Clock) -> None:
    at = opened()
    keeper = Gatekeeper(at)
    gate = gate_of(keeper, "a.example")
    keeper.handed_out(gate.name)
    (memory,) = kept(at)
    assert memory.pace["asked_at"] == T0
    clock.at += 3
    keeper.completed(gate, "a.example", answer(at=clock()), cost=1.0)
    (memory,) = kept(at)
    assert memory.pace["last_end"] == T0 + 3


def test_the_limit_of_a_collection_is_kept_over_restarts(opened: Open, clock: Clock) -> None:
    north = SharedLimit(name="collection North", delay=5.0, quotas=(Quota(window=DAYS, most=2),), rule="north")
    at = opened()
    keeper = Gatekeeper(at)
    assert keeper.limit_opens(north) <= clock()
    keeper.limit_started(north.name)
    again = Gatekeeper(opened(memories=kept(at)))
    assert again.limit_opens(north) == T0 + 5.0
    clock.at += 5
    again.limit_started(north.name)
    assert again.limit_opens(north) == T0 + 12 * 3600, "two checks a day are made"


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.key)
def test_a_shared_limit_has_a_quota_in_each_window(opened: Open, clock: Clock, window: Window) -> None:
    at = opened(f'[[policy]]\nname = "p"\ncollections = ["North"]\n{window.key} = 2\n')
    keeper = Gatekeeper(at)
    (north,) = at.policies.of_link("a.example", ("North",)).limits
    for _ in range(2):
        assert keeper.limit_opens(north) <= clock()
        keeper.limit_started(north.name)
    end = (T0 // window.seconds + 1) * window.seconds
    assert keeper.limit_opens(north) == end
    clock.at = end
    assert keeper.limit_opens(north) == end
    keeper.limit_started(north.name)
    assert keeper.limit_opens(north) <= clock()


def test_a_block_of_one_host_leaves_its_gate_to_the_others(opened: Open, clock: Clock) -> None:
    keeper = Gatekeeper(opened())
    gate: Gate[Any] = Gate("a.example", -math.inf)
    for host in ("a.example", "b.example"):
        keeper.add_host(gate, host)
    keeper.take_orders({"b.example": Order(host="b.example", act=Act.BLOCK, at=clock(), reason="asked")})
    keeper.recompute(gate)
    assert gate.wake <= clock()
    assert keeper.is_shared("a.example")
    assert keeper.earliest_for("a.example", "a.example", clock()) == clock()
    assert keeper.earliest_for("a.example", "b.example", clock()) == math.inf
    assert keeper.host_wait("a.example", "b.example", clock()).why == "blocked: asked"


def test_a_gate_opens_with_the_first_of_its_hosts(opened: Open, clock: Clock) -> None:
    keeper = Gatekeeper(opened())
    gate: Gate[Any] = Gate("a.example", -math.inf)
    orders = {
        host: Order(host=host, act=Act.BLOCK, at=clock(), reason="asked", until=clock() + seconds)
        for host, seconds in (("a.example", 300.0), ("b.a.example", 60.0))
    }
    keeper.take_orders(orders)
    keeper.add_host(gate, "a.example")
    assert gate.wake == clock() + 300
    keeper.add_host(gate, "b.a.example")
    assert gate.wake == clock() + 60
    keeper.add_host(gate, "c.a.example")
    assert gate.wake <= clock()
