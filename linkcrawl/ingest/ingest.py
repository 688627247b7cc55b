"""Ingesting seeds: rows of sources become entries, tidied and keyed, which the store adds batch by batch."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import ParamSpec, TypeVar

from attrs import asdict, field, frozen

from linkcrawl import sources, urls
from linkcrawl.errors import ConfigError, LinkcrawlError, StoreLost
from linkcrawl.ingest.harvest import HarvestNotes
from linkcrawl.items import Reject, Retraction, Seed
from linkcrawl.line_file import LineFile
from linkcrawl.sources import files
from linkcrawl.sources.checkpoint import Checkpoint
from linkcrawl.sources.rows import internal_error, reject
from linkcrawl.stores.contract import AddCounts, LinkEntry, Store
from linkcrawl.text import one_line

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

#: Entries of a batch, which is one transaction of the store; also its rejects.
BATCH = 1000

#: Characters of URLs and unknown fields after which a batch ends early: it bounds memory where rows are huge.
BATCH_TEXT = 8_000_000

#: Rejects that are logged one by one; the file has all of them.
LOGGED_REJECTS = 20
#: Characters of a URL that a log line shows.
SHOWN = 200


@frozen(kw_only=True)
class SeedBatch:
    """Entries for the store, mentions to retire after them, and the number of rows that were rejected since the batch
    before."""

    entries: Sequence[LinkEntry] = field(factory=tuple)
    retracted: Sequence[LinkEntry] = field(factory=tuple)
    rejected: int = 0


@frozen(kw_only=True)
class IngestCounts:
    """Rows so far, by result: read = new + known + retracted + rejected."""

    read: int = 0
    retracted: int = 0
    new: int = 0
    known: int = 0
    rejected: int = 0

    def plus(self, batch: SeedBatch, added: AddCounts) -> IngestCounts:
        """The counts after the store has added a batch."""
        return IngestCounts(
            read=self.read + len(batch.entries) + len(batch.retracted) + batch.rejected,
            retracted=self.retracted + len(batch.retracted),
            new=self.new + added.new,
            known=self.known + added.known,
            rejected=self.rejected + batch.rejected + len(batch.entries) - added.new - added.known,
        )


def ingest(
    names: Sequence[str],
    store: Store,
    rejects: Path,
    on_progress: Callable[[IngestCounts], None] | None = None,
    on_store_lost: Callable[[StoreLost], None] | None = None,
    notes: HarvestNotes | None = None,
    add: Callable[[Store, Sequence[LinkEntry]], AddCounts] | None = None,
    *,
    now: Callable[[], float] = time.time,
    dry_run: bool = False,
) -> IngestCounts:
    """Read the sources of these names into the store, blocking. `rejects`: file to which rejected rows are appended as
    JSON lines. `on_progress` gets the counts after each batch. `on_store_lost` is called when the store is lost; if it
    returns, the batch is added again. `notes`: of a complete harvest. `add`: takes up a batch in the place of
    `add_entries`. `now`: Unix seconds. `dry_run`: pushed seeds stay where they are, and none is taken back.

    Raises ConfigError, before anything is added, for a source that can't be read; also for a `rejects` that can't be
    written. Without `on_store_lost`, raises StoreLost as the store does.
    """
    counts = IngestCounts()
    for batch in read_batches(names, rejects, notes, dry_run=dry_run):
        counts = counts.plus(batch, repeated(add or add_entries, on_store_lost, store, batch.entries))
        if batch.retracted and not dry_run:
            repeated(store.retire_mentions, on_store_lost, batch.retracted, now())
        if on_progress is not None:
            on_progress(counts)
    return counts


def repeated(
    call: Callable[P, T], on_store_lost: Callable[[StoreLost], None] | None, *args: P.args, **given: P.kwargs
) -> T:
    """What the call returns; after StoreLost it is repeated, as often as `on_store_lost` returns."""
    while True:
        try:
            return call(*args, **given)
        except StoreLost as fault:
            if on_store_lost is None:
                raise
            on_store_lost(fault)


def add_entries(store: Store, entries: Sequence[LinkEntry], harvest: int = 0) -> AddCounts:
    """`Store.add` for entries of strangers. Where the store can't take a batch, each entry is added alone; one that it
    can't take is logged and left out of the counts. Raises what the store raises where it can't take any."""
    try:
        return store.add(entries, harvest)
    except LinkcrawlError:
        raise
    except Exception as fault:
        if len(entries) == 1:
            raise
        logger.error("%d seeds can't be added together, each is added alone", len(entries), exc_info=fault)
        last = fault
    counts, failed = AddCounts(), 0
    for entry in entries:
        try:
            counts += store.add([entry], harvest)
        except LinkcrawlError:
            raise
        except Exception as fault:
            last, failed = fault, failed + 1
            logger.error("rejected %s: the store can't keep it: %s", one_line(entry.url[:SHOWN]), internal_error(fault))
    if failed == len(entries):
        raise last
    return counts


def read_batches(
    names: Sequence[str], rejects: Path, notes: HarvestNotes | None = None, *, dry_run: bool = False
) -> Iterator[SeedBatch]:
    """The sources' seeds in batches for `Store.add`. `notes`: of a complete harvest. `dry_run`: pushed seeds stay where
    they are. Raises what `check_sources` raises, at once; later ConfigError for a `rejects` that can't be written."""
    check_sources(names, rejects)
    read = sources.peek if dry_run else sources.read
    rows = ((name, read(name, leave_out=rejects)) for name in names)
    watched = (row for name, found in rows for row in (found if notes is None else notes.watch(name, found)))
    # of a harvest that goes wrong one line is told: why nothing is retired
    return batch_rows(watched, rejects, LOGGED_REJECTS if notes is None else 0)


