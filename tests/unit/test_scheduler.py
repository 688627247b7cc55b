"""The scheduler hands out what may go now, by its gates, its Ownership and its Checks; all three are fakes here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field
from scrapy.http import Request

from linkcrawl.audit.verify import read_lines
from linkcrawl.check.procedure import Denial
from linkcrawl.errors import ClaimLost, LeaseLost, StoreLost
from linkcrawl.frontier.gates.workbench import Gate, GateState, Lane
from linkcrawl.frontier.parts import Frontier
from linkcrawl.frontier.ports import LocalOwnership, Task, context_of
from linkcrawl.frontier.scheduler import Scheduler
from linkcrawl.items import DueLink
from linkcrawl.session import Session
from linkcrawl.stores.retry import retry_while_store_lost
from tests.contract.making import check
from tests.unit.frontier_kit import (
    T0,
    Clock,
    FakeChecks,
    FakeEngine,
    answer,
    frontier_of,
    policies,
    read_robots_of,
    request_to,
    session,
)

A, B = "a.example", "b.example"


@define
class Ownership(LocalOwnership):
    """One that a test decides. `log`: what it was told, in order, with the link or the gate."""

    sends: bool = True
    ends: bool = True
    has_permits: bool = True
    is_ours: bool = True
    knows: bool = True
    poison: Denial | None = None
    lost: bool = False
    log: list[tuple[str, Any]] = field(factory=list)

    @property
    def may_end(self) -> bool:  # type: ignore[override]
        return self.ends

    def may_send(self) -> bool:
        return self.sends

    def acquire_permits(self, gate: Gate[Task], task: Task, lane: Lane) -> bool:
        self.log.append(("acquire", lane))
        return self.has_permits

    def return_permits(self, task: Task) -> None:
        self.log.append(("return", task.id if isinstance(task, DueLink) else task.url))

    def begin(self, link: DueLink) -> Denial | None:
        self.log.append(("begin", link.id))
        return self.poison

    def handed_out(self, gate: str, request: Request) -> None:
        self.log.append(("handed out", gate))

    def started(self, request: Request) -> None:
        self.log.append(("started", request.url))

    def settled(self, request: Request) -> bool:
        self.log.append(("settled", request.url))
        return self.is_ours

    def forget(self, link_id: int | str) -> bool:
        self.log.append(("forget", link_id))
        return self.knows

    def let_go(self, link_id: int | str) -> bool:
        self.log.append(("let go", link_id))
        return self.knows

    def ensure_leased(self) -> None:
        if self.lost:
            raise LeaseLost("over")

    def told(self, what: str) -> list[Any]:
        return [value for name, value in self.log if name == what]


@define
class Crawl:
    """A scheduler with the real parts of a frontier on fakes of all that is around it."""

    session: Session
    clock: Clock
    engine: FakeEngine
    checks: FakeChecks
    ownership: Ownership
    frontier: Frontier
    scheduler: Scheduler
    links: int = 0

    def due(self, *hosts: str, robots: str | None = "", **about: Any) -> list[DueLink]:
        """Links that have come in from the store, at hosts whose address is known, and robots.txt where it is given."""
        links = []
        for host in hosts:
            self.links += 1
            links.append(DueLink(id=self.links, url=f"http://{host}/{self.links}", host=host, **about))
            self.frontier.keeper.looked_up.add(host)
            if robots is not None:
                read_robots_of(self.session, host, robots, self.clock())
            self.frontier.queue.hold(links[-1].id, host)
            self.frontier.queue.hosts[host].ready += 1
        self.frontier.router.place_links(links)
        return links

    @property
    def sent(self) -> list[str]:
        return [request.url for request in self.engine.sent]

    async def ask(self) -> Request | None:
        """The engine asks for the next request; what that sets off comes to its end."""
        asked = self.scheduler.next_request()
        await self.engine.idle()
        return asked


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Crawl]]:
    crawls: list[Crawl] = []

    def open_one(rules: str = "", engine: FakeEngine | None = None, **owns: Any) -> Crawl:
        clock = Clock()
        at = session(tmp_path, clock, rules, audit=tmp_path / "audit.jsonl")
        made, checks, ownership = engine or FakeEngine(), FakeChecks(at), Ownership(**owns)
        frontier = frontier_of(at, engine=made, checks=checks, ownership=ownership)
        crawls.append(Crawl(at, clock, made, checks, ownership, frontier, Scheduler(frontier, ownership)))
        return crawls[-1]

    yield open_one
    for crawl in crawls:
        crawl.session.audit.close()
        crawl.session.worker.close()


def in_loop(steps: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await asyncio.wait_for(steps(), 120)  # type: ignore[arg-type]

    asyncio.run(run())


def test_a_gate_hands_out_one_request_at_a_time_and_opens_again_after_its_delay(opened: Callable[..., Crawl]) -> None:
    crawl = opened()

    async def steps() -> None:
        first, second = crawl.due(A, A)
        await crawl.ask()
        await crawl.ask()
        assert crawl.sent == [first.url]
        crawl.clock.at += 0.9
        await crawl.ask()
        assert crawl.sent == [first.url]
        crawl.clock.at += 0.2
        await crawl.ask()
        assert crawl.sent == [first.url, second.url]

    in_loop(steps)
    assert crawl.engine.items == [context_of(request) for request in crawl.engine.sent]
    assert crawl.ownership.told("handed out") == [A, A]
    assert crawl.ownership.told("settled") == crawl.sent


def test_a_request_that_is_handed_out_has_its_context(opened: Callable[..., Crawl]) -> None:
    crawl = opened()

    async def steps() -> None:
        crawl.due(A)
        crawl.scheduler.next_request()
        (request,) = crawl.scheduler.in_flight
        context = context_of(request)
        assert (context.gate, context.cleared, context.handed_out_at) == (A, True, T0)
        assert context.required is not None
        assert request.headers["From"] == crawl.session.config.sender.encode()
        await crawl.ask()

    in_loop(steps)
    assert crawl.scheduler.in_flight == []


def test_nothing_is_taken_while_the_ownership_may_not_send(opened: Callable[..., Crawl]) -> None:
    crawl = opened(sends=False)

    async def steps() -> None:
        crawl.due(A)
        await crawl.ask()
        assert crawl.sent == []
        crawl.ownership.sends = True
        await crawl.ask()
        assert len(crawl.sent) == 1

    in_loop(steps)


def test_a_lost_store_stops_the_crawl_and_it_goes_on_by_itself(opened: Callable[..., Crawl]) -> None:
    crawl = opened()

    async def steps() -> None:
        crawl.due(A)
        crawl.session.store_lost = True
        await crawl.ask()
        assert (crawl.sent, crawl.engine.woken) == ([], 0)
        timer = crawl.scheduler._timer
        assert timer is not None
        assert timer.when() - asyncio.get_running_loop().time() <= 1.0
        crawl.session.store_lost = False
        await crawl.ask()

    in_loop(steps)
    assert len(crawl.sent) == 1


def test_what_waits_for_a_permit_is_the_ownerships(opened: Callable[..., Crawl]) -> None:
    crawl = opened(has_permits=False)

    async def steps() -> None:
        crawl.due(A)
        await crawl.ask()

    in_loop(steps)
    assert (crawl.sent, crawl.engine.items) == ([], [])
    assert crawl.ownership.told("acquire") == [Lane.LINK]
    assert crawl.ownership.told("begin") == []
    assert crawl.frontier.bench.gates[A].state is GateState.IDLE


def test_robots_txt_is_fetched_first_in_the_turn_of_the_page(opened: Callable[..., Crawl]) -> None:
    crawl = opened()

    async def steps() -> None:
        (link,) = crawl.due(A, robots=None)
        await crawl.ask()
        assert crawl.sent == [f"http://{A}/robots.txt"]
        assert crawl.ownership.told("return")[-1] == link.url  # it had its permit, and is not sent now
        crawl.clock.at += 1.1
        await crawl.ask()
        assert crawl.sent == [f"http://{A}/robots.txt", link.url]

    in_loop(steps)


def test_what_policy_skips_is_a_record_without_a_request(opened: Callable[..., Crawl]) -> None:
    crawl = opened('[[policy]]\nname = "p"\nhosts = ["a.example"]\nskip = ["*"]\n')

    async def steps() -> None:
        link, _ = crawl.due(A, B)
        await crawl.ask()
        assert [(url, denial.reason) for url, denial in crawl.checks.denied] == [(link.url, "skipped_by_policy")]
        assert link.url in crawl.ownership.told("return")

    in_loop(steps)
    assert crawl.sent == [f"http://{B}/2"]
    assert crawl.frontier.bench.gates[A].state is GateState.IDLE


def test_what_follows_a_denied_request_waits_for_its_own_gate(opened: Callable[..., Crawl]) -> None:
    crawl = opened('[[policy]]\nname = "p"\nhosts = ["a.example"]\nskip = ["*"]\n')

    async def steps() -> None:
        (link,) = crawl.due(A)
        crawl.checks.after_denial[link.url] = f"http://{B}/again"
        crawl.frontier.keeper.looked_up.add(B)
        await crawl.ask()
        await crawl.ask()
        assert [denial.reason for _, denial in crawl.checks.denied] == ["skipped_by_policy"]

    in_loop(steps)
    assert crawl.sent == [f"http://{B}/robots.txt"], "what robots.txt there says comes first, as ever"


def test_a_link_that_the_ownership_denies_is_never_sent(opened: Callable[..., Crawl]) -> None:
    crawl = opened(poison=Denial(reason="poison_link"))

    async def steps() -> None:
        crawl.due(A)
        await crawl.ask()

    in_loop(steps)
    assert (crawl.sent, [denial for _, denial in crawl.checks.denied]) == ([], [Denial(reason="poison_link")])
    assert crawl.ownership.told("return") == [1]
    assert crawl.frontier.feeder.under_way == 1  # until the record is stored


def test_a_link_whose_collection_rests_stays_due(opened: Callable[..., Crawl]) -> None:
    quiet = '[[policy]]\nname = "q"\ncollections = ["north"]\nquiet = ["daily 11:00-13:00 UTC"]\n'
    crawl = opened(quiet)

    async def steps() -> None:
        (link,) = crawl.due(A, collections=("north",))
        await crawl.ask()
        assert crawl.ownership.told("return") == [link.id]

    in_loop(steps)
    assert (crawl.sent, crawl.ownership.told("begin"), crawl.frontier.feeder.under_way) == ([], [], 0)
    assert crawl.frontier.queue.again_at == T0 + 3600


def test_limits_start_when_the_request_is_sent(opened: Callable[..., Crawl]) -> None:
    crawl = opened('[[policy]]\nname = "c"\ncollections = ["north"]\ndelay = 9\n')

    async def steps() -> None:
        crawl.due(A, B, collections=("north",))
        await crawl.ask()
        (request,) = crawl.engine.sent
        assert [(limit.name, limit.delay) for limit in context_of(request).spaced_by] == [("collection north", 9.0)]
        crawl.clock.at += 5  # a busy machine has sent it only now
        context_of(request).on_sent()
        crawl.clock.at += 8.9
        await crawl.ask()
        assert len(crawl.sent) == 1
        crawl.clock.at += 0.2
        await crawl.ask()

    in_loop(steps)
    assert len(crawl.sent) == 2
    assert crawl.ownership.told("started") == [crawl.sent[0]]


def test_another_components_request_has_the_engines_whole_way(opened: Callable[..., Crawl]) -> None:
    crawl = opened()
    read_robots_of(crawl.session, A, "", T0)
    crawl.frontier.keeper.looked_up.add(A)

    async def steps() -> None:
        assert crawl.scheduler.enqueue_request(Request(f"http://{A}/theirs"))
        request = await crawl.ask()
        assert request is not None
        assert request.url == f"http://{A}/theirs"
        assert request.meta["download_slot"] == A
        assert crawl.engine.sent == []
        context_of(request).outcome = answer()
        crawl.frontier.completion.on_completed(request)
        assert crawl.scheduler.in_flight == []
        assert crawl.frontier.bench.gates[A].wake > T0

    in_loop(steps)


def test_what_is_no_url_is_not_taken(opened: Callable[..., Crawl]) -> None:
    assert not opened().scheduler.enqueue_request(Request("data:,x"))


def test_the_end_of_a_request_whose_gate_is_another_workers_teaches_nothing(
    opened: Callable[..., Crawl], tmp_path: Path
) -> None:
    crawl = opened(engine=FakeEngine(replies={f"http://{A}/1": answer(503)}), is_ours=False)

    async def steps() -> None:
        crawl.due(A)
        await crawl.ask()

    in_loop(steps)
    gate = crawl.frontier.bench.gates[A]
    assert crawl.frontier.keeper.pace(A).last_end is None
    assert gate.wake >= T0 + gate.delay
    crawl.session.audit.close()
    assert [line.status for line in read_lines([tmp_path / "audit.jsonl"]) if hasattr(line, "status")] == [503]


def test_a_crawl_waits_for_others_that_have_work(opened: Callable[..., Crawl]) -> None:
    crawl = opened(ends=False)
    assert crawl.scheduler.has_pending_requests()
    crawl.ownership.ends = True
    assert not crawl.scheduler.has_pending_requests()


def test_a_crawl_waits_for_gates_that_open_within_its_patience(opened: Callable[..., Crawl]) -> None:
    crawl = opened()

    async def steps() -> None:
        crawl.due(A)
        assert crawl.scheduler.has_pending_requests()
        gate = crawl.frontier.bench.gates[A]
        crawl.frontier.bench.retime(gate, T0 + crawl.session.config.patience + 1)
        assert not crawl.scheduler.has_pending_requests()

    in_loop(steps)


def test_records_are_stored_only_while_the_leases_hold(opened: Callable[..., Crawl]) -> None:
    crawl = opened(lost=True)
    with pytest.raises(LeaseLost):
        crawl.scheduler.store([])
    crawl.ownership.lost = False
    assert crawl.scheduler.store([]) == frozenset()


@pytest.mark.parametrize("knows", [True, False])
def test_only_a_check_that_is_under_way_here_is_forgotten(opened: Callable[..., Crawl], knows: bool) -> None:
    crawl = opened(knows=knows)

    async def steps() -> None:
        (link,) = crawl.due(A)
        await crawl.ask()
        crawl.scheduler.forget(link.id)

    in_loop(steps)
    assert crawl.frontier.feeder.under_way == (0 if knows else 1)
    assert len(crawl.frontier.queue) == (0 if knows else 1)


def test_a_check_that_our_own_network_has_failed_is_begun_once_more(opened: Callable[..., Crawl]) -> None:
    crawl = opened()

    async def steps() -> None:
        (link,) = crawl.due(A)
        await crawl.ask()
        finished = evolve(check(link, T0), of=link)
        crawl.scheduler.check_again(finished)
        crawl.clock.at += 5.0
        await crawl.ask()
        assert crawl.sent == [link.url, link.url]
        assert (crawl.frontier.feeder.under_way, len(crawl.frontier.queue)) == (1, 1)
        crawl.scheduler.check_again(evolve(finished, of=None))  # a pipeline has lost where it came from: it stays due
        crawl.clock.at += 5.0
        await crawl.ask()
        assert len(crawl.sent) == 2

    in_loop(steps)


@pytest.mark.parametrize(("robots", "sent"), [("", 1), ("User-agent: *\nDisallow: /", 0)])
def test_a_probe_goes_by_its_gate_and_obeys_robots_txt(opened: Callable[..., Crawl], robots: str, sent: int) -> None:
    crawl = opened()

    async def steps() -> None:
        crawl.frontier.keeper.looked_up.add(A)
        read_robots_of(crawl.session, A, robots, crawl.clock())
        probe = request_to(f"http://{A}/x", method="HEAD", probe=True)
        crawl.frontier.router.place(probe.replace(callback=nothing, errback=nothing))
        assert await crawl.ask() is None
        assert len(crawl.sent) == sent
        assert crawl.checks.denied == []

    in_loop(steps)


def nothing(_: Any) -> None:
    """What follows from a probe."""


def test_the_store_is_given_up_once(opened: Callable[..., Crawl]) -> None:
    crawl = opened()
    for _ in range(2):
        crawl.scheduler.give_up(StoreLost("gone"))
    assert crawl.scheduler.is_giving_up
    assert crawl.engine.closed == ["store_lost"]


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_hop_to_a_paused_host_ends_where_the_ownership_lets_it_go(
    opened: Callable[..., Crawl], is_ours: bool
) -> None:
    """One that another worker's link is checked by would be begun again at once: it goes on waiting."""
    crawl = opened(knows=is_ours)
    (link,) = crawl.due(A)
    crawl.frontier.feeder.check_began()
    crawl.session.policies = policies('[[policy]]\nname = "p"\nhosts = ["b.example"]\npaused = true\n')
    crawl.frontier.keeper.looked_up.add(B)
    hop = crawl.checks.begin(evolve(link, url=f"http://{B}/"), Any)
    assert isinstance(hop, Request)
    context_of(hop).link = link
    crawl.frontier.router.place(hop)
    crawl.frontier.postponed.review()
    assert crawl.ownership.told("let go") == [link.id]
    assert len(crawl.frontier.bench.gates[B]) == (0 if is_ours else 1)
    assert crawl.frontier.feeder.under_way == (0 if is_ours else 1)


