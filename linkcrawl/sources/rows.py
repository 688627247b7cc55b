"""Rows of sources: a mapping of field names to values becomes a Seed or a Reject."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from linkcrawl import urls
from linkcrawl.errors import BadRowError
from linkcrawl.items import Reject, Seed, Unread
from linkcrawl.urls.userinfo import redact, without_userinfo

logger = logging.getLogger(__name__)

#: Fields of a seed that are text, `url` aside.
TEXTS = ("collection", "record", "expected_mime", "provider", "resource_type")
FIELDS = frozenset(("url", "priority", *TEXTS))

#: Field names of the older layout, with those of today.
OLDER = {"expectedMimeType": "expected_mime"}

#: The largest priority that every store can hold.
MAX_PRIORITY = 2**31 - 1

#: Levels that the value of an unknown field may be nested: Python's JSON, which reads it again, fails at some hundreds.
MAX_DEPTH = 50

_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")

#: Characters of a rejected line that are kept.
KEPT_TEXT = 500
# Characters of a rejected line that are searched for a login: a line may be megabytes long.
_SEARCHED_TEXT = 4000


def seed_or_reject(row: Mapping[str, Any], *, source: str, line: int, text: str) -> Seed | Reject:
    """The seed of a row. `text`: the row as the source has it, for the reject. Never raises: a fault of ours is logged
    and costs only this row."""
    try:
        return _seed(row)
    except BadRowError as error:
        return reject(str(error), source=source, line=line, text=text)
    except Exception as fault:
        logger.exception("%s:%d: no seed could be made of this row", source, line)
        return reject(internal_error(fault), source=source, line=line, text=text)


def internal_error(fault: Exception) -> str:
    """What a reject says of a fault of ours; the log has its traceback."""
    return f"internal error: {type(fault).__name__}"


def reject(why: str, *, source: str, line: int, text: str = "") -> Reject:
    """A Reject without user:password@; its text is cut to KEPT_TEXT characters."""
    return Reject(source=source, line=line, why=redact(why), text=redact(text[:_SEARCHED_TEXT])[:KEPT_TEXT])


def unread(why: str, *, source: str, line: int = 0) -> Unread:
    """The Reject of a source, or the rest of one, that could not be read."""
    return Unread(source=source, line=line, why=redact(why))


def _seed(row: Mapping[str, Any]) -> Seed:
    values = dict(row)
    for older, name in OLDER.items():
        if older in values:
            value = values.pop(older)
            if values.get(name) in (None, ""):
                values[name] = value
    return Seed(
        url=_url(values.pop("url", None)),
        priority=_priority(values.pop("priority", None)),
        **{name: _text(name, values.pop(name)) for name in TEXTS if name in values},
        extra=_redacted(values) if values else values,
    )


def _url(value: Any) -> str:
    if value is None or value == "":
        raise BadRowError("no url")
    if not isinstance(value, str):
        raise BadRowError(f"url is {_shown(value)}, not text")
    url = without_userinfo(value)
    if not urls.has_scheme(url):
        raise BadRowError("url has no scheme" if url.strip() else "no url")
    return url


def _text(name: str, value: Any) -> str | None:
    """A text field. A number becomes text, as identifiers often are numbers. A list is refused: a mention in two
    collections is two rows."""
    if value is None:
        return None
    if not isinstance(value, str):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise BadRowError(f"{name} is {_shown(value)}, not text")
        value = str(value)
    return redact(value.strip()) or None


def _priority(value: Any) -> int:
    if value is None or value == "":
        return 0
    number: Any = value
    if isinstance(value, str):
        digits = value.strip()
        number = int(digits) if _INTEGER.fullmatch(digits) else None
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    if not isinstance(number, int) or isinstance(number, bool):
        raise BadRowError(f"priority is {_shown(value)}, not an integer")
    if not -MAX_PRIORITY <= number <= MAX_PRIORITY:
        raise BadRowError(f"priority {_shown(value)} is out of range; up to {MAX_PRIORITY} would work")
    return number


def _redacted(value: Any, depth: int = 0) -> Any:
    """The value of an unknown field, without the user:password@ of URLs in it."""
    if isinstance(value, str):
        return redact(value)
    if depth > MAX_DEPTH and isinstance(value, (dict, list)):
        raise BadRowError(f"an unknown field is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, dict):
        return {name: _redacted(part, depth + 1) for name, part in value.items()}
    if isinstance(value, list):
        return [_redacted(part, depth + 1) for part in value]
    return value


def _shown(value: Any) -> str:
    try:
        shown = ascii(value)
    except RecursionError:
        return f"a deeply nested {type(value).__name__}"
    return shown if len(shown) <= 60 else shown[:57] + "..."
