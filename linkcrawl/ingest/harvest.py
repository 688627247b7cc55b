"""Complete harvests: mentions that a whole harvest no longer has are retired, unless something looks wrong with it.

`HarvestNotes` watches the rows while they are read. `reconcile` then judges each collection by itself, after the last
row: a collection is retired in one step, or not at all.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from enum import StrEnum

from attrs import define, field, frozen

from linkcrawl.items import Reject, Seed, Unread
from linkcrawl.sources import display_name
from linkcrawl.sources.checkpoint import Checkpoint
from linkcrawl.stores.contract import LinkEntry, Retired, Store

#: The largest part of a harvest's lines that may be rejected; where more are, nothing is retired.
MOST_REJECTED = 0.1


class Scope(StrEnum):
    """What the sources are said to be the whole harvest of: every collection that occurs in them, or the catalogue."""

    COLLECTIONS = "collections"
    CATALOGUE = "all"


@define
class HarvestNotes:
    """What was seen of a harvest while it was read. Collections: "" stands for none."""

    collections: set[str] = field(factory=set, init=False)
    read: int = field(default=0, init=False)
    rejected: int = field(default=0, init=False)
    unread: list[str] = field(factory=list, init=False)
    empty: list[str] = field(factory=list, init=False)

    def watch(self, source: str, rows: Iterable[Seed | Reject | Checkpoint]) -> Iterator[Seed | Reject | Checkpoint]:
        """The rows of a source, as they are read."""
        before = self.read
        for row in rows:
            if isinstance(row, Seed):
                self.read += 1
                self.collections.add(row.collection or "")
            elif isinstance(row, Reject):
                self.read += 1
                self.rejected += 1
                if isinstance(row, Unread):
                    self.unread.append(f"{row.source} {row.why}")
            yield row
        if self.read == before:
            self.empty.append(display_name(source))

    def doubts(self) -> list[str]:
        """Why this can't be the whole harvest; empty where nothing speaks against it."""
        doubts = [f"{name} is empty" for name in self.empty] + self.unread[:3]
        if len(self.unread) > 3:
            doubts.append(f"{len(self.unread) - 3:,} more can't be read")
        if self.rejected > MOST_REJECTED * self.read:
            doubts.append(f"{self.rejected:,} of {self.read:,} lines were rejected, more than a tenth")
        return doubts


class SeenLinks:
    """Keys of the links that a dry run has seen, in a temporary file of SQLite's: memory doesn't grow with them."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute("CREATE TABLE seen (key BLOB PRIMARY KEY) WITHOUT ROWID")

    def add(self, entries: Sequence[LinkEntry]) -> None:
        self._db.execute("BEGIN")
        self._db.executemany("INSERT OR IGNORE INTO seen VALUES (?)", [(entry.key,) for entry in entries])
        self._db.execute("COMMIT")

    def __contains__(self, key: bytes) -> bool:
        return self._db.execute("SELECT 1 FROM seen WHERE key = ?", (key,)).fetchone() is not None

    def close(self) -> None:
        self._db.close()


@frozen(kw_only=True)
class RetireRules:
    """How a harvest is reconciled. `limit`: the largest part of a collection's links that it may retire. `force`: the
    guard is passed over. `dry_run`: count only."""

    scope: Scope
    limit: float
    force: bool = False
    dry_run: bool = False


@frozen(kw_only=True)
class Reconciliation:
    """What came of a harvest: what was retired (in a dry run: would be; links only), by collection, "" for none; and
    a sentence for each reason that something wasn't."""

    retired: dict[str, Retired] = field(factory=dict)
    refused: tuple[str, ...] = ()

    @property
    def total(self) -> Retired:
        return sum(self.retired.values(), Retired())


def reconcile(
    store: Store, harvest: int, notes: HarvestNotes, rules: RetireRules, now: float, seen: SeenLinks | None = None
) -> Reconciliation:
    """Retire what the harvest lacks, collection after collection, in the order of their names. `now`: Unix seconds.
    `seen`: in a dry run, the links that the harvest has. May be repeated after StoreLost."""
    doubts = [] if rules.force else notes.doubts()
    if doubts:
        return Reconciliation(refused=(f"nothing is retired: {'; '.join(doubts)}; a whole harvest would work",))
    names = notes.collections
    if rules.scope is Scope.CATALOGUE:
        names = {*store.collections(), ""}
    retired: dict[str, Retired] = {}
    refused = []
    for name in sorted(names):
        with closing(_lost(store, harvest, name, tuple(retired))) as keys:
            lost = sum(seen is None or key not in seen for key in keys)
        links = store.links_of(name)
        if lost > rules.limit * links and not rules.force:
            refused.append(
                f"collection {name!r} is left as it is: the harvest lacks {lost:,} of its {links:,} links, more than "
                f"LINKCRAWL_RETIRE_LIMIT ({rules.limit:g}) allows; a whole harvest would work, or --force"
            )
        else:
            retired[name] = Retired(links=lost) if rules.dry_run else store.retire(harvest, name, now)
    return Reconciliation(
        retired={name: done for name, done in retired.items() if done != Retired()}, refused=tuple(refused)
    )


def _lost(store: Store, harvest: int, name: str, before: Sequence[str]) -> Generator[bytes, None, None]:
    yield from store.lost(harvest, name, before)
