"""Feeding: every due link comes to its gate once, a few per host at a time, no more than memory is set aside for."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from attrs import define, field

from linkcrawl.errors import StoreLost
from linkcrawl.frontier.due_queue import DueQueue, HostQueue
from linkcrawl.frontier.feeder import Feeder
from linkcrawl.frontier.ports import LocalOwnership
from linkcrawl.items import DueLink
from linkcrawl.session import Session
from linkcrawl.stores.contract import LinkFilter
from tests.contract.making import check, entry
from tests.unit.frontier_kit import Clock, FakeEngine, session


@define
class Some(LocalOwnership):
    """Owns all hosts but these."""

    others: set[str] = field(factory=set)

    def feeds_host(self, host: str) -> bool:
        return host not in self.others


@define
class Table:
    """A feeder, and the links that it has brought."""

    session: Session
    clock: Clock
    queue: DueQueue
    brought: list[DueLink] = field(factory=list)
    ownership: Some = field(factory=lambda: Some())
    lost: list[StoreLost] = field(factory=list)
    feeder: Feeder = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.feeder = Feeder(
            self.session,
            queue=self.queue,
            ownership=self.ownership,
            engine=FakeEngine(),
            deliver=self.brought.extend,
            give_up=self.lost.append,
        )

    async def settled(self) -> None:
        """Until nothing is on its way."""
        while others := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.gather(*others)

    async def eat(self) -> None:
        """Ask for more as long as there is more, as gates do that run empty."""
        count = -1
        while count != len(self.brought):
            count = len(self.brought)
            for queue in self.queue.hosts.values():
                self.feeder.wants_refill(queue)
            await self.settled()


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[..., Table]]:
    tables: list[Table] = []

    def open_one(limit: int | None = None, narrow: LinkFilter = LinkFilter(), **settings: int) -> Table:
        clock = Clock()
        at = session(tmp_path, clock, **settings)
        tables.append(Table(at, clock, DueQueue(lambda: narrow, at.due_before, limit)))
        return tables[-1]

    yield open_one
    for table in tables:
        table.session.worker.close()


def in_loop(steps: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await steps()

    asyncio.run(run())


def seed(table: Table, **hosts: int) -> None:
    entries = [
        entry(1000 * number + each, host=f"{host}.example")
        for number, (host, count) in enumerate(hosts.items())
        for each in range(count)
    ]
    table.session.store.add(entries)


def test_every_due_link_is_brought_once(opened: Callable[..., Table]) -> None:
    table = opened()
    seed(table, a=150, b=1, c=40)

    async def steps() -> None:
        await table.feeder.refresh_now()
        await table.settled()
        assert max(Counter(link.host for link in table.brought).values()) <= table.queue.share, "a few at a time"
        await table.eat()

    in_loop(steps)
    assert Counter(Counter(link.id for link in table.brought).values()) == {1: 191}
    assert len(table.queue) == 191


def test_links_that_are_given_back_while_they_are_fetched_come_again(opened: Callable[..., Table]) -> None:
    """As by a worker whose gate goes to another, and comes back."""
    table = opened()
    seed(table, a=100)

    async def steps() -> None:
        await table.feeder.refresh_now()
        await asyncio.sleep(0)  # the fetch has been asked for
        table.queue.give_back(["a.example"])
        table.ownership.others = {*table.queue.hosts}
        await table.settled()
        assert table.brought == []
        table.ownership.others = set()
        await table.eat()
        for link in table.brought[:90]:  # what was had before must not keep the rest in the store
            table.queue.had_turn(link)
        await table.eat()

    in_loop(steps)
    assert Counter(Counter(link.id for link in table.brought).values()) == {1: 100}


def test_a_look_brings_what_is_new_and_not_what_is_out(opened: Callable[..., Table]) -> None:
    table = opened()
    seed(table, a=3)

    async def steps() -> None:
        await table.feeder.refresh_now()
        await table.settled()
        table.session.store.add([entry(500, host="a.example"), entry(501, host="new.example")])
        table.feeder.refresh_backlog()
        table.feeder.refresh_backlog()
        await table.settled()
        await table.eat()

    in_loop(steps)
    assert sorted(link.url for link in table.brought) == [
        "https://a.example/0",
        "https://a.example/1",
        "https://a.example/2",
        "https://a.example/500",
        "https://new.example/501",
    ]


def test_a_link_that_was_passed_over_is_met_at_the_next_look_and_not_before(opened: Callable[..., Table]) -> None:
    table = opened()
    seed(table, a=2)

    async def steps() -> None:
        await table.feeder.refresh_now()
        await table.settled()
        table.queue.defer(table.brought[0])
        await table.eat()
        assert len(table.brought) == 2
        await table.feeder.refresh_now()
        await table.settled()
        assert len(table.brought) == 2, "nothing has changed: it is still not its time"
        table.session.store.add([entry(7, host="a.example")])
        await table.feeder.refresh_now()
        await table.settled()

    in_loop(steps)
    assert Counter(link.url for link in table.brought) == {
        "https://a.example/0": 2,
        "https://a.example/1": 1,
        "https://a.example/7": 1,
    }


def test_a_link_that_was_passed_over_is_met_when_its_time_has_come(opened: Callable[..., Table]) -> None:
    table = opened()
    seed(table, a=2, b=1)

    async def look() -> int:
        await table.feeder.refresh_now()
        await table.settled()
        return len(table.brought)

    async def steps() -> None:
        assert await look() == 3
        table.queue.defer(table.brought[0], table.clock() + 60)
        assert table.feeder.again_at == table.clock() + 60
        assert await look() == 3
        table.clock.at += 60
        assert await look() == 4
        assert table.feeder.again_at == float("inf")
        table.queue.defer(table.brought[0])
        assert await look() == 4, "paused"
        table.feeder.reconsider()
        await table.settled()
        assert len(table.brought) == 5, "not any more"

    in_loop(steps)


def test_no_more_than_the_limit(opened: Callable[..., Table]) -> None:
    table = opened(limit=10)
    seed(table, a=8, b=8)

    async def steps() -> None:
        await table.feeder.refresh_now()
        await table.eat()
        assert table.queue.spent
        table.queue.defer(table.brought[0])
        assert not table.queue.spent, "what was handed back doesn't count"

    in_loop(steps)
    assert len(table.brought) == 10


def test_only_what_the_crawl_is_narrowed_to(opened: Callable[..., Table]) -> None:
    table = opened(narrow=LinkFilter(host="b.*"))
    seed(table, a=3, b=3)

    async def steps() -> None:
        await table.feeder.refresh_now()
        await table.eat()

    in_loop(steps)
    assert {link.host for link in table.brought} == {"b.example"}


def test_while_too_many_checks_wait_only_hosts_with_few_of_them_are_fed(opened: Callable[..., Table]) -> None:
    """All links of a resolver lead to one slow host: the other hosts' must not wait for them."""
    table = opened(LINKCRAWL_MAX_WAITING=5)
    seed(table, a=200, b=40)
    share = 32

    async def steps() -> None:
        await table.feeder.refresh_now()
        await table.settled()
        resolver = table.queue.hosts["a.example"]
        for link in [link for link in table.brought if link.host == "a.example"]:
            table.queue.had_turn(link)
        assert resolver.under_way == share == table.queue.share
        for _ in range(share):
            table.feeder.check_began()
        await table.eat()
        assert Counter(link.host for link in table.brought) == {"a.example": share, "b.example": 40}
        for _ in range(share - 4):
            table.feeder.check_ended()
        table.feeder.feed()
        await table.settled()

    in_loop(steps)
    assert Counter(link.host for link in table.brought)["a.example"] > share


