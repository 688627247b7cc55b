"""The values that linkcrawl passes on: seeds (Seed), requests of a check (Hop), results of checks (Record), and what a
store remembers between checks (LinkState, DueLink, HostMemory).

All of them are frozen: a change is a new value. Times are Unix seconds (float, UTC) inside the program and UTC ISO 8601
with milliseconds in every export. Durations are milliseconds where the field's name ends with `_ms`, else seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from attrs import field, frozen


class Category(StrEnum):
    """CLARIN's six categories of links."""

    OK = "Ok"
    BROKEN = "Broken"
    UNDETERMINED = "Undetermined"
    RESTRICTED = "Restricted_Access"
    BLOCKED_BY_ROBOTS = "Blocked_By_Robots_txt"
    INVALID = "Invalid_URL"


#: The last millisecond of the year 9999 (milliseconds since 1970): ISO 8601 has four digits for years.
LAST_MOMENT = 253_402_300_799_999


def iso(moment: float) -> str:
    """A Unix time as UTC ISO 8601 with milliseconds: `2026-11-30T09:05:00.123Z`. A time beyond the year 9999, which a
    Crawl-delay of years makes of many links, becomes the last millisecond of that year."""
    milliseconds = round(min(moment * 1000, LAST_MOMENT))
    whole = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return f"{whole.isoformat()[:19]}.{milliseconds % 1000:03d}Z"  # strftime takes longer


@frozen(kw_only=True)
class Seed:
    """One mention of a link in one metadata record (a resource proxy), as read from a source.

    `url` is the text as given. `extra` holds the fields that linkcrawl doesn't know; exports return them.
    """

    url: str
    collection: str | None = None
    record: str | None = None
    expected_mime: str | None = None
    provider: str | None = None
    resource_type: str | None = None
    priority: int = 0
    extra: Mapping[str, Any] = field(factory=dict)


@frozen(kw_only=True)
class Retraction(Seed):
    """A mention that is gone, as people push it (`"retire": true`): that of the link with all fields that are given."""


@frozen(kw_only=True)
class Reject:
    """A seed line without a link that could be checked: its source and line number, why it was rejected, and its text
    (cut)."""

    source: str
    line: int
    why: str
    text: str = ""


@frozen(kw_only=True)
class Unread(Reject):
    """A source, or the rest of one, that could not be read: nobody knows which mentions it has."""


@frozen(kw_only=True)
class FieldType:
    """The type of a field of records or hops, as each place names it that keeps or exports records.

    `name`: in docs/reference/record.md. `sql`: the column's type in SQLite. `bson`: the types that MongoDB accepts.
    `arrow`: the column's type in Parquet, by the names of exports.parquet. `export`: makes the value that JSON and the
    feeds have of one that is not None.
    """

    name: str
    sql: str
    bson: tuple[str, ...]
    arrow: str
    export: Callable[[Any], Any]


def _as_is(value: Any) -> Any:
    return value


def _hop_rows(hops: Iterable[Hop]) -> list[dict[str, Any]]:
    return [hop.row() for hop in hops]


TEXT = FieldType(name="text", sql="TEXT", bson=("string",), arrow="text", export=_as_is)
INTEGER = FieldType(name="integer", sql="INTEGER", bson=("int", "long"), arrow="integer", export=_as_is)
BOOLEAN = FieldType(name="boolean", sql="INTEGER", bson=("bool",), arrow="boolean", export=_as_is)
#: Unix seconds; ISO 8601 in exports.
TIME = FieldType(name="time", sql="REAL", bson=("date",), arrow="time", export=iso)
#: A Category.
CATEGORY = FieldType(name="text", sql="TEXT", bson=("string",), arrow="text", export=str)
#: JSON text in SQLite.
TEXTS = FieldType(name="list of text", sql="TEXT", bson=("array",), arrow="[text]", export=list)
#: JSON text in SQLite.
HOPS = FieldType(name="list of objects", sql="TEXT", bson=("array",), arrow="[hop]", export=_hop_rows)


def _kept(type: FieldType, *, null: bool = False, since: int = 1) -> dict[str, Any]:
    """The metadata of a field of Record or Hop. `null`: it may be None. `since`: the version of the stores' layout that
    the field came with; one that came later than the first has a default, which the records of before are read with.
    `serializer` is the name by which Scrapy's feed exporters find `export`."""
    export = type.export

    def serializer(value: Any) -> Any:
        return None if value is None else export(value)

    needs_none = null and export is not _as_is
    return {"type": type, "null": null, "since": since, "serializer": serializer if needs_none else export}


