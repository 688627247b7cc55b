"""Checks that go from worker to worker: out through the gate of another, in through one of ours.

A check's link stays due in the store until its record is there. So that its home (the gate of its own host) doesn't
begin it again meanwhile, a ticket stands under that home in Redis until the record is stored. Where a worker dies on
the way, the ticket lapses, and the link is begun anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from typing import TYPE_CHECKING
from uuid import uuid4

import redis
from scrapy.http import Request

from linkcrawl.cluster.codec import VERSION, Ticket, TransferredCheck, read_transfer, ticket_from_token
from linkcrawl.cluster.context import WorkerContext
from linkcrawl.cluster.coordinator import Coordinator, WaitingTransfer
from linkcrawl.errors import SessionLost, UnreadableTransfer
from linkcrawl.frontier.ports import context_of
from linkcrawl.items import DueLink

if TYPE_CHECKING:
    from linkcrawl.check.procedure import Check

logger = logging.getLogger(__name__)

#: Seconds between two tries to pass a check on while Redis is away.
RETRY = 0.5
#: Tickets that are asked after in one call.
AT_ONCE = 500

Resume = Callable[[DueLink, "Check"], Request]


class CheckTransfers:
    """This worker's side of it."""

    def __init__(self, parts: WorkerContext):
        self._session, self._ledger = parts.session, parts.ledger
        self._queue, self._feeder = parts.queue, parts.feeder
        self._home = parts.keeper.name
        #: Checks begun or taken over here whose record is not stored: the host by link id.
        self.under_way: dict[int | str, str] = {}
        self._by_host: Counter[str] = Counter()
        self._guests: dict[int | str, Ticket] = {}
        self._away: dict[str, Ticket] = {}
        self._ended: list[tuple[str, str]] = []
        self._sending: dict[asyncio.Task[None], str] = {}  # the home of each
        self._arriving: dict[WaitingTransfer, None] = {}
        #: Checks that have come to their end here, or were passed on.
        self.ended = 0

    @property
    def is_sending(self) -> bool:
        """Whether a check is on its way to Redis."""
        return bool(self._sending)

    def is_sending_from(self, home: str) -> bool:
        """Whether one is whose home does not know it to be out."""
        return home in self._sending.values()

    def is_arriving(self, gate: str) -> bool:
        """Whether a check at a gate of ours has been seen, and not been taken in."""
        return any(hop.gate == gate for hop in self._arriving)

    @property
    def has_arriving(self) -> bool:
        """Whether any has."""
        return bool(self._arriving)

    def is_guest(self, link_id: int | str) -> bool:
        """Whether a check under way here is one of another worker's links."""
        return link_id in self._guests

    @property
    def away(self) -> int:
        """Checks of our links that go on elsewhere."""
        return len(self._away)

    def begin(self, link: DueLink) -> None:
        """A check of a link of ours begins."""
        self._note(link)

    def is_under_way(self, host: str) -> bool:
        """Whether a check of a link of the host is under way here."""
        return self._by_host[host] > 0

    def keeps(self) -> set[int | str]:
        """Links that must not be begun again though they are due: under way here, or elsewhere."""
        return {*self.under_way, *(ticket.link for ticket in self._away.values())}

    def end(self, link_id: int | str) -> None:
        """Its record is stored, or it won't be in this crawl."""
        self._let_go(link_id)
        ticket = self._guests.pop(link_id, None)
        if ticket is not None:
            self._ended.append((ticket.home, ticket.token))

    def send(self, request: Request, gate: str) -> None:
        """Pass the check of a request on to whoever leases the gate."""
        link, check = context_of(request).link, context_of(request).check
        assert link is not None
        assert check is not None
        home = self._home(link.host)
        ticket = self._guests.pop(link.id, None) or Ticket.of(link, home)
        self._let_go(link.id)
        self._feeder.under_way -= 1
        self._away[ticket.token] = ticket
        text = TransferredCheck(version=VERSION, ticket=ticket, link=link, check=check).text()
        sending = self._send(WaitingTransfer(gate=gate, text=text), ticket, self._session.lease_epoch)
        task = asyncio.get_running_loop().create_task(sending)
        self._sending[task] = home
        task.add_done_callback(lambda done: self._sending.pop(done, None))

    def arrive(self, hops: Iterable[WaitingTransfer]) -> None:
        """Checks whose next hop is ours have been seen: they are to be taken in."""
        self._arriving.update(dict.fromkeys(hops))

    async def take_in(self, resume: Resume) -> list[Request]:
        """Take over some that have arrived; the requests to place. They are as before where Redis can't be asked. A
        ticket that has lapsed is not taken: the link has been begun anew."""
        epoch, part = self._session.lease_epoch, list(islice(self._arriving, AT_ONCE))
        found = [(hop, each) for hop in part if (each := self._read(hop)) is not None]
        readable = [hop for hop, _ in found]
        tickets = [(each.ticket.home, each.ticket.token) for _, each in found]
        ours = await self._ledger.take_in([*readable, *(hop for hop in part if hop not in readable)], tickets)
        if epoch != self._session.lease_epoch:
            return []
        for hop in part:
            self._arriving.pop(hop, None)
        requests = []
        for (_, each), is_ours in zip(found, ours, strict=True):
            if is_ours and each.link.id not in self.under_way:
                self._guests[each.link.id] = each.ticket
                self._note(each.link)
                self._feeder.under_way += 1
                requests.append(resume(each.link, each.check))
        return requests

    def expect(self, tokens: Iterable[str], home: str) -> None:
        """Checks of links of a gate that we have leased just now go on elsewhere: their links are not to be begun."""
        for token in tokens:
            ticket = ticket_from_token(token, home)
            self._away[token] = ticket
            self._queue.hold(ticket.link, ticket.host)

    def give_back(self, home: str) -> None:
        """The gate is not ours any more: its next holder will be told who is out."""
        for token in [token for token, ticket in self._away.items() if ticket.home == home]:
            del self._away[token]

    async def look(self) -> None:
        """Renew the tickets of our guests, and see which of our own have come to their end."""
        await self.tell_ended()
        guests = [(ticket.home, ticket.token) for ticket in self._guests.values()]
        for start in range(0, len(guests), AT_ONCE):
            await self._ledger.out(guests[start : start + AT_ONCE], [])
        own = list(self._away.values())
        for start in range(0, len(own), AT_ONCE):
            part = own[start : start + AT_ONCE]
            _, out = await self._ledger.out([], [(ticket.home, ticket.token) for ticket in part])
            for ticket, is_out in zip(part, out, strict=True):
                if not is_out and self._away.pop(ticket.token, None) is not None:
                    self._queue.forget(ticket.link)

    async def tell_ended(self) -> None:
        """Say which guests have their record."""
        ended = self._ended
        while part := ended[:AT_ONCE]:
            await self._ledger.out([], [], part)
            del ended[: len(part)]

    def clear(self) -> None:
        """All is lost: whoever begins these links again, begins anew."""
        for task in self._sending:
            task.cancel()
        self.under_way.clear()
        self._by_host.clear()
        self._guests.clear()
        self._away.clear()
        self._ended = []
        self._arriving.clear()

    def _note(self, link: DueLink) -> None:
        self.under_way[link.id] = link.host
        self._by_host[link.host] += 1

    def _let_go(self, link_id: int | str) -> None:
        host = self.under_way.pop(link_id, None)
        if host is not None:
            self._by_host[host] -= 1
            self.ended += 1

    def _read(self, hop: WaitingTransfer) -> TransferredCheck | None:
        try:
            return read_transfer(hop.text)
        except UnreadableTransfer as fault:  # its ticket lapses, and the link is begun anew
            logger.error("A check of another worker is given up: %s", fault)
            return None

    async def _send(self, hop: WaitingTransfer, ticket: Ticket, epoch: int) -> None:
        journey = uuid4().hex
        while self._session.lease_epoch == epoch:
            try:
                await self._ledger.send(hop, ticket.home, ticket.token, journey)
            except SessionLost:
                return
            except redis.RedisError:
                await asyncio.sleep(RETRY)
            else:
                return


#: Seconds that what is in flight waits to be told together with others.
GATHER = 0.02


class InFlightReporter:
    """`spawn` runs something beside, and deals with what it raises."""

    def __init__(self, ledger: Coordinator, spawn: Callable[[Callable[[], Awaitable[None]]], None]):
        self._ledger = ledger
        self._spawn = spawn
        self._links: dict[str, str] = {}  # by gate

    def note(self, gate: str, link_id: int | str) -> None:
        """A request of a link's check goes out."""
        if not self._links:
            asyncio.get_running_loop().call_later(GATHER, self._spawn, self._tell)
        self._links[gate] = str(link_id)

    def clear(self) -> None:
        """The gates are not ours any more."""
        self._links.clear()

    async def _tell(self) -> None:
        links, self._links = self._links, {}
        if links:
            await self._ledger.flying(links)
