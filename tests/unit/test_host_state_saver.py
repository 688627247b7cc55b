"""What is stored of hosts and of robots.txt files, and that the files can't keep the hosts from being stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from linkcrawl.errors import StoreLost
from linkcrawl.frontier.host_state_saver import HostStateSaver
from linkcrawl.frontier.ports import LocalOwnership
from linkcrawl.session import Session
from tests.unit.frontier_kit import T0, Clock, read_robots_of, session


@pytest.fixture
def crawl(tmp_path: Path) -> Iterator[Session]:
    opened = session(tmp_path, Clock())
    opened.hosts.learn_answer("a.example", True, T0)
    read_robots_of(opened, "a.example", "User-agent: *\nDisallow: /x\nCrawl-delay: 4", T0)
    yield opened
    opened.worker.close()


def saved(crawl: Session) -> tuple[list[str], list[str]]:
    """The hosts and the authorities that the store has."""
    files = crawl.store.robots(["http://a.example"])
    return [memory.host for memory in crawl.store.hosts()], [file.authority for file in files]


def save(crawl: Session) -> None:
    asyncio.run(HostStateSaver(crawl, LocalOwnership()).save())


def failing(fault: Exception) -> Callable[..., None]:
    def fail(*given: object) -> None:
        raise fault

    return fail


def test_hosts_and_files_are_stored_apart(crawl: Session) -> None:
    save(crawl)
    assert saved(crawl) == (["a.example"], ["http://a.example"])
    (memory,) = crawl.store.hosts()
    assert "Disallow" not in str(memory.robots)
    assert "disallow" not in str(memory.robots)


def test_a_file_that_can_not_be_stored_harms_nothing_else(
    crawl: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(crawl.store, "remember_robots", failing(OverflowError("too large")))
        save(crawl)
    assert saved(crawl) == (["a.example"], [])
    assert "1 robots.txt files can't be stored" in caplog.text
    crawl.hosts.learn_answer("b.example", True, T0)
    save(crawl)
    assert saved(crawl)[0] == ["a.example", "b.example"]


def test_what_a_lost_store_has_not_taken_is_stored_later(crawl: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("remember", "remember_robots"):
        with monkeypatch.context() as patch:
            patch.setattr(crawl.store, name, failing(StoreLost("away")))
            with pytest.raises(StoreLost):
                save(crawl)
    save(crawl)
    assert saved(crawl) == (["a.example"], ["http://a.example"])