@frozen(kw_only=True)
class Hop:
    """One request of a check and its result. `error`: one line of text, None where an answer came. `at`: when the
    request was sent (Unix seconds)."""

    url: str = field(metadata=_kept(TEXT))
    method: str = field(metadata=_kept(TEXT))
    status: int | None = field(metadata=_kept(INTEGER, null=True))
    location: str | None = field(metadata=_kept(TEXT, null=True))
    duration_ms: int | None = field(metadata=_kept(INTEGER, null=True))
    ip: str | None = field(metadata=_kept(TEXT, null=True))
    error: str | None = field(metadata=_kept(TEXT, null=True))
    at: float = field(metadata=_kept(TIME))

    def row(self) -> dict[str, Any]:
        """The hop under its contract names, ready for JSON."""
        return _row(self, _EXPORTED_OF_HOP)


@frozen(kw_only=True)
class Record:
    """The result of one check: the facts that were observed, and the category and reason judged from them.

    Field names and order are the contract's (docs/reference/record.md). `link_id` is the store's own and is not part of
    any export. What a field's metadata say is all that stores, exports and feeds need to know of it (RecordField):
    docs/extending/record-field.md has the steps for a further field.
    """

    link_id: int | str
    url: str = field(metadata=_kept(TEXT))
    collections: tuple[str, ...] = field(metadata=_kept(TEXTS))
    checked_at: float = field(metadata=_kept(TIME))
    category: Category = field(metadata=_kept(CATEGORY))
    reason: str = field(metadata=_kept(TEXT))
    confirmed: bool = field(metadata=_kept(BOOLEAN))
    status: int | None = field(metadata=_kept(INTEGER, null=True))
    method: str | None = field(metadata=_kept(TEXT, null=True))
    redirects: int = field(metadata=_kept(INTEGER))
    final_url: str | None = field(metadata=_kept(TEXT, null=True))
    hops: tuple[Hop, ...] = field(metadata=_kept(HOPS))
    timeout: bool = field(metadata=_kept(BOOLEAN))
    duration_ms: int | None = field(metadata=_kept(INTEGER, null=True))
    expected_mime: str | None = field(metadata=_kept(TEXT, null=True))
    mime: str | None = field(metadata=_kept(TEXT, null=True))
    mime_matches: bool | None = field(metadata=_kept(BOOLEAN, null=True))
    content_length: int | None = field(metadata=_kept(INTEGER, null=True))
    error: str | None = field(metadata=_kept(TEXT, null=True))
    attempt: int = field(metadata=_kept(INTEGER))
    next_check_at: float = field(metadata=_kept(TIME))
    crawler: str = field(metadata=_kept(TEXT))
    verdict_version: int = field(default=1, metadata=_kept(INTEGER, since=2))
    wall: str | None = field(default=None, metadata=_kept(TEXT, null=True, since=3))

    def row(self) -> dict[str, Any]:
        """The record under its contract names, ready for JSON."""
        return _row(self, _EXPORTED)


@frozen(kw_only=True)
class RecordField:
    """A field of Record or Hop, as stores and exports need it: see `_kept`. `default`: what a record has that was made
    before there was such a field; attrs.NOTHING for a field of the first layout."""

    name: str
    type: FieldType
    null: bool
    since: int
    default: Any


def _fields_of(kind: type[Record] | type[Hop]) -> tuple[RecordField, ...]:
    return tuple(
        RecordField(
            name=part.name,
            type=part.metadata["type"],
            null=part.metadata["null"],
            since=part.metadata["since"],
            default=part.default,
        )
        for part in kind.__attrs_attrs__
        if "type" in part.metadata
    )


def _row(value: Record | Hop, exported: list[tuple[str, Callable[[Any], Any]]]) -> dict[str, Any]:
    return {
        name: getattr(value, name) if serializer is _as_is else serializer(getattr(value, name))
        for name, serializer in exported
    }


def _serializers(kind: type[Record] | type[Hop]) -> list[tuple[str, Callable[[Any], Any]]]:
    return [(part.name, part.metadata["serializer"]) for part in kind.__attrs_attrs__ if "type" in part.metadata]


#: The fields of an exported record and of its hops, in the contract's order.
FIELDS_OF_RECORD, FIELDS_OF_HOP = _fields_of(Record), _fields_of(Hop)
_EXPORTED, _EXPORTED_OF_HOP = _serializers(Record), _serializers(Hop)

