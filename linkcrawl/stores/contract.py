"""The contract of a store: links, resource proxies, records with their history, and host memory.

A store is synchronous and blocking, and serves one thread at a time; `stores.worker` runs it outside the event loop. It
knows nothing of crawling: it gives due links, stores finished checks, and answers questions. SQLite and MongoDB
implement it (`stores.opening` opens them). Two rules hold for both and are tested by one suite (tests/contract):

* A link is due until the record of its check is stored: `finish` stores the record and moves `next_check_at`
  in one transaction. After a crash the link is checked again; nothing is lost, and nothing is recorded twice.
* The books balance at any time: links = active + retired, active = checked + never checked = due + later.

A link whose every mention is retired is retired itself: never due, in no section of a summary, in no `records` unless
retired ones are asked for; its history stays. A check that was in flight is stored and doesn't bring it back; a mention
does, and it is due at once.

Times are Unix seconds and kept to the millisecond at least, as exports show them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from attrs import field, frozen

from linkcrawl.items import RETIRED, Category, DueLink, Finished, HostMemory, Order, Record, Rejudged, RobotsFile, Seed
from linkcrawl.stores.copying import Copyable

#: `next_check_at` of a link that was never checked: always due, and before every link that was.
NEVER = 0.0

#: `next_check_at` of a link that somebody has asked for: due, and before those that were never checked.
ASKED = -1.0


@frozen(kw_only=True)
class LinkEntry:
    """A seed that is ready to be stored.

    `key`: 16 bytes that identify the link; equal for URLs that are certainly the same (urls.identity). `url`: as given,
    with PIDs made actionable and userinfo removed. `host`: the host key, "" where the URL can't be requested.
    """

    key: bytes
    url: str
    host: str
    seed: Seed


@frozen(kw_only=True)
class AddCounts:
    """Counts of one `Store.add`: entries whose link was new or known, and resource proxies that were added."""

    new: int = 0
    known: int = 0
    proxies: int = 0

    def __add__(self, other: AddCounts) -> AddCounts:
        return AddCounts(new=self.new + other.new, known=self.known + other.known, proxies=self.proxies + other.proxies)


@frozen(kw_only=True)
class Retired:
    """How many mentions were retired, and how many links, which have no live mention any more."""

    mentions: int = 0
    links: int = 0

    def __add__(self, other: Retired) -> Retired:
        return Retired(mentions=self.mentions + other.mentions, links=self.links + other.links)


@frozen(kw_only=True)
class Purged:
    """How many links, mentions and records were deleted."""

    links: int = 0
    mentions: int = 0
    records: int = 0

    def __add__(self, other: Purged) -> Purged:
        return Purged(
            links=self.links + other.links,
            mentions=self.mentions + other.mentions,
            records=self.records + other.records,
        )


@frozen(kw_only=True)
class LinkFilter:
    """Which links a crawl checks: `-a collection=GLOB`, `-a host=GLOB`, `-a recheck=1`.

    `recheck_before` (Unix seconds; the start of a crawl with `recheck`): links that were checked before then or never,
    due or not. None: links that are due. `recheck_after`: besides, links that were checked after this time to come, by
    a clock that was ahead. Globs are as in Query.
    """

    collection: str | None = None
    host: str | None = None
    recheck_before: float | None = None
    recheck_after: float | None = None


@frozen(kw_only=True)
class HostBacklog:
    """How many links are due at one host."""

    host: str
    due: int


#: Reasons of records that say: the host turned us away. Stores have an index of these.
REFUSALS = ("bot_challenge", "rate_limited", "host_blocked", "http_403")


@frozen(kw_only=True)
class Query:
    """Which records to read. Times are Unix seconds, half open: since <= checked_at < until.

    `history`: every check in that time; else each link's latest check in that time, so that an export up to a moment is
    the same whenever it is made. `category` and `changed` choose among those. `changed`: records whose category, status
    or final URL differ from the link's check before (of any time), and each link's first. `collection`: records of
    links that belong to such a collection now, even if they joined it after the check. Globs are case-sensitive and
    know `*` (any text) and `?` (any one character) only. `redirected`: those with redirects.
    `reasons`: those with one of these reasons; empty: with any. Where all of these are REFUSALS no other records are
    searched. `ended_at`: those whose final URL begins with one of these texts, or that have none; empty: all.
    `retired`: records of retired links only, else of active ones only; `collection` then means where a link was
    mentioned last.
    `provider`, `host`: globs as `collection`, of the link's providers and of its host key. `confirmed`: records that
    are confirmed, or not; None: either. `statuses`: those with one of these (None: without an answer); empty: all.
    `due_at`: records of links that are due at this time. `mismatched`: those whose media type is not the claimed one.
    `expected_mime`, `mime`: those that claim, or have, exactly this media type.
    `link`: records of this link only, active or retired.
    """

    since: float | None = None
    until: float | None = None
    collection: str | None = None
    category: Category | None = None
    changed: bool = False
    history: bool = False
    redirected: bool = False
    reasons: tuple[str, ...] = ()
    retired: bool = False
    ended_at: tuple[str, ...] = ()
    provider: str | None = None
    host: str | None = None
    confirmed: bool | None = None
    statuses: tuple[int | None, ...] = ()
    due_at: float | None = None
    mismatched: bool = False
    expected_mime: str | None = None
    mime: str | None = None
    link: int | str | None = None


@frozen
class Position:
    """The place of a record in the order of time, then of storing. `at`: Unix seconds; `number`: the store's own, in
    the order of storing."""

    at: float
    number: int


@frozen(kw_only=True)
class PlacedRecord:
    """A record with its position."""

    record: Record
    position: Position


@frozen(kw_only=True)
class KnownLink:
    """A link of the store. `record`: its latest, None where it was never checked."""

    link: DueLink
    record: Record | None

    @property
    def is_retired(self) -> bool:
        return self.link.next_check_at >= RETIRED


@frozen(kw_only=True)
class Totals:
    """The sums: links = active + retired, active = checked + never_checked = due + later. `proxies`: live ones."""

    links: int = 0
    active: int = 0
    retired: int = 0
    proxies: int = 0
    checked: int = 0
    never_checked: int = 0
    due: int = 0
    later: int = 0
    records: int = 0


@frozen(kw_only=True)
class Tally:
    """How many links have a latest record with this category, status, reason and `confirmed`. `timed`: how many of
    these have a duration; `total_ms` and `max_ms` (milliseconds) are over those. `mismatches`: how many have another
    media type than their metadata claims."""

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
    """The links of one collection, provider or host, or of the whole store. `name`: None for the whole store, and for
    links that were mentioned without a collection or provider.

    `proxies`: resource proxies. `checked`: links with a record. `overdue`: links that were checked and are due again.
    `tallies`: the largest first; their counts add up to `checked`.
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
    """Links whose metadata claim one media type and whose server sends another: how many, and the first by URL."""

    expected: str
    got: str
    count: int
    example: str


