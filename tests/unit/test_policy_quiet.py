"""Quiet hours in local time: midnight, weekends, summer time."""

from __future__ import annotations

import math
from datetime import UTC, datetime

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
