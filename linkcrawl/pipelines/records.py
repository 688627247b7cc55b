"""The pipeline that keeps records: in batches, off the reactor thread, and passed on only once they are stored."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter, is_item
from scrapy.exceptions import DropItem

from linkcrawl.errors import LeaseLost, StoreLost
from linkcrawl.frontier.scheduler import Scheduler
from linkcrawl.items import Finished, LinkState, Record
from linkcrawl.session import session_of
from linkcrawl.status.refusals import CHALLENGED, UNNAMED, refusing_host
from linkcrawl.stores.retry import retry_while_store_lost

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

#: Prefix of the stats that count checks at a wall; the wall's name and the host that showed it follow.
WALLS = "linkcrawl/wall/"
#: Seconds that a record waits for others to share its transaction. An answer this fresh may be asked again after a
#: crash, so it is kept near what a disk needs to make a transaction safe.
GATHER = 0.05


def finished_check(item: Any) -> Finished | None:
    """The finished check in an item: `Finished` itself, or an item of any class that another pipeline has copied its
    fields into. None for an item of somebody else's."""
    if isinstance(item, Finished):
        return item
    if not is_item(item):
        return None
    fields = ItemAdapter(item)
    record, state = fields.get("record"), fields.get("state")
    if not (isinstance(record, Record) and isinstance(state, LinkState)):
        return None
    return Finished(record=record, state=state, of=fields.get("of"))


class RecordsPipeline:
    """Takes `Finished` checks, stores them, and passes their records on to the feeds: a feed never shows what the
    store doesn't have. While the store can't be reached the items wait here and nothing is sent; after
    LINKCRAWL_PATIENCE the crawl ends with `store_lost`."""

    def __init__(self, crawler: Crawler):
        self._crawler = crawler
        self._waiting: list[tuple[Finished, asyncio.Future[bool]]] = []
        self._writer: asyncio.Task[None] | None = None

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_item(self, item: Any) -> Any:
        """A finished check becomes its stored Record; any other item is passed on as it is."""
        finished = finished_check(item)
        if finished is None:
            return item
        record = finished.record
        scheduler, epoch = self._scheduler, session_of(self._crawler).lease_epoch
        confirmed = await scheduler.confirm(record)
        if epoch != session_of(self._crawler).lease_epoch or not scheduler.owns(record.link_id):
            raise DropItem("the link is another worker's by now")
        if not confirmed:
            scheduler.forget(record.link_id)
            raise DropItem("our own network is down; the link stays due")
        stored: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((finished, stored))
        if self._writer is None:
            self._writer = asyncio.create_task(self._write())
        if not await stored:
            raise DropItem("it was not stored: the store is lost, or another worker's check of the link is there")
        return self._counted(record)

    @property
    def _scheduler(self) -> Scheduler:
        scheduler = self._crawler.engine.scheduler
        assert isinstance(scheduler, Scheduler)
        return scheduler

    def _counted(self, record: Record) -> Record:
        stats = self._crawler.stats
        stats.inc_value("linkcrawl/records")
        stats.inc_value(f"linkcrawl/category/{record.category}")
        if record.reason == CHALLENGED:
            stats.inc_value(f"{WALLS}{record.wall or UNNAMED}/{refusing_host(record)}")
        return record

    async def _write(self) -> None:
        while self._waiting:
            await asyncio.sleep(GATHER)
            batch, self._waiting = self._waiting, []
            refused = await self._store([finished for finished, _ in batch])
            for finished, future in batch:
                self._scheduler.forget(finished.record.link_id)
                if not future.done():
                    future.set_result(finished.record.link_id not in refused)
        self._writer = None

    async def _store(self, batch: list[Finished]) -> frozenset[int | str]:
        """The links whose records were not stored."""
        session = session_of(self._crawler)
        try:
            if self._scheduler.is_giving_up:  # its patience is spent: what comes in from flight is tried once
                return await session.worker.call(self._scheduler.store, batch)
            return await retry_while_store_lost(session, self._scheduler.store, batch)
        except LeaseLost as fault:
            logger.warning("%d records are given up: %s", len(batch), fault)
        except StoreLost as fault:
            self._give_up(batch, fault)
        return frozenset(finished.record.link_id for finished in batch)

    def _give_up(self, batch: list[Finished], fault: StoreLost) -> None:
        logger.error("%d records are given up, their links stay due: %s", len(batch), fault)
        self._scheduler.give_up(fault)
