"""Sources: rows of whatever kind into Seeds, one at a time, so that memory doesn't grow with the source.

A row with nothing to check in it comes out as a `Reject` and never stops the rest. Only a source that can't be read at
all is an error of the operator's: `ConfigError`, before anything was read.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from linkcrawl.config import ConfigError
from linkcrawl.items import Reject, Seed
from linkcrawl.sources import files
from linkcrawl.userinfo import without_userinfo

STDIN = "-"
MONGODB = ("mongodb://", "mongodb+srv://")

#: What an operator may be told that would work.
WOULD_WORK = f"{files.WOULD_WORK}, or mongodb://HOST:PORT/DB/COLLECTION"


def check_source(source: str) -> None:
    """Raise ConfigError, one line with the source's name, for a source that can't be read; read nothing of it."""
    if source.startswith(MONGODB):
        _databases().check(source)
    elif re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", source):
        raise ConfigError(f"seeds: {without_userinfo(source)!r} is not understood; {WOULD_WORK} would work")
    elif source != STDIN:
        files.check(source)
    elif sys.stdin is None:  # a daemon may have closed it
        raise ConfigError(f"seeds: '-' can't be read: standard input is closed; {WOULD_WORK} would work")


def read(source: str, *, leave_out: Path | None = None) -> Iterator[Seed | Reject]:
    """The seeds of a source, and its rejects, in order: of a file, a folder, `-` (JSON lines on standard input), or a
    collection of MongoDB. `leave_out`: a file that is not read when it is found in a folder.

    Raises what `check_source` raises, at once.
    """
    check_source(source)
    if source.startswith(MONGODB):
        seeds: Iterator[Seed | Reject] = _databases().read(source)
        return seeds
    return files.read_stdin() if source == STDIN else files.read(source, leave_out=leave_out)


def _databases() -> ModuleType:
    """The module that needs pymongo, which is an extra of the package."""
    try:
        from linkcrawl.sources import databases
    except ModuleNotFoundError as fault:
        raise ConfigError(
            f"seeds: MongoDB needs the package {fault.name}; pip install 'linkcrawl[mongo]' would work"
        ) from fault
    return databases
