"""Lines for CLARIN's Virtual Language Observatory: the fields of its ResourceInfo (vlo-commons), under its names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from linkcrawl.exports.jsonl import line
from linkcrawl.exports.rows import Row


def encode(rows: Iterable[Row], proxies: bool) -> Iterator[bytes]:
    """One object a line. `type`: the media type that was found, else the expected one. `status`: null where no answer
    came. `lastChecked`: milliseconds since 1970 (UTC)."""
    for row in rows:
        record = row.record
        yield line(
            {
                "url": record.url,
                "type": record.mime or record.expected_mime,
                "status": record.status,
                "lastChecked": round(record.checked_at * 1000),
            }
        )
