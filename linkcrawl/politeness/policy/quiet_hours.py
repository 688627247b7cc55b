"""Quiet hours: `DAYS HH:MM-HH:MM ZONE`, such as `mon-fri 08:00-18:00 Europe/Amsterdam`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from attrs import frozen

from linkcrawl.units import DAY

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_FORM = re.compile(r"(\S+)\s+(\d\d):(\d\d)-(\d\d):(\d\d)\s+(\S+)")
_DAY_MINUTES = 24 * 60
#: Days without a gap after which quiet hours never end: all windows repeat every week.
_FOREVER_DAYS = 9


@frozen(kw_only=True)
class Quiet:
    """A window of local time on some weekdays (0 is Monday). `start`, `end`: minutes since the midnight at which the
    day begins, above 24 hours for an end on the next day. `text`: as written.

    It begins when a clock on the wall first shows its start or a later time, and ends when such a clock last shows a
    time before its end. So where an hour is skipped, whatever of the window lies in it is left out; where an hour is
    shown twice, a window that reaches into it lasts from the first to the second.
    """

    text: str
    days: frozenset[int]
    start: int
    end: int
    zone: tzinfo

    def until(self, now: float) -> float | None:
        """When the window around `now` ends (Unix seconds); None outside of it."""
        today = datetime.fromtimestamp(now, self.zone).date()
        for day in (today, today - timedelta(days=1)):
            if day.weekday() in self.days:
                start, end = _moments(self.zone, day, self.start, self.end)
                if start <= now < end:
                    return end
        return None


@lru_cache(maxsize=4096)
def _moments(zone: tzinfo, day: date, start: int, end: int) -> tuple[float, float]:
    """A window's start and end in Unix seconds, equal where the clock skips all of it."""
    return _first_at(zone, _wall(day, start)), _last_before(zone, _wall(day, end))


def _wall(day: date, minutes: int) -> datetime:
    return datetime.combine(day, time()) + timedelta(minutes=minutes)


def _first_at(zone: tzinfo, wall: datetime) -> float:
    """When a clock of the zone first shows this time or a later one."""
    moment = wall.replace(tzinfo=zone).timestamp()
    return moment if _shown(zone, moment) == wall else _skipping(zone, wall)


def _last_before(zone: tzinfo, wall: datetime) -> float:
    """Until when a clock of the zone shows times before this one."""
    first, second = (wall.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1))
    if _shown(zone, first) != wall:
        return _skipping(zone, wall)
    # At the very time that the clock is put back to, all that comes again is later.
    return second if _shown(zone, second - 1) < wall else first


def _skipping(zone: tzinfo, wall: datetime) -> float:
    """When the clock is put forward over a time that it never shows. Bisects between the moments of that time by the
    offsets before and after."""
    before, after = (int(wall.replace(tzinfo=zone, fold=fold).timestamp()) for fold in (1, 0))
    while after - before > 1:
        middle = (before + after) // 2
        if _shown(zone, middle) < wall:
            before = middle
        else:
            after = middle
    return float(after)


def _shown(zone: tzinfo, moment: float) -> datetime:
    """What a clock on the wall shows."""
    return datetime.fromtimestamp(moment, zone).replace(tzinfo=None, fold=0)


def parse_quiet(text: str) -> Quiet:
    """Read quiet hours. Raises ValueError, whose text says what would work."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not DAYS HH:MM-HH:MM ZONE; 'mon-fri 08:00-18:00 Europe/Amsterdam' would work")
    days, *clock, zone = found.groups()
    start, end = _minutes(clock[0], clock[1], text), _minutes(clock[2], clock[3], text)
    if start in (end, _DAY_MINUTES):
        raise ValueError(f"{text!r} begins when it ends, or at 24:00; all day is 00:00-24:00")
    return Quiet(
        text=text.strip(),
        days=_weekdays(days, text),
        start=start,
        end=end if end > start else end + _DAY_MINUTES,
        zone=_zone(zone, text),
    )


def next_open(windows: Iterable[Quiet], now: float) -> float:
    """The first moment from `now` on that is in none of the windows; infinite where there is none."""
    windows = list(windows)
    moment = now
    while moment < now + _FOREVER_DAYS * DAY:
        ends = [end for window in windows if (end := window.until(moment)) is not None]
        if not ends:
            return moment
        moment = max(ends)
    return math.inf


def _minutes(hour: str, minute: str, text: str) -> int:
    minutes = int(hour) * 60 + int(minute)
    if int(minute) > 59 or minutes > _DAY_MINUTES:
        raise ValueError(f"{text!r}: {hour}:{minute} is no time of day; 00:00 to 24:00 would work")
    return minutes


def _weekdays(text: str, whole: str) -> frozenset[int]:
    if text.lower() == "daily":
        return frozenset(range(7))
    days: set[int] = set()
    for part in text.lower().split(","):
        first, dash, last = part.partition("-")
        if first not in DAYS or (dash and last not in DAYS):
            raise ValueError(f"{whole!r}: {part!r} is no day; mon, mon-fri, sat,sun or daily would work")
        begin = DAYS.index(first)
        length = (DAYS.index(last) - begin) % 7 if dash else 0
        days.update((begin + offset) % 7 for offset in range(length + 1))
    return frozenset(days)


def _zone(name: str, whole: str) -> tzinfo:
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # OSError: the name is that of a folder of zones
        raise ValueError(f"{whole!r}: time zone {name!r} is not known; Europe/Amsterdam or UTC would work") from None
