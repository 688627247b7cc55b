"""A request that this machine could not send goes back to its gate: no callback hears of it, no pace learns of it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.http import Request

from linkcrawl.check.outcome import Failure
from linkcrawl.frontier import downloader
from linkcrawl.frontier.dispatcher import Dispatcher
from linkcrawl.frontier.downloader import ConcurrencyLimit, Downloader
from linkcrawl.frontier.ports import context_of
from linkcrawl.network.handler import RequestFailed
from tests.unit.frontier_kit import FakeEngine, request_to


@pytest.mark.parametrize(
    ("failure", "heard", "enqueued"),
    [(Failure.LOCAL_SHORTAGE, 0, 1), (Failure.WITHHELD, 0, 1), (Failure.UNREACHABLE, 1, 0)],
)
def test_what_could_not_be_sent_is_sent_later(failure: Failure, heard: int, enqueued: int) -> None:
    engine = FakeEngine(replies={"http://a.example/": RequestFailed(failure, "so it is", None)})
    again: list[Request] = []
    ended: list[Request] = []
    told: list[str] = []
    request = request_to("http://a.example/", starts_limits=True)
    request = request.replace(callback=lambda _: told.append("answer"), errback=lambda _: told.append("failure"))

    async def run() -> None:
        asked = Dispatcher(engine, enqueue=again.append, relocate=lambda *_: None, ended=ended.append)
        asked.dispatch(request)
        await asyncio.gather(*asked._tasks)

    asyncio.run(run())
    assert ended == [request]
    assert len(told) == heard
    assert len(again) == enqueued
    for same in again:
        assert same is not request
        assert (same.url, same.callback, context_of(same).starts_limits) == (request.url, request.callback, True)
        assert context_of(same).outcome is None


def test_fewer_are_in_flight_while_this_machine_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr(downloader.time, "monotonic", lambda: now[0])
    made = Downloader.__new__(Downloader)
    made.active = {request_to(f"http://h{number}.example/") for number in range(16)}
    made.total_concurrency, made._limit, made._warned_at = 64, ConcurrencyLimit(64, 64), float("-inf")
    failing = [True]

    async def download(_: Any, request: Request) -> str:
        if failing[0]:
            raise RequestFailed(Failure.LOCAL_SHORTAGE, "Too many open files", None)
        return "answer"

    made.middleware = SimpleNamespace(download_async=download)
    made.handlers = SimpleNamespace(download_request_async=None)
    with pytest.raises(RequestFailed):
        asyncio.run(made.send(next(iter(made.active))))
    assert made.total_concurrency == 14
    assert made.needs_backout()
    failing[0] = False
    for _ in range(40):
        now[0] += downloader.RECOVER
        asyncio.run(made.send(request_to("http://a.example/")))
    assert made.total_concurrency == 64
