"""Feeding the gates with due links: which hosts are hungry, and the store's answers brought to them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice

from linkcrawl.errors import StoreLost
from linkcrawl.frontier.due_queue import HOSTS_A_CALL, DueQueue, HostQueue
from linkcrawl.items import DueLink
from linkcrawl.session import Session
from linkcrawl.stores.retry import retry_while_store_lost


class Feeder:
    """Keeps a few links of every host ready. `deliver` takes links that have come in for a host."""

    def __init__(
        self,
        session: Session,
        queue: DueQueue,
        deliver: Callable[[HostQueue, list[DueLink]], None],
    ):
        self._session = session
        self._queue = queue
        self._deliver = deliver
        #: Whether a host is this crawl's to ask; workers of a cluster leave some to others.
        self.feeds: Callable[[str], bool] = lambda host: True
        #: Told when the store has not come back in LINKCRAWL_PATIENCE.
        self.give_up: Callable[[StoreLost], None] = lambda fault: None
        self._hungry: dict[str, HostQueue] = {}
        self._feeding: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._refresh_again = False
        #: Seconds that the last look took: looks cost the store more the more links there are.
        self.refresh_seconds = 0.0
        #: When the last look began.
        self.refreshed_at = float("-inf")
        #: Checks begun whose record is not stored yet.
        self.under_way = 0

    @property
    def is_busy(self) -> bool:
        """Whether links are on their way."""
        return self._feeding is not None or self._looking is not None

    @property
    def is_fetching(self) -> bool:
        """Whether links are on their way that a look has found."""
        return self._feeding is not None

    def wants_refill(self, queue: HostQueue) -> None:
        """A host has few links left: fetch more, soon."""
        if not queue.drained and self.feeds(queue.host):
            self._hungry[queue.host] = queue
            self.feed()

    def feed(self) -> None:
        """Fetch for the hungry hosts, unless that is under way."""
        if self._feeding is None and self._next():
            self._feeding = asyncio.get_running_loop().create_task(self._feed())

    def _next(self) -> list[HostQueue]:
        """Hungry hosts that may be fed. While more checks than memory is set aside for wait for their next hop, these
        are those that have few of them: all links of a resolver that lead to one slow host fill that memory, and the
        other hosts must not wait for them."""
        hungry: Iterable[HostQueue] = self._hungry.values()
        if self.under_way >= self._session.config.max_waiting:
            hungry = (queue for queue in hungry if queue.under_way < self._queue.share)
        return list(islice(hungry, HOSTS_A_CALL))

    def refresh_backlog(self) -> None:
        """New links may be due: look. A look under way may have missed them: then once more after it."""
        if self._looking is not None:
            self._refresh_again = True
        else:
            self._looking = asyncio.get_running_loop().create_task(self._refresh())

    @property
    def again_at(self) -> float:
        """When the first link that a rule has had passed over has its time."""
        return self._queue.again_at

    def reconsider(self) -> None:
        """Policies have changed: look at what was passed over, too."""
        self._queue.reconsider()
        self.refresh_backlog()

    async def refresh_now(self) -> None:
        """The first look, before anything is handed out."""
        began, steady = self._session.now(), self._session.clock.steady
        asked = steady()
        backlog = await retry_while_store_lost(self._session, self._queue.backlog, self._session.store)
        self.refresh_seconds, self.refreshed_at = steady() - asked, began
        for queue in self._queue.refresh(backlog, self._session.now()):
            self.wants_refill(queue)

    def clear(self) -> None:
        """Forget whatever is on its way; the next look begins anew."""
        self._hungry.clear()
        self.under_way = 0
        self.refreshed_at = float("-inf")

    def close(self) -> None:
        """Fetch nothing more."""
        for task in (self._feeding, self._looking):
            if task is not None:
                task.cancel()

    async def _refresh(self) -> None:
        try:
            self._refresh_again = True
            while self._refresh_again:
                self._refresh_again = False
                await self.refresh_now()
        except StoreLost as fault:
            self.give_up(fault)
        finally:
            self._looking = None
            self._session.wake_engine()

    async def _feed(self) -> None:
        session, store, queue = self._session, self._session.store, self._queue
        try:
            while not queue.spent and (hungry := self._next()):
                for each in hungry:
                    del self._hungry[each.host]
                epoch, readings = self._session.lease_epoch, {each.host: each.read_generation for each in hungry}
                for each, links, drained in await retry_while_store_lost(session, queue.fetch, store, hungry):
                    if epoch != self._session.lease_epoch:
                        break
                    if each.read_generation != readings[each.host]:  # given back meanwhile, to be read from the start
                        self.wants_refill(each)
                        continue
                    new = queue.take_in(each, links, drained)
                    if links and not new:  # all of them are out already: read on
                        self.wants_refill(each)
                    self._deliver(each, new)
                self._session.wake_engine()
        except StoreLost as fault:
            self.give_up(fault)
        finally:
            self._feeding = None
            self._session.wake_engine()
