"""What Scrapy is given as a Deferred, and what it does with ours: under its own reactor."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing as closed
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pytest_twisted import ensureDeferred
from scrapy.crawler import Crawler
from scrapy.exceptions import IgnoreRequest
from scrapy.http import Request, Response
from scrapy.settings import Settings
from scrapy.spiders import Spider
from scrapy.utils.defer import deferred_from_coro
from twisted.internet.defer import Deferred

from linkcrawl import settings as ours
from linkcrawl.frontier.downloader import Downloader, request_ended
from linkcrawl.frontier.ports import LocalOwnership, context_of
from linkcrawl.frontier.scheduler import Scheduler
from linkcrawl.session import Session
from linkcrawl.stores.opening import open_store
from tests.contract.making import entry
from tests.unit.frontier_kit import Clock, FakeEngine, frontier_of, read_robots_of, request_to, session

HOST = "a.example"


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Session]:
    made = session(tmp_path, Clock())
    yield made
    made.worker.close()


class Handlers:
    """Download handlers that answer, or raise, what they are told to."""

    def __init__(self, result: Response | Exception):
        self.result = result

    async def download_request_async(self, request: Request) -> Response:
        await asyncio.sleep(0)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


def downloader(at: Session, result: Response | Exception) -> tuple[Downloader, list[Request]]:
    """A crawl's downloader with its real middlewares; the requests whose end it tells of."""
    settings = Settings()
    settings.setmodule(ours, priority="project")
    crawler = Crawler(Spider, settings)
    crawler._apply_settings()
    crawler.spider = SimpleNamespace(session=at)  # type: ignore[assignment]
    made, ended = Downloader(crawler), []
    made.handlers = Handlers(result)  # type: ignore[assignment]

    def on_ended(request: Request) -> None:
        ended.append(request)

    crawler.signals.connect(on_ended, signal=request_ended, weak=False)
    return made, ended


def cleared() -> Request:
    """As the scheduler hands it out."""
    request = request_to(f"http://{HOST}/page")
    context_of(request).cleared = True
    return request


@ensureDeferred
async def test_another_components_request_goes_scrapys_way_and_its_end_is_told(at: Session) -> None:
    made, ended = downloader(at, Response(f"http://{HOST}/page", status=404))
    request = cleared()
    fetching = made.fetch(request)
    assert isinstance(fetching, Deferred)
    assert request in made.active
    response: Any = await fetching
    assert (response.status, ended, made.active) == (404, [request], set())


@ensureDeferred
async def test_its_end_is_told_however_it_ends(at: Session) -> None:
    made, ended = downloader(at, OSError("reset"))
    request = cleared()
    with pytest.raises(OSError, match="reset"):
        await made.fetch(request)
    assert ended == [request]


@ensureDeferred
async def test_what_has_passed_no_gate_is_dropped(at: Session) -> None:
    made, ended = downloader(at, Response(f"http://{HOST}/page"))
    request = Request(f"http://{HOST}/page")
    with pytest.raises(IgnoreRequest, match="has passed no gate"):
        await made.fetch(request)
    assert ended == [request]


@ensureDeferred
async def test_a_forbidden_request_is_dropped_and_its_context_says_why(at: Session) -> None:
    read_robots_of(at, HOST, "User-agent: *\nDisallow: /", at.now())
    made, ended = downloader(at, Response(f"http://{HOST}/page"))
    request = request_to(f"http://{HOST}/page")
    with pytest.raises(IgnoreRequest, match=r"Forbidden by robots\.txt"):
        await made.fetch(request)
    denial = context_of(request).denial
    assert denial is not None
    assert (denial.reason, ended) == ("robots_disallowed", [request])


@ensureDeferred
async def test_a_scheduler_opens_and_closes_as_scrapys_engine_has_it(tmp_path: Path) -> None:
    """From the store's due links to a request; the link stays due, for its record is never stored."""
    at, engine = session(tmp_path, Clock()), FakeEngine()
    at.store.add([entry(1, HOST)])
    frontier = frontier_of(at, engine=engine)
    frontier.keeper.looked_up.add(HOST)
    scheduler = Scheduler(frontier, LocalOwnership())
    opening = scheduler.open(SimpleNamespace())  # type: ignore[arg-type]
    assert isinstance(opening, Deferred)
    await opening
    assert scheduler.has_pending_requests()
    while not engine.sent:
        assert scheduler.next_request() is None
        await deferred_from_coro(asyncio.sleep(0))
    await deferred_from_coro(engine.idle())
    assert [request.url for request in engine.sent] == [f"https://{HOST}/robots.txt"]
    closing = scheduler.close("shutdown")
    assert isinstance(closing, Deferred)
    await closing
    with closed(open_store(f"sqlite:///{tmp_path}/links.db")) as store:
        assert store.was_clean()
        assert [host.due for host in store.backlog(at.now())] == [1]
