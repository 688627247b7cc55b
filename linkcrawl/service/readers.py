"""Threads that read the store: each has an own store opened, so that a long answer holds up no other."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from linkcrawl.errors import StoreError
from linkcrawl.service.problems import Problem
from linkcrawl.stores.contract import Store
from linkcrawl.stores.opening import open_existing

T = TypeVar("T")

#: Calls that may wait for a thread; more are refused at once, for their answers would come too late anyway.
MOST_WAITING = 200
#: Seconds that a call may take, with its wait for a thread.
PATIENCE = 60.0


class StoreReaders:
    """Runs calls that read a store on a bounded number of threads. A thread whose store is lost opens it again at its
    next call, so the service comes back by itself. Calls are made in the event loop."""

    def __init__(self, url: str, threads: int):
        self._url = url
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="reader")
        self._mine = threading.local()
        self._opened: set[Store] = set()
        self._lock = threading.Lock()  # guards `_opened`
        self._waiting = 0

    async def call(self, work: Callable[[Store], T], seconds: float = PATIENCE) -> T:
        """The result of `work` on a thread's store. Raises StoreError where the store can't be read now, and Problem
        where too many calls wait or this one takes too long."""
        if self._waiting >= MOST_WAITING:
            raise Problem(503, "too many requests at once; again in some seconds would work", {"Retry-After": "5"})
        self._waiting += 1
        try:
            future = self._pool.submit(self._run, work)
            return await asyncio.wait_for(asyncio.wrap_future(future), seconds)
        except TimeoutError:
            raise Problem(503, "the store answers too slowly; later would work", {"Retry-After": "30"}) from None
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Drop the calls that wait, let those that run end, and close the stores."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        for store in self._opened:
            with suppress(StoreError):
                store.close()
        self._opened.clear()

    def _run(self, work: Callable[[Store], T]) -> T:
        store: Store | None = getattr(self._mine, "store", None)
        if store is None:
            store = self._mine.store = open_existing(self._url)
            with self._lock:
                self._opened.add(store)
        try:
            return work(store)
        except StoreError:
            self._mine.store = None
            with self._lock:
                self._opened.discard(store)
            with suppress(StoreError):
                store.close()
            raise
