"""A continuous crawl that has nothing to do wakes about once a second, and looks at once when something stirs.

Time is the loop's own here: it leaps to the next timer whenever everything sleeps."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from attrs import evolve

from linkcrawl.clock import until_next
from linkcrawl.session import Arguments
from linkcrawl.stores.opening import open_store
from linkcrawl.stores.worker import StoreWorker
from tests.contract.making import entry
from tests.unit.cluster_kit import ALONE, Cluster, FakeCoordinator, opened
from tests.unit.frontier_kit import T0, Clock, frontier_of, session

A = "a.example"
#: Seconds that are looked at.
SPAN = 60.0


class LeapingSelector(selectors.DefaultSelector):
    """Instead of sleeping it moves its time. `wakes`: how often a process would have woken from sleep. While the
    store's thread is at work (`calls`), it waits for that instead."""

    def __init__(self) -> None:
        super().__init__()
        self.at, self.wakes = 0.0, 0
        self.calls: list[Future[Any]] = []

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout == 0:
            return super().select(0)
        self.calls = [call for call in self.calls if not call.done()]
        if self.calls:
            return super().select(30)
        self.wakes += 1
        ready = super().select(0)
        if not ready and timeout is not None:
            self.at += timeout
        return ready


class LeapingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.leaping = LeapingSelector()
        super().__init__(self.leaping)

    def time(self) -> float:
        return self.leaping.at


def in_leaping_loop(act: Callable[[LeapingSelector], Coroutine[Any, Any, None]]) -> None:
    loop, submit = LeapingLoop(), StoreWorker.submit

    def noted(self: StoreWorker, *work: Any, **named: Any) -> Future[Any]:
        loop.leaping.calls.append(call := submit(self, *work, **named))
        return call

    with patch.object(StoreWorker, "submit", noted), asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(asyncio.wait_for(act(loop.leaping), 300))


def moving_with(selector: LeapingSelector, clock: Clock) -> Any:
    """Have a crawl's clock go with the loop's, as long as a block lasts."""

    class Moving(type(clock)):  # type: ignore[misc]
        @property
        def at(self) -> float:
            return T0 + selector.at

        @at.setter
        def at(self, at: float) -> None:
            pass

    clock.__class__ = Moving
    return clock


def resting(folder: Path, act: Callable[[Cluster, LeapingSelector], Awaitable[None]], **redis: Any) -> None:
    """Run an act with a continuous worker whose loops run, and that has been idle for a while."""

    async def main(selector: LeapingSelector) -> None:
        cluster = await opened(folder, coordinator=FakeCoordinator(**redis))
        cluster.session.arguments = Arguments(continuous=True)
        moving_with(selector, cluster.clock)
        await cluster.worker.start()
        await asyncio.sleep(10)
        cluster.coordinator.log.clear()
        selector.wakes = 0
        try:
            await act(cluster, selector)
        finally:
            for loop in cluster.worker._loops:
                loop.cancel()
            cluster.session.worker.close()

    in_leaping_loop(main)


def test_an_idle_worker_wakes_about_once_a_second_and_asks_redis_less_often(tmp_path: Path) -> None:
    async def act(cluster: Cluster, selector: LeapingSelector) -> None:
        await asyncio.sleep(SPAN)
        assert SPAN / 5 <= len(cluster.coordinator.told("heartbeat")) <= SPAN / 3
        assert len(cluster.coordinator.log) <= SPAN
        assert selector.wakes <= SPAN

    resting(tmp_path, act)


def test_heartbeats_of_an_idle_worker_keep_a_short_lease(tmp_path: Path) -> None:
    async def act(cluster: Cluster, selector: LeapingSelector) -> None:
        cluster.session.config = evolve(cluster.session.config, lease=3.0)
        await asyncio.sleep(10)
        cluster.coordinator.log.clear()
        await asyncio.sleep(SPAN)
        assert len(cluster.coordinator.told("heartbeat")) >= SPAN / 1.2

    resting(tmp_path, act)


@pytest.mark.parametrize("why", ["others are at work", "policies differ", "a crawl that ends"])
def test_a_worker_is_not_idle_while(tmp_path: Path, why: str) -> None:
    async def act(cluster: Cluster, selector: LeapingSelector) -> None:
        if why == "a crawl that ends":
            cluster.session.arguments = Arguments()
        reply = evolve(ALONE, others=1, busy=int(why == "others are at work"), agreed=why != "policies differ")
        cluster.coordinator.reply = reply
        await asyncio.sleep(10)
        cluster.coordinator.log.clear()
        await asyncio.sleep(10)
        assert len(cluster.coordinator.told("heartbeat")) >= 18

    resting(tmp_path, act)


def test_links_that_are_due_are_taken_at_once_after_a_heartbeat(tmp_path: Path) -> None:
    async def act(cluster: Cluster, selector: LeapingSelector) -> None:
        cluster.frontier.keeper.looked_up.add(A)
        await asyncio.sleep(0.5)
        cluster.session.store.add([entry(1, host=A)])
        began = selector.at
        cluster.coordinator.log.clear()
        await cluster.frontier.feeder.refresh_now()
        while not cluster.coordinator.told("take"):  # noqa: ASYNC110  # the loops have no end to wait for
            await asyncio.sleep(0.01)
        assert selector.at - began < 0.5
        assert cluster.coordinator.log[0][0] == "heartbeat"
        assert cluster.coordinator.told("take") == [(A,)]

    resting(tmp_path, act)


def test_policies_that_change_are_told_to_the_others_at_once(tmp_path: Path) -> None:
    async def act(cluster: Cluster, selector: LeapingSelector) -> None:
        await asyncio.sleep(0.5)
        began = selector.at
        cluster.coordinator.log.clear()
        cluster.worker.regroup()
        while not cluster.coordinator.told("heartbeat"):  # noqa: ASYNC110  # the loops have no end to wait for
            await asyncio.sleep(0.01)
        assert selector.at - began < 0.1

    resting(tmp_path, act)


def test_maintenance_of_an_idle_crawl_visits_the_store_once_in_four_seconds(tmp_path: Path) -> None:
    visits = 0

    async def act(selector: LeapingSelector) -> None:
        nonlocal visits
        clock = Clock()
        at = session(tmp_path, moving_with(selector, clock))
        at.arguments = Arguments(continuous=True)
        frontier = frontier_of(at)
        await frontier.maintenance.start()
        await asyncio.sleep(10)
        visit = at.worker.call

        async def counted(*work: Any) -> Any:
            nonlocal visits
            visits += 1
            return await visit(*work)

        at.worker.call = counted  # type: ignore[method-assign]
        selector.wakes = 0
        await asyncio.sleep(SPAN)
        assert SPAN / 5 <= visits <= SPAN / 3.9
        assert selector.wakes <= SPAN
        with closing(open_store(f"sqlite:///{tmp_path}/links.db")) as of_another_process:
            of_another_process.add([entry(1, host=A)])
        began = selector.at
        while A not in frontier.queue.hosts:  # noqa: ASYNC110  # the loop has no end to wait for
            await asyncio.sleep(0.1)
        assert selector.at - began < 5
        frontier.maintenance.close()
        at.worker.close()

    in_leaping_loop(act)


def test_pauses_of_the_same_length_end_together() -> None:
    async def act(selector: LeapingSelector) -> None:
        ends = []
        for began in (1.0, 1.7, 3.5, 3.9, 4.0):
            selector.at = began
            ends.append(began + until_next(4.0))
        assert ends == pytest.approx([4, 4, 4, 8, 8])  # 3.9: a timer may ring a little early

    in_leaping_loop(act)
