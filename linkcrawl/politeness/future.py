"""PURE. Host memory with times in the future, which a crawl whose clock was ahead has stored: they count as the
present.

Else a host would be left alone until that time, a day or twenty years, and look as if nothing were due there. Orders of
people are not touched: theirs may well be for a time to come. robots.txt files are healed where they are read
(robots.cache).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from linkcrawl.items import HostMemory
from linkcrawl.politeness.pacing.delay import MAX_SILENCE
from linkcrawl.politeness.pacing.persistence import gate_of_row, pace_from_row, pace_to_row
from linkcrawl.politeness.pacing.state import Pace
from linkcrawl.politeness.policy.limits import recount


def not_of_the_future(memory: HostMemory, now: float) -> tuple[HostMemory, float]:
    """The memory (rows as the store has them) with nothing in it that happened after `now`, and by how many seconds it
    was ahead. A wait that was asked for stays as long as it was."""
    ahead = _ahead(memory, now)
    if ahead <= 0:
        return memory, 0.0
    healed = evolve(
        memory,
        head_useless_since=_past(memory.head_useless_since, now),
        last_end=_past(memory.last_end, now),
        failing_since=_past(memory.failing_since, now),
        failing_days=tuple(min(at, now) for at in memory.failing_days),
        pace=_pace(memory.pace, now),
    )
    return healed, ahead


def _ahead(memory: HostMemory, now: float) -> float:
    """How far the latest thing that happened is ahead; negative where all is past. A wait too long counts, too."""
    pace = memory.pace
    happened = [memory.last_end, memory.failing_since, memory.head_useless_since, *memory.failing_days]
    happened += [pace.get("last_end"), pace.get("asked_at"), pace.get("blocked_since")]
    happened.append(pace.get("silent_until", 0.0) - MAX_SILENCE)
    for stranger in pace.get("strangers", {}).values():
        happened += [stranger.get("last_end"), stranger.get("blocked_since")]
        happened.append(stranger.get("silent_until", 0.0) - MAX_SILENCE)
    latest: float = max((at for at in happened if at is not None), default=now)
    return latest - now


def _past(at: float | None, now: float) -> float | None:
    return at if at is None else min(at, now)


def _pace(row: Mapping[str, Any], now: float) -> Mapping[str, Any]:
    if not row or gate_of_row(row) is not None:
        return row
    return pace_to_row(_healed(pace_from_row(row), now))


def _healed(pace: Pace, now: float) -> Pace:
    ahead = max((pace.last_end or 0.0) - now, 0.0)
    return evolve(
        pace,
        last_end=_past(pace.last_end, now),
        asked_at=_past(pace.asked_at, now),
        blocked_since=_past(pace.blocked_since, now),
        silent_until=min(pace.silent_until - ahead, now + MAX_SILENCE),
        recent=tuple((min(at, now), good, refused) for at, good, refused in pace.recent),
        counts=recount(pace.counts, now) if ahead else pace.counts,
        own_end=_past(pace.own_end, now),
        strangers={name: _healed(stranger, now) for name, stranger in pace.strangers.items()},
    )
