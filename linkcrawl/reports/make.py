"""Makes the report of a store from its aggregates."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise

from attrs import evolve

from linkcrawl import __version__, urls
from linkcrawl.exports.rows import TOGETHER
from linkcrawl.items import Category, Record
from linkcrawl.reports.hosts import troubles
from linkcrawl.reports.model import Excluded, MonthRatio, Move, OutcomeTable, Report, Section, Slow
from linkcrawl.status.refusals import walls_by_host, walls_by_product
from linkcrawl.stores.contract import Month, Query, Store, Summary, SummaryPart, Tally, Totals

#: Statuses of permanent redirects (RFC 9110, 15.4.2 and 15.4.9).
PERMANENT = frozenset({301, 308})
#: Hosts of persistent identifiers, which should be cited whatever they redirect to.
RESOLVERS = frozenset(
    {"hdl.handle.net", "doi.org", "dx.doi.org", "n2t.net", "nbn-resolving.org", "purl.org", "w3id.org"}
)
#: Reasons, and below whole categories, of links that were not requested.
NOT_ASKED = frozenset({"skipped_by_policy", "host_blocked"})
NOT_ASKED_CATEGORIES = frozenset({Category.BLOCKED_BY_ROBOTS, Category.INVALID})
#: Hosts that are named for each reason of links that were not requested.
NAMED = 5


def make_report(store: Store, now: float, floor: float, top: int = 100) -> Report:
    """The report of a store at a time (Unix seconds). `floor`: DOWNLOAD_DELAY in seconds; only larger Crawl-delays are
    reported. `top`: length of every list of links and hosts; all collections and providers are reported."""
    summary = store.summary(now, top)
    moves = _Moves()
    redirected = iter(store.records(Query(category=Category.OK, redirected=True)))
    while moved := list(islice(filter(_worth_updating, redirected), TOGETHER)):
        for record, names in _collections(store, moved):
            moves.add(record, names)
    return Report(
        made_at=now,
        crawler=f"linkcrawl/{__version__}",
        books=summary.books,
        balanced=balanced(summary.books, summary.overall),
        overall=_section(summary.overall, moves.links),
        months=tuple(map(_month, summary.months)),
        collections=tuple(_section(part, moves.of_collection[part.name]) for part in summary.collections),
        providers=tuple(_section(part, None) for part in summary.providers),
        slowest=tuple(_slow(record, names) for record, names in _collections(store, summary.slowest)),
        moves=moves.most(top),
        mismatches=summary.mismatches,
        excluded=_excluded(summary),
        walls=tuple(evolve(wall, hosts=wall.hosts[:top]) for wall in walls_by_product(walls_by_host(store))),
        hosts=troubles(store, summary.hosts, now, floor)[:top],
    )


def balanced(books: Totals, overall: SummaryPart) -> bool:
    """True where links = active + retired, active = checked + never checked = due + later, and checked is the sum of
    all outcomes."""
    return (
        books.links == books.active + books.retired
        and books.active == books.checked + books.never_checked == books.due + books.later == overall.links
        and books.checked == overall.checked == sum(tally.count for tally in overall.tallies)
        and (books.due, books.proxies) == (overall.due, overall.proxies)
    )


def _section(part: SummaryPart, moved: int | None) -> Section:
    of_category = {category: _alike(part.tallies, category) for category in Category}
    broken = of_category[Category.BROKEN]
    ok = sum(tally.count for tally in of_category[Category.OK])
    by_status = defaultdict(list)
    for tally in part.tallies:
        by_status[tally.category, tally.status, tally.reason].append(tally)
    statuses = [_outcomes(tallies, *key) for key, tallies in by_status.items()]
    return Section(
        name=part.name,
        links=part.links,
        proxies=part.proxies,
        checked=part.checked,
        never_checked=part.never_checked,
        overdue=part.overdue,
        valid_ratio=ok / part.checked if part.checked else None,
        suspected=sum(tally.count for tally in broken if not tally.confirmed),
        confirmed=sum(tally.count for tally in broken if tally.confirmed),
        mismatches=sum(tally.mismatches for tally in part.tallies),
        moved=moved,
        categories=tuple(_outcomes(tallies, category) for category, tallies in of_category.items()),
        statuses=tuple(sorted(statuses, key=lambda line: (-line.links, line.category, line.reason or ""))),
    )


def _alike(tallies: Iterable[Tally], category: Category) -> list[Tally]:
    return [tally for tally in tallies if tally.category is category]


def _outcomes(
    tallies: list[Tally], category: Category, status: int | None = None, reason: str | None = None
) -> OutcomeTable:
    timed = sum(tally.timed for tally in tallies)
    return OutcomeTable(
        category=category,
        status=status,
        reason=reason,
        links=sum(tally.count for tally in tallies),
        mean_ms=sum(tally.total_ms for tally in tallies) / timed if timed else None,
        max_ms=max((tally.max_ms for tally in tallies if tally.max_ms is not None), default=None),
    )


def _month(month: Month) -> MonthRatio:
    checked, ok = sum(month.counts.values()), month.counts[Category.OK]
    return MonthRatio(month=month.month, checked=checked, ok=ok, valid_ratio=ok / checked if checked else None)


def _collections(store: Store, records: Sequence[Record]) -> Iterator[tuple[Record, set[str | None]]]:
    """Each record with the collections of its link now (the record has those of its check), as sections count them:
    None for a mention without a collection."""
    mentions = store.proxies([record.link_id for record in records])
    return ((record, {proxy.collection for proxy in mentions[record.link_id]}) for record in records)


def _slow(record: Record, collections: set[str | None]) -> Slow:
    return Slow(
        url=record.url,
        collections=tuple(sorted(name for name in collections if name is not None)),
        category=record.category,
        status=record.status,
        duration_ms=record.duration_ms,
        checked_at=record.checked_at,
    )


def _excluded(summary: Summary) -> tuple[Excluded, ...]:
    hosts: dict[tuple[Category, str], Counter[str]] = defaultdict(Counter)
    for host in summary.hosts:
        for tally in host.tallies:
            if tally.category in NOT_ASKED_CATEGORIES or tally.reason in NOT_ASKED:
                hosts[tally.category, tally.reason][host.name or ""] += tally.count
    found = [
        Excluded(
            category=category,
            reason=reason,
            links=counts.total(),
            host_count=sum(bool(name) for name in counts),
            hosts=tuple(name for name, _ in counts.most_common(NAMED) if name),
        )
        for (category, reason), counts in hosts.items()
    ]
    return tuple(sorted(found, key=lambda line: (-line.links, line.reason)))


def lasting_target(record: Record) -> str | None:
    """The URL that an Ok link should be updated to: the target of the permanent redirects at the start of its deciding
    chain; None where there are none. A chain that comes back to the link (to set a cookie) is no move: its target may
    need more than its URL."""
    chain = record.hops[-record.redirects - 1 :]
    target = record.url
    for hop, after in pairwise(chain):
        if hop.status not in PERMANENT:
            break
        target = after.url
    return None if target in (record.url, chain[0].url) else target


def _worth_updating(record: Record) -> bool:
    return lasting_target(record) is not None and _site(record.url).partition("://")[2] not in RESOLVERS


class _Moves:
    """Permanent redirects, grouped by the sites that they lead from and to."""

    def __init__(self) -> None:
        self.links = 0
        self.of_collection: Counter[str | None] = Counter()
        self._groups: dict[tuple[str, str], Move] = {}
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, record: Record, collections: set[str | None]) -> None:
        """Add the record of a link that is worth updating."""
        target = lasting_target(record) or record.url
        key = _site(record.url), _site(target)
        self.links += 1
        self.of_collection.update(collections)
        self._counts[key] += 1
        if key not in self._groups:
            self._groups[key] = Move(from_site=key[0], to_site=key[1], links=0, url=record.url, target=target)

    def most(self, top: int) -> tuple[Move, ...]:
        """The largest groups."""
        return tuple(self._counted(top))

    def _counted(self, top: int) -> Iterator[Move]:
        for key, count in sorted(self._counts.items(), key=lambda one: (-one[1], one[0]))[:top]:
            yield evolve(self._groups[key], links=count)


def _site(url: str) -> str:
    """Scheme and host."""
    target = urls.read(url)
    return f"{target.scheme}://{target.host}" if isinstance(target, urls.Target) else ""
