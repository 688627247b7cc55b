"""Scrapy's scheduler interface over the workbench: hands out only what may go now.

The way of a request: due links come from the local queue, hops from the spider, robots.txt from the robots desk; each
waits in its gate; `next_request` takes the one whose gate is open, asks the robots desk, and hands it to the engine.
`ended` (called by the outermost middleware, whatever happened) opens the gate again after its delay.

This is the only file that touches the engine's private next-call: without it a gate would wait for the engine's
heartbeat of five seconds.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from scrapy.core.scheduler import BaseScheduler
from scrapy.http import Request
from scrapy.utils.defer import deferred_from_coro

from linkcrawl import urls
from linkcrawl.check.procedure import Bar
from linkcrawl.frontier.desk import RobotsDesk
from linkcrawl.frontier.gates import Gatekeeper
from linkcrawl.frontier.local import HOSTS_A_CALL, HostQueue, LocalQueue
from linkcrawl.frontier.workbench import Gate, Lane, Workbench
from linkcrawl.items import DueLink, Finished
from linkcrawl.politeness.robots_cache import Entry
from linkcrawl.session import Session, session_of

if TYPE_CHECKING:
    from typing import Self

    from scrapy.crawler import Crawler
    from scrapy.spiders import Spider
    from twisted.internet.defer import Deferred

    from linkcrawl.spiders.resourceproxies import ResourceProxies

logger = logging.getLogger(__name__)

Task = DueLink | Request

#: Records without a request (refused by robots.txt or by their URL) that are made before the loop gets its turn.
BURST = 100
#: Seconds between two times that host memory is stored.
REMEMBER = 5.0


class Scheduler(BaseScheduler):
    """The frontier of one crawl, as Scrapy's engine sees it."""

    def __init__(self, crawler: Crawler):
        self._crawler = crawler
        self._session: Session = session_of(crawler)
        self.bench: Workbench[Task] = Workbench()
        self.queue = LocalQueue(self._session.narrow(), self._session.due_before, self._session.arguments.limit)
        self.gatekeeper = Gatekeeper(self._session)
        self.desk = RobotsDesk(self._session, self.enqueue_request, self._robots_decided)
        config = self._session.config
        # Said with every request, robots.txt and all (RFC 9110, 10.1.2 and 10.1.5); servers choose what to send.
        self._identity = {"User-Agent": config.user_agent, "From": config.sender, "Accept": "*/*"}
        self._flying: dict[Request, Gate[Task]] = {}
        self._hungry: dict[str, HostQueue] = {}
        self._under_way = 0  # checks begun whose record is not stored yet
        self._feeding: asyncio.Task[None] | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._look_again = False
        self._remembering: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._emitted: set[asyncio.Task[None]] = set()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    @property
    def _spider(self) -> ResourceProxies:
        return self._crawler.spider  # type: ignore[return-value]

    # Scrapy's interface.

    def open(self, spider: Spider) -> Deferred[None]:
        return deferred_from_coro(self._open())

    async def _open(self) -> None:
        await self._refresh()
        self._remembering = asyncio.create_task(self._remember_now_and_then())

    def close(self, reason: str) -> Deferred[None]:
        return deferred_from_coro(self._close())

    def has_pending_requests(self) -> bool:
        """Whether waiting makes sense: something is being fetched, or may go within the crawl's patience."""
        if self._session.arguments.continuous or self._feeding or self._refreshing or self._emitted:
            return True
        wake = self.bench.next_wake()
        return wake is not None and wake <= self._session.now() + self._session.config.patience

    def enqueue_request(self, request: Request) -> bool:
        """Every hop, and any other request of the spider, waits for the host that it goes to."""
        if "host" not in request.meta:
            target = urls.read(request.url)
            if isinstance(target, urls.Refused):
                return False
            request.meta["host"], request.meta["authority"] = target.host, target.authority
        self.bench.offer(self._gate(request.meta["host"]), request, lane=Lane.HOP)
        return True

    def next_request(self) -> Request | None:
        now = self._session.now()
        for _ in range(BURST):
            taken = self.bench.take(now)
            if taken is None:
                self._arm(now)
                return None
            gate, task = taken
            self._note_taken(gate, task)
            request = self._prepare(task, now)
            if request is not None:
                self._flying[request] = gate
                request.meta.update(download_slot=gate.name, gate_delay=gate.delay, cleared=True)
                request.headers.update(self._identity)
                return request
            self.bench.release(gate, gate.wake)
        asyncio.get_running_loop().call_soon(self._nudge)
        return None

    # What others of the project call.

    @property
    def in_flight(self) -> int:
        """Requests handed out that have not ended."""
        return len(self._flying)

    def ended(self, request: Request) -> None:
        """The request has ended, in whatever way; its gate opens after its delay. Called twice, it does nothing."""
        gate = self._flying.pop(request, None)
        if gate is None:
            return
        outcome = request.meta.get("outcome")
        wake = gate.wake
        if outcome is not None:
            wake = self.gatekeeper.ended(gate, request.meta["host"], outcome)
        self.bench.release(gate, wake)

    def forget(self, link_id: int | str) -> None:
        """The link's record is stored, or it won't be in this crawl."""
        self.queue.forget(link_id)
        self._under_way -= 1
        if self._hungry:
            self._feed_soon()

    def refresh_soon(self) -> None:
        """New links may be due: look. A look under way may have missed them: then look again after it."""
        self._look_again = self._refreshing is not None
        if self._refreshing is None:
            self._refreshing = asyncio.create_task(self._refresh())
            self._refreshing.add_done_callback(self._refreshed)

    # Inside.

    def _gate(self, host: str) -> Gate[Task]:
        name = self.gatekeeper.name(host)
        known = self.bench.gates.get(name)
        if known is not None:
            return known
        gate = self.bench.gate(name)
        self.gatekeeper.open(gate, host)
        return gate

    def _note_taken(self, gate: Gate[Task], task: Task) -> None:
        if isinstance(task, DueLink):
            queue = self.queue.hosts[task.host]
            gate.backlog = queue.due
            if not queue.drained and len(gate.lanes[Lane.LINK]) <= self.queue.share // 2:
                self._feed(queue)

    def _prepare(self, task: Task, now: float) -> Request | None:
        """The request to send for a task; None where it has become a record, or waits for robots.txt."""
        if isinstance(task, DueLink):
            self._under_way += 1
            begun = self._spider.begin(task)
            if isinstance(begun, Finished):
                self._emit(begun)
                return None
            request = begun
        else:
            request = task
        if self.desk.is_robots(request):
            return request
        answer = self.desk.ask(request, now)
        if isinstance(answer, Bar):
            self._emit(self._spider.bar(request, answer))
            return None
        return answer

    def _emit(self, finished: Finished) -> None:
        """A record that needed no request goes to the pipelines by itself."""
        scraper = self._crawler.engine.scraper
        task = asyncio.get_running_loop().create_task(scraper.start_itemproc_async(finished, response=None))
        self._emitted.add(task)
        task.add_done_callback(self._emitted.discard)

    def _robots_decided(self, authority: str, entry: Entry, waiting: list[Request]) -> None:
        """robots.txt of an authority is known: what waited for it has its turn again."""
        for request in reversed(waiting):
            self.bench.offer(self._gate(request.meta["host"]), request, lane=Lane.HOP, first=True)

    # Feeding gates with due links.

    def _feed(self, queue: HostQueue) -> None:
        self._hungry[queue.host] = queue
        self._feed_soon()

    def _feed_soon(self) -> None:
        """Fetch links for the hungry hosts, unless that is under way, or more checks than memory is set aside for
        wait for their next hop: then their hosts are what the crawl waits for, and more links would not help."""
        if self._feeding is None and self._under_way < self._session.config.max_waiting:
            self._feeding = asyncio.create_task(self._feed_hungry())
            self._feeding.add_done_callback(self._fed)

    def _fed(self, task: asyncio.Task[None]) -> None:
        self._feeding = None
        self._nudge()

    async def _feed_hungry(self) -> None:
        worker, store = self._session.worker, self._session.store
        while self._hungry and not self.queue.spent:
            hungry = list(self._hungry.values())[:HOSTS_A_CALL]
            for queue in hungry:
                del self._hungry[queue.host]
            for queue, links, drained in await worker.call(self.queue.fetch, store, hungry):
                gate = self._gate(queue.host)
                for link in self.queue.take_in(queue, links, drained):
                    self.bench.offer(gate, link)
                gate.backlog = queue.due
            self._nudge()

    async def _refresh(self) -> None:
        backlog = await self._session.worker.call(self.queue.backlog, self._session.store)
        for queue in self.queue.refresh(backlog):
            self._feed(queue)

    def _refreshed(self, task: asyncio.Task[None]) -> None:
        self._refreshing = None
        if self._look_again and not task.cancelled():
            self.refresh_soon()
        self._nudge()

    # The engine's next call.

    def _arm(self, now: float) -> None:
        """Have the engine ask again when the next gate opens."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        wake = self.bench.next_wake()
        if wake is not None:
            self._timer = asyncio.get_running_loop().call_later(max(0.0, wake - now), self._nudge)

    def _nudge(self) -> None:
        slot = self._crawler.engine._slot
        if slot is not None and slot.closing is None:
            slot.nextcall.schedule()

    # Memory of hosts.

    async def _remember_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(REMEMBER)
            await self._remember()

    async def _remember(self) -> None:
        changed = self._session.hosts.take_changed()
        if changed:
            await self._session.worker.call(self._session.store.remember, changed)

    async def _close(self) -> None:
        """Everything that waits is dropped here and stays due in the store."""
        if self._timer is not None:
            self._timer.cancel()
        for task in (self._feeding, self._refreshing, self._remembering):
            if task is not None:
                task.cancel()
        await self._remember()
        await self._session.worker.call(self._session.store.mark_clean)
        await asyncio.to_thread(self._session.worker.close)
