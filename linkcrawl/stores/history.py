"""How long checks are kept: all of them for LINKCRAWL_HISTORY_DAYS, then each link's last of a day, then of a month."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from linkcrawl.stores.contract import Query, Store
from linkcrawl.units import DAY


def prune_windows(
    first_check: float, days: float, now: float, last_run: float | None = None
) -> Iterator[tuple[float, float]]:
    """Half-open windows of time (Unix seconds), in order, in which each link keeps its last check: for `Store.prune`.

    They are the whole UTC months that ended `2 * days` days ago or earlier, then the whole UTC days that ended `days`
    days ago or earlier; none where `days` is 0. `first_check`: of the oldest record (Unix seconds). `last_run`: the
    `now` of the run before, whose windows are left out.
    """
    if days == 0:
        return
    first = datetime.fromtimestamp(first_check, UTC)
    begin = datetime(first.year, first.month, 1, tzinfo=UTC)
    while (end := _month_after(begin)).timestamp() <= now - 2 * days * DAY:
        if last_run is None or end.timestamp() > last_run - 2 * days * DAY:
            yield begin.timestamp(), end.timestamp()
        begin = end
    while (end := begin + timedelta(days=1)).timestamp() <= now - days * DAY:
        if end.timestamp() > first_check and (last_run is None or end.timestamp() > last_run - days * DAY):
            yield begin.timestamp(), end.timestamp()
        begin = end


def oldest(store: Store) -> float | None:
    """When the oldest record was checked (Unix seconds); None in a store without records."""
    first = next(store.records(Query(history=True)), None)
    return None if first is None else first.checked_at


def _month_after(begin: datetime) -> datetime:
    return datetime(begin.year + begin.month // 12, begin.month % 12 + 1, 1, tzinfo=UTC)
