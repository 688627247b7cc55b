"""The records pipeline beside a user's own items and pipelines: it reads items through ItemAdapter, as Scrapy does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import scrapy
from attrs import define
from itemadapter import ItemAdapter
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector

from linkcrawl.items import RECORD_FIELDS, Finished, Record
from linkcrawl.pipelines.records import RecordsPipeline
from linkcrawl.session import Session
from tests.contract.making import check, entry
from tests.unit.frontier_kit import T0, Clock, session


class ScrapyItem(scrapy.Item):
    record = scrapy.Field()
    state = scrapy.Field()
    of = scrapy.Field()
    note = scrapy.Field()


@define
class Landing:
    """An item of somebody else's spider middleware, whose fields have names that ours have too."""

    url: str
    record: str
    state: str = "draft"


class Scheduler:
    """What the pipeline asks of a scheduler, in a crawl that loses nothing."""

    is_giving_up = False

    def __init__(self, session: Session):
        self.store = session.store.finish
        self.forgotten: list[int | str] = []

    async def confirm(self, record: Record) -> bool:
        return True

    def owns(self, link_id: int | str) -> bool:
        return True

    def forget(self, link_id: int | str) -> None:
        self.forgotten.append(link_id)


@define
class Table:
    """A pipeline, the session that it stores into, and a check that has ended."""

    pipeline: RecordsPipeline
    session: Session
    finished: Finished

    def process(self, item: Any) -> Any:
        return asyncio.run(self.pipeline.process_item(item))

    def stored(self) -> list[str]:
        return [record.url for record in self.session.store.records()]


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Table]:
    at = session(tmp_path, Clock())
    monkeypatch.setattr(RecordsPipeline, "_scheduler", Scheduler(at))
    at.store.add([entry(1)])
    [link] = at.store.due(entry(1).host, T0, 10)
    stats = MemoryStatsCollector(SimpleNamespace(settings=Settings()))  # type: ignore[arg-type]
    crawler: Any = SimpleNamespace(stats=stats, spider=SimpleNamespace(session=at))
    yield Table(RecordsPipeline(crawler), at, check(link, T0))
    at.worker.close()


@pytest.mark.parametrize(
    "item",
    [
        {"url": "https://example.org/", "record": "Corpora/oai_1.xml", "state": None},
        Landing(url="https://example.org/", record="Corpora/oai_1.xml"),
        ScrapyItem(record="Corpora/oai_1.xml", note="ours"),
        "no item at all",
    ],
    ids=["dict", "attrs class", "scrapy.Item", "text"],
)
def test_an_item_of_a_users_own_passes_through_untouched(table: Table, item: Any) -> None:
    before = repr(item)
    assert table.process(item) is item
    assert repr(item) == before
    assert table.stored() == []


@pytest.mark.parametrize("made", [dict, ScrapyItem], ids=["dict", "scrapy.Item"])
def test_a_check_that_a_pipeline_before_has_copied_is_stored_all_the_same(table: Table, made: Any) -> None:
    copy = made(ItemAdapter(table.finished))
    ItemAdapter(copy)["note"] = "seen"
    assert table.process(copy) == table.finished.record
    assert table.stored() == [table.finished.record.url]


def test_a_pipeline_after_ours_reads_the_record_through_itemadapter(table: Table) -> None:
    fields = ItemAdapter(table.process(table.finished))
    assert set(RECORD_FIELDS) < set(fields.field_names())
    assert (fields["url"], fields["category"]) == (table.finished.record.url, table.finished.record.category)
    assert table.stored() == [fields["url"]]
