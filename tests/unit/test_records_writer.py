"""The records writer outlives whatever a store raises, and no background task ends unheard."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import define, field
from scrapy.exceptions import DropItem
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector

from linkcrawl.errors import LeaseLost, StoreLost
from linkcrawl.frontier.tasks import start_task
from linkcrawl.items import Finished, Record
from linkcrawl.pipelines.records import RecordsPipeline
from linkcrawl.session import Session
from tests.contract.making import check, entry
from tests.unit.frontier_kit import T0, Clock, FakeEngine, frontier_of, request_to, session

#: Seconds after which a record that nobody answers for counts as hanging.
HANGS = 10.0


@define
class FakeScheduler:
    """What the writer asks of a scheduler. `faults`: what storing raises of batches that hold a link, `together` of
    batches of several records; `unforgettable`: a link that can't be let go; `end_fault`: what ending the crawl
    raises."""

    session: Session
    faults: dict[int | str, Exception] = field(factory=dict)
    together: Exception | None = None
    unforgettable: int | str | None = None
    is_giving_up: bool = False
    batches: list[int] = field(factory=list)
    forgotten: list[int | str] = field(factory=list)
    aside: dict[int | str, float] = field(factory=dict)
    ends: list[StoreLost] = field(factory=list)
    end_fault: Exception | None = None

    async def confirm(self, record: Record) -> bool:
        return True

    def owns(self, link_id: int | str) -> bool:
        return True

    def store(self, finished: Sequence[Finished]) -> frozenset[int | str]:
        self.batches.append(len(finished))
        if self.together is not None and len(finished) > 1:
            raise self.together
        for each in finished:
            if each.record.link_id in self.faults:
                raise self.faults[each.record.link_id]
        return self.session.store.finish(finished)

    def forget(self, link_id: int | str) -> None:
        if link_id == self.unforgettable:
            raise OSError("never mind")
        self.forgotten.append(link_id)

    def set_aside(self, link_id: int | str, until: float) -> None:
        self.aside[link_id] = until

    def give_up(self, fault: StoreLost) -> None:
        self.ends.append(fault)
        if self.end_fault is not None:
            raise self.end_fault


@define
class Table:
    """A pipeline and three checks that end together."""

    pipeline: RecordsPipeline
    scheduler: FakeScheduler
    checks: list[Finished]

    @property
    def ids(self) -> list[int | str]:
        return [each.record.link_id for each in self.checks]

    def process(self) -> list[Any]:
        """What becomes of each check, in one batch; TimeoutError where one hangs."""

        async def all_of_them() -> list[Any]:
            work = (self.pipeline.process_item(each) for each in self.checks)
            async with asyncio.timeout(HANGS):
                return await asyncio.gather(*work, return_exceptions=True)

        return asyncio.run(all_of_them())

    def stored(self) -> set[str]:
        return {record.url for record in self.scheduler.session.store.records()}


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    at = session(tmp_path, Clock(), LINKCRAWL_PATIENCE=0)
    scheduler = FakeScheduler(at)
    monkeypatch.setattr(RecordsPipeline, "_scheduler", scheduler)
    at.store.add([entry(number) for number in (1, 2, 3)])
    links = [link for number in (1, 2, 3) for link in at.store.due(entry(number).host, T0, 10)]
    checks = list({link.id: check(link, T0) for link in links}.values())
    stats = MemoryStatsCollector(SimpleNamespace(settings=Settings()))  # type: ignore[arg-type]
    crawler: Any = SimpleNamespace(stats=stats, spider=SimpleNamespace(session=at))
    yield Table(RecordsPipeline(crawler), scheduler, checks)
    at.worker.close()


def errors(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    return [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.parametrize("fault", [LookupError("no link 2"), MemoryError(), ValueError("over 16 MB")], ids=repr)
def test_a_record_that_the_store_cant_keep_costs_that_record_only(
    table: Table, caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    bad = table.checks[1].record
    table.scheduler.faults[bad.link_id] = fault
    first, second, third = table.process()
    assert (first, third) == (table.checks[0].record, table.checks[2].record)
    assert isinstance(second, DropItem)
    assert table.stored() == {first.url, third.url}
    assert table.scheduler.batches == [3, 1, 1, 1]
    assert table.scheduler.aside == {bad.link_id: bad.next_check_at}
    assert sorted(map(str, table.scheduler.forgotten)) == sorted(map(str, table.ids))
    told = errors(caplog)
    assert [bad.url in record.getMessage() for record in told] == [False, True]
    assert type(fault).__name__ in told[1].getMessage()
    assert [bool(record.exc_info) for record in told] == [True, False]  # one traceback


def test_the_writer_stores_what_comes_after_a_fault(table: Table) -> None:
    faulty = table.scheduler.faults
    faulty.update(dict.fromkeys(table.ids, MemoryError()))
    assert all(isinstance(end, DropItem) for end in table.process())
    faulty.clear()
    assert table.process() == [each.record for each in table.checks]


def test_a_fault_in_letting_a_link_go_costs_no_other_record(table: Table, caplog: pytest.LogCaptureFixture) -> None:
    table.scheduler.unforgettable = table.ids[0]
    assert table.process() == [each.record for each in table.checks]
    assert table.scheduler.forgotten == table.ids[1:]
    assert len(errors(caplog)) == 1


@pytest.mark.parametrize("end_fault", [None, RuntimeError("no engine")], ids=["ends", "can't be ended"])
def test_a_store_that_is_lost_midway_gives_up_the_records_that_are_left(
    table: Table, end_fault: Exception | None
) -> None:
    table.scheduler.end_fault = end_fault
    lost = StoreLost("the disk is gone")
    table.scheduler.together = LookupError("no such link")
    table.scheduler.faults[table.ids[1]] = table.scheduler.faults[table.ids[2]] = lost
    first, *others = table.process()
    assert all(isinstance(end, DropItem) for end in others)
    assert isinstance(first, DropItem) is (end_fault is not None)
    assert table.scheduler.ends == [lost]
    assert table.stored() == {table.checks[0].record.url}
    assert table.scheduler.forgotten == table.ids


def test_lost_leases_give_up_a_batch_without_trying_its_records_alone(table: Table) -> None:
    table.scheduler.faults[table.ids[0]] = LeaseLost("the session is over")
    assert all(isinstance(end, DropItem) for end in table.process())
    assert table.scheduler.batches == [3]


# Background tasks.


async def _raise(fault: Exception) -> None:
    raise fault


def test_a_background_task_that_raises_is_told_and_acted_upon(caplog: pytest.LogCaptureFixture) -> None:
    ends: list[str] = []

    async def run() -> None:
        task = start_task("heartbeat", _raise(MemoryError()), on_fault=lambda: ends.append("ended"))
        await asyncio.wait([task])
        await asyncio.sleep(0)

    asyncio.run(run())
    [told] = errors(caplog)
    assert "heartbeat" in told.getMessage()
    assert told.exc_info
    assert ends == ["ended"]


def test_a_background_task_that_is_cancelled_or_done_is_no_fault(caplog: pytest.LogCaptureFixture) -> None:
    ends: list[str] = []

    async def run() -> None:
        cancelled = start_task("cancelled", asyncio.sleep(HANGS), on_fault=lambda: ends.append("ended"))
        done = start_task("done", asyncio.sleep(0), on_fault=lambda: ends.append("ended"))
        cancelled.cancel()
        await asyncio.wait([cancelled, done])
        await asyncio.sleep(0)

    asyncio.run(run())
    assert not errors(caplog)
    assert not ends


def test_a_backlog_that_cant_be_read_ends_the_crawl(
    table: Table, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    engine = FakeEngine()
    frontier = frontier_of(table.scheduler.session, engine=engine)

    def backlog(*given: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(frontier.queue, "backlog", backlog)

    async def run() -> None:
        frontier.feeder.refresh_backlog()
        async with asyncio.timeout(HANGS):
            while not engine.closed:  # noqa: ASYNC110  # the task is the feeder's
                await asyncio.sleep(0.01)

    asyncio.run(run())
    assert engine.closed == ["internal_error"]
    assert any("reading the backlog" in record.getMessage() for record in errors(caplog))


class BrokenResolver:
    """A resolver with a fault of ours."""

    async def resolve(self, host: str) -> Any:
        raise LookupError(host)


def test_a_name_whose_lookup_fails_for_a_fault_of_ours_lets_its_tasks_go_on(
    table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    frontier = frontier_of(table.scheduler.session, resolver=BrokenResolver())

    async def run() -> None:
        frontier.router.enqueue(request_to("http://a.example/"))
        async with asyncio.timeout(HANGS):
            while frontier.router.is_looking_up:  # noqa: ASYNC110  # the task is the router's
                await asyncio.sleep(0.01)

    asyncio.run(run())
    assert frontier.bench.next_wake() is not None
    assert any("a.example" in record.getMessage() for record in errors(caplog))
