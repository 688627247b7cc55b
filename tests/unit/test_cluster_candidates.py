"""Which gates a worker may lease next, and what its share of them is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.cluster.balancing import AGAIN, AT_ONCE, REFRESH, Candidates
from linkcrawl.cluster.coordinator import HeartbeatReply
from linkcrawl.cluster.placement import SharedAddresses
from linkcrawl.frontier.due_queue import DueQueue
from linkcrawl.stores.contract import HostBacklog, LinkFilter
from tests.unit.cluster_kit import TIME


class Desk:
    """A worker's parts, as far as candidates look at them: a clock, a queue, and how looks into the store stand."""

    def __init__(self) -> None:
        self.time = 100.0
        self.queue = DueQueue(LinkFilter, lambda: self.time)
        self.looks = 0
        self.feeder = SimpleNamespace(
            refreshed_at=float("-inf"), refresh_seconds=0.0, is_busy=False, refresh_backlog=self._look
        )
        self.ours: set[str] = set()
        parts: Any = SimpleNamespace(
            session=SimpleNamespace(now=lambda: self.time), queue=self.queue, feeder=self.feeder
        )
        self.candidates = Candidates(parts, self.ours.__contains__)

    def see(self, **due: int) -> None:
        """A look into the store finds so many links due at these hosts."""
        self.feeder.refreshed_at = self.time
        self.queue.refresh([HostBacklog(host=host, due=count) for host, count in due.items()], self.time)
        self.candidates.reload()

    def _look(self) -> None:
        self.looks += 1


def beat(others: int, load: int) -> HeartbeatReply:
    return HeartbeatReply(
        others=others, busy=others, load=load, agreed=True, paces=(), notifications=(), missing=(), time=TIME
    )


def test_most_work_comes_first_and_what_is_ours_is_left_out() -> None:
    desk = Desk()
    desk.ours.add("mine")
    desk.see(small=1, large=9, mine=50, middle=5)
    assert desk.candidates.pop() == ["large", "middle", "small"]
    assert len(desk.candidates) == 0


def test_what_others_held_is_asked_for_again_soon_unless_nothing_is_due_there_any_more() -> None:
    desk = Desk()
    desk.see(a=3, b=2)
    desk.candidates.mark_leased(desk.candidates.pop())
    desk.candidates.reload()
    desk.candidates.mark_leased(desk.candidates.pop())
    desk.candidates.reload()
    assert len(desk.candidates) == 0  # not at once
    desk.queue.hosts["a"].due = 0
    desk.time += AGAIN * 2
    desk.candidates.reload()
    assert desk.candidates.pop() == ["b"]


def test_hosts_that_found_no_room_keep_their_place() -> None:
    desk = Desk()
    desk.see(a=3, b=2, c=1)
    hosts = desk.candidates.pop()
    desk.candidates.put_back(hosts[1:])
    assert desk.candidates.pop() == ["b", "c"]


@pytest.mark.parametrize("took", [0.0, 1.0])
def test_the_store_is_looked_into_again_when_no_candidates_are_left_and_it_costs_little(took: float) -> None:
    desk = Desk()
    desk.see(a=1)
    desk.feeder.refresh_seconds = took
    desk.time += 1000.0
    desk.candidates.refresh_if_empty()
    assert desk.looks == 0  # there is one left
    desk.candidates.pop()
    desk.time = 100.0 + max(REFRESH, 20 * took) - 0.1
    desk.candidates.refresh_if_empty()
    assert desk.looks == 0
    desk.time += 0.2
    desk.candidates.refresh_if_empty()
    assert desk.looks == 1


def test_alone_there_is_room_for_all() -> None:
    assert Desk().candidates.spare_share(beat(0, 0), 5) == AT_ONCE


@given(st.integers(1, 9), st.integers(0, 500), st.integers(0, 500), st.integers(0, 300))
def test_shares_are_even(others: int, load: int, mine: int, free: int) -> None:
    """Whoever takes its room has no more than its part of all gates, rounded up."""
    desk = Desk()
    desk.see(**{f"h{n}": 1 for n in range(load + free)})  # the look sees what others hold as well
    room = desk.candidates.spare_share(beat(others, load), mine)
    everything = mine + load + free
    assert mine + max(0, room) <= max(mine, -(-everything // (others + 1)))
    if mine < everything // (others + 1):
        assert room > 0


def test_what_redis_has_settled_is_forgotten_with_its_generation() -> None:
    addresses = SharedAddresses()
    addresses.record({"b.example": ("a.example", "192.0.2.1")})
    assert (addresses.representative("b.example"), addresses.representative("c.example")) == ("a.example", "c.example")
    assert (addresses.address("b.example"), addresses.address("c.example")) == ("192.0.2.1", None)
    addresses.clear()
    assert addresses.representative("b.example") == "b.example"
