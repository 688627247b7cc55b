"""What every store does alike: text and numbers that a store can hold, JSON, globs, and records as flat documents.

A document is a dict of plain values (None, bool, int, float, str, lists and dicts of them) that SQLite columns and
BSON both take. What strangers' servers and seeds may hold is made storable here and nowhere else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from linkcrawl.items import Category, Hop, LinkState, Record

#: Both SQLite and BSON hold whole numbers as 64 bits with sign.
LEAST, MOST = -(2**63), 2**63 - 1

#: A record's plain fields: stored and read back as they are, once text and numbers are storable.
_TEXTS = ("reason", "method", "final_url", "expected_mime", "mime", "error", "crawler")
_NUMBERS = ("status", "redirects", "duration_ms", "content_length", "attempt")
_PLAIN = ("checked_at", "next_check_at", "confirmed", "timeout", "mime_matches")


def text(value: str) -> str:
    """`value` as text that has a UTF-8 form: lone surrogates become U+FFFD, pairs of them their character."""
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value


def optional_text(value: str | None) -> str | None:
    """As `text`, for a field that may be missing."""
    return None if value is None else text(value)


def whole(value: int) -> int:
    """`value`, or the nearest number that 64 bits hold (a server may claim any Content-Length)."""
    return min(MOST, max(LEAST, value))


# Made once: json.dumps makes one a call unless everything is as it has it.
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


def to_json(value: Any) -> str:
    """`value` as compact JSON that is storable text. What JSON has no form for (dates, object ids) becomes text."""
    return text(_JSON.encode(value))


def from_json(stored: str) -> Any:
    """The value that `to_json` stored."""
    return json.loads(stored)


@lru_cache(maxsize=256)
def glob(pattern: str) -> re.Pattern[str]:
    """A glob of the contract as a compiled pattern, to be used with `fullmatch`: `*` is any text, `?` any one
    character, everything else itself, case-sensitive."""
    parts = {"*": ".*", "?": "."}
    return re.compile("".join(parts.get(char) or re.escape(char) for char in pattern), re.DOTALL)


def hop_document(hop: Hop) -> dict[str, Any]:
    """The hop under its field names, without those that are None."""
    document = {
        "url": text(hop.url),
        "method": text(hop.method),
        "status": hop.status,
        "location": optional_text(hop.location),
        "duration_ms": hop.duration_ms,
        "ip": hop.ip,
        "error": optional_text(hop.error),
        "at": hop.at,
    }
    return {name: value for name, value in document.items() if value is not None}


def hop_of(document: Mapping[str, Any]) -> Hop:
    """The hop that `hop_document` made this of."""
    return Hop(
        url=document["url"],
        method=document["method"],
        status=document.get("status"),
        location=document.get("location"),
        duration_ms=document.get("duration_ms"),
        ip=document.get("ip"),
        error=document.get("error"),
        at=document["at"],
    )


def record_document(record: Record) -> dict[str, Any]:
    """The record under its field names, without `link_id` and `url`, which are the link's and kept there."""
    document: dict[str, Any] = {name: getattr(record, name) for name in _PLAIN}
    document |= {name: optional_text(getattr(record, name)) for name in _TEXTS}
    for name in _NUMBERS:
        number = getattr(record, name)
        document[name] = None if number is None else whole(number)
    document["category"] = str(record.category)
    document["collections"] = [text(name) for name in record.collections]
    document["hops"] = [hop_document(hop) for hop in record.hops]
    return document


def record_of(link_id: int | str, url: str, document: Mapping[str, Any]) -> Record:
    """The record that `record_document` made this of; `collections` and `hops` are lists, truth values may be 0/1."""
    matches = document["mime_matches"]
    return Record(
        link_id=link_id,
        url=url,
        collections=tuple(document["collections"]),
        category=Category(document["category"]),
        hops=tuple(hop_of(hop) for hop in document["hops"]),
        checked_at=document["checked_at"],
        next_check_at=document["next_check_at"],
        confirmed=bool(document["confirmed"]),
        timeout=bool(document["timeout"]),
        mime_matches=None if matches is None else bool(matches),
        **{name: document[name] for name in (*_TEXTS, *_NUMBERS)},
    )


def state_document(state: LinkState) -> dict[str, Any]:
    """The link's state under its field names."""
    return {
        "attempt": whole(state.attempt),
        "interval": state.interval,
        "hard_since": state.hard_since,
        "hard_count": whole(state.hard_count),
        "hard_by_get": state.hard_by_get,
    }


def state_of(document: Mapping[str, Any]) -> LinkState:
    """The state that `state_document` made this of."""
    return LinkState(
        attempt=document["attempt"],
        interval=document["interval"],
        hard_since=document["hard_since"],
        hard_count=document["hard_count"],
        hard_by_get=bool(document["hard_by_get"]),
    )
