"""Asking what the frontier lets go, and giving what came of it to the callbacks it is for.

Scrapy's engine would take each answer through its scraper: five tasks, six signals and a queue until the next step of a
check is known, more than everything else that a check costs. Here it is one task from the request to its record.
Downloader, downloader middlewares, download handlers and item pipelines are Scrapy's as ever; spider middlewares, of
which linkcrawl has none, don't see these requests.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from scrapy.http import Request
from twisted.python.failure import Failure

from linkcrawl.check.outcome import Failure as NetworkFailure
from linkcrawl.frontier.downloader import downloader_of
from linkcrawl.frontier.ports import anew
from linkcrawl.network.handler import RequestFailed

if TYPE_CHECKING:
    from scrapy.crawler import Crawler

logger = logging.getLogger(__name__)

#: Checks that may wait for the store; two of its transactions, at the rates that were measured.
MAX_UNSTORED = 1000


class Dispatcher:
    """Keeps the engine informed: it must not take a crawl for idle while something is under way, and waits at its end
    for what is in flight.

    `enqueue` takes the requests that callbacks give, and those that could not be sent for want of local resources;
    whatever else callbacks give goes to the item pipelines.
    """

    def __init__(self, crawler: Crawler, enqueue: Callable[[Request], Any]):
        self._crawler = crawler
        self._enqueue = enqueue
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_busy(self) -> bool:
        """Whether requests are in flight, or what came of them is not stored yet."""
        return bool(self._tasks)

    @property
    def is_full(self) -> bool:
        """Whether as many requests are in flight as may be (CONCURRENT_REQUESTS), or so many checks wait for the store
        to keep them that memory would grow with its slowness."""
        downloader = downloader_of(self._crawler)
        return downloader.needs_backout() or len(self._tasks) - len(downloader.active) >= MAX_UNSTORED

    def ask(self, request: Request) -> None:
        """Send a request whose gate has let it go. Its callback and errback are plain generators, or return None."""
        downloader_of(self._crawler).active.add(request)  # at once: is_full is asked before the task has begun
        self._begin(request, self._ask(request))

    def emit(self, item: Any) -> None:
        """Send an item that needed no request to the item pipelines."""
        self._begin(item, self._keep(item))

    def wake_engine(self) -> None:
        """Have the engine ask the scheduler again. It does so by itself once it is open, which comes after us."""
        is_open = self._slot is not None and self._crawler.engine.scraper.slot is not None
        if is_open and self._slot.closing is None:
            self._slot.nextcall.schedule()

    @property
    def _slot(self) -> Any:
        return self._crawler.engine._slot

    def _begin(self, held: Any, work: Coroutine[Any, Any, None]) -> None:
        """The engine holds what is under way, and waits for it when it closes: its scraper wouldn't wait for items."""
        self._slot.add_request(held)
        task = asyncio.get_running_loop().create_task(self._hold(held, work))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def _hold(self, held: Any, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception:
            logger.exception("No step follows from %s: its check is given up, its link stays due", held)
        finally:
            self._slot.remove_request(held)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.wake_engine()

    async def _ask(self, request: Request) -> None:
        for step in await self._steps(request) or ():
            self.wake_engine()  # the request's permit and its gate's next turn are free while the record is stored
            if isinstance(step, Request):
                self._enqueue(step)
            else:
                await self._keep(step)

    async def _keep(self, item: Any) -> None:
        await self._crawler.engine.scraper.start_itemproc_async(item, response=None)

    async def _steps(self, request: Request) -> Any:
        assert request.callback is not None
        assert request.errback is not None
        try:
            response = await downloader_of(self._crawler).send(request)
        except Exception as error:
            if isinstance(error, RequestFailed) and error.failure is NetworkFailure.LOCAL_SHORTAGE:
                return (anew(request),)
            failure = Failure()  # type: ignore[no-untyped-call]
            failure.request = request  # type: ignore[attr-defined]  # as Scrapy does
            return request.errback(failure)
        response.request = request
        return request.callback(response)
