"""The store's own thread: one at a time, in order, faults handed on, an orderly end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest

from linkcrawl.errors import StoreLost
from linkcrawl.stores.contract import Store
from linkcrawl.stores.worker import StoreWorker
from tests.contract.making import entry


def test_all_calls_run_on_one_thread_that_is_not_the_callers(store: Store) -> None:
    worker = StoreWorker(store)

    async def crawl() -> set[int]:
        return {await worker.call(threading.get_ident) for _ in range(20)}

    idents = asyncio.run(crawl())
    worker.close()
    assert len(idents) == 1
    assert threading.get_ident() not in idents


def test_calls_run_in_the_order_in_which_they_came(store: Store) -> None:
    worker = StoreWorker(store)
    ran: list[int] = []

    async def crawl() -> None:
        await asyncio.gather(*(worker.call(ran.append, n) for n in range(200)))

    asyncio.run(crawl())
    worker.close()
    assert ran == list(range(200))


def test_the_event_loop_runs_on_while_the_store_works(store: Store) -> None:
    worker = StoreWorker(store)
    free = threading.Event()

    async def crawl() -> bool:
        waiting = asyncio.ensure_future(worker.call(free.wait, 30))
        await asyncio.sleep(0)
        free.set()  # only a loop that isn't blocked comes here
        return await waiting

    assert asyncio.run(crawl())
    worker.close()


def test_faults_reach_who_waits_and_the_worker_goes_on(store: Store) -> None:
    worker = StoreWorker(store)

    def lose() -> None:
        raise StoreLost("disk full")

    async def crawl() -> int:
        with pytest.raises(StoreLost, match="disk full"):
            await worker.call(lose)
        return (await worker.call(store.add, [entry(1)])).new

    assert asyncio.run(crawl()) == 1
    worker.close()


def test_a_call_cancelled_before_its_turn_never_runs(store: Store) -> None:
    worker = StoreWorker(store)
    free, ran = threading.Event(), []

    async def crawl() -> None:
        first = asyncio.ensure_future(worker.call(free.wait, 30))
        second = asyncio.ensure_future(worker.call(ran.append, 1))
        await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)
        free.set()
        await first

    asyncio.run(crawl())
    worker.close()
    assert ran == []


def test_closing_waits_for_what_was_submitted_and_closes_the_store(url: str, opened: Callable[[str], Store]) -> None:
    store = opened(url)
    store.claim()
    worker = StoreWorker(store)
    results = [worker.submit(store.add, [entry(n)]) for n in range(50)]
    worker.close()
    worker.close()
    assert sum(result.result(timeout=0).new for result in results) == 50
    with pytest.raises(RuntimeError):
        worker.submit(store.collections)
    opened(url).claim()  # the claim was let go
