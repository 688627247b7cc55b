"""A folder with one file for each hour that is over, for harvesters: DIR/2026/11/30/checks-2026-11-30T11.jsonl.gz.

The names can be told without looking, and a file that is there is whole; so whoever runs this again and again writes
only what is missing. An hour without checks gets an empty file: done, with nothing in it.

A check may be stored after its hour was written: by a worker that was cut off, or with an earlier time because a clock
was set back. The folder remembers how many checks the store had of each hour; an hour of the last days that has more by
now gets its file anew.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from math import ceil, floor
from pathlib import Path

from attrs import frozen

from linkcrawl.errors import ConfigError
from linkcrawl.items import iso
from linkcrawl.stores.contract import Query, Store

HOUR = 3600

#: Seconds after a record's moment in which it is stored for certain, LINKCRAWL_PATIENCE for a lost store aside.
SETTLED = 60.0

#: Seconds for which an hour's file is made anew where checks of it have come late.
LATE = 7 * 86400.0
#: The file in the folder that remembers how many checks there were of each hour.
COUNTS = ".counts.json"

#: Hours that are written at most from the store's first record on, some 11 years: one record with the time of a wrong
#: clock, or of an older checker's database, would else fill the folder with half a million empty files.
MOST = 100_000


@frozen(kw_only=True)
class Hour:
    """An hour and its file. `start`: Unix seconds. `checks`: how many the store has of it, by then, all told."""

    start: int
    path: Path
    checks: int = 0

    @property
    def end(self) -> int:
        return self.start + HOUR


def hour_path(folder: Path, start: int, suffix: str) -> Path:
    """The name of an hour's file; `suffix` with its dot."""
    when = datetime.fromtimestamp(start, UTC)
    return folder / f"{when:%Y/%m/%d}" / f"checks-{when:%Y-%m-%dT%H}{suffix}"


class HourCounts:
    """How many checks the store had of each hour when its file was written, by the file's name, with the hour."""

    def __init__(self, folder: Path):
        self._path = folder / COUNTS
        self._counts: dict[str, tuple[int, int]] = {}
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):  # none yet, or spoilt: begin anew
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            self._counts = {name: (int(start), int(count)) for name, (start, count) in kept.items()}

    def is_late(self, hour: Hour) -> bool:
        """Whether there are more checks of it than when its file was written. One that nothing is known of begins to be
        watched."""
        _, count = self._counts.setdefault(hour.path.name, (hour.start, hour.checks))
        return hour.checks > count

    def written(self, hour: Hour) -> None:
        """Its file has been written."""
        self._counts[hour.path.name] = hour.start, hour.checks

    def save(self, since: float) -> None:
        """Keep those of hours from `since` on (Unix seconds) beside the files."""
        kept = {name: known for name, known in sorted(self._counts.items()) if known[0] >= since}
        if kept:
            part = self._path.with_name(f"{COUNTS}.part")
            part.write_text(json.dumps(kept), encoding="utf-8")
            os.replace(part, self._path)


def hours_to_write(
    store: Store,
    folder: Path,
    suffix: str,
    since: float | None,
    until: float | None,
    settled: float,
    counts: HourCounts,
) -> Iterator[Hour]:
    """The hours that have no file yet, or one that lacks checks which came late, in order: whole ones from `since`
    (else the store's first record) to `until`, and to `settled`, the Unix time up to which all records are stored.
    Raises ConfigError where that record is too old to be meant."""
    first = since if since is not None else _first(store)
    if first is None:
        return
    start = ceil(first / HOUR) if since is not None else floor(first / HOUR)
    last = settled if until is None else min(settled, until)
    if since is None and floor(last / HOUR) - start > MOST:
        raise ConfigError(
            f"--hourly {folder}: the store's first check is of {iso(first)}, {floor(last / HOUR) - start} hours ago; "
            "--since with the day from which on there should be files would work"
        )
    begins = range(start * HOUR, floor(last / HOUR) * HOUR, HOUR)
    checks = store.checks_by_hour(settled - LATE, settled)
    for begin in begins:
        hour = Hour(start=begin, path=hour_path(folder, begin, suffix), checks=checks.get(begin, 0))
        watched = begin >= settled - LATE
        if not hour.path.exists() or (watched and counts.is_late(hour)):
            yield hour


def _first(store: Store) -> float | None:
    record = next(store.records(Query(history=True)), None)
    return None if record is None else record.checked_at
