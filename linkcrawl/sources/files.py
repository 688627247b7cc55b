"""Files and folders as sources: the reader of each suffix, and the walk through a folder."""

from __future__ import annotations

import io
import logging
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from attrs import frozen

from linkcrawl.errors import ConfigError
from linkcrawl.items import Reject, Seed
from linkcrawl.sources.cmdi import read_cmdi
from linkcrawl.sources.lines import read_jsonl, read_txt
from linkcrawl.sources.rows import internal_error, unread
from linkcrawl.sources.sheets import xlsx_table
from linkcrawl.sources.streams import STREAM_ERRORS, Stream, unpacked
from linkcrawl.sources.tables import Table, check_columns, csv_table, read_table, tsv_table

logger = logging.getLogger(__name__)

_LINE_READERS: dict[str, Callable[[Stream, str], Iterator[Seed | Reject]]] = {
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".txt": read_txt,
}
_TABLES: dict[str, Callable[[Stream, str], Table]] = {".csv": csv_table, ".tsv": tsv_table, ".xlsx": xlsx_table}
_XML = (".xml", ".cmdi")

#: The suffixes of files that are understood, `.gz` after them or not.
SUFFIXES = (*_LINE_READERS, *_TABLES, *_XML)

#: The end of error messages.
WOULD_WORK = f"a folder, - (JSON lines on standard input), or a file named {' '.join(SUFFIXES)} (or .gz)"


@frozen(kw_only=True)
class _File:
    """A file to read. `record` and `collection` are those of its CMDI seeds. `within`: it was found in a folder."""

    path: Path
    record: str
    collection: str | None = None
    within: bool = False


def check(source: str) -> None:
    """Raise ConfigError where `source` is no file or folder that can be read."""
    if not source:  # Path would read it as the current folder
        raise ConfigError(f"seeds: {source!r} is empty; {WOULD_WORK} would work")
    path = Path(source)
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError) as error:
        raise ConfigError(f"seeds: {source!r} can't be read: {_reason(error)}; {WOULD_WORK} would work") from None
    if not os.access(path, os.R_OK | (os.X_OK if stat.S_ISDIR(mode) else 0)):
        raise ConfigError(f"seeds: {source!r} can't be read: Permission denied")
    if stat.S_ISDIR(mode):
        if not any(isinstance(found, _File) for found in _walk(path)):
            raise ConfigError(f"seeds: no file in the folder {source!r} can be read as seeds; {WOULD_WORK} would work")
    elif not _suffix(path):
        raise ConfigError(f"seeds: {source!r} has no suffix that is understood; {WOULD_WORK} would work")
    elif _suffix(path) in _TABLES and stat.S_ISREG(mode):
        _check_table(_File(path=path, record=source))


def _check_table(file: _File) -> None:
    """Raise ConfigError where two columns of a table may be meant as one field. What else is wrong costs rows only."""
    table, source = _TABLES[_suffix(file.path)], _printable(file.path)
    with suppress(*STREAM_ERRORS), file.path.open("rb") as raw:
        check_columns(table(_unpacked(raw, file), source), source)


def read(source: str, *, leave_out: Path | None = None) -> Iterator[Seed | Reject]:
    """The rows of a file, or of every file below a folder: sorted by name, a folder's files before its sub-folders."""
    path = Path(source)
    if not path.is_dir():
        yield from _read_file(_File(path=path, record=_printable(path)))
        return
    for found in _walk(path):
        if isinstance(found, Reject):
            yield found
        elif leave_out is None or not same_file(found.path, leave_out):
            yield from _read_file(found)


def same_file(one: Path, other: Path) -> bool:
    """Whether both paths lead to the same file."""
    try:
        return one.samefile(other)
    except (OSError, ValueError):
        return False


def read_stdin() -> Iterator[Seed | Reject]:
    """JSON lines on standard input, gzipped or not."""
    yield from _guarded(read_jsonl(unpacked(sys.stdin.buffer), "-"), "-")  # type: ignore[arg-type]  # it is buffered


def _suffix(path: Path) -> str:
    """The suffix that has a reader, in lower case and without .gz; empty where none has."""
    name = path.name.lower().removesuffix(".gz")
    suffix = os.path.splitext(name)[1]
    return suffix if suffix in SUFFIXES else ""


def _walk(top: Path) -> Iterator[_File | Reject]:
    """Every file below `top` that has a reader, sorted by name. A folder that symbolic links lead to again is entered
    once."""
    seen: set[tuple[int, int]] = set()
    waiting = [top]
    while waiting:
        folder = waiting.pop()
        try:
            status = folder.stat()
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            yield unread(f"can't be read: {_reason(error)}", source=_printable(folder))
            continue
        folders = []
        for entry in entries:
            path = Path(entry.path)
            if _is_folder(entry):
                folders.append(path)
            elif _suffix(path):
                yield _found(path, top)
        waiting.extend(reversed(folders))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a symbolic link that leads to itself: reading it reports that
        return False


def _found(path: Path, top: Path) -> _File:
    relative = path.relative_to(top)
    collection = _printable(Path(relative.parts[0])) if len(relative.parts) > 1 else None
    return _File(path=path, record=_printable(relative), collection=collection, within=True)


def _read_file(file: _File) -> Iterator[Seed | Reject]:
    source = _printable(file.path)
    try:
        # opening a pipe that nobody writes to would block for ever
        if file.within and not stat.S_ISREG(file.path.stat().st_mode):
            yield unread("can't be read: not a regular file", source=source)
            return
        with file.path.open("rb") as raw:
            yield from _guarded(_rows(_unpacked(raw, file), file, source), source, within=file.within)
    except OSError as error:
        yield unread(f"can't be read: {_reason(error)}", source=source)


def _unpacked(raw: io.BufferedReader, file: _File) -> Stream:
    return unpacked(raw, gzipped=file.path.name.lower().endswith(".gz"))


def _rows(stream: Stream, file: _File, source: str) -> Iterator[Seed | Reject]:
    suffix = _suffix(file.path)
    if suffix in _XML:
        return read_cmdi(stream, source, record=file.record, collection=file.collection)
    if suffix in _TABLES:
        return read_table(_TABLES[suffix](stream, source), source)
    return _LINE_READERS[suffix](stream, source)


def _guarded(rows: Iterator[Seed | Reject], source: str, *, within: bool = False) -> Iterator[Seed | Reject]:
    """The rows up to where the stream can't be read further, and a Reject for the rest. `within`: it is a file of a
    folder, and what its columns hold may be unclear without stopping the others."""
    try:
        yield from rows
    except ConfigError as fault:
        if not within:
            raise
        yield unread(str(fault), source=source)
    except STREAM_ERRORS as error:
        yield unread(f"can't be read further: {_reason(error)}", source=source)
    except Exception as fault:
        logger.exception("%s can't be read further", source)
        yield unread(f"can't be read further: {internal_error(fault)}", source=source)


def _reason(error: BaseException) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _printable(path: Path) -> str:
    """The path as text. Bytes that are not UTF-8 become U+FFFD: not every store can keep them."""
    return os.fsencode(path).decode("utf-8", "replace")
