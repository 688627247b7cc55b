"""The report as data. `Report.row()` is its JSON, which docs/reports.md describes. Times are Unix seconds here and ISO
8601 in JSON; durations are milliseconds where a name says so, else seconds; lists have the most important first.
"""

from __future__ import annotations

from typing import Any

from attrs import Attribute, asdict, field, frozen

from linkcrawl.items import Category, iso
from linkcrawl.status.refusals import WallCount
from linkcrawl.stores.contract import Mismatch, Totals


def _moment() -> Any:
    return field(metadata={"moment": True})


@frozen(kw_only=True)
class OutcomeTable:
    """Links whose latest check had the same outcome, and the milliseconds of those that have a duration."""

    category: Category
    status: int | None = None
    reason: str | None = None
    links: int
    mean_ms: float | None
    max_ms: int | None


@frozen(kw_only=True)
class Section:
    """One collection, provider, or everything; `name` is None for everything, and for links mentioned without one.

    links = checked + never_checked. `overdue`: checked before, and due again. `valid_ratio`: links that are Ok among
    those checked, None where none was. `suspected` and `confirmed`: Broken links. `mismatches`: links that are of
    another media type than their metadata claims. `moved`: links that a permanent redirect leads away from, None where
    they aren't counted. `categories` has all six, in the contract's order; `statuses` is most first.
    """

    name: str | None
    links: int
    proxies: int
    checked: int
    never_checked: int
    overdue: int
    valid_ratio: float | None
    suspected: int
    confirmed: int
    mismatches: int
    moved: int | None
    categories: tuple[OutcomeTable, ...]
    statuses: tuple[OutcomeTable, ...]

    def count(self, category: Category) -> int:
        """Links in a category."""
        return next(line.links for line in self.categories if line.category is category)


@frozen(kw_only=True)
class Slow:
    """A link that took long."""

    url: str
    collections: tuple[str, ...]
    category: Category
    status: int | None
    duration_ms: int | None
    checked_at: float = _moment()


@frozen(kw_only=True)
class Move:
    """Links of one site (scheme and host) that permanent redirects (301, 308) lead to one other, or elsewhere on the
    same, where they end well: how many, and one of them with the URL that it should be updated to."""

    from_site: str
    to_site: str
    links: int
    url: str
    target: str


@frozen(kw_only=True)
class Excluded:
    """Links that were not requested for one reason. `hosts`: some of the `host_count` hosts, most links first."""

    category: Category
    reason: str
    links: int
    host_count: int
    hosts: tuple[str, ...]


@frozen(kw_only=True)
class HostTrouble:
    """A host that blocks us or asks us to slow down.

    `blocked_since`: the ban circuit has opened. `ordered`: a person's block, in his words. `silent_until`: the server
    asks for silence until then. `back_off`: seconds of our delay because of refusals. `crawl_delay`: seconds that its
    robots.txt asks for, where they are more than the floor. `refused`: links that it turned away as asked too often, as
    a robot, or by an unreachable robots.txt; `reasons`: of these, most first.
    """

    host: str
    links: int
    due: int
    refused: int
    reasons: tuple[str, ...]
    blocked_since: float | None = _moment()
    ordered: str | None
    silent_until: float | None = _moment()
    back_off: float
    crawl_delay: float | None


@frozen(kw_only=True)
class MonthRatio:
    """The links at the end of a month (UTC), or of the current month at the time of the report."""

    month: str
    checked: int
    ok: int
    valid_ratio: float | None


@frozen(kw_only=True)
class Report:
    """The report of a store. `crawler`: program and version. `balanced`: the sums of the books agree."""

    made_at: float = _moment()
    crawler: str
    books: Totals
    balanced: bool
    overall: Section
    months: tuple[MonthRatio, ...]
    collections: tuple[Section, ...]
    providers: tuple[Section, ...]
    slowest: tuple[Slow, ...]
    moves: tuple[Move, ...]
    mismatches: tuple[Mismatch, ...]
    excluded: tuple[Excluded, ...]
    walls: tuple[WallCount, ...]
    hosts: tuple[HostTrouble, ...]

    def row(self) -> dict[str, Any]:
        """The report, ready for JSON."""
        return asdict(self, value_serializer=_json_value)


def _json_value(owner: Any, attribute: Attribute[Any], value: Any) -> Any:
    if attribute is not None and attribute.metadata.get("moment") and value is not None:
        return iso(value)
    return str(value) if isinstance(value, Category) else value
