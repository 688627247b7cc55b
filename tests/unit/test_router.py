"""Every task comes to the gate of its host, once the host's address is known, and to another when that changes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from attrs import define

from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import GateState, Workbench
from linkcrawl.frontier.in_flight import InFlight
from linkcrawl.frontier.ports import Task
from linkcrawl.frontier.router import HostRouter
from linkcrawl.items import DueLink
from linkcrawl.network.resolver import Resolver
from linkcrawl.session import Session
from tests.unit.frontier_kit import T0, Clock, answer, frontier_of, policies, read_robots_of, request_to, session

ONE, OTHER = "192.88.1.1", "192.88.1.2"


@define
class Floor:
    """A placer with gates, and a resolver whose names are a dict."""

    session: Session
    clock: Clock
    names: dict[str, str]
    bench: Workbench[Task]
    keeper: Gatekeeper
    in_flight: InFlight
    placer: HostRouter

    def place(self, *hosts: str) -> list[DueLink]:
        links = [DueLink(id=number, url=f"http://{host}/", host=host) for number, host in enumerate(hosts)]
        for link in links:
            self.placer.place(link)
        return links

    async def settled(self) -> None:
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
        assert not self.placer.is_looking_up


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Floor]]:
    floors: list[Floor] = []
    resolvers: list[Resolver] = []

    def open_one(rules: str = "", **names: str) -> Floor:
        clock = Clock()
        at = session(tmp_path, clock, rules)

        def lookup(host: str) -> list[str]:
            if host not in names:
                raise OSError("no such name")
            return [names[host]]

        resolvers.append(Resolver(lookup=lookup))
        made = frontier_of(at, resolver=resolvers[-1])
        floors.append(Floor(at, clock, names, made.bench, made.keeper, made.in_flight, made.router))
        return floors[-1]

    yield open_one
    for floor in floors:
        floor.session.worker.close()
    for resolver in resolvers:
        resolver.close()


def in_loop(steps: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await steps()

    asyncio.run(run())


def waiting(floor: Floor) -> dict[str, int]:
    return {name: len(gate) for name, gate in floor.bench.gates.items() if len(gate)}


def test_names_of_one_server_come_to_one_gate_before_anything_is_sent(opened: Callable[..., Floor]) -> None:
    floor = opened(**{"a.x.org": ONE, "b.x.org": ONE, "c.y.org": OTHER})

    async def steps() -> None:
        floor.place("a.x.org", "b.x.org", "c.y.org", "b.x.org:8080")
        assert floor.bench.take(T0) is None, "no address is known yet"
        await floor.settled()

    in_loop(steps)
    assert waiting(floor) in ({name: 3, "c.y.org": 1} for name in ("a.x.org", "b.x.org", "b.x.org:8080"))


def test_a_name_that_is_not_found_waits_at_its_own_gate(opened: Callable[..., Floor]) -> None:
    floor = opened()

    async def steps() -> None:
        floor.place("nowhere.org")
        await floor.settled()

    in_loop(steps)
    assert waiting(floor) == {"nowhere.org": 1}


def test_what_has_no_host_goes_to_no_servers_gate(opened: Callable[..., Floor]) -> None:
    floor = opened()
    floor.placer.place(DueLink(id=1, url="mailto:x", host=""))
    assert waiting(floor) == {"": 1}


def test_strangers_part_once_they_are_too_many(opened: Callable[..., Floor]) -> None:
    """The fifth registered domain at one address: each host has its own gate from then on, after one full delay."""
    hosts = [f"www.site{number}.org" for number in range(5)]
    floor = opened(**dict.fromkeys(hosts, ONE))

    async def steps() -> None:
        floor.place(*hosts[:4])
        await floor.settled()
        assert list(waiting(floor).values()) == [4]
        floor.place(hosts[4])
        await floor.settled()

    in_loop(steps)
    assert waiting(floor) == dict.fromkeys(hosts, 1)
    assert {gate.wake for gate in floor.bench.gates.values()} == {T0 + 1.0}


def test_a_gate_that_a_host_comes_to_stays_closed_while_a_request_to_it_is_in_flight(
    opened: Callable[..., Floor],
) -> None:
    hosts = [f"www.site{number}.org" for number in range(5)]
    floor = opened(**dict.fromkeys(hosts, ONE))
    request = request_to(f"http://{hosts[1]}/")

    async def steps() -> None:
        floor.place(*hosts[:4])
        await floor.settled()
        taken = floor.bench.take(T0)
        assert taken is not None
        floor.in_flight.add(request, taken[0])  # handed out by the gate of all four, for another of its hosts
        floor.place(hosts[4])
        await floor.settled()

    in_loop(steps)
    assert floor.bench.gates[hosts[1]].state is GateState.IN_FLIGHT
    gate, moved = floor.in_flight.pop(request)
    assert gate is not moved is floor.bench.gates[hosts[1]]


def test_what_waits_at_an_address_goes_to_the_group_that_comes_there(opened: Callable[..., Floor]) -> None:
    floor = opened(**dict.fromkeys(["lone.y.org", "a.x.org"], ONE))
    floor.session.policies = policies('[[policy]]\nname = "g"\nhosts = ["*.x.org"]\ndelay = 4\ngroup = true\n')

    async def steps() -> None:
        for host in ("lone.y.org", "a.x.org"):
            floor.place(host)
            await floor.settled()

    in_loop(steps)
    assert waiting(floor) == {"policy g": 2}
    assert floor.bench.gates["policy g"].wake == T0 + 4.0


def test_an_edited_policy_moves_what_waits(opened: Callable[..., Floor]) -> None:
    floor = opened(**{"a.x.org": ONE, "c.y.org": OTHER})

    async def steps() -> None:
        floor.place("a.x.org", "c.y.org", "a.x.org")
        await floor.settled()

    in_loop(steps)
    taken = floor.bench.take(T0)
    assert taken is not None
    group = '[[policy]]\nname = "g"\nhosts = ["*.org"]\ndelay = 4\ngroup = true\n'
    floor.session.policies = policies(group)
    read_robots_of(floor.session, "c.y.org", "User-agent: *\nCrawl-delay: 6\n", T0)
    floor.placer.regroup()
    gate = floor.bench.gates["policy g"]
    assert len(gate) == 2
    assert (gate.delay, gate.wake) == (6.0, T0 + 6.0)
    assert taken[0].state is GateState.IN_FLIGHT
    floor.session.policies = policies("")
    floor.placer.regroup()
    assert sum(waiting(floor).values()) == 2
    assert "policy g" not in waiting(floor)


def test_tasks_keep_their_lanes_and_limits_when_they_move(opened: Callable[..., Floor]) -> None:
    rule = '[[policy]]\nname = "c"\ncollections = ["north"]\ndelay = 9\n'
    floor = opened(rule)
    floor.keeper.learn_addresses("a.x.org", (ONE,))
    floor.keeper.learn_addresses("b.x.org", (OTHER,))
    begun = DueLink(id=2, url="http://b.x.org/", host="b.x.org", collections=("north",))
    floor.placer.place(DueLink(id=1, url="http://a.x.org/", host="a.x.org", collections=("north",)))
    floor.placer.place(request_to("http://b.x.org/", link=begun, starts_limits=True))
    floor.placer.regroup()
    first = floor.bench.take(T0 + 1)
    assert first is not None
    assert floor.bench.take(T0 + 9.9) is None, "one limit for both, whatever they are"
    assert floor.bench.take(T0 + 10) is not None


def test_a_name_that_could_not_be_looked_up_at_first_comes_to_its_server_with_all_that_waits(
    opened: Callable[..., Floor],
) -> None:
    """Twenty names of one server were asked by twenty gates for the rest of a crawl."""
    late = [f"n{number}.x.org" for number in range(20)]
    floor = opened(**{"a.x.org": ONE})

    async def steps() -> None:
        floor.place("a.x.org", *late)
        await floor.settled()

    in_loop(steps)
    assert len(waiting(floor)) == 21
    for host in late:
        floor.placer.relocate(host, (ONE,))
    assert waiting(floor) == {"a.x.org": 21}
    taken = floor.bench.take(T0)
    assert taken is not None
    assert floor.bench.take(T0 + 1000) is None, "one at a time"


def test_a_delay_and_a_request_in_flight_go_along_and_what_a_host_is_asked_for_stays_its_own(
    opened: Callable[..., Floor],
) -> None:
    floor = opened(**{"victim.org": ONE, "evil.org": OTHER, "flying.net": OTHER})

    async def steps() -> None:
        floor.place("victim.org", "evil.org", "victim.org", "evil.org", "evil.org")
        await floor.settled()

    in_loop(steps)
    read_robots_of(floor.session, "evil.org", "User-agent: *\nCrawl-delay: 86400\n", T0)
    gates = floor.bench.gates
    floor.keeper.recompute(gates["evil.org"])
    for _ in range(2):
        assert floor.bench.take(T0) is not None
    floor.clock.at += 0.5
    floor.bench.release(
        gates["victim.org"], floor.keeper.completed(gates["victim.org"], "victim.org", answer(), 1.0).wake
    )
    floor.clock.at += 0.25
    request = request_to("http://evil.org/")
    floor.in_flight.add(request, gates["evil.org"])
    floor.placer.relocate("evil.org", (ONE,))
    assert gates["victim.org"].state is GateState.IN_FLIGHT, "a request to a host of it has not ended"
    _, moved = floor.in_flight.pop(request)
    assert moved is gates["victim.org"]
    floor.clock.at += 0.25
    floor.bench.release(moved, floor.keeper.completed(moved, "evil.org", answer(429, retry_after="86400"), 1.0).wake)
    assert floor.bench.next_wake() == T0 + 2.0, "one delay after the end of the last request to the server"
    taken = floor.bench.take(T0 + 2.0)
    assert taken is not None
    assert (taken[0].name, getattr(taken[1], "host", "")) == ("victim.org", "victim.org")
    assert floor.keeper.host_wait("victim.org", "evil.org", T0).at >= T0 + 86400
