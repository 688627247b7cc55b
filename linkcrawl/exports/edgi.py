"""Lines for EDGI's web-monitoring-db: bodies of `POST /api/v0/imports`, one version a line.

The rules are those of its import job and its models Version, Page and PageUrl (as of August 2026). linkcrawl reads no
bodies, so `body_url`, `body_hash`, `title` and `headers` are null, which it accepts; `source_metadata` holds what else
is known of an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from linkcrawl.exports.jsonl import line
from linkcrawl.exports.rows import Row, redirect_chain
from linkcrawl.items import Record, iso
from linkcrawl.urls import Refused, read, tidy

#: Lines of one import at most, as its documentation recommends.
CHUNK = 1000

SOURCE_TYPE = "linkcrawl"

# Page and PageUrl: http, https or ftp, and a host with a dot and two characters after it …
_AUTHORITY = re.compile(r"https?://[^/]+\.[^/]{2,}")
# … which it parses itself: of URLs that can't be requested, it is sure to accept only plain ones.
_PLAIN = re.compile(r"(https?|ftp)://[\w.-]+\.[\w-]{2,}(:[0-9]{1,5})?([/?#]|$)", re.ASCII | re.IGNORECASE)
# Version::MEDIA_TYPE_PATTERN
_MEDIA_TYPE = re.compile(r"\w[\w!#$&^+\-.]+/\w[\w!#$&^+\-.]+", re.ASCII)
# `versions.content_length` is a PostgreSQL integer
_LONGEST = 2**31 - 1


def refusal(row: Row) -> str | None:
    """Why the importer would refuse this row: `status` (it accepts 100 to 599) or `url` (it accepts http, https and ftp
    URLs with a dot in the host). Other values that it would refuse are optional, and left out of the line."""
    status = row.record.status
    if status is not None and not 100 <= status < 600:
        return "status"
    return None if _is_page(row.record.url) else "url"


def _is_page(url: str) -> bool:
    if "\0" in url:  # which PostgreSQL can't hold
        return False
    reading = read(url)
    if isinstance(reading, Refused):
        return reading.reason != "invalid_url" and _PLAIN.match(tidy(url).strip()) is not None
    return _AUTHORITY.fullmatch(reading.authority) is not None


def encode(rows: Iterable[Row], proxies: bool) -> Iterator[bytes]:
    """One version a line."""
    return (line(version(row.record)) for row in rows)


def version(record: Record) -> dict[str, Any]:
    """A version, as the importer reads it. `network_error`: our reason where no answer came."""
    media_type = record.mime if record.mime and _MEDIA_TYPE.fullmatch(record.mime) else None
    length = record.content_length
    return {
        "url": record.url,
        "capture_time": iso(record.checked_at),
        "body_url": None,
        "body_hash": None,
        "source_type": SOURCE_TYPE,
        "source_metadata": _metadata(record),
        "status": record.status,
        "network_error": record.reason if record.status is None else None,
        "media_type": media_type,
        "content_length": length if length is not None and 0 <= length <= _LONGEST else None,
        "headers": None,
        "title": None,
    }


def _metadata(record: Record) -> dict[str, Any]:
    """`redirects`, `statuses` and `redirected_url` only where there are redirects, as EDGI's own importers do."""
    metadata = {
        "category": str(record.category),
        "reason": record.reason,
        "confirmed": record.confirmed,
        "method": record.method,
        "duration_ms": record.duration_ms,
        "content_length": record.content_length,
        "expected_mime": _without_nul(record.expected_mime),
        "error": _without_nul(record.error),
        "collections": [_without_nul(name) for name in record.collections],
        "crawler": record.crawler,
    }
    chain = redirect_chain(record)
    if chain:
        metadata["redirected_url"] = record.final_url
        metadata["redirects"] = [url for url, _ in chain]
        metadata["statuses"] = [status for _, status in chain]
    return metadata


def _without_nul(text: str | None) -> str | None:
    """The text with U+FFFD for NUL, which PostgreSQL can't hold."""
    return text and text.replace("\0", "\ufffd")
