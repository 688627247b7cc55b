"""A folder with one file for each past hour, for harvesters: DIR/2026/11/30/checks-2026-11-30T11.jsonl.gz.

Harvesters can compute the names, and every file is complete; so a repeated run writes only the files that are missing.
An hour without checks gets an empty file.

A check may be stored after its hour was written: by a worker that was cut off, or with an earlier time because a clock
was set back. The folder remembers how many checks the store had of each hour; an hour of the last days that has more
now is written again.
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
from linkcrawl.units import DAY, HOUR

HOUR_SECONDS = int(HOUR)

#: Seconds after its check by which a record is stored; where the store is lost, LINKCRAWL_PATIENCE comes on top.
SETTLED = 60.0

#: Seconds for which an hour is written again when late checks of it come.
LATE = 7 * DAY
#: The file in the folder that holds how many checks each hour had.
COUNTS = ".counts.json"

#: Hours since the store's first record that are written without --since, some 11 years. One record with the time of a
#: wrong clock, or of an older checker's database, would fill the folder with half a million empty files.
MOST = 100_000


@frozen(kw_only=True)
class Hour:
    """An hour and its file. `start`: Unix seconds. `checks`: checks of the hour that the store has now."""

    start: int
    path: Path
    checks: int = 0

    @property
    def end(self) -> int:
        return self.start + HOUR_SECONDS


def hour_path(folder: Path, start: int, suffix: str) -> Path:
    """The path of an hour's file. `start`: Unix seconds; `suffix`: with its dot."""
    when = datetime.fromtimestamp(start, UTC)
    return folder / f"{when:%Y/%m/%d}" / f"checks-{when:%Y-%m-%dT%H}{suffix}"


class HourCounts:
    """How many checks the store had of each hour when the hour's file was written."""

    def __init__(self, folder: Path):
        self._path = folder / COUNTS
        self._counts: dict[str, tuple[int, int]] = {}
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):  # none, or broken
            kept = json.loads(self._path.read_text(encoding="utf-8"))
            self._counts = {name: (int(start), int(count)) for name, (start, count) in kept.items()}

    def is_late(self, hour: Hour) -> bool:
        """True where the store has more checks of the hour than when its file was written. An hour without a count gets
        the count of now."""
        _, count = self._counts.setdefault(hour.path.name, (hour.start, hour.checks))
        return hour.checks > count

    def written(self, hour: Hour) -> None:
        """Remember the count of an hour whose file was just written."""
        self._counts[hour.path.name] = hour.start, hour.checks

    def save(self, since: float) -> None:
        """Store the counts of the hours from `since` on (Unix seconds) in the folder."""
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
    """The hours without a file, and those whose file lacks late checks, in order: whole hours from `since` (by default
    the store's first record) to `until` or `settled`, whichever is earlier. `settled`: Unix time up to which all
    records are stored. Raises ConfigError where the first record is more than MOST hours old."""
    first = since if since is not None else _first(store)
    if first is None:
        return
    start = ceil(first / HOUR_SECONDS) if since is not None else floor(first / HOUR_SECONDS)
    last = settled if until is None else min(settled, until)
    if since is None and floor(last / HOUR_SECONDS) - start > MOST:
        raise ConfigError(
            f"--hourly {folder}: the store's first check is of {iso(first)}, more than {MOST} hours ago; "
            "--since with the day from which on there should be files would work"
        )
    begins = range(start * HOUR_SECONDS, floor(last / HOUR_SECONDS) * HOUR_SECONDS, HOUR_SECONDS)
    checks = store.checks_by_hour(settled - LATE, settled)
    for begin in begins:
        hour = Hour(start=begin, path=hour_path(folder, begin, suffix), checks=checks.get(begin, 0))
        watched = begin >= settled - LATE
        if not hour.path.exists() or (watched and counts.is_late(hour)):
            yield hour


def _first(store: Store) -> float | None:
    record = next(store.records(Query(history=True)), None)
    return None if record is None else record.checked_at
