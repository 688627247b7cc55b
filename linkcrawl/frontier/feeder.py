"""Fetches due links from the store for hosts that have few left, and brings them to their gates."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice

from linkcrawl.errors import StoreLost
from linkcrawl.frontier.due_queue import HOSTS_A_CALL, DueQueue, HostQueue
from linkcrawl.frontier.ports import Engine, Ownership
from linkcrawl.frontier.tasks import INTERNAL_ERROR, start_task
from linkcrawl.items import DueLink
from linkcrawl.session import Session
from linkcrawl.stores.retry import retry_while_store_lost


class Feeder:
    """Keeps a few links of every host ready. `deliver` takes links that have come in. `give_up` is called when the
    store has not come back in LINKCRAWL_PATIENCE."""

    def __init__(
        self,
        session: Session,
        *,
        queue: DueQueue,
        ownership: Ownership,
        engine: Engine,
        deliver: Callable[[list[DueLink]], None],
        give_up: Callable[[StoreLost], None],
    ):
        self._session = session
        self._queue = queue
        self._ownership = ownership
        self._engine = engine
        self._deliver = deliver
        self._give_up = give_up
        self._low: dict[str, HostQueue] = {}
        self._feeding: asyncio.Task[None] | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._refresh_again = False
        self._under_way = 0
        #: Seconds that reading the backlog took the last time: it costs the store more the more links there are.
        self.refresh_seconds = 0.0
        #: When the backlog was read the last time (Unix seconds, of the reading's begin).
        self.refreshed_at = float("-inf")

    @property
    def under_way(self) -> int:
        """Checks begun whose record is not stored yet."""
        return self._under_way

    def check_began(self) -> None:
        """A check has begun here, or was transferred to this worker."""
        self._under_way += 1

    def check_ended(self) -> None:
        """A check has its record, goes on at another worker, or is given up."""
        self._under_way -= 1

    @property
    def is_busy(self) -> bool:
        """True while links, or the backlog, are on their way from the store."""
        return self._feeding is not None or self._refreshing is not None

    @property
    def is_fetching(self) -> bool:
        """True while links that the backlog has shown are on their way."""
        return self._feeding is not None

    def wants_refill(self, queue: HostQueue) -> None:
        """A host has few links left: fetch more soon."""
        if not queue.drained and self._ownership.feeds_host(queue.host):
            self._low[queue.host] = queue
            self.feed()

    def feed(self) -> None:
        """Fetch links for hosts that have few left, unless a fetch is under way."""
        if self._feeding is None and self._next():
            self._feeding = start_task("fetching links", self._feed(), on_fault=self._end)

    def _next(self) -> list[HostQueue]:
        """Hosts to fetch links for. While more checks wait for their next hop than memory is set aside for, only hosts
        with few of these checks: all links of a resolver that lead to one slow host fill that memory, and the other
        hosts must not wait for them."""
        hosts: Iterable[HostQueue] = self._low.values()
        if self._under_way >= self._session.config.max_waiting:
            hosts = (queue for queue in hosts if queue.under_way < self._queue.share)
        return list(islice(hosts, HOSTS_A_CALL))

    def refresh_backlog(self) -> None:
        """New links may be due: read the backlog; again after a reading that is under way, which may have missed them.
        While the seeds of this crawl are being taken up, its links are left alone: they may change by them."""
        if self._session.takes_up_seeds:
            return
        if self._refreshing is not None:
            self._refresh_again = True
        else:
            self._refreshing = start_task("reading the backlog", self._refresh(), on_fault=self._end)

    @property
    def again_at(self) -> float:
        """When the first deferred link has its time (Unix seconds)."""
        return self._queue.again_at

    def reconsider(self) -> None:
        """Policies have changed: read the backlog, and take deferred links with it."""
        self._queue.reconsider()
        self.refresh_backlog()

    async def refresh_now(self) -> None:
        """Read the backlog now. Raises StoreLost."""
        began, steady = self._session.now(), self._session.clock.steady
        asked = steady()
        backlog = await retry_while_store_lost(self._session, self._queue.backlog, self._session.store)
        self.refresh_seconds, self.refreshed_at = steady() - asked, began
        grown = self._queue.refresh(backlog, self._session.now())
        for queue in grown:
            self.wants_refill(queue)
        if grown:
            self._ownership.links_are_due()

    def clear(self) -> None:
        """Forget everything; the next reading of the backlog begins anew."""
        self._low.clear()
        self._under_way = 0
        self.refreshed_at = float("-inf")

    def close(self) -> None:
        """Fetch nothing more."""
        for task in (self._feeding, self._refreshing):
            if task is not None:
                task.cancel()

    def _end(self) -> None:
        """Links may have been missed: a crawl that went on would end as if all were checked."""
        self._engine.close(INTERNAL_ERROR)

    async def _refresh(self) -> None:
        try:
            self._refresh_again = True
            while self._refresh_again:
                self._refresh_again = False
                await self.refresh_now()
        except StoreLost as fault:
            self._give_up(fault)
        finally:
            self._refreshing = None
            self._engine.wake()

    async def _feed(self) -> None:
        session, store, queue = self._session, self._session.store, self._queue
        try:
            while not queue.spent and (hosts := self._next()):
                for each in hosts:
                    del self._low[each.host]
                epoch, readings = self._session.lease_epoch, {each.host: each.read_generation for each in hosts}
                for each, links, drained in await retry_while_store_lost(session, queue.fetch, store, hosts):
                    if epoch != self._session.lease_epoch:
                        break
                    if each.read_generation != readings[each.host]:  # given back meanwhile, to be read from the start
                        self.wants_refill(each)
                        continue
                    new = queue.take_in(each, links, drained)
                    if links and not new:  # all of them are out already: read on
                        self.wants_refill(each)
                    self._deliver(new)
                self._engine.wake()
        except StoreLost as fault:
            self._give_up(fault)
        finally:
            self._feeding = None
            self._engine.wake()
