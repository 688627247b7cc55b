"""Reading the header fields that a verdict or a record needs, as servers really send them."""

from __future__ import annotations

import re
from collections.abc import Mapping

#: Characters of a media type: names of at most 127 on both sides of the slash (RFC 6838, 4.2).
MAX_MIME = 255

_MIME = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+")


def redirect_target(headers: Mapping[str, str]) -> str:
    """The Location to follow, "" for none. A server that sent the very same one twice meant it once."""
    location = headers.get("location", "").strip()
    half, odd = divmod(len(location) - 2, 2)
    twice = half > 0 and not odd and location == f"{location[:half]}, {location[:half]}"
    return location[:half] if twice else location


def bare_mime(text: str) -> str | None:
    """The media type of a Content-Type value: lower case, without parameters; None where there is no valid one.
    Of several, the last valid one counts (Fetch standard, "extract a MIME type")."""
    types = [part.partition(";")[0].strip().lower() for part in text.split(",")]
    valid = [kind for kind in types if len(kind) <= MAX_MIME and _MIME.fullmatch(kind) and kind != "*/*"]
    return valid[-1] if valid else None


def length(text: str) -> int | None:
    """Content-Length in bytes; repeated equal values are one (RFC 9110, 8.6), anything else is not a length."""
    values = {part.strip() for part in text.split(",")}
    value = values.pop()
    return int(value) if not values and re.fullmatch(r"[0-9]{1,18}", value) else None


def mime_matches(expected: str | None, actual: str | None) -> bool | None:
    """Whether a bare media type is the expected one, whatever its case and parameters; None when either is unknown.

    `text/xml` and `application/xml` are one type (RFC 7303, 9.2). An expectation that is no media type is not met.
    """
    if expected is None or actual is None:
        return None
    bare = bare_mime(expected)
    return bare is not None and _one_name(bare) == _one_name(actual)


def is_html(mime: str | None) -> bool:
    """Whether a bare media type is that of a page for browsers."""
    return mime in ("text/html", "application/xhtml+xml")


def _one_name(mime: str) -> str:
    return "application/xml" if mime == "text/xml" else mime
