"""Sends requests that the frontier lets go, and gives their outcomes to their callbacks.

Scrapy's engine would take each answer through its scraper: five tasks, six signals and a queue until the next step of a
check is known, more than everything else that a check costs. Here it is one task from the request to its record.
Downloader, downloader middlewares, download handlers and item pipelines are Scrapy's as ever; spider middlewares, of
which linkcrawl has none, don't see these requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from scrapy.http import Request
from twisted.python.failure import Failure

from linkcrawl.check.outcome import UNJUDGED
from linkcrawl.frontier.ports import Engine, anew, context_of
from linkcrawl.frontier.tasks import start_task
from linkcrawl.network.handler import NameMoved, RequestFailed

logger = logging.getLogger(__name__)

#: Checks that may wait for the store; two of its transactions, at the rates that were measured.
MAX_UNSTORED = 1000


class Dispatcher:
    """Runs a task for each request and each record. The engine is told of all of them: it must not take a crawl for
    idle while something is under way, and waits at its end for what is in flight.

    `enqueue` takes the requests that callbacks give, and those that could not be sent for a reason of ours; whatever
    else callbacks give goes to the item pipelines. `relocate` is told of a host whose name has moved, and where to,
    before the request that was to go there is enqueued once more. `ended` is called with every request that has ended,
    in whatever way, before its callback or errback.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        enqueue: Callable[[Request], Any],
        relocate: Callable[[str, tuple[str, ...]], None],
        ended: Callable[[Request], None],
    ):
        self._engine = engine
        self._enqueue = enqueue
        self._relocate = relocate
        self._ended = ended
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_busy(self) -> bool:
        """True while requests are in flight, or checks that ended are not stored yet."""
        return bool(self._tasks)

    @property
    def is_full(self) -> bool:
        """True while as many requests are in flight as may be (CONCURRENT_REQUESTS), or so many checks wait for the
        store that memory would grow with its slowness."""
        engine = self._engine
        return engine.is_at_limit or len(self._tasks) - engine.downloading >= MAX_UNSTORED

    def dispatch(self, request: Request) -> None:
        """Send a request whose gate has let it go. Its callback and errback are plain generators, or return None."""
        self._engine.occupy(request)  # at once: is_full is asked before the task has begun
        self._begin(request, self._run(request))

    def emit(self, item: Any) -> None:
        """Send an item that needed no request to the item pipelines."""
        self._begin(item, self._engine.process_item(item))

    def _begin(self, held: Any, work: Coroutine[Any, Any, None]) -> None:
        self._engine.hold(held)
        task = start_task("dispatch", self._hold(held, work))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def _hold(self, held: Any, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception:
            logger.exception("A fault of ours ended the check of %s: its link stays due", held)
        finally:
            self._engine.release(held)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._engine.wake()

    async def _run(self, request: Request) -> None:
        for step in await self._steps(request) or ():
            self._engine.wake()  # the request's permit and its gate's next turn are free while the record is stored
            if isinstance(step, Request):
                self._enqueue(step)
            else:
                await self._engine.process_item(step)

    async def _steps(self, request: Request) -> Any:
        assert request.callback is not None
        assert request.errback is not None
        try:
            try:
                response = await self._engine.send(request)
            finally:
                self._ended(request)
        except NameMoved as moved:
            self._relocate(context_of(request).target.host, moved.addresses)
            return (anew(request),)
        except Exception as error:
            if isinstance(error, RequestFailed) and error.failure in UNJUDGED:
                return (anew(request),)
            failure = Failure()  # type: ignore[no-untyped-call]
            failure.request = request  # type: ignore[attr-defined]  # as Scrapy does
            return request.errback(failure)
        response.request = request
        return request.callback(response)
