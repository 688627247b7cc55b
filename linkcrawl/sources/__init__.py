"""Sources: the rows of files and databases as Seeds, one at a time, so that memory doesn't grow with the source.

A row with nothing to check in it becomes a `Reject` and never stops the rest. A source that can't be read at all is an
operator's mistake: `ConfigError`, before anything is read.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from linkcrawl.errors import ConfigError
from linkcrawl.items import Reject, Seed
from linkcrawl.sources import files, redis_key
from linkcrawl.sources.checkpoint import Checkpoint
from linkcrawl.urls.servers import shown

STDIN = "-"
MONGODB = ("mongodb://", "mongodb+srv://")
REDIS = redis_key.SCHEMES

#: The end of error messages.
WOULD_WORK = f"{files.WOULD_WORK}, mongodb://HOST:PORT/DB/COLLECTION, or redis://HOST:PORT/DB/KEY"


def display_name(source: str) -> str:
    """The source for messages: without user, password and options, where it is a URL."""
    return shown(source) if "://" in source else source


def check_source(source: str) -> None:
    """Raise ConfigError, one line with the source's name, for a source that can't be read. Reads nothing of it."""
    if source.startswith((*MONGODB, *REDIS)):
        _databases(source).check(source)
    elif re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", source):
        raise ConfigError(f"seeds: {shown(source)!r} is not understood; {WOULD_WORK} would work")
    elif source != STDIN:
        files.check(source)
    elif sys.stdin is None:  # a daemon may have closed it
        raise ConfigError(f"seeds: '-' can't be read: standard input is closed; {WOULD_WORK} would work")


def read(source: str, *, leave_out: Path | None = None) -> Iterator[Seed | Reject | Checkpoint]:
    """The seeds and rejects of a source, in its order. A source is a file, a folder, `-` (JSON lines on standard
    input), a collection of MongoDB, or a key of Redis, whose rows have Checkpoints between them. `leave_out`: a file
    that is passed over in a folder.

    Raises what `check_source` raises, at once; SourceLost where Redis goes away while it is read.
    """
    check_source(source)
    if source.startswith((*MONGODB, *REDIS)):
        seeds: Iterator[Seed | Reject | Checkpoint] = _databases(source).read(source)
        return seeds
    return files.read_stdin() if source == STDIN else files.read(source, leave_out=leave_out)


def peek(source: str, *, leave_out: Path | None = None) -> Iterator[Seed | Reject | Checkpoint]:
    """What `read` would give, without taking anything away: seeds stay in Redis."""
    if source.startswith(REDIS):
        check_source(source)
        seeds: Iterator[Seed | Reject | Checkpoint] = _databases(source).peek(source)
        return seeds
    return read(source, leave_out=leave_out)


def _databases(source: str) -> ModuleType:
    """The module that reads the source's database. Raises ConfigError where its client, an extra, isn't installed."""
    name, extra = ("MongoDB", "mongo") if source.startswith(MONGODB) else ("Redis", "redis")
    try:
        if extra == "mongo":
            from linkcrawl.sources import databases

            return databases
        from linkcrawl.sources import pushed
    except ModuleNotFoundError as fault:
        raise ConfigError(
            f"seeds: {name} needs the package {fault.name}; pip install 'linkcrawl[{extra}]' would work"
        ) from fault
    return pushed
