"""Links that somebody has asked for are taken up once, first at their gates, and only where a gate is this crawl's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field

from linkcrawl.frontier.due_queue import DueQueue
from linkcrawl.frontier.gates.workbench import Lane, Workbench
from linkcrawl.frontier.ports import LocalOwnership
from linkcrawl.frontier.requested import RequestedLinks
from linkcrawl.ingest.ingest import link_entry
from linkcrawl.items import DueLink, Seed
from linkcrawl.session import Session
from linkcrawl.status.asking import earliest_done, find_urls, outlook, request_checks
from linkcrawl.stores.contract import LinkFilter
from tests.contract.making import check, entry, link
from tests.unit.frontier_kit import T0, Clock, FakeEngine, policies, session


@define
class Neighbours:
    """The router and the feeder, as far as they are asked. `fed`: whether this process feeds hosts."""

    fed: bool = True
    placed: list[int | str] = field(factory=list)
    promoted: list[int | str] = field(factory=list)
    readings: int = 0

    def place(self, task: DueLink) -> None:
        self.placed.append(task.id)

    def promote(self, task: DueLink) -> None:
        self.promoted.append(task.id)

    def refresh_backlog(self) -> None:
        self.readings += 1


@define
class Ownership(LocalOwnership):
    """One that feeds hosts as the neighbours say."""

    neighbours: Neighbours

    def feeds_host(self, host: str) -> bool:
        return self.neighbours.fed


def _parts(crawl: Session, neighbours: Neighbours) -> tuple[RequestedLinks, DueQueue]:
    queue, made = DueQueue(LinkFilter, lambda: T0), neighbours
    router: Any = made
    requested = RequestedLinks(
        crawl, queue=queue, feeder=router, router=router, ownership=Ownership(made), engine=FakeEngine()
    )
    return requested, queue


@pytest.fixture
def crawl(tmp_path: Path) -> Session:
    made = session(tmp_path, Clock())
    made.store.add([entry(n) for n in range(3)])
    made.store.finish([check(link(made.store, n), T0 - 100, T0 + 1e6) for n in range(3)])
    return made


def _run(crawl: Session, *steps: Callable[[], Any]) -> None:
    async def run() -> None:
        for step in steps:
            made = step()
            if asyncio.iscoroutine(made):
                await made

    asyncio.run(run())
    crawl.worker.close()


def test_a_link_is_taken_up_once(crawl: Session) -> None:
    seen = Neighbours()
    requested, queue = _parts(crawl, seen)
    links = [link(crawl.store, n) for n in range(3)]
    queue.hold(links[1].id, links[1].host)  # it is out already
    request_checks(crawl.store, links[:2], T0)

    def handed_back() -> None:
        queue.had_turn(links[0])
        queue.defer(links[0])  # it isn't its time by a rule: its host's links are read again when it is

    _run(crawl, requested.take_up, handed_back, requested.take_up, requested.take_up)
    assert seen.placed == [links[0].id]
    assert set(seen.promoted) == {links[1].id}
    assert queue.hosts[links[0].host].deferred == 1


def test_it_is_taken_up_again_when_it_is_asked_for_again(crawl: Session) -> None:
    seen = Neighbours()
    requested, queue = _parts(crawl, seen)
    first = link(crawl.store, 0)

    def ask() -> None:
        request_checks(crawl.store, [link(crawl.store, 0)], T0)

    def recorded() -> None:
        queue.had_turn(first)
        crawl.store.finish([check(link(crawl.store, 0), T0 + 1, T0 + 1e6)])
        queue.forget(first.id)

    _run(crawl, ask, requested.take_up, recorded, ask, requested.take_up, requested.take_up)
    assert seen.placed == [first.id, first.id]


def test_the_backlog_is_read_where_nobody_may_have_the_gate_yet(crawl: Session) -> None:
    seen = Neighbours(fed=False)
    requested, _ = _parts(crawl, seen)
    asked = link(crawl.store, 0)
    request_checks(crawl.store, [asked], T0)

    def leased() -> None:
        seen.fed = True

    _run(crawl, requested.take_up, requested.take_up, leased, requested.take_up)
    assert seen.readings == 1
    assert seen.placed == [asked.id]


def test_a_waiting_link_is_promoted_before_the_others() -> None:
    bench: Workbench[str] = Workbench()
    gate = bench.gate("a.example")
    for name in ("one", "two", "three"):
        bench.offer(gate, name)
    bench.promote(gate, lambda task: task == "three")
    bench.promote(gate, lambda task: task == "unknown")
    assert [(lane, task) for lane, task in bench.drain(gate)] == [
        (Lane.ON_DEMAND, "three"),
        (Lane.LINK, "one"),
        (Lane.LINK, "two"),
    ]


def test_what_stands_in_the_way_is_said_with_its_end(crawl: Session) -> None:
    links = [link(crawl.store, n) for n in range(3)]
    free = outlook(crawl.store, crawl.config, policies(""), links, T0)
    assert [(each.why, each.opens_at) for each in free] == [("", T0)] * len(free)
    done_at = earliest_done(free, T0)
    assert done_at is not None
    assert done_at == T0 + crawl.config.delay * (max(each.links for each in free) - 1)
    paused = policies(f'[[policy]]\nname = "closed"\nhosts = ["{links[0].host}"]\npaused = true\n')
    shut = outlook(crawl.store, crawl.config, paused, links[:1], T0)
    assert [(each.opens_at, "closed" in each.why) for each in shut] == [(None, True)]
    assert earliest_done(shut, T0) is None
    crawl.worker.close()


def test_urls_are_found_as_seeds_are_read(crawl: Session) -> None:
    crawl.store.add([link_entry(Seed(url="https://a.example/x")), link_entry(Seed(url="hdl:11022/1"))])
    given = ["HTTPS://user:word@A.example:443/x", "https://a.example/x", "https://strange.example/", "hdl:11022/1"]
    found = find_urls(crawl.store, given)
    assert [each.url for each in found.links] == ["https://a.example/x", "https://hdl.handle.net/11022/1"]
    assert found.unknown == ("https://strange.example/",)
    crawl.worker.close()
