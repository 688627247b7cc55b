"""Rows as CSV (RFC 4180), also of the feed: flat, always with the same columns, safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from linkcrawl.exports.rows import PROXY_FIELDS, Row, redirect_chain
from linkcrawl.items import FIELDS_OF_RECORD, RECORD_FIELDS, TEXTS

#: The columns that replace `hops`.
_HOP_COLUMNS = ("redirect_chain", "redirect_statuses", "requests", "ip")


def _columns() -> Iterator[str]:
    for name in RECORD_FIELDS:
        yield from _HOP_COLUMNS if name == "hops" else (name,)


#: Columns of a link's row, in order. A resource proxy's row has PROXY_COLUMNS.
COLUMNS: tuple[str, ...] = tuple(_columns())
PROXY_COLUMNS: tuple[str, ...] = COLUMNS + PROXY_FIELDS

#: Columns that hold several texts in one cell.
_LISTS = tuple(part.name for part in FIELDS_OF_RECORD if part.type is TEXTS)

#: Separates several collections in one cell. URLs of redirects are separated by a space, which no URL contains.
SEPARATOR = " | "

#: A spreadsheet takes a cell that starts with one of these for a formula (OWASP, "CSV Injection"; CVE-2021-41270), the
#: full-width forms where input methods write those.
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def safe(text: str) -> str:
    """The text, with an apostrophe in front where a spreadsheet would take it for a formula."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text


def cells(row: Row, columns: Iterable[str]) -> list[str]:
    """The cells of a row: "" for null, `true` and `false`, numbers in digits, safe text."""
    values = row.document()
    hops, chain = row.record.hops, redirect_chain(row.record)
    values |= {name: SEPARATOR.join(values[name]) for name in _LISTS}
    values["redirect_chain"] = " ".join(url for url, _ in chain)
    values["redirect_statuses"] = " ".join("none" if status is None else str(status) for _, status in chain)
    values["requests"] = len(hops)
    values["ip"] = hops[-1].ip if hops else None
    if values.get("extra"):
        values["extra"] = json.dumps(values["extra"], ensure_ascii=False)
    return [_cell(values[name]) for name in columns]


def _cell(value: Any) -> str:
    if value is None or value == {}:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return safe(value) if isinstance(value, str) else str(value)


class _Echo:
    """A file for csv.writer: `writerow` returns what `write` returns."""

    def write(self, text: str) -> str:
        return text


def lines(rows: Iterable[Row], proxies: bool, *, header: bool = True) -> Iterator[str]:
    """The lines of a table, with their line ends; the header first."""
    columns = PROXY_COLUMNS if proxies else COLUMNS
    write = csv.writer(_Echo()).writerow
    if header:
        yield str(write(columns))
    for row in rows:
        yield str(write(cells(row, columns)))


def line_of(fields: Mapping[str, Any]) -> str:
    """The line of an item that is no record, with its line end: its fields that are named like COLUMNS."""
    return str(csv.writer(_Echo()).writerow([_cell(fields.get(name)) for name in COLUMNS]))


def encode(rows: Iterable[Row], proxies: bool) -> Iterator[bytes]:
    """The table in UTF-8."""
    return (text.encode() for text in lines(rows, proxies))
