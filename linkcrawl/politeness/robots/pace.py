"""When and how often a robots.txt asks to be asked: Crawl-delay, Request-rate and Visit-time, of which no RFC speaks.

Small apart from the rules, and kept with what is remembered of a host: it holds also while the rules are in no memory.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import time
from typing import Any

from attrs import frozen
from protego import Protego

from linkcrawl.units import DAY

#: Seconds a Request-rate may ask for, about 30 years: keeps its arithmetic within what a float holds.
_LONGEST = 1e9
_SECONDS = re.compile(r"[0-9]+(\.[0-9]*)?|\.[0-9]+")

#: Two times of the (UTC) day, in seconds since its midnight.
Hours = tuple[int, int]


@frozen(kw_only=True)
class RobotsPace:
    """What all usable lines say together. `crawl_delay`: the largest, in seconds; None where there is none. `rates`:
    seconds between two requests, and the hours that this is for (None: all day). `visits`: hours for requests."""

    crawl_delay: float | None = None
    rates: tuple[tuple[float, Hours | None], ...] = ()
    visits: tuple[Hours, ...] = ()

    def request_delay(self, now: float) -> float | None:
        """Seconds between two requests that Request-rate asks for at this time of the (UTC) day; the largest."""
        return max((delay for delay, hours in self.rates if hours is None or _is_within(hours, now)), default=None)

    @property
    def keeps_hours(self) -> bool:
        """Whether a Request-rate is for some hours of the day only."""
        return any(hours is not None for _, hours in self.rates)

    def open_at(self, now: float) -> float:
        """When pages may be requested by Visit-time (UTC): `now` where it is so now or there is none. Several lines
        add up."""
        if not self.visits:
            return now
        return min(_next_within(hours, now) for hours in self.visits)

    def to_row(self) -> dict[str, Any]:
        """The pace, ready for JSON."""
        return {
            # Workers of an older version look for whole files here, and pass over those of another product token.
            "token": "",
            "crawl_delay": self.crawl_delay,
            "rates": self.rates,
            "visits": self.visits,
        }


def robots_pace_from_row(row: Mapping[str, Any]) -> RobotsPace:
    """The pace that `to_row` gave; or of what an older version kept, which is the whole file."""
    if "rules" in row:
        return robots_pace_of(row["rules"] or "")
    return RobotsPace(
        crawl_delay=row.get("crawl_delay"),
        rates=tuple((delay, None if hours is None else (hours[0], hours[1])) for delay, hours in row.get("rates", ())),
        visits=tuple((start, end) for start, end in row.get("visits", ())),
    )


def robots_pace_of(rules: str) -> RobotsPace:
    """The pace of `Robots.rules`."""
    delays = [seconds for value in _values(rules, "crawl-delay") if (seconds := seconds_of(value)) is not None]
    rates = [rate for value in _values(rules, "request-rate") if (rate := rate_of(value)) is not None]
    visits = [hours for value in _values(rules, "visit-time") if (hours := visit_of(value)) is not None]
    return RobotsPace(
        crawl_delay=max(delays, default=None),
        rates=tuple(dict.fromkeys(rates)),
        visits=tuple(dict.fromkeys(visits)),
    )


def _values(rules: str, kind: str) -> Iterable[str]:
    if kind not in rules:
        return ()
    return [line.partition(": ")[2] for line in rules.split("\n") if line.startswith(f"{kind}: ")]


def seconds_of(value: str) -> float | None:
    """The seconds of a Crawl-delay; None where it means nothing."""
    seconds = float(value) if _SECONDS.fullmatch(value) else math.inf
    return seconds if math.isfinite(seconds) else None


def rate_of(value: str) -> tuple[float, Hours | None] | None:
    """Seconds between two requests and the hours of a Request-rate; None where it means nothing."""
    rate = Protego.parse(f"User-agent: *\nRequest-rate: {value}").request_rate("*")
    if rate is None:
        return None
    hours = None if rate.start_time is None or rate.end_time is None else _hours(rate.start_time, rate.end_time)
    return min(rate.seconds, _LONGEST) / min(rate.requests, _LONGEST), hours


def visit_of(value: str) -> Hours | None:
    """The hours of a Visit-time; None where it means nothing."""
    visit = Protego.parse(f"User-agent: *\nVisit-time: {value}").visit_time("*")
    return None if visit is None else _hours(visit.start_time, visit.end_time)


def _hours(start: time, end: time) -> Hours:
    return start.hour * 3600 + start.minute * 60, end.hour * 3600 + end.minute * 60


def _is_within(hours: Hours, now: float) -> bool:
    return _next_within(hours, now) == now


def _next_within(hours: Hours, now: float) -> float:
    """`now`, or when the hours next begin. They may cross midnight; the same start and end mean all day."""
    start, end = hours
    since_start = (now - start) % DAY
    length = (end - start) % DAY or DAY
    return now if since_start < length else now + DAY - since_start
