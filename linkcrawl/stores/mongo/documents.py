"""Conversions between linkcrawl's data and the documents of the MongoDB store, which docs/mongodb.md describes.

Times are BSON dates of whole milliseconds, rounded as in exports. Text from outside stands in values only, never in
field names; objects of unknown shape are kept as JSON text.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from bson import encode
from bson.datetime_ms import DatetimeMS

from linkcrawl.items import (
    FIELDS_OF_RECORD,
    RECORD_FIELDS,
    RETIRED,
    TIME,
    Act,
    Category,
    DueLink,
    Finished,
    HostMemory,
    LinkState,
    Order,
    Record,
    Rejudged,
    RobotsFile,
)
from linkcrawl.stores.contract import NEVER, LinkEntry, Proxy
from linkcrawl.stores.rows import (
    JUDGED,
    LEAST,
    MOST,
    from_json,
    optional_text,
    record_document,
    record_of,
    state_document,
    state_of,
    text,
    to_json,
    whole,
)

Document = dict[str, Any]

#: Bytes from which a record's hops are shortened, and characters that each text of theirs then keeps: a document
#: holds 16 MiB, and a URL of a megabyte may come back in every hop.
LARGE_RECORD, SHORT_TEXT = 8 * 1024 * 1024, 10_000

#: Fields of the latest record that a link's document repeats as `last`.
_LAST = frozenset(RECORD_FIELDS) - {"url", "collections", "expected_mime", "hops", "next_check_at"}

#: What tells whether a record still says what it said when it was read.
JUDGEMENT = ("category", "reason", "confirmed", "verdict_version")
#: Fields of a record that are dates in its document.
_TIMES = tuple(part.name for part in FIELDS_OF_RECORD if part.type is TIME)

_MENTION = ("collection", "record", "expected_mime", "provider", "resource_type")


def date(moment: float) -> DatetimeMS:
    """A moment (Unix seconds) as a BSON date: the nearest millisecond."""
    return _date(round(moment * 1000) if math.isfinite(moment) else moment)


def first_from(moment: float) -> DatetimeMS:
    """The first date that is not before the moment. (The float of a whole millisecond may be slightly larger.)"""
    return _date(math.ceil(moment * 1000 - 0.01) if math.isfinite(moment) else moment)


def last_until(moment: float) -> DatetimeMS:
    """The last date that is not after the moment."""
    return _date(math.floor(moment * 1000 + 0.01) if math.isfinite(moment) else moment)


def _date(milliseconds: float) -> DatetimeMS:
    return DatetimeMS(int(min(MOST, max(LEAST, milliseconds))))


def moment_of(value: DatetimeMS) -> float:
    """A BSON date as Unix seconds."""
    return int(value) / 1000


def _optional_date(moment: float | None) -> DatetimeMS | None:
    return None if moment is None else date(moment)


def _optional_moment(value: DatetimeMS | None) -> float | None:
    return None if value is None else moment_of(value)


def mention(entry: LinkEntry, harvest: int = 0) -> Document:
    """An entry as an item of a batch: its link (with at most one collection and provider) and its proxy, which that
    harvest has."""
    seed = entry.seed
    link_id = entry.key.hex()
    fields = {name: optional_text(getattr(seed, name) or None) for name in _MENTION}
    identity = to_json([link_id, *fields.values()]).encode()
    return {
        "link": {
            "_id": link_id,
            "url": text(entry.url),
            "host": text(entry.host),
            "priority": whole(seed.priority),
            "expected_mime": fields["expected_mime"],
            "collections": [fields["collection"]] if fields["collection"] else [],
            "providers": [fields["provider"]] if fields["provider"] else [],
        },
        "proxy": {
            "_id": blake2b(identity, digest_size=16).digest(),
            "link": link_id,
            **fields,
            "extra": to_json(dict(seed.extra)) if seed.extra else None,
            "harvest": harvest,
        },
    }


def described(entry: LinkEntry) -> Document:
    """The condition that a mention is of the entry's link, and has all fields that its seed gives."""
    given = {name: optional_text(getattr(entry.seed, name) or None) for name in _MENTION}
    return {"link": entry.key.hex()} | {name: {"$eq": value} for name, value in given.items() if value is not None}


def new_link(link: Mapping[str, Any]) -> Document:
    """The document of a new link that was never checked."""
    return {**link, "next_check_at": date(NEVER), "last": None, "state": _state_document(LinkState())}


def check(finished: Finished) -> Document:
    """A finished check as an item of a batch: its record, the link's new state, and `before`, the `checked_at` of the
    latest record on which the check began."""
    record = finished.record
    checked_at = date(record.checked_at)
    document = record_document(record)
    document |= {name: _optional_date(document[name]) for name in _TIMES}
    document["hops"] = [_hop(hop) for hop in document["hops"]]
    document = {
        "_id": _record_id(finished, checked_at),
        "link": record.link_id,
        "url": text(record.url),
        **document,
    }
    if len(encode(document)) > LARGE_RECORD:
        document["hops"] = [_shortened(hop) for hop in document["hops"]]
    before = None if finished.of is None else _optional_date(finished.of.last_checked_at)
    return {"record": document, "state": _state_document(finished.state), "before": before}


