"""Line formats: JSON lines, CSV, TSV, and plain lists of URLs. UTF-8, with or without a byte order mark; a line that
isn't UTF-8 is read as Latin-1. Lines end with LF, CRLF or CR.
"""

from __future__ import annotations

import csv
import json
from collections import deque
from collections.abc import Iterator
from typing import Any, NoReturn

from attrs import frozen

from linkcrawl.items import Reject, Seed
from linkcrawl.sources.rows import FIELDS, OLDER, reject, seed_or_reject
from linkcrawl.sources.streams import Stream

#: Bytes of the longest line that is read; the limit bounds memory.
MAX_LINE = 2 * 1024 * 1024

#: Lines that one CSV row may span. A quote that isn't closed within them counts as a stray quote.
MAX_ROW_LINES = 50

_CHUNK = 256 * 1024
_UTF16 = (b"\xff\xfe", b"\xfe\xff")

Rows = Iterator[Seed | Reject]


@frozen
class SourceLine:
    """A line of text without its line end; `number` counts from 1."""

    number: int
    text: str


def lines(stream: Stream, source: str) -> Iterator[SourceLine | Reject]:
    """The lines of a stream; a Reject for each line that is too long, and for text in UTF-16."""
    for number, raw in enumerate(_raw_lines(stream), start=1):
        if number == 1 and raw is not None:
            if raw.startswith(_UTF16):
                yield reject("the text is in UTF-16; UTF-8 would work", source=source, line=1)
                return
            raw = raw.removeprefix(b"\xef\xbb\xbf")
        if raw is None:
            yield reject(f"line is longer than {MAX_LINE} bytes", source=source, line=number)
        else:
            yield SourceLine(number, _decode(raw))


def _raw_lines(stream: Stream) -> Iterator[bytes | None]:
    """Lines without their line ends; None for a line longer than MAX_LINE, which is skipped."""
    rest, skipping = b"", False
    for chunk in _pieces(stream):
        if rest.endswith(b"\r") and not chunk.startswith(b"\n"):
            chunk = b"\n" + chunk  # a lone CR at the end of the chunk before ended a line
        *whole, rest = _split(rest + chunk)
        for line in whole:
            yield None if skipping or len(line) > MAX_LINE else line
            skipping = False
        if len(rest) > MAX_LINE:
            rest, skipping = rest[-1:], True
    if rest or skipping:
        yield None if skipping else rest.removesuffix(b"\r")


def _pieces(stream: Stream) -> Iterator[bytes]:
    """The stream in pieces that end a line or are large: a pipe may give a long line byte by byte."""
    small: list[bytes] = []
    size = 0
    while chunk := stream.read1(_CHUNK):
        small.append(chunk)
        size += len(chunk)
        if size >= _CHUNK or b"\n" in chunk or b"\r" in chunk:
            yield b"".join(small)
            small, size = [], 0
    if small:
        yield b"".join(small)


def _split(data: bytes) -> list[bytes]:
    """Lines without their ends, the last one unfinished. It keeps a CR at its end, as an LF may follow."""
    if b"\r" not in data:
        return data.split(b"\n")
    held = data.endswith(b"\r")
    parts = (data[:-1] if held else data).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    if held:
        parts[-1] += b"\r"
    return parts


def _decode(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")  # RFC 8259, 6: NaN and Infinity are not permitted


_JSON = json.JSONDecoder(parse_constant=_refuse_constant)


def read_jsonl(stream: Stream, source: str) -> Rows:
    """JSON lines: one object a line. Blank lines are skipped."""
    for line in lines(stream, source):
        if isinstance(line, Reject):
            yield line
        elif not line.text.isspace() and line.text:
            yield _json_row(line, source)


def _json_row(line: SourceLine, source: str) -> Seed | Reject:
    try:
        row: Any = _JSON.decode(line.text)
    except (ValueError, RecursionError) as error:
        return reject(f"not JSON: {error}", source=source, line=line.number, text=line.text)
    if not isinstance(row, dict):
        return reject("not a JSON object", source=source, line=line.number, text=line.text)
    return seed_or_reject(row, source=source, line=line.number, text=line.text)


def read_txt(stream: Stream, source: str) -> Rows:
    """One URL a line; a line that starts with # is a comment."""
    for line in lines(stream, source):
        if isinstance(line, Reject):
            yield line
            continue
        url = line.text.strip()
        if url and not url.startswith("#"):
            yield seed_or_reject({"url": url}, source=source, line=line.number, text=url)


def read_csv(stream: Stream, source: str) -> Rows:
    """Comma-separated rows (RFC 4180); the first row names the fields."""
    return _read_table(stream, source, ",")


def read_tsv(stream: Stream, source: str) -> Rows:
    """Tab-separated rows; the first row names the fields."""
    return _read_table(stream, source, "\t")


def _read_table(stream: Stream, source: str, delimiter: str) -> Rows:
    names: list[str] | None = None
    for line, cells in _table_rows(lines(stream, source), delimiter):
        if isinstance(line, Reject):
            yield line
        elif cells is None:
            yield reject("quotes don't match", source=source, line=line.number, text=line.text)
        elif names is None:
            names = [_field_name(cell) for cell in cells]
            if "url" not in names:
                yield reject(f"no column is named url; there are {names}", source=source, line=line.number)
                return
        elif any(cells[len(names) :]):
            why = f"{len(cells)} cells for {len(names)} columns; a cell with {delimiter!r} in it must stand in quotes"
            yield reject(why, source=source, line=line.number, text=line.text)
        elif any(cells):
            row = dict(zip(names, cells, strict=False))
            row.pop("", None)
            yield seed_or_reject(row, source=source, line=line.number, text=line.text)


def _field_name(cell: str) -> str:
    name = cell.strip()
    lower = name.lower()
    return lower if lower in FIELDS and name not in OLDER else name


def _table_rows(
    found: Iterator[SourceLine | Reject], delimiter: str
) -> Iterator[tuple[SourceLine | Reject, list[str] | None]]:
    """The cells of each row, with the line that the row starts on; None instead of cells where quotes don't match.

    A stray quote must not swallow the rest of the file: each row is read from the fewest lines that close its quotes;
    where none do, its first line is rejected and the next line starts a new row.
    """
    waiting: deque[SourceLine | Reject] = deque()
    while True:
        first = waiting.popleft() if waiting else next(found, None)
        if first is None:
            return
        if isinstance(first, Reject):
            yield first, None
            continue
        cells, used = _cells(first, waiting, found, delimiter)
        for _ in range(used):
            waiting.popleft()
        yield first, cells


def _cells(
    first: SourceLine, waiting: deque[SourceLine | Reject], found: Iterator[SourceLine | Reject], delimiter: str
) -> tuple[list[str] | None, int]:
    """The cells of the row that starts at `first`, and how many of the waiting lines belong to it."""
    used = 0

    def texts() -> Iterator[str]:
        """The first line, and each further line that the row's open quotes ask for."""
        nonlocal used
        yield f"{first.text}\n"
        size = len(first.text)
        while used < MAX_ROW_LINES and size <= MAX_LINE:
            if used == len(waiting):
                line = next(found, None)
                if line is None:
                    return
                waiting.append(line)
            following = waiting[used]
            if isinstance(following, Reject):
                return
            used += 1
            size += len(following.text)
            yield f"{following.text}\n"

    try:
        return next(csv.reader(texts(), delimiter=delimiter, strict=True), []), used
    except csv.Error:
        return None, 0


csv.field_size_limit(MAX_LINE)
