"""Quiet hours in local time: midnight, weekends, summer time."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.politeness.policy.quiet_hours import next_open, parse_quiet


def utc(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("window", "now", "opens"),
    [
        # 2026-11-30 is a Monday; Amsterdam is one hour before UTC then.
        ("mon-fri 08:00-18:00 Europe/Amsterdam", "2026-11-30T06:59:59", None),
        ("mon-fri 08:00-18:00 Europe/Amsterdam", "2026-11-30T07:00:00", "2026-11-30T17:00:00"),
        ("mon-fri 08:00-18:00 Europe/Amsterdam", "2026-11-30T16:59:59", "2026-11-30T17:00:00"),
        ("mon-fri 08:00-18:00 Europe/Amsterdam", "2026-11-30T17:00:00", None),
        ("mon-fri 08:00-18:00 Europe/Amsterdam", "2026-11-29T10:00:00", None),
        ("mon-fri 08:00-18:00 Europe/Amsterdam", "2026-07-01T06:00:00", "2026-07-01T16:00:00"),
        ("sat,sun 00:00-24:00 UTC", "2026-11-28T00:00:00", "2026-11-30T00:00:00"),
        ("sat,sun 00:00-24:00 UTC", "2026-11-27T23:59:59", None),
        ("fri-mon 10:00-11:00 UTC", "2026-11-30T10:30:00", "2026-11-30T11:00:00"),
        ("fri-mon 10:00-11:00 UTC", "2026-12-01T10:30:00", None),
        ("fri 22:00-06:00 UTC", "2026-11-28T05:00:00", "2026-11-28T06:00:00"),
        ("fri 22:00-06:00 UTC", "2026-11-27T05:00:00", None),
        ("sat 22:00-06:00 UTC", "2026-11-28T05:00:00", None),
        ("SUN 20:00-24:00 utc", "2026-11-29T21:00:00", "2026-11-30T00:00:00"),
        ("daily 18:00-24:00 America/New_York", "2026-11-30T04:59:00", "2026-11-30T05:00:00"),
        ("mon,wed-fri 01:00-02:00 UTC", "2026-12-02T01:00:00", "2026-12-02T02:00:00"),
        ("mon,wed-fri 01:00-02:00 UTC", "2026-12-01T01:00:00", None),
        # 2026-10-25: Amsterdam shows 02:00 to 03:00 twice; 2026-03-29: it skips that hour.
        ("daily 02:00-03:00 Europe/Amsterdam", "2026-10-25T00:30:00", "2026-10-25T02:00:00"),
        ("daily 02:00-03:00 Europe/Amsterdam", "2026-10-25T01:30:00", "2026-10-25T02:00:00"),
        ("daily 01:00-05:00 Europe/Amsterdam", "2026-03-29T00:30:00", "2026-03-29T03:00:00"),
        ("daily 22:00-06:00 Europe/Amsterdam", "2026-03-28T23:00:00", "2026-03-29T04:00:00"),
        ("daily 22:00-06:00 Europe/Amsterdam", "2026-10-24T23:00:00", "2026-10-25T05:00:00"),
    ],
)
def test_windows(window: str, now: str, opens: str | None) -> None:
    expected = utc(now) if opens is None else utc(opens)
    assert next_open([parse_quiet(window)], utc(now)) == expected


def test_windows_that_touch_or_overlap_are_one() -> None:
    windows = [parse_quiet(text) for text in ("daily 08:00-12:00 UTC", "daily 12:00-14:00 UTC", "mon 13:00-15:00 UTC")]
    assert next_open(windows, utc("2026-11-30T09:00:00")) == utc("2026-11-30T15:00:00")
    assert next_open(windows, utc("2026-12-01T09:00:00")) == utc("2026-12-01T14:00:00")


def test_quiet_for_ever() -> None:
    assert next_open([parse_quiet("daily 00:00-24:00 UTC")], utc("2026-11-30T09:00:00")) == math.inf


@pytest.mark.parametrize(
    "text",
    [
        "",
        "08:00-18:00 UTC",
        "mon 08:00-18:00",
        "mon 8:00-18:00 UTC",
        "mon 08:00-18:60 UTC",
        "mon 08:00-24:01 UTC",
        "mon 24:00-08:00 UTC",
        "mon 08:00-08:00 UTC",
        "monday 08:00-18:00 UTC",
        "mon- 08:00-18:00 UTC",
        "mon,,tue 08:00-18:00 UTC",
        "weekly 08:00-18:00 UTC",
        "mon 08:00-18:00 Europe/Atlantis",
        "mon 08:00-18:00 Europe",
        "mon 08:00-18:00 ../../etc/passwd",
        "mon 08:00-18:00 /etc/passwd",
    ],
)
def test_what_is_no_window_is_refused_with_what_would_work(text: str) -> None:
    with pytest.raises(ValueError, match=r"would work|all day is"):
        parse_quiet(text)


@given(
    st.sampled_from(["UTC", "Europe/Amsterdam", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia"]),
    st.integers(0, 23),
    st.integers(1, 23),
    st.integers(1_600_000_000, 1_900_000_000),
)
def test_what_opens_is_open_and_not_long_after(zone: str, start: int, length: int, now: int) -> None:
    windows = [parse_quiet(f"daily {start:02}:00-{(start + length) % 24:02}:00 {zone}")]
    opens = next_open(windows, now)
    assert now <= opens <= now + 26 * 3600
    assert windows[0].until(opens) is None
    assert opens == now or windows[0].until(opens - 1) == opens


# The changes of one year, as Unix seconds: both hemispheres, half an hour, 02:45, midnight.
ZONES = {
    "Europe/Amsterdam": ("2027-03-28T01:00:00", "2027-10-31T01:00:00"),
    "Atlantic/Azores": ("2027-03-28T01:00:00", "2027-10-31T01:00:00"),
    "America/New_York": ("2027-03-14T07:00:00", "2027-11-07T06:00:00"),
    "America/St_Johns": ("2027-03-14T05:30:00", "2027-11-07T04:30:00"),
    "Australia/Sydney": ("2027-10-02T16:00:00", "2027-04-03T16:00:00"),
    "Australia/Lord_Howe": ("2027-10-02T15:30:00", "2027-04-03T15:00:00"),
    "Pacific/Chatham": ("2027-09-25T14:00:00", "2027-04-03T14:00:00"),
    "America/Santiago": ("2027-09-05T04:00:00", "2027-04-04T03:00:00"),
    "Africa/Cairo": ("2027-04-29T22:00:00", "2027-10-28T21:00:00"),
}
CHANGES = [(zone, change) for zone, changes in ZONES.items() for change in changes]
CLOCK = [f"{minutes // 60:02}:{minutes % 60:02}" for minutes in range(0, 24 * 60, 30)]


def shown_around(zone: str, change: str) -> list[tuple[float, datetime]]:
    """Each minute from three days before to three days after, and what a clock on the wall shows then."""
    middle = int(utc(change))
    around = range(middle - 3 * 86400, middle + 3 * 86400, 60)
    return [(moment, datetime.fromtimestamp(moment, ZoneInfo(zone)).replace(tzinfo=None)) for moment in around]


@pytest.mark.parametrize(("zone", "change"), CHANGES)
def test_these_are_changes(zone: str, change: str) -> None:
    middle = utc(change)
    before, after = (datetime.fromtimestamp(at, ZoneInfo(zone)).utcoffset() for at in (middle - 1, middle))
    assert before != after


@pytest.mark.parametrize(("zone", "change"), CHANGES)
def test_every_window_over_a_change(zone: str, change: str) -> None:
    """All windows of half hours that begin on the day of the change or the day before, against a clock on the wall that
    is read every minute: quiet from the first minute that shows the start or later, to the last that shows less than
    the end."""
    shown = shown_around(zone, change)
    day = datetime.fromtimestamp(utc(change), ZoneInfo(zone)).replace(tzinfo=None, hour=0, minute=0)
    walls = [day + timedelta(minutes=minutes) for minutes in range(-24 * 60, 48 * 60 + 1, 30)]
    first = {wall: next(at for at, clock in shown if clock >= wall) for wall in walls}
    last = {wall: next(at for at, clock in reversed(shown) if clock < wall) + 60 for wall in walls}
    for begins in (day - timedelta(days=1), day):
        weekday = f"{begins:%a}".lower()
        for start in range(0, 24 * 60, 30):
            for length in range(30, 24 * 60, 30):
                minutes = start + length
                text = f"{weekday} {CLOCK[start // 30]}-{CLOCK[minutes % 1440 // 30]} {zone}"
                window = parse_quiet(text)
                begin, end = first[begins + timedelta(minutes=start)], last[begins + timedelta(minutes=minutes)]
                if begin == end:  # the clock skips it
                    assert window.until(begin) is None, text
                    continue
                found = [window.until(at) for at in (begin - 1, begin, end - 1, end)]
                assert found == [None, end, end, None], text


@pytest.mark.parametrize(("zone", "change"), CHANGES)
def test_minute_by_minute(zone: str, change: str) -> None:
    """Half an hour every day, around the change: quiet whenever the clock shows a time within it, and where it shows
    that twice, all the time between."""
    middle = utc(change)
    near = [(at, clock) for at, clock in shown_around(zone, change) if abs(at - middle) <= 4 * 3600]
    for number, start in enumerate(CLOCK):
        end = CLOCK[number + 1] if number < 47 else "24:00"
        window = parse_quiet(f"daily {start}-{end} {zone}")
        within = [start <= f"{clock:%H:%M}" < end for _, clock in near]
        quiet = [at for (at, _), inside in zip(near, within, strict=True) if inside]
        twice = bool(quiet) and quiet[-1] - quiet[0] > 40 * 60
        for (at, _), inside in zip(near, within, strict=True):
            expected = inside or (twice and quiet[0] <= at <= quiet[-1])
            assert (window.until(at) is not None) == expected, (window.text, at - middle)


def test_a_day_that_was_skipped_has_no_quiet_hours() -> None:
    """Samoa went from Thursday 29 to Saturday 31 December 2011."""
    window = parse_quiet("fri 08:00-18:00 Pacific/Apia")
    span = range(int(utc("2011-12-29T00:00:00")), int(utc("2012-01-01T00:00:00")), 1800)
    assert {window.until(at) for at in span} == {None}
    night = parse_quiet("thu 22:00-06:00 Pacific/Apia")
    assert night.until(utc("2011-12-30T09:00:00")) == utc("2011-12-30T10:00:00")
