"""The pipeline that keeps records: in batches, off the reactor thread, and passed on only once they are stored."""

from __future__ import annotations

import asyncio
import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any

from itemadapter import ItemAdapter, is_item
from scrapy.exceptions import DropItem

from linkcrawl.errors import LeaseLost, StoreLost
from linkcrawl.frontier.scheduler import Scheduler
from linkcrawl.frontier.tasks import start_task
from linkcrawl.items import Finished, LinkState, Record, iso
from linkcrawl.session import Session, session_of
from linkcrawl.status.refusals import CHALLENGED, UNNAMED, refusing_host
from linkcrawl.stores.retry import retry_while_store_lost
from linkcrawl.text import one_line

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

#: Prefix of the stats that count checks at a wall; the wall's name and the host that showed it follow.
WALLS = "linkcrawl/wall/"
#: Seconds that a record waits for others to share its transaction. An answer this fresh may be asked again after a
#: crash, so it is kept near what a disk needs to make a transaction safe.
GATHER = 0.05
#: Characters of a URL, or of what a store says, that a log line shows.
SHOWN = 200


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
    LINKCRAWL_PATIENCE the crawl ends with `store_lost`. A record that the store can't keep for any other reason is
    logged, its link stays due and is not asked again before its usual time; the other records of its batch are
    stored."""

    def __init__(self, crawler: Crawler):
        self._crawler = crawler
        self._waiting: list[tuple[Finished, asyncio.Future[bool]]] = []
        self._writer: asyncio.Task[None] | None = None
        self._traced: set[type[Exception]] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    async def process_item(self, item: Any) -> Any:
        """A finished check becomes its stored Record; any other item is passed on as it is."""
        finished = finished_check(item)
        if finished is None:
            return item
        record = finished.record
        scheduler, session = self._scheduler, self._session
        epoch = session.lease_epoch
        confirmed = await scheduler.confirm(record)
        if epoch != session.lease_epoch or not scheduler.owns(record.link_id):
            raise DropItem("the link is another worker's by now")
        if not confirmed:
            scheduler.check_again(finished)
            raise DropItem("our own network is down; the link is checked again when it is back")
        stored: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((finished, stored))
        if self._writer is None:
            self._writer = start_task("records writer", self._write())
        if not await stored:
            raise DropItem("it was not stored: the store is lost or can't keep it, or has another worker's check")
        return self._counted(record)

    @cached_property
    def _session(self) -> Session:
        return session_of(self._crawler)

    @cached_property
    def _scheduler(self) -> Scheduler:
        """Scrapy makes it after its pipelines."""
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
        try:
            while self._waiting:
                await asyncio.sleep(GATHER)
                batch, self._waiting = self._waiting, []
                await self._write_batch(batch)
        finally:
            self._writer = None

    async def _write_batch(self, batch: list[tuple[Finished, asyncio.Future[bool]]]) -> None:
        """Store a batch and answer all who wait for it, whatever comes in between: the engine waits for them."""
        refused = frozenset(finished.record.link_id for finished, _ in batch)
        try:
            refused = await self._store([finished for finished, _ in batch])
        except Exception as fault:
            self._log_fault(f"{len(batch)} records are given up, their links stay due", fault)
        for finished, future in batch:
            link_id = finished.record.link_id
            self._forget(link_id)
            if not future.done():
                future.set_result(link_id not in refused)

    async def _store(self, batch: list[Finished]) -> frozenset[int | str]:
        """The links whose records were not stored. A batch that the store can't take is stored one by one."""
        left, refused = list(batch), set[int | str]()
        try:
            try:
                return await self._finish(batch)
            except (LeaseLost, StoreLost):
                raise
            except Exception as fault:
                self._log_fault(f"{len(batch)} records can't be stored together, each is stored alone", fault)
            while left:
                refused |= await self._store_alone(left[0])
                del left[0]
        except LeaseLost as fault:
            logger.warning("%d records are given up: %s", len(left), fault)
        except StoreLost as fault:
            self._give_up(left, fault)
        return frozenset(refused.union(finished.record.link_id for finished in left))

    async def _store_alone(self, finished: Finished) -> frozenset[int | str]:
        """The same for one record that was in a batch the store could not take. Raises LeaseLost, StoreLost."""
        record = finished.record
        try:
            return await self._finish([finished])
        except (LeaseLost, StoreLost):
            raise
        except Exception as fault:
            url, until = one_line(record.url[:SHOWN]), record.next_check_at
            self._scheduler.set_aside(record.link_id, until)
            said = f"The store can't keep the record of {url} ({record.reason}); this crawl asks its link again at"
            self._log_fault(f"{said} {iso(until)} at the earliest", fault)
        return frozenset([record.link_id])

    async def _finish(self, batch: list[Finished]) -> frozenset[int | str]:
        session = self._session
        if self._scheduler.is_giving_up:  # its patience is spent: what comes in from flight is tried once
            return await session.worker.call(self._scheduler.store, batch)
        return await retry_while_store_lost(session, self._scheduler.store, batch)

    def _forget(self, link_id: int | str) -> None:
        """Let go of a link. A fault in that must not keep those from their answers who wait for the batch."""
        try:
            self._scheduler.forget(link_id)
        except Exception as fault:
            self._log_fault(f"Link {link_id} can't be let go", fault)

    def _log_fault(self, what: str, fault: Exception) -> None:
        """Log a fault; with its traceback where it is the first of its kind, for a broken store has one a record."""
        trace = None if type(fault) in self._traced else fault
        self._traced.add(type(fault))
        logger.error("%s: %s: %s", what, type(fault).__name__, one_line(str(fault)[:SHOWN]), exc_info=trace)

    def _give_up(self, batch: list[Finished], fault: StoreLost) -> None:
        logger.error("%d records are given up, their links stay due: %s", len(batch), fault)
        self._scheduler.give_up(fault)
