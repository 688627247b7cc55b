"""PURE. Silence of a host, or of its robots.txt: since when, and on how many days it was seen.

Two looks a month apart show two bad moments, not a bad month. So who gives something up after so many days of silence
also wants to have met it on ENOUGH_DAYS of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from linkcrawl.units import DAY

#: Days (UTC) on which silence must have been seen before something is given up for it.
ENOUGH_DAYS = 5


@frozen(kw_only=True)
class Silence:
    """`since`: the first look that met it (Unix seconds); `days`: on how many days (UTC) it was seen, ENOUGH_DAYS at
    most."""

    since: float
    days: int

    def has_lasted(self, now: float, seconds: float, days: int) -> bool:
        """True where it has lasted for `seconds` and was seen on so many days."""
        return now - self.since >= seconds and self.days >= days


def is_recent(silence: Silence | None, now: float) -> bool:
    """True where a host that used to answer is silent since less than a day: what it refuses may be us, or the moment.
    None: its silence begins now."""
    return silence is None or now - silence.since < DAY


def count_days(looks: Iterable[float]) -> int:
    """On how many days (UTC) these looks (Unix seconds) were."""
    return len({at // DAY for at in looks})


def with_look(looks: Iterable[float], at: float) -> tuple[float, ...]:
    """The first look of each day (UTC), the one `at` included (Unix seconds); of the first ENOUGH_DAYS, for more days
    say nothing more."""
    first: dict[float, float] = {}
    for look in sorted((*looks, at)):
        first.setdefault(look // DAY, look)
    return tuple(first.values())[:ENOUGH_DAYS]
