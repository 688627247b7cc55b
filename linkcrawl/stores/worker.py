"""A thread for the store: a store blocks and serves one thread at a time, and a crawl's event loop must never block."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from linkcrawl.stores.contract import Store

P = ParamSpec("P")
T = TypeVar("T")


class StoreWorker:
    """Runs calls of one store on one dedicated thread, in the order in which they were submitted.

    An exception of a call (StoreLost, …) reaches whoever waits for it. An awaited call that is cancelled before its
    turn never runs; one that has begun runs to its end. `records` and `hosts` return iterators that read in the thread
    that iterates, so never iterate in the event loop.
    """

    def __init__(self, store: Store):
        self._store = store
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")

    def submit(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Queue a call. Raises RuntimeError once the worker is closed."""
        return self._thread.submit(function, *args, **kwargs)

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Queue a call and wait for its result without blocking the event loop."""
        return await asyncio.wrap_future(self.submit(function, *args, **kwargs))

    def close(self) -> None:
        """Run what was submitted to its end, close the store on its thread, and end the thread. Idempotent."""
        try:
            closing = self.submit(self._store.close)
        except RuntimeError:  # closed before
            return
        self._thread.shutdown(wait=True)
        closing.result()
