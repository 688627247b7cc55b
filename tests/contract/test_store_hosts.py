"""Host memory: kept over restarts, replaced whole."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from linkcrawl.items import HostMemory, RobotsFile
from linkcrawl.stores.contract import Store
from tests.contract.making import entry

FULL = HostMemory(
    host="b.example:8080",
    head_useless_since=1.5,
    last_end=2.25,
    failing_since=3.0,
    failing_days=(3.0, 86400.5),
    pace={"delay": 8.4, "why": ["crawl-delay", None], "$inc": {"a.b": 1}},
    robots={"https": {"text": "User-agent: *\nDisallow: /\x00\u2028\U0001f600", "at": 1e9}},
)


def test_nothing_is_remembered_at_first(store: Store) -> None:
    store.add([entry(1)])
    assert list(store.hosts()) == []


def test_memory_comes_back_by_host_and_survives_reopening(url: str, opened: Callable[[str], Store]) -> None:
    store = opened(url)
    store.remember([FULL, HostMemory(host="a.example")])
    store.close()
    assert list(opened(url).hosts()) == [HostMemory(host="a.example"), FULL]


def test_new_memory_replaces_the_old_whole(store: Store) -> None:
    store.remember([FULL, HostMemory(host="a.example", last_end=1.0)])
    store.remember(iter([HostMemory(host=FULL.host, last_end=9.0)]))
    assert list(store.hosts()) == [HostMemory(host="a.example", last_end=1.0), HostMemory(host=FULL.host, last_end=9.0)]
    store.remember([])
    assert len(list(store.hosts())) == 2


def test_memory_can_be_read_while_it_is_written(store: Store) -> None:
    store.remember([HostMemory(host=f"{n:04}.example") for n in range(1000)])
    reading = store.hosts()
    first = next(reading)
    store.remember([HostMemory(host=f"{n:04}.example", last_end=1.0) for n in range(1000)])
    assert [memory.last_end for memory in (first, *reading)] == [None] * 1000


def test_the_revision_changes_when_another_connection_adds_links(url: str, opened: Callable[[str], Store]) -> None:
    store, other = opened(url), opened(url)
    before = store.revision()
    assert store.revision() == before
    other.add([entry(0)])
    after = store.revision()
    assert after != before
    assert store.revision() == after


FILE = RobotsFile(
    authority="https://b.example:8080",
    until=1_900_000_000.25,
    entry={"rules": "disallow: /\u2028\U0001f600\x00", "asked_at": 1.5, "failure": None, "$inc": {"a.b": 1}},
)


def test_robots_txt_is_kept_apart_and_read_by_authority(url: str, opened: Callable[[str], Store]) -> None:
    store = opened(url)
    assert store.robots([FILE.authority]) == []
    other = evolve(FILE, authority="http://a.example")
    store.remember_robots([FILE, other])
    store.close()
    again = opened(url)
    assert again.robots([FILE.authority, "http://nowhere.example", other.authority]) == [other, FILE]
    assert again.robots([]) == []
    assert list(again.hosts()) == []


def test_a_new_robots_txt_replaces_the_old(store: Store) -> None:
    store.remember_robots([FILE])
    newer = evolve(FILE, until=2e9, entry={"rules": ""})
    store.remember_robots(iter([newer]))
    assert store.robots([FILE.authority]) == [newer]
    store.remember_robots([])


def test_robots_txt_that_is_of_no_use_is_forgotten(store: Store) -> None:
    store.remember_robots([evolve(FILE, authority=f"http://{n}.example", until=1000.0 + n) for n in range(4)])
    assert store.forget_robots(1002.0) == 2
    assert [file.until for file in store.robots([f"http://{n}.example" for n in range(4)])] == [1002.0, 1003.0]
    assert store.forget_robots(1002.0) == 0


def test_large_robots_txt_files_are_kept_however_many(store: Store) -> None:
    """Forty of the largest: more than MongoDB takes in one document, or one batch."""
    files = [evolve(FILE, authority=f"http://{n:02}.example", entry={"rules": "\x01" * 512_000}) for n in range(40)]
    store.remember_robots(files)
    assert store.robots([file.authority for file in files]) == files
