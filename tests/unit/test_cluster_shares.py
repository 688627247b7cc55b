"""Shares of a cluster: as even as it is worth while."""

from __future__ import annotations

import math

import pytest

from linkcrawl.cluster.balancing import THROUGHPUT_SECONDS, Throughput, excess, spare_share
from linkcrawl.cluster.coordinator import HeartbeatReply
from tests.unit.cluster_kit import TIME


def beat(others: int, load: int) -> HeartbeatReply:
    return HeartbeatReply(
        others=others, busy=others, load=load, agreed=True, paces=(), notifications=(), missing=(), time=TIME
    )


@pytest.mark.parametrize(
    ("others", "load", "mine", "seen", "more"),
    [
        (1, 0, 0, 300, 150),  # two begin at once
        (1, 150, 0, 300, 150),  # the other was first: half of all that was seen is its
        (1, 150, 150, 150, 0),
        (3, 75, 0, 300, 75),
        (1, 10, 0, 0, 5),  # none is known to be free, but the other will give
        (1, 1, 1, 2, 1),  # each has one, and one is free
        (1, 1, 1, 1, 0),
        (1, 0, 7, 0, -3),
    ],
)
def test_room(others: int, load: int, mine: int, seen: int, more: int) -> None:
    assert spare_share(beat(others, load), mine, seen) == more


@pytest.mark.parametrize(
    ("others", "load", "mine", "given"),
    [
        (1, 0, 300, 150),  # another has come
        (1, 140, 160, 0),  # a few more are no reason
        (1, 0, 8, 0),
        (1, 0, 10, 5),
        (3, 90, 150, 90),
        (1, 300, 0, 0),
    ],
)
def test_surplus(others: int, load: int, mine: int, given: int) -> None:
    assert excess(beat(others, load), mine) == given


def test_pace_is_of_the_last_seconds() -> None:
    pace = Throughput()
    pace.see(0.0, 0)
    assert pace.seconds(1) == math.inf
    pace.see(1.0, 10)
    assert pace.seconds(20) == pytest.approx(2.0)
    for second in range(2, 20):
        pace.see(float(second), 10 + 100 * (second - 1))
    assert pace.seconds(100) == pytest.approx(1.0)
    for quarter in range(int(4 * THROUGHPUT_SECONDS) + 2):
        pace.see(20.0 + quarter / 4, 1810)
    assert pace.seconds(1) == math.inf
