"""A fault of ours costs one row, one check or one robots.txt, is logged with its traceback, and stops nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.exceptions import CloseSpider
from scrapy.http import Request, Response

from linkcrawl import urls
from linkcrawl.check.procedure import Denial
from linkcrawl.errors import StoreLost
from linkcrawl.frontier import robots_fetcher
from linkcrawl.frontier.ports import LocalOwnership, context_of
from linkcrawl.frontier.scheduler import Scheduler
from linkcrawl.ingest.ingest import read_batches
from linkcrawl.ingest.live import LiveIngest
from linkcrawl.items import Category, DueLink, Finished, Reject, Seed
from linkcrawl.politeness.policy.rules import Applied
from linkcrawl.session import Session
from linkcrawl.sources import databases, files, pushed, rows
from linkcrawl.spiders import resourceproxies
from linkcrawl.spiders.resourceproxies import ResourceProxies
from tests.unit.frontier_kit import Clock, answer, frontier_of, request_to, session
from tests.unit.test_robots_fetcher import Office

BAD = "http://bad.example/"
LINK = DueLink(id=1, url="http://a.example/", host="a.example")


class OursError(Exception):
    """A fault that nothing provides for."""


def faulty(work: Any, when: Any = lambda *given, **named: True) -> Any:
    """The work, which raises for some of its arguments."""

    def run(*given: Any, **named: Any) -> Any:
        if when(*given, **named):
            raise OursError("never mind")
        return work(*given, **named)

    return run


def tracebacks(caplog: pytest.LogCaptureFixture) -> int:
    return sum(record.exc_info is not None and record.levelno == logging.ERROR for record in caplog.records)


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Session]:
    opened = session(tmp_path, Clock())
    yield opened
    opened.worker.close()


@pytest.fixture
def seeds(tmp_path: Path) -> Path:
    path = tmp_path / "seeds.txt"
    path.write_text(f"http://a.example/\n{BAD}\nhttp://b.example/\n")
    return path


@pytest.mark.parametrize(("module", "name"), [(rows, "_seed"), (urls, "tidy")])
def test_a_row_is_a_reject(
    module: Any,
    name: str,
    seeds: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(module, name, faulty(getattr(module, name), lambda given: BAD in str(given)))
    (batch,) = read_batches([str(seeds)], tmp_path / "rejects.jsonl")
    assert [entry.url for entry in batch.entries] == ["http://a.example/", "http://b.example/"]
    assert batch.rejected == 1
    assert "internal error: OursError" in (tmp_path / "rejects.jsonl").read_text()
    assert tracebacks(caplog) == 1


def test_a_file_that_can_not_be_read_further_is_a_reject(
    seeds: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(stream: object, source: str) -> Iterator[Seed | Reject]:
        yield Seed(url="http://a.example/")
        raise OursError

    monkeypatch.setitem(files._LINE_READERS, ".txt", broken)
    seed, reject = files.read(str(seeds))
    assert isinstance(seed, Seed)
    assert isinstance(reject, Reject)
    assert reject.why == "can't be read further: internal error: OursError"
    assert tracebacks(caplog) == 1


def test_a_pushed_text_is_a_reject(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(pushed, "_read_row", faulty(pushed._read_row))
    assert isinstance(pushed._row(b"http://a.example/", "it", 1), Reject)
    assert tracebacks(caplog) == 1


def test_a_document_is_a_reject(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(databases, "_plain", faulty(databases._plain))
    assert isinstance(databases.seed_of({"url": "http://a.example/"}, "it", 1), Reject)
    assert tracebacks(caplog) == 1


def request_of(spider: ResourceProxies) -> Request:
    begun = spider.begin(LINK, Applied())
    assert isinstance(begun, Request)
    return begun


def the_record(step: Any, caplog: pytest.LogCaptureFixture) -> None:
    """One Undetermined record that says whose fault it was, and the traceback in the log."""
    assert isinstance(step, Finished)
    record = step.record
    assert (record.link_id, record.category, record.reason) == (1, Category.UNDETERMINED, "protocol_error")
    assert record.error == "internal error: OursError"
    assert tracebacks(caplog) == 1


def test_the_first_step_of_a_check_is_a_record(
    at: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(resourceproxies, "begin", faulty(None))
    the_record(ResourceProxies(at).begin(LINK, Applied()), caplog)


@pytest.mark.parametrize("name", ["answered", "conclude"])
def test_a_step_of_a_check_is_a_record(
    name: str, at: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spider = ResourceProxies(at)
    request = request_of(spider)
    context_of(request).outcome = answer(200)
    works = getattr(resourceproxies, name)
    calls: list[int] = []
    # `conclude` fails once: what was judged could not be concluded, what is said of our own fault can
    monkeypatch.setattr(resourceproxies, name, faulty(works, lambda *given, **named: not calls and not calls.append(1)))
    (step,) = spider.answered(Response(request.url, request=request))
    the_record(step, caplog)


def test_a_step_after_a_failure_is_a_record(
    at: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spider = ResourceProxies(at)
    request = request_of(spider)
    context_of(request).outcome = answer(200)
    monkeypatch.setattr(resourceproxies, "answered", faulty(None))
    (step,) = spider.failed(SimpleNamespace(request=request))  # type: ignore[arg-type]
    the_record(step, caplog)


def test_a_bar_is_a_record(at: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    spider = ResourceProxies(at)
    request = request_of(spider)
    monkeypatch.setattr(resourceproxies, "denied", faulty(None))
    the_record(spider.deny(request, Denial(reason="robots_disallowed")), caplog)


def test_a_question_to_policy_or_robots_ends_the_check_only(
    at: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    request = request_to("http://a.example/", link=LINK)
    monkeypatch.setattr(robots_fetcher.RobotsFetcher, "check", faulty(None))
    judged = Scheduler(frontier_of(at), LocalOwnership())._judge(request, 0.0)
    assert isinstance(judged, Denial)
    assert judged.error == "internal error: OursError"
    assert tracebacks(caplog) == 1


@pytest.mark.parametrize("name", ["step", "read_robots"])
def test_what_waits_for_robots_txt_does_not_wait_for_ever(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Clock()
    office = Office(session(tmp_path, clock), clock)
    fetch = office.fetch()
    module = robots_fetcher if name == "step" else "linkcrawl.politeness.robots.cache"
    monkeypatch.setattr(f"{getattr(module, '__name__', module)}.{name}", faulty(None))
    office.answer(fetch, answer(200), "User-agent: *\nDisallow: /")
    ((authority, waiting),) = office.told
    assert len(waiting) == 1
    entry = office.session.robots.get(authority)
    assert entry is not None
    assert entry.in_force(clock()) is None
    assert tracebacks(caplog) == 1
    office.session.worker.close()


def test_taking_up_goes_on_after_a_fault(
    at: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    turns: list[int] = []
    frontier: Any = dict.fromkeys(("add", "refresh_backlog", "on_new_links", "on_taken_up", "harvests"))

    async def take() -> None:
        turns.append(1)
        if len(turns) == 1:
            raise OursError
        raise StoreLost("it ends here")

    with pytest.raises(StoreLost):
        asyncio.run(LiveIngest(at.seeds, steady=at.clock.steady, **frontier)._poll(0.01, take))
    assert len(turns) == 2
    assert tracebacks(caplog) == 1


def test_a_crawl_whose_seeds_can_not_be_taken_up_ends(
    at: Session, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(ResourceProxies, "_live_ingest", faulty(None))

    async def start() -> None:
        async for _ in ResourceProxies(at).start():
            pass

    with pytest.raises(CloseSpider) as ended:
        asyncio.run(start())
    assert ended.value.reason == "ingest_failed"
    assert tracebacks(caplog) == 1
