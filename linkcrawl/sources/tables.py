"""Tables as sources: the first row names the columns, each further row is a mention of a link.

A table comes as rows of cells, which a reader makes of a file: of comma-separated values here (commas, semicolons or
tabs, quotes by RFC 4180), of tab-separated values here (IANA's text/tab-separated-values: no quotes), of workbooks in
sources.sheets.
"""

from __future__ import annotations

import csv
import logging
import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import chain

from attrs import evolve, frozen

from linkcrawl.errors import ConfigError
from linkcrawl.items import Reject, Seed
from linkcrawl.sources.lines import MAX_LINE, SourceLine, lines
from linkcrawl.sources.rows import FIELDS, OLDER, reject, seed_or_reject, unread
from linkcrawl.sources.streams import Stream

logger = logging.getLogger(__name__)

#: Lines that one CSV row may span. A quote that isn't closed within them counts as a stray quote.
MAX_ROW_LINES = 50

#: Column names, in lower case, that are read as `url` where no column has that name.
LINK_NAMES = frozenset(("link", "links", "uri", "uris", "urls", "href", "hyperlink"))

#: What separates the cells of a row, in the order in which they are tried, with its name in messages.
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}

#: The line by which spreadsheets tell each other the separator.
_TELLS_SEPARATOR = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)


@frozen
class TableRow:
    """A row of a table. `number`: of its line or row in the file, from 1. `cells`: None where its quotes don't match.
    `text`: the row for a reject. `separator`: between its cells in the file; empty in a workbook. `about`: what its
    reader found out of the table, for the line that says how it is understood."""

    number: int
    cells: list[str] | None
    text: str
    separator: str = ""
    about: tuple[str, ...] = ()


Table = Iterator[TableRow | Reject]


@frozen(kw_only=True)
class Columns:
    """The columns of a table. `fields`: the field of each, "" for none. `link`: the name of the one that holds the
    links, as it is written; None where there is none."""

    fields: tuple[str, ...]
    link: str | None


def columns_of(names: Sequence[str], source: str) -> Columns:
    """The fields that the columns of these names hold. Names of fields are known in any case and with spaces around.

    Raises ConfigError where two columns may be meant as the same field."""
    fields = [_field(name) for name in names]
    if "url" not in fields:
        fields = ["url" if field.strip().lower() in LINK_NAMES else field for field in fields]
    for field, count in Counter(fields).items():
        if count > 1 and field in FIELDS:
            meant = " and ".join(f'"{name}"' for name, of in zip(names, fields, strict=True) if of == field)
            raise ConfigError(
                f"seeds: {source}: the columns {meant} may each be meant as {field}; other names for all but one of "
                "them would work"
            )
    link = names[fields.index("url")] if "url" in fields else None
    return Columns(fields=tuple(fields), link=link)


def _field(name: str) -> str:
    name = name.strip()
    lower = name.lower()
    return lower if lower in FIELDS and name not in OLDER else name


def check_columns(table: Table, source: str) -> None:
    """Raise ConfigError where two columns of the table may be meant as the same field. Reads its first row only."""
    for row in table:
        if isinstance(row, TableRow) and row.cells is not None and any(row.cells):
            columns_of(row.cells, source)
            return


def read_table(table: Table, source: str) -> Iterator[Seed | Reject]:
    """The seeds of a table. A row of the same names again, of a file that was joined to it, is passed over.

    Raises ConfigError as `columns_of` does."""
    names: list[str] | None = None
    columns = Columns(fields=(), link=None)
    for row in table:
        if isinstance(row, Reject):
            yield row
        elif row.cells is None:
            yield reject("quotes don't match", source=source, line=row.number, text=row.text)
        elif names is None:
            if not any(row.cells):
                continue
            names = row.cells
            columns = columns_of(names, source)
            if columns.link is None:
                why = f"no column is named url; there are {[name.strip() for name in names]}"
                yield unread(why, source=source, line=row.number)
                return
            _say_understood(row, columns, source)
        elif row.separator and any(row.cells[len(names) :]):
            why = f"{len(row.cells)} cells for {len(names)} columns"
            if row.separator != "\t":
                why += f"; a cell with {row.separator!r} in it must stand in quotes"
            yield reject(why, source=source, line=row.number, text=row.text)
        elif any(row.cells) and row.cells != names:
            values = dict(zip(columns.fields, row.cells, strict=False))
            values.pop("", None)
            yield seed_or_reject(values, source=source, line=row.number, text=row.text)