#: The names of an exported record, in the contract's order.
RECORD_FIELDS: tuple[str, ...] = tuple(part.name for part in FIELDS_OF_RECORD)


@frozen(kw_only=True)
class LinkState:
    """What recheck planning (check.recheck) remembers of a link between checks.

    `attempt`: how many checks in a row were not Ok. `interval`: the last interval in seconds; the next one after an Ok
    or transient result grows from it. The `hard_*` fields belong to a suspected Broken: when it was first seen (Unix
    seconds), in how many checks, and whether one of them asked by GET.
    """

    attempt: int = 0
    interval: float = 0.0
    hard_since: float | None = None
    hard_count: int = 0
    hard_by_get: bool = False


#: `next_check_at` of a retired link: later than any date that can be written, so that it is never due and stands behind
#: all others in the indexes by time.
RETIRED = 1e13


@frozen(kw_only=True)
class DueLink:
    """A link that is due, with everything that its check needs.

    `next_check_at`: since when it has been due (Unix seconds; contract.NEVER for a link that was never checked).
    Priority, `next_check_at` and id are the link's place in the order of `Store.due`. `last_category`,
    `last_checked_at`: of its latest record, None where it has none.
    """

    id: int | str
    url: str
    host: str
    priority: int = 0
    next_check_at: float = 0.0
    collections: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()
    expected_mime: str | None = None
    state: LinkState = LinkState()
    last_category: Category | None = None
    last_checked_at: float | None = None

    @property
    def is_retired(self) -> bool:
        """Whether no mention of it is live."""
        return self.next_check_at >= RETIRED


@frozen(kw_only=True)
class HostMemory:
    """What the store keeps of a host between crawls; also of the gate of a group and of a shared limit
    (politeness.keys). Times are Unix seconds.

    `head_useless_since`: when a GET first succeeded there after a HEAD had failed. `last_end`: when the last request
    to the host ended. `failing_since`: since when the host has answered no request at all; `failing_days`: the first
    request that met this on each day (UTC), of the first days only (check.silence).
    `pace` and `robots` (when and how often its robots.txt files ask to be asked) are opaque JSON-ready values of the
    rooms that own them (politeness). The files themselves are RobotsFiles.
    """

    host: str
    head_useless_since: float | None = None
    last_end: float | None = None
    failing_since: float | None = None
    failing_days: tuple[float, ...] = ()
    pace: Mapping[str, Any] = field(factory=dict)
    robots: Mapping[str, Any] = field(factory=dict)


@frozen(kw_only=True)
class RobotsFile:
    """What is kept of the robots.txt of an authority (`scheme://host[:port]`), apart from host memory, for it may be
    large. `until`: when it is of no use any more. `entry`: an opaque JSON-ready value of politeness.robots."""

    authority: str
    until: float
    entry: Mapping[str, Any]


@frozen(kw_only=True)
class Finished:
    """A check that has ended: its record, and the state that its link goes on with.

    `of`: the link as the store gave it out for this check; None for a check of another program. By it a store
    recognises two checks that began on the same state of a link.
    """

    record: Record
    state: LinkState
    of: DueLink | None = None


@frozen(kw_only=True)
class Rejudged:
    """A link's latest record that was judged again, without a request: as it was, and as it is from now on.

    `state`: what the link goes on with, from `record.next_check_at` on; None where nothing of that changes.
    """

    before: Record
    record: Record
    state: LinkState | None = None

    @property
    def is_changed(self) -> bool:
        """Whether the judgement is another one."""
        before, now = self.before, self.record
        return (before.category, before.reason, before.confirmed) != (now.category, now.reason, now.confirmed)


class Act(StrEnum):
    """What a person orders for a host."""

    BLOCK = "block"
    UNBLOCK = "unblock"


@frozen(kw_only=True)
class Order:
    """The last order that a person gave about a host (key). The store keeps it, so that it acts on a running crawl and
    on the next one.

    `at`: when it was given (Unix seconds). `until`: when a block ends by itself, None for never. `reason`: the person's
    words.
    """

    host: str
    act: Act
    at: float
    reason: str = ""
    until: float | None = None

    def blocks(self, now: float) -> bool:
        """True where the host may not be asked now."""
        return self.act is Act.BLOCK and (self.until is None or now < self.until)

    def reopens(self, blocked_since: float | None) -> bool:
        """True where this order re-opens a host that the ban circuit blocked at `blocked_since` (Unix seconds)."""
        return self.act is Act.UNBLOCK and blocked_since is not None and self.at >= blocked_since
