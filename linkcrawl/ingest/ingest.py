"""Taking seeds up: the rows of sources, read, tidied and keyed, into the store, a batch at a time."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

from attrs import asdict, field, frozen

from linkcrawl import sources, urls
from linkcrawl.errors import ConfigError, StoreLost
from linkcrawl.items import Reject, Seed
from linkcrawl.sources import files
from linkcrawl.sources.marks import Checkpoint
from linkcrawl.sources.rows import internal_error, reject
from linkcrawl.stores.contract import AddCounts, LinkEntry, Store

logger = logging.getLogger(__name__)

#: Entries of a batch, one transaction of a store.
BATCH = 1000

#: Characters of URLs and unknown fields after which a batch ends early: it bounds memory where rows are huge.
BATCH_TEXT = 8_000_000

#: Rejects that are logged one by one; the file has all of them.
LOGGED_REJECTS = 20


@frozen(kw_only=True)
class Counts:
    """What became of the rows. The sums are right at any time: read = new + known + rejected."""

    read: int = 0
    new: int = 0
    known: int = 0
    rejected: int = 0

    def plus(self, batch: Batch, taken: AddCounts) -> Counts:
        """The counts after a batch that the store took."""
        return Counts(
            read=self.read + len(batch.entries) + batch.rejected,
            new=self.new + taken.new,
            known=self.known + taken.known,
            rejected=self.rejected + batch.rejected,
        )


@frozen(kw_only=True)
class Batch:
    """Entries for the store, and how many rows were rejected on the way to them."""

    entries: Sequence[LinkEntry] = field(factory=tuple)
    rejected: int = 0


def ingest(
    names: Sequence[str],
    store: Store,
    rejects: Path,
    progress: Callable[[Counts], None] | None = None,
    lost: Callable[[StoreLost], None] | None = None,
) -> Counts:
    """Take the sources' seeds up into the store; `progress` is told the counts after each batch, `lost` of a store that
    was lost: where it returns, the batch is tried again.

    Rejected rows are added to the file `rejects` as JSON lines. Raises ConfigError, before anything is taken, where
    a source can't be read, or where `rejects` can't be written; StoreLost as the store does, without `lost`.
    """
    counts = Counts()
    for batch in batches(names, rejects):
        counts = counts.plus(batch, _added(batch.entries, store, lost))
        if progress is not None:
            progress(counts)
    return counts


def _added(entries: Sequence[LinkEntry], store: Store, lost: Callable[[StoreLost], None] | None) -> AddCounts:
    while True:
        try:
            return store.add(entries)
        except StoreLost as fault:
            if lost is None:
                raise
            lost(fault)


def batches(names: Sequence[str], rejects: Path) -> Iterator[Batch]:
    """The sources' seeds as batches of at most BATCH entries, for `store.add`; raises as `ingest` does, at once."""
    check_sources(names, rejects)
    return batches_of((row for name in names for row in sources.read(name, leave_out=rejects)), rejects)


def check_sources(names: Sequence[str], rejects: Path) -> None:
    """Raise ConfigError for a source that can't be read, or that is the file `rejects`: its rows would be rejected
    into it, to be read next, without end. In a folder that file is passed over."""
    for name in names:
        sources.check_source(name)
        if files.same_file(Path(name), rejects):
            raise ConfigError(
                f"seeds: {name!r} is the file of LINKCRAWL_REJECTS, which would grow while it is read; a copy works"
            )


def batches_of(rows: Iterable[Seed | Reject | Checkpoint], rejects: Path) -> Iterator[Batch]:
    """Rows as batches, as `batches` gives them."""
    log = _RejectLog(rejects)
    entries: list[LinkEntry] = []
    size = rejected = 0
    try:
        for row in rows:
            if isinstance(row, Checkpoint):
                log.flush()
                yield Batch(entries=entries, rejected=rejected)
                entries, size, rejected = [], 0, 0
                row.stored()
                continue
            made = row if isinstance(row, Reject) else _entry_or_reject(row)
            if isinstance(made, Reject):
                log.add(made)
                rejected += 1
            else:
                entries.append(made)
                size += _size(made.seed)
            if len(entries) >= BATCH or rejected >= BATCH or size >= BATCH_TEXT:
                log.flush()
                yield Batch(entries=entries, rejected=rejected)
                entries, size, rejected = [], 0, 0
        if entries or rejected:
            log.flush()
            yield Batch(entries=entries, rejected=rejected)
    finally:
        log.close()


def entry(seed: Seed) -> LinkEntry:
    """A seed ready for the store."""
    url = urls.tidy(seed.url)
    reading = urls.read_tidy(url)
    host = reading.host if isinstance(reading, urls.Target) else ""
    return LinkEntry(key=urls.key(url, reading), url=url, host=host, seed=seed)


def _entry_or_reject(seed: Seed) -> LinkEntry | Reject:
    """The entry of a seed; a fault of ours is logged and costs this seed only."""
    try:
        return entry(seed)
    except Exception as fault:
        logger.exception("A seed can't be made ready for the store")
        return reject(internal_error(fault), source="seeds", line=0, text=seed.url)


def _size(seed: Seed) -> int:
    return len(seed.url) + (len(str(seed.extra)) if seed.extra else 0)


class _RejectLog:
    """The rejects file, made when the first row is rejected; and the first of them in the log."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: TextIO | None = None
        self._count = 0

    def add(self, reject: Reject) -> None:
        self._count += 1
        if self._count <= LOGGED_REJECTS:
            logger.warning("rejected %s", describe(reject))
        elif self._count == LOGGED_REJECTS + 1:
            logger.warning("more rejected lines are in %s", self._path)
        try:
            if self._file is None:
                self._file = self._path.open("a", encoding="ascii")
            self._file.write(json.dumps(asdict(reject)) + "\n")
        except OSError as error:
            raise self._unwritable(error) from None

    def flush(self) -> None:
        """Rejected rows are in the file before the batch that they belong to is taken."""
        try:
            if self._file is not None:
                self._file.flush()
        except OSError as error:
            raise self._unwritable(error) from None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def _unwritable(self, error: OSError) -> ConfigError:
        return ConfigError(
            f"LINKCRAWL_REJECTS: {str(self._path)!r} can't be written: {error.strerror or error}; "
            "the path of a file in a folder that can be written would work"
        )


def describe(reject: Reject) -> str:
    """One printable line that says where a row stood and why it was rejected."""
    where = reject.source if reject.source.isprintable() else ascii(reject.source)
    why = reject.why if reject.why.isprintable() else ascii(reject.why)
    return f"{where}:{reject.line}: {why}" if reject.line else f"{where}: {why}"
