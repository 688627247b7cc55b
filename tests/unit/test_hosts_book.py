"""What is remembered of hosts: HEADs that lie, silence, and what has to be stored."""

from __future__ import annotations

from linkcrawl.items import HostMemory
from linkcrawl.politeness.host_state import HEAD_MEMORY, HostStateCache
from linkcrawl.politeness.pacing.persistence import pace_to_row
from linkcrawl.politeness.pacing.state import Pace
from tests.unit.frontier_kit import T0


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


def test_silence_counts_from_its_first_request_until_any_answer() -> None:
    book = HostStateCache()
    for at, answered, since in ((1, True, None), (2, False, 2), (3, False, 2), (4, True, None), (5, False, 5)):
        book.learn_answer("a", answered, at)
        assert book.failing_since("a") == since
        assert book.get("a").last_end == at


def test_changes_are_handed_over_once_as_rows() -> None:
    book = HostStateCache()
    book.change("a", pace=Pace(back_off=2.0))
    (memory,) = book.take_changed()
    assert memory.pace == pace_to_row(Pace(back_off=2.0))
    assert book.take_changed() == []


def test_a_request_on_its_way_is_handed_over_with_the_pace() -> None:
    book = HostStateCache()
    book.change("a", pace=Pace(back_off=2.0, asked_at=T0))
    book.take_changed()
    book.asked("a", T0 + 5)
    book.change("a", pace=Pace(back_off=3.0, asked_at=T0))
    (memory,) = book.take_changed()
    assert memory.pace == pace_to_row(Pace(back_off=3.0, asked_at=T0 + 5))
    book.load([HostMemory(host="a", pace=pace_to_row(Pace(asked_at=T0 + 9)))])
    book.change("a", pace=Pace(asked_at=T0 + 9))
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