@frozen(kw_only=True)
class Month:
    """Links by category at the end of a month (`2026-11`, UTC; the last month: at the moment of the summary), by each
    link's latest check at that time."""

    month: str
    counts: Mapping[Category, int] = field(factory=dict)


@frozen(kw_only=True)
class Summary:
    """The store at one moment (`at`, Unix seconds). Parts are ordered by number of links, the largest first, then by
    name; a link in several collections counts in each. `slowest`: latest records by `duration_ms`, largest first."""

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
    """One mention of a link as the store keeps it: the seed's fields."""

    collection: str | None
    record: str | None
    expected_mime: str | None
    provider: str | None
    resource_type: str | None
    extra: dict[str, Any] = field(factory=dict)


@frozen(kw_only=True)
class ClusterName:
    """A cluster, whose workers may reach its Redis by different names. `url`: without user and password; `server`: the
    server and database as it names itself until it is restarted, empty where it doesn't."""

    url: str
    server: str


@frozen(kw_only=True)
class CheckRequest:
    """Somebody's request that links be checked now. `id`: unique; `asked_at`: Unix seconds; `by`, `reason`: as given,
    "" where they weren't."""

    id: str
    asked_at: float
    by: str = ""
    reason: str = ""


@frozen(kw_only=True)
class CheckProgress:
    """How far a check request is. `asked`: its links; `waiting`: those that wait for their record, by host. A link that
    was retired or deleted meanwhile waits no more."""

    asked: int
    waiting: tuple[HostBacklog, ...]

    @property
    def done(self) -> int:
        """Links that wait no more."""
        return self.asked - sum(line.due for line in self.waiting)