def _record_id(finished: Finished, checked_at: DatetimeMS) -> str:
    """Equal for all checks that began on the same latest record of a link, so that MongoDB stores only one of them."""
    link = finished.of
    if link is None:
        return f"{finished.record.link_id}:{int(checked_at)}"
    before = "never" if link.last_checked_at is None else int(date(link.last_checked_at))
    return f"{link.id}:after:{before}"


def _hop(hop: Document) -> Document:
    numbers: Document = {name: whole(hop[name]) for name in ("status", "duration_ms") if name in hop}
    return {**hop, **numbers, "at": date(hop["at"])}


def _shortened(hop: Document) -> Document:
    return {name: value[:SHORT_TEXT] if isinstance(value, str) else value for name, value in hop.items()}


def last_of(record: Mapping[str, Any]) -> Document:
    """What a link's document repeats of its latest record's document."""
    return {"record": record["_id"], **{name: record[name] for name in record if name in _LAST}}


def moved(item: Mapping[str, Any]) -> list[Document]:
    """What a check changes in its link's document. A retired link stays retired."""
    record = item["record"]
    last = last_of(record)
    is_retired = {"$gte": ["$next_check_at", date(RETIRED)]}
    next_check_at = {"$cond": [is_retired, "$next_check_at", record["next_check_at"]]}
    return [
        {"$set": {"next_check_at": next_check_at, "last": {"$literal": last}, "state": {"$literal": item["state"]}}}
    ]


def rejudgement(rejudged: Rejudged, record_id: str) -> Document:
    """A record that was judged again as an item of a batch: what `before` said, and what is said from now on."""
    before, now = record_document(rejudged.before), record_document(rejudged.record)
    return {
        "record": record_id,
        "link": rejudged.record.link_id,
        "before": {name: before[name] for name in JUDGEMENT},
        "said": {name: now[name] for name in JUDGED if name != "next_check_at"},
        "next_check_at": date(rejudged.record.next_check_at),
        "state": None if rejudged.state is None else _state_document(rejudged.state),
    }


def _state_document(state: LinkState) -> Document:
    return {**state_document(state), "hard_since": _optional_date(state.hard_since)}


def record_from(document: Mapping[str, Any]) -> Record:
    """The record of a document of `records`."""
    times = {name: _optional_moment(document[name]) for name in _TIMES if name in document}
    hops = [{**hop, "at": moment_of(hop["at"])} for hop in document["hops"]]
    return record_of(document["link"], document["url"], {**document, **times, "hops": hops})


def due_link(document: Mapping[str, Any]) -> DueLink:
    """The link of a document of `links`."""
    state, last = document["state"], document["last"]
    return DueLink(
        id=document["_id"],
        url=document["url"],
        host=document["host"],
        priority=document["priority"],
        next_check_at=moment_of(document["next_check_at"]),
        collections=tuple(sorted(document["collections"])),
        providers=tuple(sorted(document["providers"])),
        expected_mime=document["expected_mime"],
        state=state_of({**state, "hard_since": _optional_moment(state["hard_since"])}),
        last_category=None if last is None else Category(last["category"]),
        last_checked_at=None if last is None else moment_of(last["checked_at"]),
    )


def proxy_of(document: Mapping[str, Any]) -> Proxy:
    """The mention of a document of `proxies`."""
    extra = document["extra"]
    return Proxy(
        **{name: document[name] for name in _MENTION},
        extra={} if extra is None else from_json(extra),
    )


def host_document(memory: HostMemory) -> Document:
    """A host's memory as a document of `hosts`."""
    return {
        "_id": text(memory.host),
        "head_useless_since": _optional_date(memory.head_useless_since),
        "last_end": _optional_date(memory.last_end),
        "failing_since": _optional_date(memory.failing_since),
        "failing_days": [date(at) for at in memory.failing_days],
        "pace": to_json(dict(memory.pace)),
        "robots": to_json(dict(memory.robots)),
    }


def host_memory(document: Mapping[str, Any]) -> HostMemory:
    """The memory that `host_document` made this of."""
    return HostMemory(
        host=document["_id"],
        head_useless_since=_optional_moment(document["head_useless_since"]),
        last_end=_optional_moment(document["last_end"]),
        failing_since=_optional_moment(document["failing_since"]),
        failing_days=tuple(map(moment_of, document.get("failing_days", ()))),
        pace=from_json(document["pace"]),
        robots=from_json(document["robots"]),
    )


def robots_document(file: RobotsFile) -> Document:
    """A robots.txt as a document of `robots`."""
    return {"_id": text(file.authority), "until": date(file.until), "entry": to_json(dict(file.entry))}


def robots_file(document: Mapping[str, Any]) -> RobotsFile:
    """The robots.txt that `robots_document` made this of."""
    return RobotsFile(authority=document["_id"], until=moment_of(document["until"]), entry=from_json(document["entry"]))


def order_document(order: Order) -> Document:
    """A person's order as a document of `orders`."""
    return {
        "_id": text(order.host),
        "act": str(order.act),
        "at": date(order.at),
        "reason": text(order.reason),
        "until": _optional_date(order.until),
    }


def order_of(document: Mapping[str, Any]) -> Order:
    """The order that `order_document` made this of."""
    return Order(
        host=document["_id"],
        act=Act(document["act"]),
        at=moment_of(document["at"]),
        reason=document["reason"],
        until=_optional_moment(document["until"]),
    )
