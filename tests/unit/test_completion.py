"""What the end of a request sets off: the audit's line, a ban with its withdrawals, doubt about our own network."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import define, evolve
from scrapy.http import Request
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector

from linkcrawl.audit.log import AuditLimit
from linkcrawl.audit.verify import read_lines
from linkcrawl.check.outcome import UNJUDGED, UNSENT, Failure, Outcome
from linkcrawl.check.statuses import SHUT_OUT
from linkcrawl.check.verdict import reason_of_failure
from linkcrawl.errors import StoreLost
from linkcrawl.frontier import withdrawals
from linkcrawl.frontier.completion import NEVER_LEFT, CompletionHandler
from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import Gate
from linkcrawl.frontier.host_state_saver import URGENT, HostStateSaver
from linkcrawl.frontier.network_watch import NOTHING_ANSWERED, WITNESSES
from linkcrawl.frontier.parts import Frontier
from linkcrawl.frontier.ports import context_of
from linkcrawl.items import Category, DueLink
from linkcrawl.politeness import outage as doubting
from linkcrawl.politeness.host_state import HostStateCache
from linkcrawl.politeness.outage import OutageDetector
from linkcrawl.politeness.own_network import DOUBTFUL, NAMES, SILENT_GATES, OwnNetwork, note_end
from linkcrawl.politeness.policy.limits import DAYS, Quota, SharedLimit
from linkcrawl.politeness.portal import ALIKE
from linkcrawl.politeness.robots.fetch import Fetched, RobotsAvailability
from linkcrawl.session import Session
from linkcrawl.stores.contract import Store
from tests.contract.making import check, entry, link, record
from tests.unit.frontier_kit import (
    T0,
    Clock,
    FakeEngine,
    FakeNames,
    answer,
    frontier_of,
    read_robots_of,
    request_to,
    session,
    silence,
)

HOST = "a.example"


@define
class Desk:
    """The parts that a request's end goes through, without a crawl around them."""

    session: Session
    clock: Clock
    frontier: Frontier
    keeper: Gatekeeper
    doubt: OutageDetector
    endings: CompletionHandler
    host_states: HostStateSaver
    stats: MemoryStatsCollector

    @property
    def store(self) -> Store:
        return self.session.store

    def gate(self, host: str = HOST) -> Gate[Any]:
        gate: Gate[Any] = self.frontier.bench.gate(self.keeper.gate_of(host), wake=T0)
        self.keeper.add_host(gate, host)
        return gate

    def end(self, outcome: Outcome, host: str = HOST, apart: float = 1.0, **context: Any) -> float:
        """A request to the host ends so, some seconds after the one before."""
        self.clock.at += apart
        took = outcome.ended_at - outcome.sent_at
        outcome = evolve(outcome, sent_at=self.clock.at - took, ended_at=self.clock.at)
        gate = self.gate(host)
        told = {"required": self.keeper.required(gate.name), "outcome": outcome, **context}
        request = request_to(f"http://{host}/x.pdf", method="HEAD", **told)
        return self.endings.note(gate, request, context_of(request))


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Desk]]:
    desks: list[Desk] = []

    def open_one(rules: str = "", **around: Any) -> Desk:
        clock = Clock()
        at = session(tmp_path, clock, rules, audit=tmp_path / "audit.jsonl")
        stats = MemoryStatsCollector(SimpleNamespace(settings=Settings()))  # type: ignore[arg-type]
        made = frontier_of(at, stats=stats, **around)
        desks.append(Desk(at, clock, made, made.keeper, made.outage, made.completion, made.host_states, stats))
        return desks[-1]

    yield open_one
    for desk in desks:
        desk.session.worker.close()


