"""Ingesting seeds while a crawl runs: a source once and, in a continuous crawl, whatever comes later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from attrs import frozen

from linkcrawl import sources
from linkcrawl.clock import until_next
from linkcrawl.errors import ConfigError, SourceLost, StoreLost
from linkcrawl.ingest.harvest import HarvestNotes, Reconciliation, RetireRules
from linkcrawl.ingest.ingest import IngestCounts, SeedBatch, batch_rows, read_batches
from linkcrawl.stores.contract import AddCounts, LinkEntry

if TYPE_CHECKING:
    from linkcrawl.sources.databases import NewDocuments
    from linkcrawl.sources.pushed import PushedSeeds

logger = logging.getLogger(__name__)

#: Seconds between two polls of a Redis key.
POLL_REDIS = 4.0
#: Seconds between two reloads of the backlog while seeds come in.
REFRESH = 1.0
#: Seconds between two polls of a MongoDB collection.
POLL_MONGODB = 5.0
#: Seconds between two log lines about a source that is away.
REPEAT = 60.0
#: Seconds between two log lines about how far the seeds have been taken up.
TELL = 10.0


@frozen(kw_only=True)
class CrawlSeeds:
    """Where a crawl's seeds come from. `source`: read once, None for none. `rules`: how it is reconciled where it is a
    complete harvest. `watched`: a MongoDB collection whose new
    documents are seeds, and `pushed`: a Redis key that people push seeds to, as long as the crawl runs. `rejects`: the
    file of rejected rows."""

    source: str | None
    watched: str | None
    pushed: str | None
    rejects: Path
    rules: RetireRules | None = None


class Harvests(Protocol):
    """What retiring needs of the store, each waiting while that is lost."""

    async def begin(self) -> int:
        """Store.begin_harvest."""
        ...

    async def retire(self, entries: Sequence[LinkEntry]) -> None:
        """Store.retire_mentions."""
        ...

    async def end(self, harvest: int, notes: HarvestNotes, rules: RetireRules) -> Reconciliation:
        """`harvest.reconcile`, then Store.end_harvest."""
        ...


class LiveIngest:
    """Reads seeds in threads of its own, and has the store's thread add them.

    `steady`: a clock in seconds that never jumps. `add`: adds entries to the store, waiting while it is lost.
    `refresh_backlog`: called when the store has links that may be due. `on_new_links`: called after a source with new
    links. `on_taken_up`: called when the source has been read to its end and is in the store, or there is none.
    `harvests`: reconciles a complete harvest.
    """

    def __init__(
        self,
        seeds: CrawlSeeds,
        *,
        steady: Callable[[], float],
        add: Callable[[Sequence[LinkEntry], int], Awaitable[AddCounts]],
        refresh_backlog: Callable[[], None],
        on_new_links: Callable[[], Awaitable[None]],
        on_taken_up: Callable[[], None],
        harvests: Harvests,
    ):
        self._seeds = seeds
        self._on_taken_up = on_taken_up
        self._harvests = harvests

        self._steady = steady
        self._add = add
        self._refresh_backlog = refresh_backlog
        self._on_new_links = on_new_links

    async def run(self) -> None:
        """Ingest the source, then watch for more until cancelled, where there is anything to watch. Raises ConfigError,
        StoreLost, and SourceLost where the first reading fails."""
        seeds, documents, pushed = self._seeds, None, None
        if seeds.watched is not None:
            from linkcrawl.sources import databases  # it needs the extra `mongo`

            # before the source is read, so that no document is missed in between
            documents = await asyncio.to_thread(databases.NewDocuments, seeds.watched)
        try:
            if seeds.source is not None and seeds.rules is not None:
                await self._ingest_harvest(seeds.source, seeds.rules)
            elif seeds.source is not None:
                await self._ingest_source(seeds.source)
            self._on_taken_up()
            polls: list[Coroutine[Any, Any, None]] = []
            if documents is not None:
                polls.append(self._poll(POLL_MONGODB, lambda: self._ingest_documents(documents)))
            if seeds.pushed is not None:
                from linkcrawl.sources.pushed import PushedSeeds  # it needs the extra `redis`

                pushed = PushedSeeds(seeds.pushed)
                polls.append(self._poll(POLL_REDIS, lambda: self._ingest_pushed(pushed)))
            await asyncio.gather(*polls)
        finally:
            if pushed is not None:
                await pushed.close()
            if documents is not None:
                documents.close()

    async def _poll(self, seconds: float, ingest: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Ingest for ever. Raises StoreLost; any other fault is logged, and the next poll tries again."""
        logged_at = float("-inf")
        while True:
            try:
                await ingest()
            except StoreLost:
                raise
            except Exception as fault:
                now = self._steady()
                if now - logged_at > REPEAT:
                    logged_at = now
                    if isinstance(fault, ConfigError | SourceLost):
                        logger.error("%s", fault)
                    else:
                        logger.exception("Ingesting seeds met a fault of ours and goes on")
            await asyncio.sleep(until_next(seconds))

    async def _ingest_source(self, source: str) -> None:
        counts = await self._ingest(read_batches([source], self._seeds.rejects))
        self._log(sources.display_name(source), counts)
        if counts.new:
            await self._on_new_links()

    async def _ingest_harvest(self, source: str, rules: RetireRules) -> None:
        notes, harvest = HarvestNotes(), await self._harvests.begin()
        counts = await self._ingest(read_batches([source], self._seeds.rejects, notes), harvest)
        self._log(sources.display_name(source), counts)
        done = await self._harvests.end(harvest, notes, rules)
        for name, retired in done.retired.items():
            logger.info("Links retired, collection %s: %d", repr(name) if name else "none", retired.links)
        for reason in done.refused:
            logger.error("seeds: %s", reason)
        if counts.new:
            await self._on_new_links()

    async def _ingest_documents(self, documents: NewDocuments) -> None:
        counts = await self._ingest(batch_rows(documents.poll(), self._seeds.rejects))
        if counts.read:
            self._log("new documents", counts)

    async def _ingest_pushed(self, pushed: PushedSeeds) -> None:
        if await pushed.are_there():
            await self._ingest_source(pushed.source)

    async def _ingest(self, reading: Iterator[SeedBatch], harvest: int = 0) -> IngestCounts:
        counts, refreshed_at, told_at = IngestCounts(), self._steady(), self._steady()
        async for batch in _in_a_thread(reading):
            counts = counts.plus(batch, await self._add(batch.entries, harvest))
            if batch.retracted:
                await self._harvests.retire(batch.retracted)
            if self._steady() - told_at > TELL:
                told_at = self._steady()
                logger.info("Seeds: %d read so far, %d of them new", counts.read, counts.new)
            if self._steady() - refreshed_at > REFRESH:
                refreshed_at = self._steady()
                self._refresh_backlog()
        if counts.read:
            self._refresh_backlog()
        return counts

    def _log(self, source: str, counts: IngestCounts) -> None:
        where = f" (they are in {self._seeds.rejects})" if counts.rejected else ""
        numbers = (counts.read, counts.new, counts.known, counts.rejected)
        logger.info("Seeds of %s: %d read, %d new, %d known, %d rejected%s", source, *numbers, where)


async def _in_a_thread(reading: Iterator[SeedBatch]) -> AsyncIterator[SeedBatch]:
    while (batch := await asyncio.to_thread(next, reading, None)) is not None:
        yield batch
