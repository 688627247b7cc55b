"""Rows as JSON lines, with the contract's names; a record's line is the same as in the feed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from linkcrawl.exports.rows import Row


def line(document: Mapping[str, Any]) -> bytes:
    """One JSON object on one line (RFC 8259: no NaN; UTF-8)."""
    return json.dumps(document, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def encode(rows: Iterable[Row], proxies: bool) -> Iterator[bytes]:
    """One object a line."""
    return (line(row.document()) for row in rows)
