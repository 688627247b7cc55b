"""Quiet hours: `DAYS HH:MM-HH:MM ZONE`, such as `mon-fri 08:00-18:00 Europe/Amsterdam`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from attrs import frozen

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

_FORM = re.compile(r"(\S+)\s+(\d\d):(\d\d)-(\d\d):(\d\d)\s+(\S+)")
_DAY_MINUTES = 24 * 60
#: Quiet hours without a gap for so many days never end.
_FOREVER_DAYS = 9


@frozen(kw_only=True)
class Quiet:
    """A window of local time that begins on some weekdays (0 is Monday). `start`, `end`: minutes after the midnight
    that the day begins with; an end on the next day is above 24 hours. `text`: as written."""

    text: str
    days: frozenset[int]
    start: int
    end: int
    zone: tzinfo

    def until(self, now: float) -> float | None:
        """When the window ends (Unix seconds) that `now` is in; None where it is in none."""
        today = datetime.fromtimestamp(now, self.zone).date()
        for day in (today, today - timedelta(days=1)):
            if day.weekday() in self.days and self._at(day, self.start, 0) <= now < (end := self._at(day, self.end, 1)):
                return end
        return None

    def _at(self, day: date, minutes: int, fold: int) -> float:
        """A local time as Unix seconds. Of an hour that the clock shows twice, `fold` picks the first or second; one
        that it skips is as if it hadn't been put forward."""
        day += timedelta(days=minutes // _DAY_MINUTES)
        hour, minute = divmod(minutes % _DAY_MINUTES, 60)
        return datetime(day.year, day.month, day.day, hour, minute, tzinfo=self.zone, fold=fold).timestamp()


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
    while moment < now + _FOREVER_DAYS * 86400:
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
