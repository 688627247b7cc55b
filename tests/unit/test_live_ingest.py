"""Ingesting while a crawl runs: what the store gets, and what the frontier hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from attrs import define, field

from linkcrawl.errors import SourceLost, StoreLost
from linkcrawl.ingest import live
from linkcrawl.ingest.harvest import HarvestNotes, Reconciliation, RetireRules, Scope
from linkcrawl.ingest.ingest import batch_rows
from linkcrawl.ingest.live import CrawlSeeds, LiveIngest
from linkcrawl.items import Retraction, Seed
from linkcrawl.sources import pushed
from linkcrawl.stores.contract import AddCounts, LinkEntry
from tests.unit.frontier_kit import Clock


@define
class Crawl:
    """A store and a frontier that only listen."""

    clock: Clock = field(factory=Clock)
    known: set[bytes] = field(factory=set)
    calls: list[str] = field(factory=list)

    async def add(self, entries: Sequence[LinkEntry], harvest: int) -> AddCounts:
        new = {entry.key for entry in entries} - self.known
        self.known |= new
        self.calls.append(f"add {len(entries)} of {harvest}" if harvest else f"add {len(entries)}")
        self.clock.at += 0.6
        return AddCounts(new=len(new), known=len(entries) - len(new))

    async def begin(self) -> int:
        self.calls.append("harvest begins")
        return 7

    async def retire(self, entries: Sequence[LinkEntry]) -> None:
        self.calls.append(f"retire {len(entries)}")

    async def end(self, harvest: int, notes: HarvestNotes, rules: RetireRules) -> Reconciliation:
        self.calls.append(f"harvest {harvest} ends: {notes.read} read")
        return Reconciliation(refused=("nothing is retired: a test",))

    async def warn(self) -> None:
        self.calls.append("new links")

    def ingest(
        self, folder: Path, source: str | None = None, pushed: str | None = None, rules: RetireRules | None = None
    ) -> LiveIngest:
        seeds = CrawlSeeds(source=source, watched=None, pushed=pushed, rejects=folder / "rejects.jsonl", rules=rules)
        return LiveIngest(
            seeds,
            steady=self.clock,
            add=self.add,
            refresh_backlog=lambda: self.calls.append("refresh"),
            on_new_links=self.warn,
            on_taken_up=lambda: self.calls.append("taken up"),
            harvests=self,
        )


@pytest.fixture
def crawl(monkeypatch: pytest.MonkeyPatch) -> Crawl:
    monkeypatch.setattr("linkcrawl.ingest.ingest.BATCH", 2)
    return Crawl()


def seeds(folder: Path, count: int) -> str:
    path = folder / "seeds.txt"
    path.write_text("".join(f"http://a.example/{number}\n" for number in range(count)))
    return str(path)


def test_a_source_is_read_once_and_the_backlog_is_refreshed_about_every_second(crawl: Crawl, tmp_path: Path) -> None:
    asyncio.run(crawl.ingest(tmp_path, seeds(tmp_path, 7)).run())
    assert crawl.calls == ["add 2", "add 2", "refresh", "add 2", "add 1", "refresh", "refresh", "new links", "taken up"]


def test_known_links_are_no_news(crawl: Crawl, tmp_path: Path) -> None:
    source = seeds(tmp_path, 1)
    for _ in range(2):
        asyncio.run(crawl.ingest(tmp_path, source).run())
    assert crawl.calls == ["add 1", "refresh", "new links", "taken up", "add 1", "refresh", "taken up"]


def test_a_lost_store_ends_it(crawl: Crawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def add(entries: Sequence[LinkEntry], harvest: int) -> AddCounts:
        raise StoreLost("the disk is full")

    monkeypatch.setattr(Crawl, "add", staticmethod(add))
    with pytest.raises(StoreLost):
        asyncio.run(crawl.ingest(tmp_path, seeds(tmp_path, 1)).run())


def test_a_pushed_source_that_is_away_is_polled_on_and_logged_once_a_minute(
    crawl: Crawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    polls = 0

    async def are_there(key: pushed.PushedSeeds) -> bool:
        nonlocal polls
        polls += 1
        crawl.clock.at += 25
        if polls == 8:
            raise StoreLost("the disk is full")
        raise SourceLost("redis://localhost/0/key: refused")

    monkeypatch.setattr(pushed.PushedSeeds, "are_there", are_there)
    monkeypatch.setattr(live, "POLL_REDIS", 0.001)
    with pytest.raises(StoreLost):
        asyncio.run(crawl.ingest(tmp_path, pushed="redis://localhost/0/key").run())
    assert [record.getMessage() for record in caplog.records] == ["redis://localhost/0/key: refused"] * 3


def test_a_harvest_is_reconciled_before_the_source_counts_as_taken_up(
    crawl: Crawl, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rules = RetireRules(scope=Scope.COLLECTIONS, limit=0.2)
    asyncio.run(crawl.ingest(tmp_path, seeds(tmp_path, 1), rules=rules).run())
    assert crawl.calls == [
        "harvest begins",
        "add 1 of 7",
        "refresh",
        "harvest 7 ends: 1 read",
        "new links",
        "taken up",
    ]
    assert "nothing is retired: a test" in caplog.text


def test_mentions_and_retractions_are_stored_in_the_order_they_came(crawl: Crawl, tmp_path: Path) -> None:
    there, gone = Seed(url="http://a.example/1"), Retraction(url="http://a.example/1")
    rows = [there, gone, gone, there]
    batches = list(batch_rows(rows, tmp_path / "rejects.jsonl"))
    assert [(len(batch.entries), len(batch.retracted)) for batch in batches] == [(1, 2), (1, 0)]
