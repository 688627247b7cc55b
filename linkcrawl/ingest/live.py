"""Taking seeds up while a crawl runs: a source once, and what comes into a database or is pushed, for ever."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any

from linkcrawl import sources
from linkcrawl.errors import ConfigError, SourceLost, StoreLost
from linkcrawl.ingest.ingest import Batch, Counts, batches, batches_of
from linkcrawl.session import Session
from linkcrawl.stores.retry import retry_while_store_lost
from linkcrawl.urls.userinfo import without_userinfo

if TYPE_CHECKING:
    from linkcrawl.frontier.scheduler import Scheduler
    from linkcrawl.sources.databases import NewDocuments

logger = logging.getLogger(__name__)

#: Seconds between two looks for due links while seeds are taken up, and for seeds that were pushed.
LOOK = 1.0
#: Seconds between two looks for new documents of a database.
NEW_DOCUMENTS = 5.0
#: Seconds between two lines about a source that is away.
REPEAT = 60.0


class LiveIngest:
    """Reads in threads of its own, writes in the store's, and tells the frontier."""

    def __init__(self, session: Session, scheduler: Scheduler):
        self._session = session
        self._scheduler = scheduler

    async def run(self) -> None:
        """Take up the crawl's seeds, then, in a continuous crawl, whatever comes. Raises ConfigError, StoreLost, and
        SourceLost where the first reading fails."""
        source, pushed = self._session.arguments.seeds, self._session.pushed_seeds
        documents = None
        if source is not None and self._session.arguments.continuous and source.startswith(sources.MONGODB):
            from linkcrawl.sources import databases  # it needs the extra `mongo`

            documents = await asyncio.to_thread(databases.NewDocuments, source)  # before: nothing falls between
        if source is not None:
            await self._take(source)
        watches: list[Coroutine[Any, Any, None]] = []
        if documents is not None:
            watches.append(self._again(NEW_DOCUMENTS, lambda: self._take_new(documents)))
        if pushed is not None:
            watches.append(self._again(LOOK, lambda: self._take_pushed(pushed)))
        try:
            await asyncio.gather(*watches)
        finally:
            if documents is not None:
                documents.close()

    async def _again(self, every: float, take: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Take for ever. Raises StoreLost; whatever else happens is logged, and the next turn tries again."""
        told = float("-inf")
        while True:
            try:
                await take()
            except StoreLost:
                raise
            except Exception as fault:
                now = self._session.clock.steady()
                if now - told > REPEAT:
                    told = now
                    if isinstance(fault, ConfigError | SourceLost):
                        logger.error("%s", fault)
                    else:
                        logger.exception("Taking seeds up met a fault of ours and goes on")
            await asyncio.sleep(every)

    async def _take(self, source: str) -> None:
        taken = await self._store(batches([source], self._session.config.rejects))
        self._tell(source, taken)
        if taken.new:
            await self._scheduler.watch.warn_unmeetable_rechecks()

    async def _take_new(self, documents: NewDocuments) -> None:
        taken = await self._store(batches_of(documents.poll(), self._session.config.rejects))
        if taken.read:
            self._tell("new documents", taken)

    async def _take_pushed(self, source: str) -> None:
        from linkcrawl.sources import pushed  # it needs the extra `redis`

        if await asyncio.to_thread(pushed.waiting, source):
            await self._take(source)

    async def _store(self, reading: Iterator[Batch]) -> Counts:
        session, taken = self._session, Counts()
        looked = session.clock.steady()
        async for batch in _in_a_thread(reading):
            taken = taken.plus(batch, await retry_while_store_lost(session, session.store.add, batch.entries))
            if session.clock.steady() - looked > LOOK:
                looked = session.clock.steady()
                self._scheduler.feeder.refresh_backlog()
        if taken.read:
            self._scheduler.feeder.refresh_backlog()
        return taken

    def _tell(self, source: str, taken: Counts) -> None:
        where = f" (they are in {self._session.config.rejects})" if taken.rejected else ""
        counts = (taken.read, taken.new, taken.known, taken.rejected)
        logger.info("Seeds of %s: %d read, %d new, %d known, %d rejected%s", without_userinfo(source), *counts, where)


async def _in_a_thread(reading: Iterator[Batch]) -> AsyncIterator[Batch]:
    while (batch := await asyncio.to_thread(next, reading, None)) is not None:
        yield batch
