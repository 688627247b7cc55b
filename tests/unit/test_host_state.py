"""What is remembered of hosts: HEADs that lie, silence, and what has to be stored."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.check.silence import ENOUGH_DAYS, Silence
from linkcrawl.items import HostMemory
from linkcrawl.politeness.host_state import HEAD_MEMORY, HostStateCache
from linkcrawl.politeness.keys import MemoryKind, group_gate, kind_of, limit_key
from linkcrawl.politeness.pacing.persistence import pace_to_row
from linkcrawl.politeness.pacing.state import Pace
from linkcrawl.politeness.robots.pace import RobotsPace
from linkcrawl.units import DAY, HOUR
from tests.unit.frontier_kit import T0

#: A midnight (UTC).
DAY_0 = T0 // DAY * DAY


def test_a_useless_head_is_remembered_for_a_while_and_then_tried_again() -> None:
    book = HostStateCache()
    assert not book.head_useless("a", T0)
    book.learn_head("a", True, T0)
    assert book.head_useless("a", T0 + HEAD_MEMORY - 1)
    assert not book.head_useless("a", T0 + HEAD_MEMORY)
    book.learn_head("a", True, T0 + HEAD_MEMORY)
    assert book.head_useless("a", T0 + 2 * HEAD_MEMORY - 1), "it was tried, and is as useless as before"


def test_a_head_that_was_mended_is_used_again() -> None:
    book = HostStateCache([HostMemory(host="a", head_useless_since=T0)])
    book.learn_head("a", False, T0 + 1)
    assert not book.head_useless("a", T0 + 1)
    assert [memory.head_useless_since for memory in book.take_changed()] == [None]


def test_what_was_known_already_is_not_stored_again() -> None:
    book = HostStateCache([HostMemory(host="a", head_useless_since=T0)])
    book.learn_head("a", True, T0 + 1)
    book.learn_head("b", False, T0 + 1)
    assert book.take_changed() == []


def test_silence_counts_the_days_on_which_it_was_met() -> None:
    book = HostStateCache()
    assert book.silence("a") is None
    for hours, days in (
        (0, 1),
        (1, 1),
        (23, 1),
        (24, 2),
        (25, 2),
        (24 * 31, 3),
        (24 * 40, 4),
        (24 * 50, 5),
        (24 * 60, 5),
    ):
        book.learn_answer("a", False, DAY_0 + hours * HOUR)
        assert book.silence("a") == Silence(since=DAY_0, days=days)
    assert len(book.get("a").failing_days) == 5
    book.learn_answer("a", True, DAY_0 + 70 * DAY)
    assert (book.silence("a"), book.get("a").failing_days) == (None, ())


def test_silence_of_an_older_store_has_its_first_day() -> None:
    book = HostStateCache([HostMemory(host="a", failing_since=DAY_0)])
    book.learn_answer("a", False, DAY_0 + 31 * DAY)
    assert book.silence("a") == Silence(since=DAY_0, days=2)


def test_a_clock_that_is_moved_takes_the_days_of_silence_with_it() -> None:
    book = HostStateCache([HostMemory(host="a", failing_since=DAY_0, failing_days=(DAY_0, DAY_0 + 2 * DAY))])
    book.take_changed()
    book.shift(-DAY, DAY_0 + DAY)
    (memory,) = book.take_changed()
    assert (memory.failing_since, memory.failing_days) == (DAY_0, (DAY_0, DAY_0 + DAY))


@given(st.lists(st.tuples(st.floats(-DAY, 20 * DAY), st.booleans()), max_size=30))
def test_days_of_silence_are_days_since_the_last_answer(ends: list[tuple[float, bool]]) -> None:
    book, at, silent = HostStateCache(), DAY_0, set[float]()
    for gap, answered in ends:
        at += gap
        book.learn_answer("a", answered, at)
        silent = set() if answered else {*silent, at // DAY}
        found = book.silence("a")
        assert (0 if found is None else found.days) == min(len(silent), ENOUGH_DAYS)


def test_silence_counts_from_its_first_request_until_any_answer() -> None:
    book = HostStateCache()
    for at, answered, since in ((1, True, None), (2, False, 2), (3, False, 2), (4, True, None), (5, False, 5)):
        book.learn_answer("a", answered, at)
        silence = book.silence("a")
        assert (None if silence is None else silence.since) == since
        assert book.get("a").last_end == at


def test_changes_are_handed_over_once_as_rows() -> None:
    book = HostStateCache()
    book.keep_pace("a", Pace(back_off=2.0))
    (memory,) = book.take_changed()
    assert memory.pace == pace_to_row(Pace(back_off=2.0))
    assert book.take_changed() == []


def test_a_request_on_its_way_is_handed_over_with_the_pace() -> None:
    book = HostStateCache()
    book.keep_pace("a", Pace(back_off=2.0, asked_at=T0))
    book.take_changed()
    book.asked("a", Pace(), T0 + 5)
    book.keep_pace("a", Pace(back_off=3.0, asked_at=T0))
    (memory,) = book.take_changed()
    assert memory.pace == pace_to_row(Pace(back_off=3.0, asked_at=T0 + 5))
    book.load([HostMemory(host="a", pace=pace_to_row(Pace(asked_at=T0 + 9)))])
    book.keep_pace("a", Pace(asked_at=T0 + 9))
    assert [memory.pace["asked_at"] for memory in book.take_changed()] == [T0 + 9], "another worker's since"


def test_what_the_store_has_not_taken_is_handed_over_again_as_it_is_by_then() -> None:
    book = HostStateCache()
    book.change("a", last_end=T0)
    book.change("b", last_end=T0)
    taken = book.take_changed()
    book.change("a", last_end=T0 + 9)
    book.still_changed(taken)
    assert {memory.host: memory.last_end for memory in book.take_changed()} == {"a": T0 + 9, "b": T0}
    assert book.take_changed() == []


def test_what_another_worker_has_stored_replaces_what_is_known() -> None:
    book = HostStateCache()
    book.change("a", last_end=T0)
    book.load([HostMemory(host="a", last_end=T0 + 9)])
    assert book.get("a").last_end == T0 + 9
    assert book.take_changed() == []


def test_a_host_that_shares_a_gate_names_it_and_one_that_has_left_has_a_pace_again() -> None:
    book = HostStateCache(
        [HostMemory(host="b", pace={"gate": "a"}), HostMemory(host="a", pace=pace_to_row(Pace(good=3)))]
    )
    assert (book.gate("a"), book.gate("b"), book.gate("new")) == ("a", "a", "new")
    assert (book.pace("a"), book.pace("b")) == (Pace(good=3), Pace())
    book.keep_pace("b", Pace(good=1))
    assert (book.gate("b"), book.pace("b")) == ("b", Pace(good=1))
    book.keep_gate("b", "policy g")
    assert (book.gate("b"), book.pace("b")) == ("policy g", Pace())
    assert [memory.pace for memory in book.take_changed()] == [{"gate": "policy g"}]


def test_keys_of_host_memory_are_those_of_stores_of_before() -> None:
    assert (group_gate("museum"), limit_key("collection North")) == ("policy museum", "clock collection North")
    assert limit_key("policy museum") == "clock policy museum"
    told = ["a.example", "a.example:8080", "[::1]:80", group_gate("a b"), limit_key("policy a"), "else of others"]
    host, group, limit = MemoryKind
    assert [kind_of(key) for key in told] == [host, host, host, group, limit, None]


def test_whole_files_of_older_versions_become_what_they_say_of_pace() -> None:
    row = {"token": "linkcrawl", "rules": "disallow: /x\ncrawl-delay: 7\nvisit-time: 0200-0600", "asked_at": 1.0}
    empty = {"token": "linkcrawl", "rules": None, "asked_at": 1.0}
    old = HostMemory(host="a.example", last_end=5.0, robots={"http://a.example": row, "https://a.example": empty})
    book = HostStateCache([old])
    assert [pace.crawl_delay for pace in book.robots_paces("a.example")] == [7.0]
    (stored,) = book.take_changed()
    assert "disallow" not in str(stored.robots)
    assert (stored.last_end, list(stored.robots)) == (5.0, ["http://a.example"])
    again = HostStateCache([stored])
    assert again.robots_paces("a.example") == book.robots_paces("a.example")
    assert again.take_changed() == []


def test_workers_of_an_older_version_pass_over_what_is_kept_now() -> None:
    """They take whole files from there, if these are of their product token."""
    book = HostStateCache()
    book.learn_robots("a.example", "http://a.example", RobotsPace(crawl_delay=2.0))
    (stored,) = book.take_changed()
    assert [row["token"] for row in stored.robots.values()] == [""]