def _say_understood(row: TableRow, columns: Columns, source: str) -> None:
    """One line of what isn't as docs/operator.md has it: for people whose spreadsheet wrote the table."""
    parts = [f'column "{columns.link}" is read as url'] if columns.link != "url" else []
    parts += row.about
    if parts:
        logger.warning("%s: %s", source, ", ".join(parts))


# -- values between separators ----------------------------------------------------------------------------------


def csv_table(stream: Stream, source: str) -> Table:
    """The rows of comma-separated values (RFC 4180). Where the names are separated by semicolons or tabs, as
    spreadsheets write them in many countries, all cells are."""
    found = lines(stream, source)
    ahead: list[SourceLine | Reject] = []
    separator = ","
    for line in found:
        if isinstance(line, SourceLine) and (told := _TELLS_SEPARATOR.fullmatch(line.text)) and not ahead:
            separator = told[1]
            break
        ahead.append(line)
        if isinstance(line, SourceLine) and line.text.strip():
            separator = _separator(line.text)
            break
    about = () if separator == "," else (f"cells are separated by {SEPARATORS.get(separator, repr(separator))}",)
    for row in _quoted_rows(chain(ahead, found), separator):
        yield evolve(row, about=about) if isinstance(row, TableRow) and about else row
        if isinstance(row, TableRow) and row.cells and any(row.cells):
            about = ()


def tsv_table(stream: Stream, source: str) -> Table:
    """The rows of tab-separated values: quotes are text like any other."""
    for line in lines(stream, source):
        yield line if isinstance(line, Reject) else TableRow(line.number, line.text.split("\t"), line.text, "\t")


def read_csv(stream: Stream, source: str) -> Iterator[Seed | Reject]:
    """The seeds of comma-separated values."""
    return read_table(csv_table(stream, source), source)


def read_tsv(stream: Stream, source: str) -> Iterator[Seed | Reject]:
    """The seeds of tab-separated values."""
    return read_table(tsv_table(stream, source), source)


def _separator(text: str) -> str:
    """The separator by which the names in this line have one that is read as url; else that of most names."""

    def fitness(separator: str) -> tuple[bool, int]:
        try:
            names = next(csv.reader([text], delimiter=separator), [])
        except csv.Error:
            return False, 0
        has_link = any((name := cell.strip().lower()) == "url" or name in LINK_NAMES for cell in names)
        return has_link, len(names)

    return max(SEPARATORS, key=fitness)


def _quoted_rows(found: Iterator[SourceLine | Reject], separator: str) -> Table:
    """Rows whose cells may be quoted, each with the number and text of the line that it starts on.

    A stray quote must not swallow the rest of the file: each row is read from the fewest lines that close its quotes;
    where none do, its first line is rejected and the next line starts a new row.
    """
    waiting: deque[SourceLine | Reject] = deque()
    while True:
        first = waiting.popleft() if waiting else next(found, None)
        if first is None:
            return
        if isinstance(first, Reject):
            yield first
            continue
        cells, used = _cells(first, waiting, found, separator)
        for _ in range(used):
            waiting.popleft()
        yield TableRow(first.number, cells, first.text, separator)


def _cells(
    first: SourceLine, waiting: deque[SourceLine | Reject], found: Iterator[SourceLine | Reject], separator: str
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
        return next(csv.reader(texts(), delimiter=separator, strict=True), []), used
    except csv.Error:
        return None, 0


csv.field_size_limit(MAX_LINE)
