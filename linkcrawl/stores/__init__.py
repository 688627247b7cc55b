"""The store: links, resource proxies, records with their history, and host memory. One contract, several rooms.

A store is synchronous and blocking, and may be called from one thread at a time; `stores.worker` runs it off
the reactor. It knows nothing of crawling: it gives due links, takes finished checks, and answers questions.
Two rules hold for every implementation and are tested by one suite (tests/contract):

* A link is due until the record of its check is stored: `finish` stores the record and moves `next_check_at`
  in one transaction. A crawler that dies in between asks again; nothing is lost and nothing recorded twice.
* The books balance at any time: links = checked + never checked, and due + later = links.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from attrs import field, frozen

from linkcrawl.items import Category, DueLink, Finished, HostMemory, Record, Seed

#: `next_check_at` of a link that was never checked: always due, and before every link that was.
NEVER = 0.0


class StoreError(Exception):
    """A store can't be used as configured: bad URL, other version, locked. Its text is one line for an operator."""


class StoreBusy(StoreError):
    """Another crawl holds this store."""


class StoreLost(StoreError):
    """The store worked and doesn't any more (disk full, server gone). The call may be tried again."""


@frozen(kw_only=True)
class Entry:
    """A seed, ready to be kept: who it is (`key`), where its requests go (`host`) and its text.

    `key`: 16 bytes; equal for URLs that are safely the same (urls.identity). `url`: as given, PIDs made
    actionable, userinfo removed. `host`: the host key, "" where the URL can't be requested.
    """

    key: bytes
    url: str
    host: str
    seed: Seed


@frozen(kw_only=True)
class Taken:
    """What became of a batch of entries: links that were new, links that were known, resource proxies added."""

    new: int = 0
    known: int = 0
    proxies: int = 0

    def __add__(self, other: Taken) -> Taken:
        return Taken(new=self.new + other.new, known=self.known + other.known, proxies=self.proxies + other.proxies)


@frozen(kw_only=True)
class Narrow:
    """Which links a crawl takes: `-a collection=GLOB`, `-a host=GLOB`, `-a recheck=1` (also what is not due).

    With `recheck`, links last checked before `recheck_before` (Unix seconds: the crawl's start) are taken.
    """

    collection: str | None = None
    host: str | None = None
    recheck_before: float | None = None


@frozen(kw_only=True)
class HostBacklog:
    """How much is due at one host."""

    host: str
    due: int


@frozen(kw_only=True)
class Query:
    """Which records to read. Times are Unix seconds, half open: since <= checked_at < until. Globs are
    case-sensitive (`*`, `?`). `changed`: only where category, status or final URL differ from the check before.
    `history`: every check ever made; else the latest of each link.
    """

    since: float | None = None
    until: float | None = None
    collection: str | None = None
    category: Category | None = None
    changed: bool = False
    history: bool = False


@frozen(kw_only=True)
class Books:
    """The sums: links = checked + never_checked, due + later = links."""

    links: int = 0
    proxies: int = 0
    checked: int = 0
    never_checked: int = 0
    due: int = 0
    later: int = 0
    records: int = 0


@frozen(kw_only=True)
class StatusLine:
    """One line of a status table: how many links' latest check ended so, and how long they took (milliseconds)."""

    category: Category
    status: int | None
    reason: str
    count: int
    mean_ms: float | None
    max_ms: int | None


@frozen(kw_only=True)
class Proxy:
    """One mention of a link, as kept: the seed's fields."""

    collection: str | None
    record: str | None
    expected_mime: str | None
    provider: str | None
    resource_type: str | None
    extra: dict[str, Any] = field(factory=dict)


class Store(Protocol):
    """The contract. Every method may raise StoreLost; `open_store` and `claim` may raise StoreError."""

    def close(self) -> None:
        """Flush and let go; a clean end (see `mark_clean`) is the caller's to say."""

    def claim(self) -> None:
        """Take the store for this crawl, for as long as the process lives. StoreBusy where another has it."""

    def was_clean(self) -> bool:
        """Whether the crawl before ended cleanly; True for a new store. From `claim` until `mark_clean`, an
        end without warning leaves this False."""

    def mark_clean(self) -> None:
        """Say that nothing was in flight when this crawl ended."""

    def add(self, entries: Sequence[Entry]) -> Taken:
        """Keep links and resource proxies; known ones are left as they are (a link's priority is its largest).
        All of the batch or nothing. The same mention twice is one proxy."""

    def backlog(self, now: float, narrow: Narrow = Narrow()) -> list[HostBacklog]:
        """Hosts with due links, and how many; links with host "" (nothing to request) too."""

    def due(
        self, host: str, now: float, limit: int, narrow: Narrow = Narrow(), after: DueLink | None = None
    ) -> list[DueLink]:
        """Due links of a host, larger priority first, then the longest due (never checked first of all), then
        by id; strictly after `after` in that order."""

    def next_due_at(self, now: float) -> float | None:
        """When the next link that is not due yet will be; None where there is none."""

    def finish(self, finished: Sequence[Finished]) -> None:
        """Store the records and move their links on, all or nothing. A record whose (link, checked_at) is
        stored already is not stored again."""

    def hosts(self) -> Iterator[HostMemory]:
        """All that is remembered of hosts."""

    def remember(self, memories: Iterable[HostMemory]) -> None:
        """Keep host memory, replacing what was kept of those hosts."""

    def records(self, query: Query = Query()) -> Iterator[Record]:
        """Records by time, streamed; safe to read while a crawl writes."""

    def proxies(self, link_id: int | str) -> list[Proxy]:
        """The mentions of a link."""

    def latest(self, key: bytes) -> Record | None:
        """The latest record of the link with this key."""

    def books(self, now: float) -> Books:
        """The sums of now."""

    def status_table(self, collection: str | None = None) -> list[StatusLine]:
        """Latest checks by category, reason and status, most first."""

    def collections(self) -> list[str]:
        """Names of all collections, sorted."""


def open_store(url: str) -> Store:
    """The store that a `LINKCRAWL_STORE` URL names; made where it doesn't exist yet, migrated where it is older.

    Raises StoreError with one line for a URL that isn't understood, a path that can't be written, a store made
    by a newer version, or a server that can't be reached.
    """
    if url.startswith("sqlite:"):
        from linkcrawl.stores.sqlite import SqliteStore

        return SqliteStore.open(url)
    raise StoreError(f"LINKCRAWL_STORE: {url!r} is not understood; sqlite:///linkcrawl.db would work")