def check_sources(names: Sequence[str], rejects: Path) -> None:
    """Raise ConfigError for a source that can't be read, or that is the file `rejects`: reading that would append to
    it, without end. (In a folder, the file is passed over.)"""
    for name in names:
        sources.check_source(name)
        if files.same_file(Path(name), rejects):
            raise ConfigError(
                f"seeds: {name!r} is the file of LINKCRAWL_REJECTS, which grows while it is read; a copy would work"
            )


def batch_rows(
    rows: Iterable[Seed | Reject | Checkpoint], rejects: Path, logged: int = LOGGED_REJECTS
) -> Iterator[SeedBatch]:
    """Rows in batches. A Checkpoint ends its batch, and is acknowledged when the caller asks for the next one. A
    mention that comes after a retraction is in a later batch. `logged`: how many rejects are logged one by one."""
    reject_log = _RejectLog(rejects, logged)
    entries: list[LinkEntry] = []
    retracted: list[LinkEntry] = []
    size = rejected = 0
    try:
        for row in rows:
            if isinstance(row, Checkpoint):
                reject_log.flush()
                yield SeedBatch(entries=entries, retracted=retracted, rejected=rejected)
                entries, retracted, size, rejected = [], [], 0, 0
                row.ack()
                continue
            if retracted and not isinstance(row, Reject | Retraction):
                yield SeedBatch(entries=entries, retracted=retracted, rejected=rejected)
                entries, retracted, size, rejected = [], [], 0, 0
            made = row if isinstance(row, Reject) else _entry_or_reject(row)
            if isinstance(made, Reject):
                reject_log.add(made)
                rejected += 1
            else:
                (retracted if isinstance(row, Retraction) else entries).append(made)
                size += _size(made.seed)
            if max(len(entries), len(retracted), rejected) >= BATCH or size >= BATCH_TEXT:
                reject_log.flush()
                yield SeedBatch(entries=entries, retracted=retracted, rejected=rejected)
                entries, retracted, size, rejected = [], [], 0, 0
        if entries or retracted or rejected:
            reject_log.flush()
            yield SeedBatch(entries=entries, retracted=retracted, rejected=rejected)
    finally:
        reject_log.close()


def link_entry(seed: Seed) -> LinkEntry:
    """The store's entry for a seed: the tidied URL, its key, and its host ("" where it can't be requested)."""
    url = urls.tidy(seed.url)
    target = urls.read_tidy(url)
    host = target.host if isinstance(target, urls.Target) else ""
    return LinkEntry(key=urls.key(url, target), url=url, host=host, seed=seed)


def _entry_or_reject(seed: Seed) -> LinkEntry | Reject:
    """The entry of a seed. A fault of ours is logged and costs only this seed."""
    try:
        return link_entry(seed)
    except Exception as fault:
        logger.exception("No entry could be made of a seed")
        return reject(internal_error(fault), source="seeds", line=0, text=seed.url)


def _size(seed: Seed) -> int:
    return len(seed.url) + (len(str(seed.extra)) if seed.extra else 0)


class _RejectLog:
    """The rejects file, created for the first reject; the first rejects are logged as well."""

    def __init__(self, path: Path, logged: int) -> None:
        self._path = path
        self._logged = logged
        self._file: LineFile | None = None
        self._lines: list[bytes] = []  # of the batch that is being made
        self._count = 0

    def add(self, reject: Reject) -> None:
        self._count += 1
        if self._count <= self._logged:
            logger.warning("rejected %s", reject_text(reject))
        elif self._logged and self._count == self._logged + 1:
            logger.warning("more rejected lines are in %s", self._path)
        self._lines.append(f"{json.dumps(asdict(reject))}\n".encode("ascii"))
        try:
            self._file = self._file or LineFile(self._path)
        except OSError as fault:
            raise self._unwritable(fault) from None

    def flush(self) -> None:
        """Write the lines: a batch's rejects are in the file before the store adds its entries."""
        lines, self._lines = self._lines, []
        try:
            if self._file is not None and lines:
                self._file.add(b"".join(lines))
        except OSError as fault:
            raise self._unwritable(fault) from None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _unwritable(self, fault: OSError) -> ConfigError:
        return ConfigError(
            f"LINKCRAWL_REJECTS: {str(self._path)!r} can't be written: {fault.strerror or fault}; "
            "the path of a file in a folder that can be written would work"
        )


def reject_text(reject: Reject) -> str:
    """One printable line: where the row stood, and why it was rejected."""
    where = reject.source if reject.source.isprintable() else ascii(reject.source)
    why = reject.why if reject.why.isprintable() else ascii(reject.why)
    return f"{where}:{reject.line}: {why}" if reject.line else f"{where}: {why}"
