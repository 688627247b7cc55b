"""The store's own thread: a store blocks and serves one thread at a time, a crawl's event loop must never block."""

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

    What a call raises (StoreLost, …) reaches whoever waits for it. An awaited call that is cancelled before its turn
    never runs; one that has begun ends, because half a transaction is none. `records` and `hosts` give iterators:
    the worker makes them, but whoever iterates does their reading, so keep those out of the event loop.
    """

    def __init__(self, store: Store):
        self._store = store
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")

    def submit(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Queue a call. Raises RuntimeError once the worker is closed."""
        return self._thread.submit(function, *args, **kwargs)

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Queue a call and wait for it without blocking the event loop."""
        return await asyncio.wrap_future(self.submit(function, *args, **kwargs))

    def close(self) -> None:
        """Let everything that was submitted end, close the store on its thread, and end the thread. Again: nothing."""
        try:
            closing = self.submit(self._store.close)
        except RuntimeError:  # closed before
            return
        self._thread.shutdown(wait=True)
        closing.result()
