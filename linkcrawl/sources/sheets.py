"""Workbooks (`.xlsx`) as sources: the first sheet as a table, streamed by openpyxl in its read-only mode.

Memory holds one row and the workbook's table of texts, which every reader of this format needs at hand. What a workbook
may unpack to is bounded, for a file of some kilobytes may claim gigabytes.
"""

from __future__ import annotations

import io
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import date, datetime, time
from typing import IO, Any, cast
from zipfile import ZipFile, is_zipfile

from linkcrawl.items import Reject, Seed
from linkcrawl.sources.rows import unread
from linkcrawl.sources.streams import Stream
from linkcrawl.sources.tables import Table, TableRow, read_table

#: Bytes of XML that a workbook may hold besides its sheets: they are in memory as a whole, above all its texts.
MAX_TEXTS = 256 * 1024 * 1024
#: Bytes of XML that its sheets may hold, which are streamed.
MAX_SHEETS = 4 * 1024 * 1024 * 1024
#: How many times smaller than its XML a packed file may be; spreadsheets reach 10 to 30.
MAX_RATIO = 100
#: Bytes of XML below which that doesn't matter.
_SMALL = 16 * 1024 * 1024
#: Rows and columns of the largest sheet that spreadsheets make.
MAX_ROWS, MAX_COLUMNS = 1_048_576, 16_384
#: Bytes of a workbook that is copied to be read, as it comes from a pipe or is gzipped.
_MAX_COPY = 1024 * 1024 * 1024
_IN_MEMORY = 16 * 1024 * 1024
_PIECE = 256 * 1024

_NO_WORKBOOK = (
    "not an .xlsx workbook (an older .xls, or one with a password?); CSV or .xlsx without a password would work"
)


def read_xlsx(stream: Stream, source: str) -> Iterator[Seed | Reject]:
    """The seeds of a workbook's first sheet."""
    return read_table(xlsx_table(stream, source), source)


def xlsx_table(stream: Stream, source: str) -> Table:
    """The rows of a workbook's first sheet: what its formulas gave when it was saved, dates by ISO 8601, numbers and
    truth values as text. A Reject, and nothing after it, where it can't be read further."""
    try:
        with _seekable(stream) as file:
            if file is None:
                yield unread(f"the workbook is longer than {_MAX_COPY} bytes; CSV would work", source=source)
                return
            if not is_zipfile(file):
                yield unread(_NO_WORKBOOK, source=source)
                return
            with ZipFile(file) as packed:
                why = _refusal(packed)
            if why is None:
                yield from _rows(file)
            else:
                yield unread(why, source=source)
    except Exception as fault:  # of any kind: openpyxl trusts what the XML says
        why = f"the workbook can't be read further: {type(fault).__name__}: {fault}"
        yield unread(f"{why}; saving it anew, or as CSV, would work", source=source)


@contextmanager
def _seekable(stream: Stream) -> Iterator[IO[bytes] | None]:
    """The stream itself where its position can be set, else a copy of it; None where it is too long for one."""
    if isinstance(stream, io.BufferedReader) and stream.seekable():
        yield stream
        return
    with tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY) as copy:
        while piece := stream.read(_PIECE):
            copy.write(piece)
            if copy.tell() > _MAX_COPY:
                yield None
                return
        copy.seek(0)
        yield cast(IO[bytes], copy)


def _refusal(packed: ZipFile) -> str | None:
    """Why this workbook isn't unpacked; None where it may be. What a member holds is what its header says: zipfile
    reads no further."""
    texts = sheets = 0
    for member in packed.infolist():
        if not member.filename.lower().endswith((".xml", ".rels")):
            continue  # pictures and macros, which nobody reads
        if member.file_size > max(_SMALL, MAX_RATIO * member.compress_size):
            return f"the workbook unpacks to more than {MAX_RATIO} times its size; CSV would work"
        if member.filename.lower().startswith("xl/worksheets/"):
            sheets += member.file_size
        else:
            texts += member.file_size
    if texts > MAX_TEXTS:
        return f"the workbook's texts have {texts} bytes, more than {MAX_TEXTS}; CSV would work"
    if sheets > MAX_SHEETS:
        return f"the workbook's sheets have {sheets} bytes, more than {MAX_SHEETS}; CSV would work"
    return None


def _rows(file: IO[bytes]) -> Iterator[TableRow]:
    from openpyxl import load_workbook  # takes 0.2 s, which other commands needn't wait for

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of validations, styles and the like, which it leaves out
        workbook = load_workbook(file, read_only=True, data_only=True, keep_links=False)
    with closing(workbook):
        if not workbook.worksheets:
            raise ValueError("it has no sheet")
        sheet: Any = workbook.worksheets[0]
        sheet.reset_dimensions()  # what a sheet says of its size need not be so
        about: tuple[str, ...] = ()
        if len(workbook.worksheets) > 1:
            about = (f'the first of {len(workbook.worksheets)} sheets, "{sheet.title}", is read',)
        first = width = 0
        for first, values in enumerate(
            sheet.iter_rows(max_row=MAX_ROWS, max_col=MAX_COLUMNS, values_only=True), start=1
        ):
            width = max((place for place, value in enumerate(values, start=1) if value is not None), default=0)
            if width:
                yield _row(first, values[:width], about)
                break
        if not width:
            return
        # Only as many columns as have names: each row comes as wide as is asked for.
        further = sheet.iter_rows(min_row=first + 1, max_row=MAX_ROWS, max_col=width, values_only=True)
        for number, values in enumerate(further, start=first + 1):
            yield _row(number, values)


def _row(number: int, values: tuple[Any, ...], about: tuple[str, ...] = ()) -> TableRow:
    cells = [_text(value) for value in values]
    return TableRow(number, cells, "\t".join(cells), about=about)


def _text(value: Any) -> str:
    """The value of a cell as text."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, datetime):
        return (value.date() if value.time() == time() else value).isoformat()
    if isinstance(value, (date, time)):
        return value.isoformat()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
