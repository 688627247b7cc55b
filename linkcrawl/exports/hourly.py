"""A folder with one file for each hour that is over, for harvesters: DIR/2026/11/30/checks-2026-11-30T11.jsonl.gz.

The names can be told without looking, and a file that is there is whole and stays as it is; so whoever runs this again
and again writes only what is missing. An hour without checks gets an empty file: done, with nothing in it.
"""

from __future__ import annotations

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

#: Hours that are written at most from the store's first record on, some 11 years: one record with the time of a wrong
#: clock, or of an older checker's database, would else fill the folder with half a million empty files.
MOST = 100_000


@frozen(kw_only=True)
class Hour:
    """An hour and its file. `start`: Unix seconds."""

    start: int
    path: Path

    @property
    def end(self) -> int:
        return self.start + HOUR


def hour_path(folder: Path, start: int, suffix: str) -> Path:
    """The name of an hour's file; `suffix` with its dot."""
    when = datetime.fromtimestamp(start, UTC)
    return folder / f"{when:%Y/%m/%d}" / f"checks-{when:%Y-%m-%dT%H}{suffix}"


def missing_hours(
    store: Store, folder: Path, suffix: str, since: float | None, until: float | None, settled: float
) -> Iterator[Hour]:
    """The hours that have no file yet, in order: whole ones from `since` (else the store's first record) to `until`,
    and to `settled`, the Unix time up to which all records are stored. Raises ConfigError where that record is too old
    to be meant."""
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
    for number in range(start, floor(last / HOUR)):
        path = hour_path(folder, number * HOUR, suffix)
        if not path.exists():
            yield Hour(start=number * HOUR, path=path)


def _first(store: Store) -> float | None:
    record = next(store.records(Query(history=True)), None)
    return None if record is None else record.checked_at