def test_a_link_whose_record_is_stored_is_not_out_any_more(opened: Callable[..., Table]) -> None:
    table = opened()
    seed(table, a=1)

    async def steps() -> None:
        await table.feeder.refresh_now()
        await table.settled()
        (link,) = table.brought
        table.session.store.finish([check(link, table.clock(), next_at=table.clock() - 1)])
        table.queue.forget(link.id)
        await table.feeder.refresh_now()
        await table.settled()

    in_loop(steps)
    assert len(table.brought) == 2, "it is due again, and comes again"


def test_other_workers_hosts_are_left_to_them(opened: Callable[..., Table]) -> None:
    table = opened()
    seed(table, a=2, b=2)
    table.ownership.others = {"a.example"}

    async def steps() -> None:
        await table.feeder.refresh_now()
        await table.eat()

    in_loop(steps)
    assert {link.host for link in table.brought} == {"b.example"}


def test_a_host_queue_knows_what_is_out() -> None:
    queue = DueQueue(LinkFilter, lambda: 0.0)
    queue.hold(1, "a")
    queue.hold(2, "a")
    queue.hold(3, "b")
    queue.give_back(["a"], keep=[2])
    assert (queue.hosts["a"].held, queue.hosts["b"].held, len(queue)) == (1, 1, 2)
    assert queue.hosts["a"].due == 1
    queue.clear()
    assert len(queue) == 0
    assert HostQueue("a").held == 0


def test_a_link_whose_record_cant_be_kept_waits_for_its_usual_time(
    opened: Callable[..., Table],
) -> None:
    """It stays due in the store, whatever else comes due at its host."""
    table = opened()
    seed(table, a=1)

    async def look() -> list[str]:
        table.brought.clear()
        await table.feeder.refresh_now()
        await table.eat()
        for link in table.brought:
            table.queue.had_turn(link)
        return [link.url for link in table.brought]

    async def steps() -> None:
        (first,) = await look()
        (link_id,) = table.queue._held
        queue = table.queue.hosts["a.example"]
        table.queue.set_aside(link_id, table.clock() + 3600)
        table.queue.forget(link_id)
        assert (queue.held, queue.under_way) == (1, 0), "nothing of it goes on"
        for later in range(2, 4):
            seed(table, a=later)
            assert first not in await look()
        table.clock.at += 3601
        for each in list(table.queue._held):
            table.queue.forget(each)
        assert first in await look()

    in_loop(steps)
