"""Lines of text as sources: JSON lines and plain lists of URLs, and what tables are made of (sources.tables).

Text is UTF-8 or, where it begins with a byte order mark of it, UTF-16; a byte order mark at the start of any line is
none of its text, as files are joined with their marks. A line that isn't UTF-8 is read as Windows-1252, which
spreadsheets write. Lines end with LF, CRLF or CR.
"""

from __future__ import annotations

import codecs
import json
import logging
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from attrs import frozen

from linkcrawl.items import Reject, Seed
from linkcrawl.sources.rows import reject, seed_or_reject
from linkcrawl.sources.streams import Stream

logger = logging.getLogger(__name__)

#: Bytes of the longest line that is read, as UTF-8; the limit bounds memory.
MAX_LINE = 2 * 1024 * 1024

_CHUNK = 256 * 1024
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MARKS = re.compile(rb"(?:" + codecs.BOM_UTF8 + rb")+")

Rows = Iterator[Seed | Reject]


@frozen
class SourceLine:
    """A line of text without its line end; `number` counts from 1."""

    number: int
    text: str


def lines(stream: Stream, source: str) -> Iterator[SourceLine | Reject]:
    """The lines of a stream; a Reject for each line that is too long."""
    is_utf8 = True
    for number, raw in enumerate(_raw_lines(stream), start=1):
        if raw is None:
            yield reject(f"line is longer than {MAX_LINE} bytes", source=source, line=number)
            continue
        if marks := _MARKS.match(raw):
            raw = raw[marks.end() :]
        try:
            text = raw.decode()
        except UnicodeDecodeError:
            text = _decode_windows(raw)
            if is_utf8:
                is_utf8 = False
                logger.warning(
                    "%s: line %d is not UTF-8, and such lines are read as Windows-1252; saving the file as UTF-8 "
                    "would spare the guess",
                    source,
                    number,
                )
        yield SourceLine(number, text)


def _decode_windows(raw: bytes) -> str:
    try:
        return raw.decode("cp1252")
    except UnicodeDecodeError:  # five bytes have no character there
        return raw.decode("latin-1")


def _chunks(stream: Stream) -> Iterator[bytes]:
    """The stream as UTF-8, in chunks as they come."""
    first = b""
    while len(first) < 2 and (chunk := stream.read1(_CHUNK)):
        first += chunk
    if not first.startswith(_UTF16):
        yield first
        while chunk := stream.read1(_CHUNK):
            yield chunk
        return
    decoder = codecs.getincrementaldecoder("utf-16")(errors="replace")
    chunk = first
    while chunk:
        yield decoder.decode(chunk).encode()
        chunk = stream.read1(_CHUNK)
    yield decoder.decode(b"", final=True).encode()


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
    for chunk in _chunks(stream):
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
