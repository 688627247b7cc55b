"""The data of linkcrawl: what goes in (Seed), what a check is made of (Hop), what comes out (Record), and what
the store remembers between checks (LinkState, DueLink, HostMemory).

All of it is frozen: a change is a new value. Times are Unix seconds (float, UTC) inside the program and UTC ISO
8601 with milliseconds in every export; durations are milliseconds where a field's name says so, else seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from attrs import field, frozen


class Category(StrEnum):
    """CLARIN's six categories; the judgement that a record makes of its link."""

    OK = "Ok"
    BROKEN = "Broken"
    UNDETERMINED = "Undetermined"
    RESTRICTED = "Restricted_Access"
    BLOCKED_BY_ROBOTS = "Blocked_By_Robots_txt"
    INVALID = "Invalid_URL"


#: The last millisecond of the year 9999, in milliseconds: what ISO 8601 has four digits for.
LAST_MOMENT = 253_402_300_799_999


def iso(moment: float) -> str:
    """A Unix time as UTC ISO 8601 with milliseconds: `2026-11-30T09:05:00.123Z`. Times beyond the year 9999, when a
    Crawl-delay of years would let go of many links, are told as its last moment."""
    milliseconds = round(min(moment * 1000, LAST_MOMENT))
    whole = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return f"{whole:%Y-%m-%dT%H:%M:%S}.{milliseconds % 1000:03d}Z"


@frozen(kw_only=True)
class Seed:
    """One mention of a link in one metadata record: a resource proxy, as a source gave it.

    `url` is the text as given. `extra` holds the fields that we don't know; exports give them back.
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
class Reject:
    """A seed line that has nothing to check in it: where it stood, why it was refused, and its text (cut)."""

    source: str
    line: int
    why: str
    text: str = ""


@frozen(kw_only=True)
class Hop:
    """One request of a check, whatever came of it. `error` is one line of text; `at` is when it was sent."""

    url: str
    method: str
    status: int | None
    location: str | None
    duration_ms: int | None
    ip: str | None
    error: str | None
    at: float

    def row(self) -> dict[str, Any]:
        """The hop under its contract names, its time as ISO 8601."""
        return {
            "url": self.url,
            "method": self.method,
            "status": self.status,
            "location": self.location,
            "duration_ms": self.duration_ms,
            "ip": self.ip,
            "error": self.error,
            "at": iso(self.at),
        }


def _hop_rows(hops: tuple[Hop, ...]) -> list[dict[str, Any]]:
    return [hop.row() for hop in hops]


@frozen(kw_only=True)
class Record:
    """The outcome of one check: the raw facts, and the category and reason that were made of them.

    Field names and order are the contract's (docs/reference/record.md). `link_id` is the store's own and is
    not part of any export. A field's `serializer` turns it into its exported form; Scrapy's feed exporters use
    the same ones.
    """

    link_id: int | str = field(metadata={"internal": True})
    url: str
    collections: tuple[str, ...] = field(metadata={"serializer": list})
    checked_at: float = field(metadata={"serializer": iso})
    category: Category = field(metadata={"serializer": str})
    reason: str
    confirmed: bool
    status: int | None
    method: str | None
    redirects: int
    final_url: str | None
    hops: tuple[Hop, ...] = field(metadata={"serializer": _hop_rows})
    timeout: bool
    duration_ms: int | None
    expected_mime: str | None
    mime: str | None
    mime_matches: bool | None
    content_length: int | None
    error: str | None
    attempt: int
    next_check_at: float = field(metadata={"serializer": iso})
    crawler: str

    def row(self) -> dict[str, Any]:
        """The record under its contract names, ready for JSON."""
        return {name: serializer(getattr(self, name)) for name, serializer in _EXPORTED}


def _as_is(value: Any) -> Any:
    return value


_EXPORTED = [
    (part.name, part.metadata.get("serializer", _as_is))
    for part in Record.__attrs_attrs__
    if not part.metadata.get("internal")
]

#: The names of an exported record, in the contract's order.
RECORD_FIELDS: tuple[str, ...] = tuple(name for name, _ in _EXPORTED)


@frozen(kw_only=True)
class LinkState:
    """What recheck planning remembers of a link between checks (DESIGN: verdicts and rechecks).

    `attempt` counts the checks in a row that were not Ok. `interval` is the last interval in seconds, which Ok
    and transient outcomes grow from. The `hard_*` fields follow a suspected Broken: when it was first seen, in
    how many checks, and whether one of them asked by GET.
    """

    attempt: int = 0
    interval: float = 0.0
    hard_since: float | None = None
    hard_count: int = 0
    hard_by_get: bool = False


@frozen(kw_only=True)
class DueLink:
    """A link whose time to be checked has come, with all that its check needs to know.

    `next_check_at` is since when it has been due (stores.NEVER for a link that was never checked): with priority
    and id it is the link's place in the order of `Store.due`, and stays so when the link has moved on.
    `last_category` and `last_checked_at` are of its latest record, None where it has none.
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


@frozen(kw_only=True)
class HostMemory:
    """What is kept of a host over restarts.

    `head_useless_since`: when a GET there first succeeded after a HEAD had failed. `last_end`: when its last
    request ended, of whatever crawl. `failing_since`: since when no request to it was answered at all.
    `pace` and `robots` are opaque JSON-ready values of the rooms that own them (politeness).
    """

    host: str
    head_useless_since: float | None = None
    last_end: float | None = None
    failing_since: float | None = None
    pace: Mapping[str, Any] = field(factory=dict)
    robots: Mapping[str, Any] = field(factory=dict)


@frozen(kw_only=True)
class Finished:
    """A check that has ended: its record, and the state that its link goes on with.

    `of`: the link as it was given out for this check; None where the check is of another program. A store tells by it
    two checks that were begun on the same state of a link.
    """

    record: Record
    state: LinkState
    of: DueLink | None = None


class Act(StrEnum):
    """What a person orders for a host."""

    BLOCK = "block"
    UNBLOCK = "unblock"


@frozen(kw_only=True)
class Order:
    """The last order that a person gave about a host (key). It is kept in the store, so that it acts on a crawl that
    is running, and on the next one.

    `at`: when it was given. `until`: when a block ends by itself, None for never. `reason`: the person's words.
    """

    host: str
    act: Act
    at: float
    reason: str = ""
    until: float | None = None

    def blocks(self, now: float) -> bool:
        """Whether nothing may be requested there now."""
        return self.act is Act.BLOCK and (self.until is None or now < self.until)

    def reopens(self, blocked_since: float | None) -> bool:
        """Whether it re-opens a host that the ban circuit has blocked since then."""
        return self.act is Act.UNBLOCK and blocked_since is not None and self.at >= blocked_since
