"""The store: links, resource proxies, records with their history, and host memory. One contract, several rooms.

A store is synchronous and blocking, and may be called from one thread at a time; `stores.worker` runs it off
the reactor. It knows nothing of crawling: it gives due links, takes finished checks, and answers questions.
Two rules hold for every implementation and are tested by one suite (tests/contract):

* A link is due until the record of its check is stored: `finish` stores the record and moves `next_check_at`
  in one transaction. A crawler that dies in between asks again; nothing is lost and nothing recorded twice.
* The books balance at any time: links = checked + never checked, and due + later = links.

Moments are kept to the millisecond at least, as exports show them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from attrs import field, frozen

from linkcrawl.items import Category, DueLink, Finished, HostMemory, Order, Record, Rejudged, Seed

#: `next_check_at` of a link that was never checked: always due, and before every link that was.
NEVER = 0.0


@frozen(kw_only=True)
class LinkEntry:
    """A seed, ready to be kept: who it is (`key`), where its requests go (`host`) and its text.

    `key`: 16 bytes; equal for URLs that are safely the same (urls.identity). `url`: as given, PIDs made
    actionable, userinfo removed. `host`: the host key, "" where the URL can't be requested.
    """

    key: bytes
    url: str
    host: str
    seed: Seed


@frozen(kw_only=True)
class AddCounts:
    """What became of a batch of entries: links that were new, links that were known, resource proxies added."""

    new: int = 0
    known: int = 0
    proxies: int = 0

    def __add__(self, other: AddCounts) -> AddCounts:
        return AddCounts(new=self.new + other.new, known=self.known + other.known, proxies=self.proxies + other.proxies)


@frozen(kw_only=True)
class LinkFilter:
    """Which links a crawl takes: `-a collection=GLOB`, `-a host=GLOB`, `-a recheck=1` (also what is not due).

    With `recheck`, the links taken are those last checked before `recheck_before` (Unix seconds: the crawl's start)
    or never, due or not; whatever was checked since is not taken again, but for what was checked after
    `recheck_after`, a time to come, by a clock that was ahead. Globs are as in Query.
    """

    collection: str | None = None
    host: str | None = None
    recheck_before: float | None = None
    recheck_after: float | None = None


@frozen(kw_only=True)
class HostBacklog:
    """How much is due at one host."""

    host: str
    due: int


@frozen(kw_only=True)
class Query:
    """Which records to read. Times are Unix seconds, half open: since <= checked_at < until.

    `history`: every check in that time; else the latest in that time of each link, so that an export up to a moment
    is the same whenever it is made. `category` and `changed` then choose among those: `changed` takes a record whose
    category, status or final URL differ from the same link's check before it (of whatever time), and a link's first.
    `collection`: of links that belong to such a collection now, even if they came into it after the check. Globs
    are case-sensitive and know `*` (any text) and `?` (any one character) only. `redirected`: those with redirects.
    `reasons`: those with one of these reasons; empty: with any.
    """

    since: float | None = None
    until: float | None = None
    collection: str | None = None
    category: Category | None = None
    changed: bool = False
    history: bool = False
    redirected: bool = False
    reasons: tuple[str, ...] = ()


@frozen(kw_only=True)
class Totals:
    """The sums: links = checked + never_checked, due + later = links."""

    links: int = 0
    proxies: int = 0
    checked: int = 0
    never_checked: int = 0
    due: int = 0
    later: int = 0
    records: int = 0


@frozen(kw_only=True)
class Tally:
    """How many links' latest check ended so. `timed`: of these, how many have a time; `total_ms` and `max_ms`
    (milliseconds) are over those. `mismatches`: how many have another media type than their metadata claims."""

    category: Category
    status: int | None
    reason: str
    confirmed: bool
    count: int
    timed: int
    total_ms: int
    max_ms: int | None
    mismatches: int


@frozen(kw_only=True)
class SummaryPart:
    """The links of one collection, provider or host, or all. `name` is None for those mentioned without one.

    `proxies`: resource proxies. `checked`: links with a record. `overdue`: links that were checked, and are due again.
    `tallies`: most first; their counts add up to `checked`.
    """

    name: str | None
    links: int
    proxies: int
    checked: int
    overdue: int
    tallies: tuple[Tally, ...] = ()

    @property
    def never_checked(self) -> int:
        return self.links - self.checked

    @property
    def due(self) -> int:
        """A link that was never checked is always due."""
        return self.never_checked + self.overdue


@frozen(kw_only=True)
class Mismatch:
    """Links that claim one media type and give another: how many, and one of them (the first by URL)."""

    expected: str
    got: str
    count: int
    example: str


@frozen(kw_only=True)
class Month:
    """How links stood at the end of a month (`2026-11`, UTC; of the last, at the moment of the summary): of those that
    had been checked by then, how many were in each category by their latest check."""

    month: str
    counts: Mapping[Category, int] = field(factory=dict)


@frozen(kw_only=True)
class Summary:
    """The store at one moment (`at`, Unix seconds). Parts are in the order of their links, most first, then by name;
    a link in several collections counts in each. `slowest`: latest records by `duration_ms`, largest first."""

    at: float
    books: Totals
    overall: SummaryPart
    collections: tuple[SummaryPart, ...]
    providers: tuple[SummaryPart, ...]
    hosts: tuple[SummaryPart, ...]
    slowest: tuple[Record, ...]
    mismatches: tuple[Mismatch, ...]
    months: tuple[Month, ...]


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

    def claim(self, shared: str | None = None) -> None:
        """Take the store for this crawl, until `close` or the end of the process, a sudden one too. StoreBusy, with
        who has it, where another has. Nothing else needs a claim: seeds, exports and reports go on beside a crawl.

        `shared`: the name of a cluster, whose workers hold the claim together and never `mark_clean` it; StoreError
        from a store that serves one process."""

    def was_clean(self) -> bool:
        """Whether the crawl before the one that claimed ended cleanly; True for a new store. From `claim` until
        `mark_clean`, an end without warning leaves this False for the next."""

    def mark_clean(self) -> None:
        """Say that nothing was in flight when this crawl ended."""

    def add(self, entries: Sequence[LinkEntry]) -> AddCounts:
        """Keep links and resource proxies; known ones are left as they are, but for a link's priority, which is the
        largest, and its expected media type, which is the first that was given. All of the batch or nothing.

        A mention is one proxy however often it comes: same link, collection, record, resource type, expected media
        type and provider. An empty text is the same as none. What no text can hold (lone surrogates) is kept as
        U+FFFD, a number beyond 64 bits as the nearest that fits: here and in every other method."""

    def backlog(self, now: float, narrow: LinkFilter = LinkFilter()) -> list[HostBacklog]:
        """Hosts with due links, and how many; links with host "" (nothing to request) too."""

    def due(
        self, host: str, now: float, limit: int, narrow: LinkFilter = LinkFilter(), after: DueLink | None = None
    ) -> list[DueLink]:
        """Due links of a host, larger priority first, then the longest due (never checked first of all), then
        by id; strictly after `after` in that order, wherever that link itself has moved since."""

    def next_due_at(self, now: float) -> float | None:
        """When the next link that is not due yet will be; None where there is none."""

    def revision(self) -> int:
        """A number that changes when links have been added by another process (it may change for other reasons too).
        Cheap: a crawl that has nothing to do asks every few seconds."""

    def finish(self, finished: Sequence[Finished]) -> frozenset[int | str]:
        """Store the records and move their links on, all or nothing. A record whose (link, checked_at) is
        stored already is not stored again; one older than the link's last joins the history and moves nothing, unless
        its check was begun on that last one (`Finished.of`): then the last one's clock was ahead, and it and all others
        of a later time get a time just before the new one's.
        LookupError for a link that isn't in the store.

        Where several workers share a store, one that was stopped between its last look at its lease and this call may
        come late: of checks that were begun on the same latest record of a link (`Finished.of`) only the first is
        stored. Gives the links whose record was refused so."""

    def recall_future(self, after: float, now: float) -> tuple[int, float]:
        """Links that were last checked after `after`, by a clock that was ahead: how many, and when the latest was (0.0
        for none). They count as checked `now`: their next check is planned as long after that as it was after theirs.
        """

    def hosts(self, names: Sequence[str] | None = None) -> Iterator[HostMemory]:
        """All that is remembered of hosts, or of those named, by host, streamed as `records` is."""

    def remember(self, memories: Iterable[HostMemory]) -> None:
        """Keep host memory, replacing what was kept of those hosts."""

    def give_order(self, order: Order) -> None:
        """Keep a person's order about a host, in place of the one before."""

    def orders(self) -> dict[str, Order]:
        """The last order about each host, by host key."""

    def withdraw(self, link_ids: Sequence[int | str], since: float, reason: str, error: str, now: float) -> int:
        """Take back what was judged of links since a moment: each of these whose latest record was checked at or after
        `since` has that record say Undetermined, confirmed, with this reason and error, its facts unchanged; and the
        link is due again at `now`. How many it were. Again, it changes nothing."""

    def judged_before(self, version: int, limit: int, after: int | str | None = None) -> list[tuple[DueLink, Record]]:
        """Links whose latest record was judged by a verdict table before `version`, each with that record; in the order
        of link ids, strictly after the id `after`."""

    def rejudge(self, rejudged: Sequence[Rejudged]) -> frozenset[int | str]:
        """Put the new judgement of links' latest records (the fields rows.JUDGED) in the place of the one before. A
        link with a new state goes on with it. All of the batch or nothing.

        What has changed since it was read isn't touched: a link that was checked again, and a record that says anything
        else than `before` by now. Gives the links where that was so. Again, it changes nothing."""

    def prune(self, since: float, until: float) -> int:
        """Of the records checked from `since` to before `until` keep each link's last, and remove the others; so a
        link's latest record always stays. How many were removed. stores.history says which stretches."""

    def records(self, query: Query = Query()) -> Iterator[Record]:
        """Records by time, then in the order in which they were stored, streamed. They show the store at the moment
        of the first `next`; writers aren't held up, and any thread may do the reading."""

    def proxies(self, link_ids: Sequence[int | str]) -> dict[int | str, list[Proxy]]:
        """The mentions of each of these links, by collection, record and provider; none for a link that isn't there."""

    def link(self, key: bytes) -> DueLink | None:
        """The link with this key, due or not; None where the store has none."""

    def latest(self, key: bytes) -> Record | None:
        """The latest record of the link with this key."""

    def checks_by_hour(self, since: float, until: float) -> dict[int, int]:
        """How many checks each hour of a half-open time has, by the Unix time at which it begins; hours without any are
        left out."""

    def books(self, now: float) -> Totals:
        """The sums of now."""

    def collections(self) -> list[str]:
        """Names of all collections, sorted."""

    def summary(self, now: float, top: int = 100) -> Summary:
        """Everything that a report counts, of the store's moment and with `now` as the time that links are due by;
        `top` bounds the lists of single links (slowest, mismatches). Aggregated in the store: it reads every link a few
        times and every record once, and may run beside a crawl."""
