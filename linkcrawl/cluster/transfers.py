"""Transfers checks between workers: out, when their next request goes through another worker's gate; in, through ours.

A check's link stays due in the store until its record is there. So that the link's own gate (`home_gate`) doesn't begin
it again meanwhile, a ticket stands under that gate in Redis until the record is stored. Where a worker dies on the way,
the ticket expires, and the link is begun anew.

*Foreign checks* are under way here, of links of another worker's gate; *remote checks* are under way at another worker,
of links of a gate of ours.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from itertools import islice
from uuid import uuid4

import redis
from scrapy.http import Request

from linkcrawl.check.procedure import Check
from linkcrawl.cluster.codec import VERSION, Ticket, TransferredCheck, read_ticket, read_transfer, ticket_from_token
from linkcrawl.cluster.coordinator import Coordinator, WaitingTransfer
from linkcrawl.errors import SessionLost, UnreadableTransfer
from linkcrawl.frontier.parts import Frontier
from linkcrawl.frontier.ports import context_of
from linkcrawl.frontier.tasks import start_task
from linkcrawl.items import DueLink

logger = logging.getLogger(__name__)

#: Seconds between two tries to pass a check on while Redis is away.
RETRY = 0.5
#: Tickets that are asked after in one call.
AT_ONCE = 500


class CheckTransfers:
    """Sends and receives checks for this worker."""

    def __init__(self, frontier: Frontier, coordinator: Coordinator):
        self._session, self._engine, self._checks = frontier.session, frontier.engine, frontier.checks
        self._queue, self._feeder, self._router = frontier.queue, frontier.feeder, frontier.router
        self._gate_of = frontier.keeper.gate_of
        self._coordinator = coordinator
        #: Checks begun or taken over here whose record is not stored: the host by link id.
        self.under_way: dict[int | str, str] = {}
        self._by_host: Counter[str] = Counter()
        self._foreign_checks: dict[int | str, Ticket] = {}  # by link id
        self._remote_checks: dict[str, Ticket] = {}  # by token
        self._ended: list[tuple[str, str]] = []  # home gate and token of foreign checks
        self._sending: dict[asyncio.Task[None], str] = {}  # the home gate of each
        self._arriving: dict[WaitingTransfer, None] = {}
        #: Checks that have come to their end here, or were passed on.
        self.ended = 0

    @property
    def is_sending(self) -> bool:
        """True while a check is being sent to Redis."""
        return bool(self._sending)

    def is_sending_from(self, home_gate: str) -> bool:
        """True while a check of this gate's links is still being sent, so that Redis has no ticket for it yet."""
        return home_gate in self._sending.values()

    def is_arriving(self, gate: str) -> bool:
        """True while a check that waits for a gate of ours has been seen, and not been taken in."""
        return any(transfer.gate == gate for transfer in self._arriving)

    def is_foreign(self, link_id: int | str) -> bool:
        """True for a check under way here of a link of another worker's gate."""
        return link_id in self._foreign_checks

    @property
    def remote_checks(self) -> int:
        """Checks of our links that are under way at other workers."""
        return len(self._remote_checks)

    def begin(self, link: DueLink) -> None:
        """A check of a link of ours begins."""
        self._add(link)

    def is_under_way(self, host: str) -> bool:
        """True while a check of a link of the host is under way here."""
        return self._by_host[host] > 0

    def held_links(self) -> set[int | str]:
        """Links that must not be begun again though they are due: under way here, or at another worker."""
        return {*self.under_way, *(ticket.link for ticket in self._remote_checks.values())}

    def end(self, link_id: int | str) -> None:
        """A check's record is stored, or won't be in this crawl."""
        self._remove(link_id)
        ticket = self._foreign_checks.pop(link_id, None)
        if ticket is not None:
            self._ended.append((ticket.home_gate, ticket.token))

    def send(self, request: Request, gate: str) -> None:
        """Pass the check of a request on to whoever leases the gate, or will."""
        context = context_of(request)
        link, check = context.link, context.check
        assert link is not None
        assert check is not None
        home_gate = self._gate_of(link.host)
        ticket = self._foreign_checks.pop(link.id, None) or Ticket.of(link, home_gate)
        self._remove(link.id)
        self._feeder.check_ended()
        self._remote_checks[ticket.token] = ticket
        text = TransferredCheck(version=VERSION, ticket=ticket, link=link, check=check).text()
        sending = self._send(WaitingTransfer(gate=gate, text=text), ticket, self._session.lease_epoch)
        task = start_task(f"sending a check to {gate}", sending)
        self._sending[task] = home_gate
        task.add_done_callback(lambda done: self._sending.pop(done, None))

    async def receive(self, transfers: Iterable[WaitingTransfer] = ()) -> None:
        """Take in checks that wait for gates of ours, and those that were seen before and could not be taken in. Those
        left over, where Redis can't be asked, are taken in the next time. Raises SessionLost, redis.RedisError."""
        self._arriving.update(dict.fromkeys(transfers))
        while self._arriving:
            for request in await self._take_in():
                self._router.place(request)
            self._engine.wake()

    async def _take_in(self) -> list[Request]:
        """Take over some of those that have arrived; the requests to place. Where a ticket has expired the link has
        been begun anew, and the check is dropped."""
        epoch, part = self._session.lease_epoch, list(islice(self._arriving, AT_ONCE))
        read = [(transfer, found) for transfer in part if (found := _read(transfer)) is not None]
        readable = [transfer for transfer, _ in read]
        unreadable = [transfer for transfer in part if transfer not in readable]
        tickets = [(found.ticket.home_gate, found.ticket.token) for _, found in read]
        ours = await self._coordinator.take_in([*readable, *unreadable], tickets)
        if epoch != self._session.lease_epoch:
            return []
        for transfer in part:
            self._arriving.pop(transfer, None)
        lost = [ticket for transfer in unreadable if (ticket := read_ticket(transfer.text)) is not None]
        self._ended += [(ticket.home_gate, ticket.token) for ticket in lost]  # so that their links are begun anew
        requests = []
        for (_, found), is_ours in zip(read, ours, strict=True):
            if is_ours and found.link.id not in self.under_way:
                self._foreign_checks[found.link.id] = found.ticket
                self._add(found.link)
                self._feeder.check_began()
                requests.append(self._resume(found.link, found.check))
        return requests

    def _resume(self, link: DueLink, check: Check) -> Request:
        """The next request of a check. The first one of a check has still to clear its shared limits."""
        request = self._checks.resume(link, check)
        if not check.hops:
            applied = self._session.policies.of_link(link.host, link.collections, link.providers)
            context_of(request).starts_limits = bool(applied.limits)
        return request

    def reserve(self, tokens: Iterable[str], home_gate: str) -> None:
        """Checks of links of a gate that we have leased just now are under way at other workers: their links are not to
        be begun."""
        for token in tokens:
            ticket = ticket_from_token(token, home_gate)
            self._remote_checks[token] = ticket
            self._queue.hold(ticket.link, ticket.host)

    def release(self, home_gate: str) -> None:
        """The gate is not ours any more: Redis tells its next holder which of its links' checks are under way."""
        for token in [token for token, ticket in self._remote_checks.items() if ticket.home_gate == home_gate]:
            del self._remote_checks[token]

    async def renew_tickets(self) -> None:
        """Renew the tickets of foreign checks, and see which remote checks have ended. Raises SessionLost,
        redis.RedisError."""
        await self.report_ended()
        foreign = [(ticket.home_gate, ticket.token) for ticket in self._foreign_checks.values()]
        for start in range(0, len(foreign), AT_ONCE):
            await self._coordinator.tickets(renewed=foreign[start : start + AT_ONCE])
        remote = list(self._remote_checks.values())
        for start in range(0, len(remote), AT_ONCE):
            part = remote[start : start + AT_ONCE]
            watched = [(ticket.home_gate, ticket.token) for ticket in part]
            _, valid = await self._coordinator.tickets(watched=watched)
            for ticket, is_valid in zip(part, valid, strict=True):
                if not is_valid and self._remote_checks.pop(ticket.token, None) is not None:
                    self._queue.forget(ticket.link)

    async def report_ended(self) -> None:
        """Report which foreign checks have their record. Raises SessionLost, redis.RedisError."""
        ended = self._ended  # `clear` begins a new list
        while part := ended[:AT_ONCE]:
            await self._coordinator.tickets(ended=part)
            del ended[: len(part)]

    def clear(self) -> None:
        """All leases are lost: whoever leases these links' gates next begins them anew."""
        for task in self._sending:
            task.cancel()
        self.under_way.clear()
        self._by_host.clear()
        self._foreign_checks.clear()
        self._remote_checks.clear()
        self._ended = []
        self._arriving.clear()

    def _add(self, link: DueLink) -> None:
        self.under_way[link.id] = link.host
        self._by_host[link.host] += 1

    def _remove(self, link_id: int | str) -> None:
        host = self.under_way.pop(link_id, None)
        if host is not None:
            self._by_host[host] -= 1
            self.ended += 1

    async def _send(self, transfer: WaitingTransfer, ticket: Ticket, epoch: int) -> None:
        idempotency_key = uuid4().hex
        while self._session.lease_epoch == epoch:
            try:
                await self._coordinator.send(transfer, ticket.home_gate, ticket.token, idempotency_key)
            except SessionLost:
                return
            except redis.RedisError:
                await asyncio.sleep(RETRY)
            else:
                return


def _read(transfer: WaitingTransfer) -> TransferredCheck | None:
    try:
        return read_transfer(transfer.text)
    except UnreadableTransfer as fault:
        logger.error("A check that another worker has passed on can't be read, and is begun anew: %s", fault)
        return None


#: Seconds that links in flight wait to be reported together with others.
GATHER = 0.02


class InFlightReporter:
    """Tells Redis which link is in flight at each gate, so that a link over which workers die is found out. `spawn`
    runs a coroutine function in the background, and deals with what it raises."""

    def __init__(self, coordinator: Coordinator, spawn: Callable[[Callable[[], Awaitable[None]]], None]):
        self._coordinator = coordinator
        self._spawn = spawn
        self._links: dict[str, str] = {}  # by gate

    def add(self, gate: str, link_id: int | str) -> None:
        """A request of a link's check is sent."""
        if not self._links:
            asyncio.get_running_loop().call_later(GATHER, self._spawn, self._report)
        self._links[gate] = str(link_id)

    def clear(self) -> None:
        """All leases are lost."""
        self._links.clear()

    async def _report(self) -> None:
        links, self._links = self._links, {}
        if links:
            await self._coordinator.report_in_flight(links)