class Store(Protocol):
    """The contract. Every method may raise StoreLost, and ClaimLost in a crawl whose claim another has taken;
    `open_store` and `claim` may raise StoreError."""

    def copyable(self) -> Copyable:
        """The store as the source or the target of a copy (stores.copying)."""

    def close(self) -> None:
        """Flush, give up the claim and disconnect. A clean end must be marked before (`mark_clean`)."""

    def claim(self, shared: ClusterName | None = None) -> None:
        """Reserve the store for this crawl until `close` or the end of the process. Raises StoreBusy, which names the
        holder, where another crawl has it. Seeds, exports and reports need no claim and may run beside a crawl.

        `shared`: a cluster, whose workers hold the claim together and never call `mark_clean`; claimed again,
        the store learns which server they meet at now. A store that serves one process only raises StoreError."""

    def was_clean(self) -> bool:
        """True where the crawl before this one called `mark_clean`, and for a new store. After a `claim` that no
        `mark_clean` followed, the next crawl reads False."""

    def mark_clean(self) -> None:
        """Record that no request was in flight when this crawl ended. Raises ClaimLost."""

    @property
    def may_send(self) -> bool:
        """False where another crawl may have taken the claim by now: no request is sent, until it is renewed or the
        next call raises ClaimLost. Asks no server; any thread may ask."""

    def add(self, entries: Sequence[LinkEntry], harvest: int = 0) -> AddCounts:
        """Store links and resource proxies. Known ones stay as they are, except that a link keeps its largest priority
        and the first expected media type that was given. What is retired of them comes back: the mention, and its link,
        which is due at once and goes on with its history. All of the batch or nothing.

        `harvest`: the complete harvest that these mentions are of, 0 for none. Mentions of none that are new or come
        back count as had by every harvest that has begun: none of these retires them.

        Mentions with the same link, collection, record, resource type, expected media type and provider are one proxy.
        An empty text is the same as none. Here and in every other method, lone surrogates are stored as U+FFFD, and a
        number beyond 64 bits as the nearest that fits."""

    def begin_harvest(self, now: float) -> int:
        """The number of a new complete harvest, larger than those before. Until `end_harvest`, nothing of it is in the
        books; one that never ends leaves no trace in them either."""

    def end_harvest(self, harvest: int, now: float) -> None:
        """Say that this harvest was read, and reconciled as far as it is going to be."""

    def mark(self, entries: Sequence[LinkEntry], harvest: int) -> None:
        """Note that the harvest has these mentions, as far as the store has them. Adds nothing, and brings nothing
        back: a dry run of `add`."""

    def known(self, keys: Collection[bytes]) -> set[bytes]:
        """Those of these keys that the store has a link of, retired or not."""

    def links_of(self, collection: str) -> int:
        """How many active links a collection has; "": those mentioned without one."""

    def lost(self, harvest: int, collection: str, before: Sequence[str] = ()) -> Iterator[bytes]:
        """Keys of the active links of a collection ("": none) that would have no live mention any more if its mentions
        that the harvest lacks were retired, after those of the collections `before`. Streamed, of one moment."""

    def retire(self, harvest: int, collection: str, now: float) -> Retired:
        """Retire the live mentions of a collection ("": none) that the harvest, and none after it, has had; with them
        the links that have no live mention then. All of the collection or nothing; where the store has no transactions,
        who opens it next completes what was begun. Idempotent."""

    def retire_mentions(self, entries: Sequence[LinkEntry], now: float) -> Retired:
        """Retire the live mentions that these entries describe: of the link, with all fields that the seed gives. All
        of the batch or nothing. Idempotent."""

    def retirements(self) -> int:
        """A number that grows whenever links may have been retired or purged; several times where that is done in
        steps. (A time would not do: all collections of a harvest are retired at the same moment.) Cheap."""

    def retired_among(self, link_ids: Sequence[int | str]) -> set[int | str]:
        """Those of these links that are retired, or that the store doesn't have."""

    def backlog(self, now: float, link_filter: LinkFilter = LinkFilter()) -> list[HostBacklog]:
        """Hosts with due links, and how many each has; host "" has the links that can't be requested."""

    def due(
        self, host: str, now: float, limit: int, link_filter: LinkFilter = LinkFilter(), after: DueLink | None = None
    ) -> list[DueLink]:
        """Due links of a host: larger priority first, then the longest due (never checked before all others), then by
        id. `after`: only links that come strictly after this one in that order, even if it is no longer due itself."""

    def next_due_at(self, now: float) -> float | None:
        """When the next link becomes due that isn't yet (Unix seconds); None where there is none."""

    def revision(self) -> int:
        """A number that changes when another process has added links; it may change for other reasons too. Cheap: an
        idle crawl asks every few seconds."""

    def finish(self, finished: Sequence[Finished]) -> frozenset[int | str]:
        """Store the records and set their links' next check, all or nothing. A record whose (link, checked_at) is there
        already is not stored again. One that is older than the link's latest joins the history only; unless its check
        began on that latest (`Finished.of`): then the latest's clock was ahead, and it and all others of a later time
        get a time just before the new one's. Raises LookupError for a link that isn't in the store.

        A worker that stood still may come here after its lease went to another. So of checks that began on the same
        latest record of a link (`Finished.of`) only the first is stored. Returns the links whose record was refused for
        that."""

    def recall_future(self, after: float, now: float) -> tuple[int, float]:
        """Links that were last checked after `after`, by a clock that was ahead: how many, and when the latest was (0.0
        for none). They count as checked `now`: their next check is planned as long after that as it was after theirs.
        """

    def hosts(self, names: Sequence[str] | None = None) -> Iterator[HostMemory]:
        """The memory of all hosts, or of those named, ordered by host; streamed like `records`."""

    def remember(self, memories: Iterable[HostMemory]) -> None:
        """Store the memory of these hosts in the place of what was stored."""

    def robots(self, authorities: Sequence[str]) -> list[RobotsFile]:
        """What is kept of the robots.txt of these authorities, by authority; none for one that isn't known."""

    def remember_robots(self, files: Iterable[RobotsFile]) -> None:
        """Keep what is known of robots.txt files, replacing what was kept of their authorities."""

    def forget_robots(self, now: float) -> int:
        """Remove the robots.txt files that are of no use any more. How many were removed."""

    def give_order(self, order: Order) -> None:
        """Store a person's order about a host in the place of the one before."""

    def orders(self) -> dict[str, Order]:
        """The last order about each host, by host key."""

    def ask(self, request: CheckRequest, link_ids: Sequence[int | str]) -> int:
        """Store a request that these links be checked now: they are due, with ASKED as their time, until a record is
        stored. Retired and unknown ones are left out. Returns how many were asked for. Idempotent."""

    def asked(self, limit: int, after: int | str | None = None) -> list[DueLink]:
        """Links that were asked for and have no record since, ordered by id, strictly after the id `after`. Cheap where
        there are none: a crawl asks every few seconds."""

    def check_request(self, request_id: str) -> CheckRequest | None:
        """The request of this id; None where the store doesn't have it."""

    def progress(self, request_id: str) -> CheckProgress:
        """How far a request is. The first record of a link that is stored after the request answers it, whichever crawl
        or request brought it about."""

    def answers(self, request_id: str) -> Iterator[Record]:
        """The records that answer a request so far, ordered by time."""

    def is_claimed(self) -> bool:
        """True where a crawl that seems to be alive has claimed the store."""

    def withdraw(self, link_ids: Sequence[int | str], since: float, reason: str, error: str, now: float) -> int:
        """Withdraw the verdicts of these links' latest records that were checked at or after `since`: they become
        Undetermined, confirmed, with this reason and error; their facts stay, and the links are due again at `now`.
        Returns how many. Idempotent."""

    def judged_before(self, version: int, limit: int, after: int | str | None = None) -> list[tuple[DueLink, Record]]:
        """Links whose latest record was judged by a verdict table before `version`, each with that record; in the order
        of link ids, strictly after the id `after`."""

    def rejudge(self, rejudged: Sequence[Rejudged]) -> frozenset[int | str]:
        """Put the new judgement of links' latest records (the fields rows.JUDGED) in the place of the one before. A
        link with a new state goes on with it. All of the batch or nothing.

        A link that was checked again meanwhile, and a record that no longer says what `before` says, stay as they are.
        Returns these links. Idempotent."""

    def prune(self, since: float, until: float) -> int:
        """Of the records with since <= checked_at < until keep each link's last and remove the others; so a link's
        latest record always stays. Returns how many were removed. history.prune_windows gives the windows."""

    def records(self, query: Query = Query()) -> Iterator[Record]:
        """Records ordered by time, then by when they were stored; streamed. They show the store at the moment of the
        first `next`. Reading blocks no writer, and any thread may do it."""

    def page(self, query: Query, limit: int, after: Position | None = None) -> list[PlacedRecord]:
        """Up to `limit` records in the order of `records`, those strictly after a position. What a page costs doesn't
        grow with the number of records before it."""

    def lookup(self, keys: Sequence[bytes]) -> dict[bytes, KnownLink]:
        """Those links of these keys that the store has, retired ones too."""

    def fingerprint(self) -> str:
        """A text that changes when another process has changed links, mentions, records or orders. Comparable with
        texts of the same opened store only. Cheap, so a service may ask before each answer. A change of host memory, or
        of a record's judgement, need not show."""

    def proxies(self, link_ids: Sequence[int | str]) -> dict[int | str, list[Proxy]]:
        """The live mentions of each of these links, of a retired one those that it had last, ordered by collection,
        record and provider; an empty list for a link that isn't in the store."""

    def link(self, key: bytes) -> DueLink | None:
        """The link with this key, due or not; None where the store doesn't have it."""

    def latest(self, key: bytes) -> Record | None:
        """The latest record of the link with this key."""

    def history(self, key: bytes) -> Iterator[Record]:
        """All records of the link with this key that are kept, oldest first; streamed."""

    def retired_before(self, moment: float) -> Iterator[bytes]:
        """Keys of the links that were retired before this time (Unix seconds); streamed."""

    def only_in(self, names: Sequence[str]) -> Iterator[bytes]:
        """Keys of the links that are mentioned in these collections and have no live mention outside; of the retired
        ones, those that were mentioned there last. Streamed."""

    def purge_mentions(self, names: Sequence[str], *, dry_run: bool = False) -> int:
        """Delete the retired mentions of these collections, or count all of theirs only. Returns how many.
        Idempotent."""

    def purge(self, keys: Collection[bytes], *, dry_run: bool = False) -> Purged:
        """Delete these links, or count only, with their mentions, records and requests. All of the batch or nothing;
        where the store has no transactions, who opens it next completes what was begun. Idempotent."""

    def checks_by_hour(self, since: float, until: float) -> dict[int, int]:
        """How many checks each hour of a half-open time has, by the Unix time at which it begins; hours without any are
        left out."""

    def books(self, now: float) -> Totals:
        """The totals of the store, with the links due at `now`."""

    def collections(self) -> list[str]:
        """Names of all collections that ever were, sorted."""

    def summary(self, now: float, top: int = 100) -> Summary:
        """Everything that a report counts, with the links due at `now`. `top`: the longest list of single links
        (slowest, mismatches). The store aggregates it: it reads every link a few times and every record once, and may
        do so beside a crawl."""
