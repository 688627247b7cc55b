"""The dispatcher: a task for each request, from its gate to its record; the engine knows of all that is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from attrs import define, field
from scrapy.http import Request, Response

from linkcrawl import urls
from linkcrawl.check.outcome import Failure
from linkcrawl.frontier import dispatcher
from linkcrawl.frontier.dispatcher import Dispatcher
from linkcrawl.frontier.ports import context_of
from linkcrawl.network.handler import NameMoved
from tests.unit.frontier_kit import FakeEngine, request_to, silence

URL = "http://a.example/"


@define
class Post:
    """A dispatcher, and what comes of what it sends. `log`: the order of events."""

    engine: FakeEngine = field(factory=FakeEngine)
    steps: list[Any] = field(factory=list)
    fault: Exception | None = None
    log: list[str] = field(factory=list)
    enqueued: list[Request] = field(factory=list)
    dispatcher: Dispatcher = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.dispatcher = Dispatcher(
            self.engine,
            enqueue=self.enqueued.append,
            relocate=lambda host, addresses: self.log.append(f"{host} moved to {addresses}"),
            ended=lambda request: self.log.append("ended"),
        )

    def answered(self, response: Response) -> Iterator[Any]:
        assert response.request is not None
        self.log.append("answered")
        if self.fault is not None:
            raise self.fault
        yield from self.steps

    def failed(self, failure: Any) -> Iterator[Any]:
        self.log.append(f"failed {failure.request.url}")
        yield from self.steps

    def send(self) -> None:
        async def run() -> None:
            self.dispatcher.dispatch(request_to(URL).replace(callback=self.answered, errback=self.failed))
            assert self.dispatcher.is_busy
            assert self.engine.downloading == 1, "it counts at once"
            await asyncio.wait_for(self.engine.idle(), 120)
            await asyncio.sleep(0)

        asyncio.run(run())


def test_the_gate_is_freed_before_the_answer_is_read() -> None:
    post = Post()
    post.send()
    assert post.log == ["ended", "answered"]
    assert (post.engine.held, post.dispatcher.is_busy) == ([], False)


def test_a_failure_goes_to_the_errback_with_its_request() -> None:
    post = Post(FakeEngine(replies={URL: silence(Failure.RESET)}))
    post.send()
    assert post.log == ["ended", f"failed {URL}"]


def test_hops_go_back_to_the_frontier_and_all_else_to_the_pipelines() -> None:
    hop = request_to("http://b.example/")
    post = Post(steps=[hop, {"note": 1}])
    post.send()
    assert (post.enqueued, post.engine.items) == ([hop], [{"note": 1}])
    assert post.engine.woken >= 3  # before each step, and at the end


def test_a_callback_that_raises_costs_its_check_only(caplog: pytest.LogCaptureFixture) -> None:
    post = Post(fault=ValueError("ours"))
    post.send()
    assert (post.log, post.engine.held, post.dispatcher.is_busy) == (["ended", "answered"], [], False)
    assert "its link stays due" in caplog.text


def test_an_item_without_a_request_goes_to_the_pipelines_and_is_waited_for() -> None:
    post = Post()

    async def run() -> None:
        post.dispatcher.emit({"note": 1})
        assert post.engine.held == [{"note": 1}]
        await post.engine.idle()

    asyncio.run(run())
    assert post.engine.items == [{"note": 1}]


def test_it_is_full_at_the_limit_of_requests_and_of_checks_that_wait_for_the_store(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    post = Post()
    assert not post.dispatcher.is_full
    post.engine.is_at_limit = True
    assert post.dispatcher.is_full
    post.engine.is_at_limit = False
    monkeypatch.setattr(dispatcher, "MAX_UNSTORED", 2)

    async def run() -> None:
        for number in range(2):
            assert not post.dispatcher.is_full
            post.dispatcher.emit(number)
        assert post.dispatcher.is_full
        post.engine.in_flight.add(request_to(URL))  # one of them is a request in flight
        assert not post.dispatcher.is_full
        await post.engine.idle()

    asyncio.run(run())


def test_a_name_that_has_moved_is_told_and_its_request_waits_at_its_new_gate() -> None:
    post = Post(FakeEngine(replies={URL: NameMoved("a.example", ("192.0.2.7",))}))
    post.send()
    host = urls.read(URL).host  # type: ignore[union-attr]
    assert post.log == ["ended", f"{host} moved to ('192.0.2.7',)"]
    (again,) = post.enqueued
    assert (again.url, context_of(again).gate) == (URL, "")
