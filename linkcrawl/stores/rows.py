"""What both stores do alike: text and numbers that a store can hold, JSON, globs, and records as flat documents.

A document is a dict of plain values (None, bool, int, float, str, lists and dicts of them) that SQLite columns and BSON
both accept. Values from servers and seeds are made storable here and nowhere else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from attrs import NOTHING

from linkcrawl.items import (
    BOOLEAN,
    CATEGORY,
    FIELDS_OF_HOP,
    FIELDS_OF_RECORD,
    HOPS,
    INTEGER,
    TEXT,
    TEXTS,
    TIME,
    Category,
    FieldType,
    Hop,
    LinkState,
    Record,
)
from linkcrawl.stores.layout import reason_of_now

#: The bounds of whole numbers in SQLite and BSON: 64 bits with sign.
LEAST, MOST = -(2**63), 2**63 - 1


#: Fields of a record that are a judgement; all others are facts, and stay when it is judged again.
JUDGED = ("category", "reason", "confirmed", "error", "attempt", "next_check_at", "verdict_version", "wall")


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
    """Like `text`, for a field that may be None."""
    return None if value is None else text(value)


def whole(value: int) -> int:
    """`value`, or the nearest number that 64 bits hold (a server may claim any Content-Length)."""
    return min(MOST, max(LEAST, value))


# Made once: json.dumps makes an encoder at each call that has options.
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


def to_json(value: Any) -> str:
    """`value` as compact JSON that is storable text. A value that JSON has no type for (dates, object ids) becomes
    text."""
    return text(_JSON.encode(value))


def from_json(stored: str) -> Any:
    """The value that `to_json` stored."""
    return json.loads(stored)


def after_prefix(prefix: str) -> str:
    """The first text, by code points, after all those that begin with `prefix`, which isn't empty."""
    return prefix[:-1] + chr(ord(prefix[-1]) + 1)


@lru_cache(maxsize=256)
def glob(pattern: str) -> re.Pattern[str]:
    """A glob of the contract as a compiled pattern for `fullmatch`: `*` matches any text, `?` any one character,
    everything else itself. Case-sensitive."""
    parts = {"*": ".*", "?": "."}
    return re.compile("".join(parts.get(char) or re.escape(char) for char in pattern), re.DOTALL)


def hop_document(hop: Hop) -> dict[str, Any]:
    """The hop under its field names, without those that are None."""
    return {name: value for name, value in _document(hop, _KEPT_OF_HOP).items() if value is not None}


def hop_of(document: Mapping[str, Any]) -> Hop:
    """The hop that `hop_document` made this of."""
    values: dict[str, Any] = {name: document.get(name) for name in _NAMES_OF_HOP}
    return Hop(**values)


def record_document(record: Record) -> dict[str, Any]:
    """The record under its field names, without `link_id` and `url`, which are the link's and kept there."""
    return _document(record, _KEPT)


def record_of(link_id: int | str, url: str, document: Mapping[str, Any]) -> Record:
    """The record that `record_document` made this of, of this program or an older one; `collections` and `hops` are
    lists, truth values may be 0/1. Raises KeyError where a field is absent that every version has."""
    values: dict[str, Any] = {}
    for name, default, restore in _RESTORED:
        value = document[name] if default is NOTHING else document.get(name, default)
        values[name] = value if value is None or restore is _as_is else restore(value)
    values["reason"] = reason_of_now(values["reason"])
    return Record(link_id=link_id, url=url, **values)


def _document(value: Record | Hop, kept: list[tuple[str, Callable[[Any], Any]]]) -> dict[str, Any]:
    document = {}
    for name, storable in kept:
        part = getattr(value, name)
        document[name] = part if part is None or storable is _as_is else storable(part)
    return document


def _as_is(value: Any) -> Any:
    return value


#: How a value of each type becomes storable, and how it is read back.
_STORABLE: Mapping[FieldType, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    TEXT: (text, _as_is),
    INTEGER: (whole, _as_is),
    BOOLEAN: (_as_is, bool),
    TIME: (_as_is, _as_is),
    CATEGORY: (str, Category),
    TEXTS: (lambda names: [text(name) for name in names], tuple),
    HOPS: (lambda hops: [hop_document(hop) for hop in hops], lambda hops: tuple(hop_of(hop) for hop in hops)),
}
_KEPT = [(part.name, _STORABLE[part.type][0]) for part in FIELDS_OF_RECORD if part.name != "url"]
_NAMES_OF_HOP = tuple(part.name for part in FIELDS_OF_HOP)
_KEPT_OF_HOP = [(part.name, _STORABLE[part.type][0]) for part in FIELDS_OF_HOP]
_RESTORED = [(part.name, part.default, _STORABLE[part.type][1]) for part in FIELDS_OF_RECORD if part.name != "url"]


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