@define
class Claimed:
    """A store whose claim may be over."""

    store: Any
    may_send: bool = True

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)


def test_nothing_is_sent_while_the_claim_may_be_another_crawls(opened: Callable[..., Crawl]) -> None:
    crawl = opened()
    claimed = Claimed(crawl.session.store)
    crawl.session.store = claimed

    async def steps() -> None:
        first, _ = crawl.due(A, A)
        claimed.may_send = False
        await crawl.ask()
        assert crawl.sent == []
        claimed.may_send = True
        await crawl.ask()
        assert crawl.sent == [first.url]
        ask = context_of(crawl.engine.sent[0]).may_send
        assert ask()
        claimed.may_send = False
        assert not ask(), "asked once more right before sending"
        claimed.may_send, crawl.ownership.sends = True, False
        assert not ask()

    in_loop(steps)


def test_a_crawl_ends_at_once_when_another_has_its_claim(opened: Callable[..., Crawl]) -> None:
    crawl = opened()

    def taken(*_: Any) -> Any:
        raise ClaimLost("the store: another crawl holds it")

    async def steps() -> None:
        began = crawl.clock.at
        with pytest.raises(ClaimLost):
            await retry_while_store_lost(crawl.session, taken)
        assert crawl.clock.at == began
        assert crawl.session.store_lost
        crawl.scheduler.give_up(ClaimLost("another crawl holds it"))

    in_loop(steps)
    assert crawl.engine.closed == ["store_lost"]


def test_the_maintenance_loop_notices_that_another_crawl_has_the_claim(
    opened: Callable[..., Crawl], monkeypatch: pytest.MonkeyPatch
) -> None:
    crawl = opened()
    monkeypatch.setattr("linkcrawl.frontier.maintenance.TICK", 0.001)

    async def steps() -> None:
        await crawl.frontier.maintenance.start()

        def taken() -> Any:
            raise ClaimLost("another crawl holds it")

        monkeypatch.setattr(crawl.session.store, "orders", taken)
        while not crawl.engine.closed:  # noqa: ASYNC110  # the loop has no end to wait for
            await asyncio.sleep(0.001)

    in_loop(steps)
    assert crawl.engine.closed == ["store_lost"]
