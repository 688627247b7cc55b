"""Copying a whole store into another, of whatever kind: links with all their mentions, every check, and what is known
of hosts.

The copy goes in the order of links' keys, then in the order in which records are exported, batch by batch. The target
keeps, in one transaction with each batch or after it, how far it is (`CopyProgress`); so a copy that was killed goes on
from there, and a target that holds one is told from a store of its own. Batches may be written again: that changes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from attrs import asdict, evolve, frozen

from linkcrawl.errors import StoreError
from linkcrawl.items import LinkState, Record

#: Links and records of one batch.
BATCH = 500

#: What a store counts for `sums`, in the order of the printed table.
SUMS = ("links", "retired links", "mentions", "records", "hosts", "robots.txt", "orders", "harvests", "check requests")

#: Tables that are copied as they are, row by row: name -> its columns. `link` is the hexadecimal key of a link.
ROWS: Mapping[str, tuple[str, ...]] = {
    "hosts": ("host", "head_useless_since", "last_end", "failing_since", "failing_days", "pace", "robots"),
    "robots": ("authority", "until", "entry"),
    "orders": ("host", "act", "at", "reason", "until"),
    "harvests": ("id", "began_at", "ended_at"),
    "check_requests": ("id", "asked_at", "by", "reason"),
    "requested_checks": ("request", "link", "checked_at"),
}


@frozen(kw_only=True)
class CopiedMention:
    """One mention of a link, retired or not. `extra`: JSON text."""

    collection: str | None
    provider: str | None
    record: str | None
    resource_type: str | None
    expected_mime: str | None
    extra: str | None
    retired_at: float | None
    harvest: int


@frozen(kw_only=True)
class CopiedLink:
    """A link with everything that its store keeps of it, records aside."""

    key: bytes
    url: str
    host: str
    priority: int
    expected_mime: str | None
    next_check_at: float
    retired_at: float | None
    last_checked_at: float | None
    last_category: str | None
    state: LinkState
    collections: tuple[str, ...]
    providers: tuple[str, ...]
    mentions: tuple[CopiedMention, ...]


@frozen(kw_only=True)
class CopiedRecord:
    """A check. `place`: its place in the order of the source's exports. `is_latest`: it is its link's latest."""

    key: bytes
    record: Record
    place: tuple[float, int]
    is_latest: bool


@frozen(kw_only=True)
class CopyProgress:
    """How far a copy is. `source`: its name, without a password. `sums`: of the source when the copy began. `key`: hex
    of the last link copied. `place`: of the last record copied, of `records` so far. `links_done`: all links are
    copied."""

    source: str
    sums: Mapping[str, int]
    key: str = ""
    links_done: bool = False
    place: tuple[float, int] | None = None
    records: int = 0

    def document(self) -> dict[str, Any]:
        """The progress for JSON and BSON."""
        return asdict(self)

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> CopyProgress:
        """The progress that `document` made this of."""
        place = document["place"]
        return cls(**{**document, "place": None if place is None else (float(place[0]), int(place[1]))})


class Copyable(Protocol):
    """A store as the source or the target of a copy."""

    def sums(self) -> dict[str, int]:
        """Counts of all that is copied, by SUMS."""

    def links(self, after: bytes, limit: int) -> list[CopiedLink]:
        """Links in the order of keys, after this one."""

    def records(self, after: tuple[float, int] | None, limit: int) -> list[CopiedRecord]:
        """Records in the order of exports, after this place."""

    def rows(self, table: str) -> Iterable[tuple[Any, ...]]:
        """All rows of a table of ROWS; times are Unix seconds."""

    def progress(self) -> CopyProgress | None:
        """How far a copy into this store is; None where it is no copy, or a finished one."""

    def add_links(self, links: Sequence[CopiedLink], progress: CopyProgress) -> None:
        """Store links and their mentions. Links that are there stay."""

    def add_records(self, records: Sequence[CopiedRecord], first: int, progress: CopyProgress) -> None:
        """Store records; the first of them is the source's `first`th, from 0."""

    def add_rows(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Store rows of a table of ROWS in the place of those that are there."""

    def note(self, progress: CopyProgress | None) -> None:
        """Keep how far the copy is; None: it is whole."""


def copy(
    source: Copyable, target: Copyable, name: str, on_progress: Callable[[int, int], None]
) -> tuple[dict[str, int], dict[str, int]]:
    """Copy everything, or the rest. `name`: the source's. `on_progress` gets the links and records so far. Returns the
    sums of both.

    Raises StoreError where the target is no empty store and no unfinished copy of the source, and where the source has
    changed since that copy began."""
    sums = source.sums()
    progress = target.progress()
    if progress is None:
        held = [f"{count} {what}" for what, count in target.sums().items() if count]
        if held:
            raise StoreError(f"TO holds {', '.join(held)} already; an empty store would work")
        progress = CopyProgress(source=name, sums=sums)
        target.note(progress)
    elif progress.source != name:
        raise StoreError(f"TO holds an unfinished copy of {progress.source}; that, or an empty TO, would work")
    elif progress.sums != sums:
        raise StoreError("FROM has changed since this copy began; an empty TO would work")
    count = 0
    while not progress.links_done:
        links = source.links(bytes.fromhex(progress.key), BATCH)
        key = links[-1].key.hex() if links else progress.key
        progress = evolve(progress, key=key, links_done=not links)
        target.add_links(links, progress)
        count += len(links)
        on_progress(count, progress.records)
    while records := source.records(progress.place, BATCH):
        first = progress.records
        progress = evolve(progress, place=records[-1].place, records=first + len(records))
        target.add_records(records, first, progress)
        on_progress(sums["links"], progress.records)
    for table in ROWS:
        batch: list[tuple[Any, ...]] = []
        for row in source.rows(table):
            batch.append(row)
            if len(batch) >= BATCH:
                target.add_rows(table, batch)
                batch = []
        target.add_rows(table, batch)
    before, after = source.sums(), target.sums()
    if before == after:
        target.note(None)
    return before, after