def in_loop(steps: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await steps()

    asyncio.run(run())


def links_of(desk: Desk, count: int) -> list[DueLink]:
    desk.store.add([entry(number, host=HOST) for number in range(count)])
    return [link(desk.store, number, host=HOST) for number in range(count)]


def test_every_end_leaves_a_line_of_the_audit(opened: Callable[..., Desk], tmp_path: Path) -> None:
    desk = opened()
    limit = SharedLimit(name="collection c", delay=2.0, quotas=(Quota(window=DAYS, most=5),), rule="r")
    desk.end(answer(204), spaced_by=(limit,), quotas=(Quota(window=DAYS, most=9),))
    desk.end(silence())
    one, two = read_lines([tmp_path / "audit.jsonl"])
    assert (one.host, one.gate, one.required, one.origin, one.status) == (HOST, HOST, 1.0, "DOWNLOAD_DELAY", 204)
    assert one.limits == (AuditLimit("collection c", 2.0, ((86400.0, 5),)),)
    assert one.quotas == ((86400.0, 9),)
    assert (two.limits, two.quotas, two.status) == ((), (), 0)


@pytest.mark.parametrize("failure", sorted(NEVER_LEFT))
def test_what_never_left_is_no_request_of_the_audit(
    opened: Callable[..., Desk], tmp_path: Path, failure: Failure
) -> None:
    desk = opened()
    desk.end(silence(failure))
    desk.end(silence(Failure.REFUSED))
    assert len(list(read_lines([tmp_path / "audit.jsonl"]))) == 1


def test_what_was_never_sent_is_no_request_of_the_audit(opened: Callable[..., Desk], tmp_path: Path) -> None:
    """Whatever its failure is called: the lease was lost before it was sent, its fields can't be sent."""
    desk = opened()
    desk.end(silence(Failure.PROTOCOL), unsent=True)
    desk.end(silence(Failure.PROTOCOL))
    assert len(list(read_lines([tmp_path / "audit.jsonl"]))) == 1
    assert desk.stats.get_value("linkcrawl/requests") == 1


def test_an_expensive_url_keeps_the_gate_shut_for_longer(opened: Callable[..., Desk]) -> None:
    desk = opened('[[policy]]\nname = "p"\nhosts = ["a.example"]\nexpensive = { "*.pdf" = 4 }\n')
    assert desk.end(answer(took=0.01)) == desk.clock() + 4.0


def test_what_a_server_asks_for_by_itself_is_stored_at_once(
    opened: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk, heard = opened(), []
    monkeypatch.setattr(HostStateSaver, "save_soon", lambda saver: heard.append(desk.clock()))
    desk.end(answer(200))
    desk.end(answer(503))
    assert heard == []
    desk.end(answer(429, **{"retry-after": "60"}))
    assert heard == [desk.clock()]


def test_a_long_silence_is_counted_and_cut_to_a_day(
    opened: Callable[..., Desk], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(HostStateSaver, "save_soon", lambda saver: None)
    desk = opened()
    with caplog.at_level(logging.INFO):
        wake = desk.end(answer(429, retry_after="31536000"))
    assert wake == desk.clock() + 86400
    assert desk.stats.get_value("linkcrawl/silenced") == 1
    assert "asks for a pause of 86400 s (cut to one day)" in caplog.text


def turn(desk: Desk, links: list[DueLink], status: int = 403, headers: dict[str, str] | None = None) -> None:
    """The host answers six links well, and then refuses the others."""
    for number, each in enumerate(links):
        good = number < 6
        outcome = answer(200 if good else status, at=desk.clock() + 1, **({} if good else headers or {}))
        desk.end(outcome, link=each)
        kind = {} if good else {"category": Category.RESTRICTED, "reason": "http_403", "status": status}
        desk.store.finish([check(each, desk.clock(), **kind)])


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        *((status, {}) for status in sorted(SHUT_OUT)),
        (999, {}),
        *((status, {"cf_mitigated": "challenge"}) for status in (200, 403, 503)),
    ],
)
def test_a_ban_takes_back_what_was_judged_since_the_turn(
    opened: Callable[..., Desk],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    status: int,
    headers: dict[str, str],
) -> None:
    monkeypatch.setattr(withdrawals, "SETTLED", 0.0)
    desk = opened()

    async def steps() -> None:
        turn(desk, links_of(desk, 14), status, headers)
        await asyncio.sleep(0.05)
        await desk.endings.close()

    in_loop(steps)
    reasons = [found.reason for found in desk.store.records()]
    assert (reasons.count("ok"), reasons.count("host_blocked")) == (6, 8)
    assert {found.category for found in desk.store.records()} == {Category.OK, Category.UNDETERMINED}
    assert desk.stats.get_value("linkcrawl/banned") == 1
    assert f"scrapy hosts unblock {HOST}" in caplog.text
    assert desk.store.backlog(desk.clock())[0].due == 8


def test_a_ban_takes_back_refusals_only(opened: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch) -> None:
    """An overloaded server speaks of the moment, whoever asks."""
    monkeypatch.setattr(withdrawals, "SETTLED", 0.0)
    desk = opened()

    async def steps() -> None:
        for number, each in enumerate(links_of(desk, 16)):
            status = 200 if number < 6 else 503 if number in (8, 9) else 403
            desk.end(answer(status, at=desk.clock() + 1), link=each)
            reason = "ok" if status == 200 else f"http_{status}"
            kind = {} if status == 200 else {"category": Category.UNDETERMINED, "reason": reason, "status": status}
            desk.store.finish([check(each, desk.clock(), **kind)])
        await asyncio.sleep(0.05)
        await desk.endings.close()

    in_loop(steps)
    reasons = Counter(found.reason for found in desk.store.records())
    assert reasons == {"ok": 6, "http_503": 2, "host_blocked": 8}


def test_a_crawl_that_ends_at_once_withdraws_all_the_same(opened: Callable[..., Desk]) -> None:
    desk = opened()

    async def steps() -> None:
        turn(desk, links_of(desk, 14))
        await desk.endings.close()

    in_loop(steps)
    assert [found.reason for found in desk.store.records()].count("host_blocked") == 8


def again(desk: Desk) -> Frontier:
    """The frontier of the next crawl on the store of one that was killed."""
    crawl = evolve(desk.session, hosts=HostStateCache(desk.store.hosts()), clean=False)
    made = frontier_of(crawl)
    made.withdrawals.resume(memory.host for memory in crawl.hosts)
    return made


def test_what_a_killed_crawl_could_not_take_back_the_next_one_does(opened: Callable[..., Desk]) -> None:
    desk = opened()

    async def steps() -> None:
        turn(desk, links_of(desk, 14))
        await desk.host_states.save()  # as soon as a ban is noticed
        next_crawl = again(desk)
        assert [found.reason for found in desk.store.records()].count("host_blocked") == 0
        await next_crawl.completion.close()
        await next_crawl.host_states.save()
        assert [found.reason for found in desk.store.records()].count("host_blocked") == 8
        assert desk.store.backlog(desk.clock())[0].due == 8
        (memory,) = desk.store.hosts([HOST])
        assert memory.pace["blocked_since"] is not None
        assert memory.pace["refused_links"] == [], "the one after that has nothing to do"

    in_loop(steps)


def test_refusals_before_a_ban_outlive_a_kill(opened: Callable[..., Desk]) -> None:
    """Half of a ban is on its way to the store at once, for the next crawl may see the rest of it."""
    desk = opened()

    async def steps() -> None:
        links = links_of(desk, 16)
        turn(desk, links[:10])
        await asyncio.sleep(URGENT + 0.1)
        next_crawl = again(desk)
        later = evolve(desk, session=next_crawl.session, keeper=next_crawl.keeper, endings=next_crawl.completion)
        for each in links[10:14]:
            later.end(answer(403, at=desk.clock() + 1), link=each)
            reason = {"category": Category.RESTRICTED, "reason": "http_403", "status": 403}
            desk.store.finish([check(each, desk.clock(), **reason)])
        await next_crawl.completion.close()

    in_loop(steps)
    assert [found.reason for found in desk.store.records()].count("host_blocked") == 8


def test_a_store_that_is_lost_just_then_is_asked_again(
    opened: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(withdrawals, "SETTLED", 0.0)
    monkeypatch.setattr("linkcrawl.stores.retry.RETRY", 0.0)
    desk = opened()
    withdraw, faults = desk.store.withdraw, [StoreLost("away"), StoreLost("away")]

    def lost(*given: Any) -> int:
        if faults:
            raise faults.pop()
        return withdraw(*given)

    monkeypatch.setattr(desk.store, "withdraw", lost)

    async def steps() -> None:
        turn(desk, links_of(desk, 14))
        while [found.reason for found in desk.store.records()].count("host_blocked") < 8:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await desk.endings.close()

    in_loop(steps)


def test_a_host_that_always_refuses_is_not_banned(opened: Callable[..., Desk]) -> None:
    """A publisher's paywall: restricted, and no turn."""
    desk = opened()

    async def steps() -> None:
        for each in links_of(desk, 20):
            desk.end(answer(403), link=each)
        await desk.endings.close()

    in_loop(steps)
    assert desk.stats.get_value("linkcrawl/banned") is None


# Our own network.


def everybody_works(desk: Desk, hosts: list[str]) -> None:
    for host in hosts:
        desk.end(answer(), host)


HOSTS = [f"h{number}.example" for number in range(SILENT_GATES)]


@pytest.mark.parametrize("failure", sorted(DOUBTFUL))
def test_when_every_host_falls_silent_it_is_us(
    opened: Callable[..., Desk], caplog: pytest.LogCaptureFixture, failure: Failure
) -> None:
    desk = opened(resolver=FakeNames(works=False))
    everybody_works(desk, HOSTS)
    before = {host: desk.keeper.pace(host).back_off for host in HOSTS}

    async def steps() -> None:
        for host in HOSTS[:-1]:
            desk.end(silence(failure), host)
            assert desk.doubt.down_since is None
            assert desk.doubt.may_send()
        desk.end(silence(failure), HOSTS[-1])
        await asyncio.sleep(0)  # the resolver has had its say

    in_loop(steps)
    assert desk.doubt.down_since is not None
    assert "Our own network has failed" in caplog.text
    assert not desk.doubt.may_send()
    desk.clock.at += doubting.PROBE
    assert desk.doubt.may_send(), "a probe"
    assert not desk.doubt.may_send(), "and only one"
    learned = desk.keeper.pace(HOSTS[-1]).back_off
    assert failure in NAMES or learned == before[HOSTS[-1]], "it is not the host's doing"
    desk.end(answer(404), HOSTS[0])
    assert desk.doubt.down_since is None
    assert "Our network is back" in caplog.text
    assert desk.doubt.may_send()


@pytest.mark.parametrize(
    ("outcome", "what"),
    [
        (answer(500), "an error page is a sign of life"),
        (silence(Failure.REFUSED), "so is a refusal"),
        (silence(Failure.RESET), "and a reset"),
    ],
)
def test_any_sign_of_life_ends_the_suspicion(opened: Callable[..., Desk], outcome: Outcome, what: str) -> None:
    desk = opened()
    everybody_works(desk, [*HOSTS, HOST])
    for host in HOSTS[:-1]:
        desk.end(silence(), host)
    desk.end(outcome, HOST)
    desk.end(silence(), HOSTS[-1])
    assert desk.doubt.down_since is None, what


def fall_silent(desk: Desk, hosts: list[str], failure: Failure = Failure.DNS_NOT_FOUND) -> None:
    async def steps() -> None:
        for host in hosts:
            desk.end(silence(failure), host)
            await asyncio.sleep(0)

    in_loop(steps)


DEAD = [f"dead{number}.example" for number in range(5 * SILENT_GATES)]


def test_a_list_of_dead_hosts_is_not_our_network(opened: Callable[..., Desk]) -> None:
    """The resolver knows other names."""
    desk = opened()
    fall_silent(desk, DEAD)
    assert desk.doubt.down_since is None


@pytest.mark.parametrize("failure", sorted(DOUBTFUL))
def test_dead_hosts_are_not_our_network_once_another_has_answered(
    opened: Callable[..., Desk], failure: Failure
) -> None:
    desk = opened(resolver=FakeNames(works=False))
    everybody_works(desk, [HOST])
    fall_silent(desk, DEAD, failure)
    assert desk.doubt.down_since is None


@pytest.mark.parametrize(
    ("failure", "what"),
    [
        (Failure.DNS_NOT_FOUND, "says that the names don't exist; look at the resolver of this machine"),
        (Failure.DNS_TROUBLE, "gives no answer; look at the resolver of this machine"),
        (Failure.TIMEOUT_CONNECT, "no connection comes about"),
        (Failure.UNREACHABLE, "no connection comes about"),
        (Failure.REFUSED, "connections are refused or reset; look at the firewall"),
    ],
)
def test_a_first_crawl_in_which_everything_fails_is_told_as_what_it_looks_like(
    opened: Callable[..., Desk], caplog: pytest.LogCaptureFixture, failure: Failure, what: str
) -> None:
    desk = opened(resolver=FakeNames(works=False))
    fall_silent(desk, DEAD[:SILENT_GATES], failure)
    assert desk.doubt.down_since is not None
    assert "nothing has answered in this crawl yet" in caplog.text
    assert what in caplog.text


def test_one_dead_domain_with_many_hosts_is_no_sign_in_a_first_crawl(opened: Callable[..., Desk]) -> None:
    desk = opened(resolver=FakeNames(works=False))
    fall_silent(desk, [f"h{number}.dead.example" for number in range(5 * SILENT_GATES)])
    assert desk.doubt.down_since is None


def test_hosts_that_are_dead_since_an_earlier_crawl_say_nothing(opened: Callable[..., Desk]) -> None:
    desk = opened(resolver=FakeNames(works=False))
    everybody_works(desk, HOSTS)
    for host in HOSTS:
        desk.session.hosts.change(host, failing_since=T0 - 86400)
    fall_silent(desk, HOSTS, Failure.TIMEOUT_CONNECT)
    assert desk.doubt.down_since is None


@pytest.mark.parametrize("failure", [Failure.DNS_NOT_FOUND, Failure.REFUSED])
def test_an_end_that_shows_life_clears_silence_of_other_kinds(opened: Callable[..., Desk], failure: Failure) -> None:
    """No such name: the resolver lives. Refused: the network does."""
    desk = opened(resolver=FakeNames(works=False))
    everybody_works(desk, HOSTS)
    for host in HOSTS[:-1]:
        desk.end(silence(), host)
    desk.end(silence(failure), HOST)
    desk.end(silence(), HOSTS[-1])
    assert desk.doubt.down_since is None


def nine_fall_silent(desk: Desk) -> list[Request]:
    """Six hosts have answered in this crawl, and nine fall silent. Returns the requests that wait."""
    live, dead = [f"live{number}.example" for number in range(6)], [f"gone{number}.example" for number in range(9)]
    everybody_works(desk, [*dead, *live])
    for host in (*dead, *live):
        desk.keeper.learn_addresses(host, ())
    desk.clock.at += 30.0
    for host in dead:
        desk.end(silence(), host)
    bench = desk.frontier.bench
    return [task for gate in bench.gates.values() for _, task in bench.drain(gate) if isinstance(task, Request)]


def test_hosts_that_answered_are_asked_before_our_network_is_blamed(
    opened: Callable[..., Desk], caplog: pytest.LogCaptureFixture
) -> None:
    desk = opened()

    async def steps() -> None:
        probes = nine_fall_silent(desk)
        assert len(probes) == WITNESSES
        assert all(context_of(probe).probe for probe in probes)
        assert desk.doubt.down_since is None
        waiting = asyncio.ensure_future(believed(desk, "timeout"))
        await asyncio.sleep(0)
        assert not waiting.done()
        desk.end(answer(), context_of(probes[0]).target.host)
        assert await waiting is True, "the nine are judged"

    in_loop(steps)
    assert "Our own network has failed" not in caplog.text
    fall_silent(desk, [f"gone{number}.example" for number in range(9)], Failure.TIMEOUT_CONNECT)
    assert desk.doubt.down_since is None, "and their silence is no news any more"


def test_answers_that_were_on_their_way_are_asked_for_once_more(opened: Callable[..., Desk]) -> None:
    """Nine hosts refuse at once, six others have their first requests in flight."""
    desk = opened()
    live = [f"live{number}.example" for number in range(6)]
    everybody_works(desk, HOSTS)
    desk.keeper.looked_up.update(live)

    async def steps() -> None:
        in_flight = [request_to(f"http://{host}/x", method="HEAD") for host in live]
        for request, host in zip(in_flight, live, strict=True):
            desk.frontier.in_flight.add(request, desk.gate(host))
        sent = desk.clock.at
        for host in HOSTS:
            desk.end(silence(Failure.REFUSED), host, apart=0.0)
        for request, host in zip(in_flight, live, strict=True):
            desk.frontier.in_flight.pop(request)
            desk.end(answer(took=0.1), host, apart=0.05 if host == live[0] else 0.0)
        assert desk.clock.at - 0.1 < sent
        assert desk.doubt.down_since is None
        bench = desk.frontier.bench
        probes = [task for gate in bench.gates.values() for _, task in bench.drain(gate)]
        assert len(probes) == WITNESSES
        desk.end(answer(), live[0])
        assert not desk.doubt.state.silent

    in_loop(steps)


def test_our_network_is_blamed_when_those_who_were_asked_are_silent_too(opened: Callable[..., Desk]) -> None:
    desk = opened()

    async def steps() -> None:
        for probe in nine_fall_silent(desk):
            assert desk.doubt.down_since is None
            desk.end(silence(), context_of(probe).target.host)

    in_loop(steps)
    assert desk.doubt.down_since is not None


def test_nobody_is_awaited_for_ever(opened: Callable[..., Desk]) -> None:
    desk = opened()

    async def steps() -> None:
        nine_fall_silent(desk)
        desk.clock.at += doubting.MAX_DOUBT
        desk.end(silence(), "gone0.example")

    in_loop(steps)
    assert desk.doubt.down_since is not None


def test_what_our_own_failure_taught_is_forgotten(opened: Callable[..., Desk]) -> None:
    names = FakeNames(works=False)
    desk = opened(resolver=names)
    robots = desk.session.robots
    everybody_works(desk, HOSTS)
    read_robots_of(desk.session, HOSTS[1], "User-agent: *\nDisallow: /x", desk.clock())
    desk.end(silence(), HOSTS[0])
    for host in HOSTS[:2]:
        note = RobotsAvailability.UNREACHABLE
        robots.take(Fetched(authority=f"http://{host}", availability=note, note="timed out"), desk.clock())
    for host in HOSTS[1:]:
        desk.end(silence(), host)
    assert robots.get(f"http://{HOSTS[0]}") is None
    kept = robots.get(f"http://{HOSTS[1]}")
    assert kept is not None
    assert kept.failing_since is None, "the good copy of before holds"
    assert not kept.is_fresh(desk.clock() + 1), "until it is read again"
    assert names.forgotten == 1
    desk.clock.at += doubting.PROBE
    assert desk.frontier.watch.may_send()
    assert names.forgotten == 2, "a probe looks its name up anew"


def test_a_probe_that_was_not_sent_is_none(opened: Callable[..., Desk]) -> None:
    """Its host's name leads elsewhere by now, so it goes through another gate: another probe may go at once."""
    desk = opened()
    everybody_works(desk, HOSTS)
    for host in HOSTS:
        desk.end(silence(), host)
    desk.clock.at += doubting.PROBE
    assert desk.doubt.may_send()
    probe = request_to(f"http://{HOST}/x")
    desk.frontier.in_flight.add(probe, desk.gate())
    desk.endings.on_completed(probe)
    assert desk.doubt.may_send()
    assert not desk.doubt.may_send()


def test_a_crawl_whose_network_does_not_come_back_is_given_up(
    opened: Callable[..., Desk], caplog: pytest.LogCaptureFixture
) -> None:
    engine = FakeEngine()
    desk = opened(engine=engine)
    everybody_works(desk, HOSTS)
    for host in HOSTS:
        desk.end(silence(), host)
    desk.clock.at += desk.session.config.patience + SILENT_GATES
    for _ in range(2):
        assert not desk.frontier.watch.may_send()
    assert engine.closed == ["network_lost"]
    assert "did not come back in LINKCRAWL_PATIENCE" in caplog.text
    assert not desk.frontier.has_work()


@pytest.mark.parametrize(("hosts", "answered", "told"), [(2, False, 0), (3, False, 1), (3, True, 0)])
def test_a_small_crawl_in_which_nothing_answers_is_told_at_its_end(
    opened: Callable[..., Desk], caplog: pytest.LogCaptureFixture, hosts: int, answered: bool, told: int
) -> None:
    desk = opened()
    if answered:
        everybody_works(desk, [HOST])
    for host in DEAD[:hosts]:
        desk.end(silence(Failure.DNS_TROUBLE), host)
    desk.frontier.watch.close()
    assert desk.stats.get_value(NOTHING_ANSWERED, 0) == told
    assert caplog.text.count("Nothing has answered in this crawl. It looks as if the DNS resolver") == told


def portal(desk: Desk, number: int, link: DueLink | None = None, **context: Any) -> None:
    """A portal answers in the place of a host."""
    outcome = evolve(answer(302, location="http://login.portal.example/"), ip=f"192.0.2.{number}")
    desk.end(outcome, f"h{number}.example", link=link, **context)


def probes_at(desk: Desk) -> list[Request]:
    bench = desk.frontier.bench
    tasks = [task for gate in bench.gates.values() for _, task in bench.drain(gate)]
    return [task for task in tasks if isinstance(task, Request)]


def suspected_portal(desk: Desk, links: list[DueLink]) -> list[Request]:
    """Eight hosts give one answer. Returns what is asked because of it."""
    for number in range(ALIKE):
        desk.keeper.looked_up.add(f"h{number}.example")
    for number in range(ALIKE):
        assert desk.doubt.down_since is None
        portal(desk, number, links[number])
    assert desk.doubt.down_since is None, "that may be the hosts' own"
    probes = probes_at(desk)
    assert len(probes) == WITNESSES
    assert all(probe.url.endswith("/robots.txt") and probe.method == "HEAD" for probe in probes)
    return probes


def test_what_a_portal_answers_is_not_believed(
    opened: Callable[..., Desk], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("linkcrawl.frontier.network_watch.SETTLED", 0.0)
    desk = opened()
    watch, robots = desk.frontier.watch, desk.session.robots

    async def steps() -> None:
        links = links_of(desk, ALIKE + 2)
        read_robots_of(desk.session, "h0.example", "<html>Log in</html>", desk.clock() + 1)
        desk.store.finish([check(links[0], desk.clock() + 1)])  # the first was stored before anybody knew
        for number, _ in enumerate(suspected_portal(desk, links)):
            assert desk.doubt.down_since is None
            portal(desk, number, probe=True)
        assert desk.doubt.down_since is not None
        assert not watch.may_send()
        entry = robots.get("http://h0.example")
        assert entry is not None
        assert not entry.is_fresh(desk.clock() + 1)
        good = record(links[1], T0, T0 + 9, reason="ok", status=200)
        assert await watch.confirm(good) is False, "nothing is believed"
        portal(desk, ALIKE, links[ALIKE])
        desk.end(silence(Failure.TLS_HOSTNAME), "h99.example")
        assert desk.doubt.down_since is not None, "a certificate of the portal's is no sign of life"
        await watch.finish()
        assert [found.reason for found in desk.store.records()] == ["host_unreachable"]
        desk.end(answer(404), "h1.example")
        assert desk.doubt.down_since is None
        spoilt = record(links[ALIKE], T0, T0 + 9, reason="login_redirect", status=200)
        assert await watch.confirm(spoilt) is False, "a check that went through the portal begins anew"
        assert await watch.confirm(spoilt) is True
        assert await watch.confirm(record(links[ALIKE + 1], T0, T0 + 9, reason="ok", status=200)) is True

    in_loop(steps)
    assert "captive portal answers in the hosts' place, with a redirect to http://login.portal.example/" in caplog.text
    assert "Our network is back" in caplog.text


def test_hosts_that_have_a_robots_txt_of_their_own_are_behind_no_portal(opened: Callable[..., Desk]) -> None:
    """Eight old domains of one publisher, at eight servers, all redirect to its home page."""
    desk = opened()

    async def steps() -> None:
        links = links_of(desk, ALIKE)
        suspected_portal(desk, links)
        portal(desk, 0, probe=True)
        desk.end(answer(404), "h1.example", probe=True)
        for number in range(ALIKE):
            portal(desk, number, links[number])
        assert probes_at(desk) == [], "and they are not asked again"
        assert desk.doubt.down_since is None

    in_loop(steps)


async def believed(desk: Desk, reason: str, status: int | None = None) -> bool:
    return await desk.doubt.confirm(record(links_of(desk, 1)[0], T0, T0 + 9, reason=reason, status=status))


def test_records_wait_for_certainty_and_are_thrown_away_if_it_was_us(opened: Callable[..., Desk]) -> None:
    desk = opened()
    everybody_works(desk, HOSTS)

    async def steps() -> None:
        assert await believed(desk, "timeout"), "nothing is in doubt yet"
        desk.end(silence(), HOSTS[0])
        assert await believed(desk, "http_404", status=404), "an answer is an answer"
        assert await believed(desk, "tls_expired")
        waiting = asyncio.ensure_future(believed(desk, "dns_not_found"))
        await asyncio.sleep(0)
        assert not waiting.done()
        for host in HOSTS[1:]:
            desk.end(silence(), host)
        assert await waiting is False
        assert await believed(desk, "timeout") is False

    in_loop(steps)


@pytest.mark.parametrize("failure", sorted(set(Failure) - UNJUDGED - UNSENT))
def test_records_wait_whose_failure_counts_as_silence(opened: Callable[..., Desk], failure: Failure) -> None:
    desk = opened()
    everybody_works(desk, HOSTS)

    async def steps() -> None:
        desk.end(silence(failure), HOSTS[0])
        desk.end(silence(), HOSTS[1])
        waiting = asyncio.ensure_future(believed(desk, reason_of_failure(failure)))
        await asyncio.sleep(0)
        assert waiting.done() is (failure not in DOUBTFUL and not failure.is_timeout)
        desk.doubt.close()
        assert await waiting

    in_loop(steps)
    state = note_end(OwnNetwork(), "gate", True, silence(failure))
    assert bool(state.silent) is (failure in DOUBTFUL)


def test_records_are_believed_when_another_host_answers_or_time_has_passed(
    opened: Callable[..., Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = opened()
    everybody_works(desk, HOSTS)

    async def steps() -> None:
        desk.end(silence(), HOSTS[0])
        waiting = asyncio.ensure_future(believed(desk, "timeout"))
        await asyncio.sleep(0)
        desk.end(answer(), HOSTS[1])
        assert await waiting is True
        desk.end(silence(), HOSTS[0])
        monkeypatch.setattr(doubting, "HOLD_SECONDS", 0.01)
        assert await believed(desk, "timeout") is True
        monkeypatch.setattr(doubting, "HOLD_SECONDS", 60.0)
        waiting = asyncio.ensure_future(believed(desk, "timeout"))
        await asyncio.sleep(0)
        desk.doubt.close()
        assert await waiting is True

    in_loop(steps)
