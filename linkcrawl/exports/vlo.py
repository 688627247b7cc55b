"""Lines for CLARIN's Virtual Language Observatory, with the field names of its ResourceInfo (vlo-commons)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from linkcrawl.exports.jsonl import line
from linkcrawl.exports.rows import Row


def encode(rows: Iterable[Row], proxies: bool) -> Iterator[bytes]:
    """One object a line. `type`: the media type of the answer, else the expected one. `status`: null without an answer.
    `lastChecked`: milliseconds since 1970 (UTC)."""
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
