"""One worker of a cluster: its session in Redis, and what it may do because of it.

A worker feeds the gates that it leases straight from the store, as a crawl alone does with all gates; pacing inside a
lease is the same code. What it does not lease it does not talk to: hops that go there are passed on. A worker whose
session is over forgets everything that it held, for another may hold it now; in the store it is all still due.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

import redis
from attrs import evolve
from scrapy.http import Request

from linkcrawl.cluster.context import WorkerContext
from linkcrawl.cluster.coordinator import HeartbeatReply, WaitingTransfer
from linkcrawl.cluster.leases import Leases
from linkcrawl.cluster.policy_version import PolicyVersion
from linkcrawl.cluster.rate_permits import RatePermits
from linkcrawl.cluster.transfers import CheckTransfers, InFlightReporter, Resume
from linkcrawl.errors import SessionLost, StoreLost
from linkcrawl.frontier.gates.workbench import Lane
from linkcrawl.frontier.ports import context_of
from linkcrawl.frontier.router import RoutedTask
from linkcrawl.items import DueLink

logger = logging.getLogger(__name__)

#: Seconds between two renewals of the session, and between two rounds of giving and taking gates.
BEAT, ROUND = 0.5, 0.25
#: Seconds until the next round where there are gates to be had.
SOON = 0.02
#: Seconds between two looks at checks that are out, and between two lines about a Redis that is away.
LOOK, REPEAT = 2.0, 60.0
#: Seconds without work anywhere, as all workers say, after which there is none.
QUIET = 4 * BEAT
#: Sessions that may die over a link until it is parked.
DEATHS = 3


class ClusterWorker:
    """Runs beside the scheduler, on its parts. `pending`: whether the scheduler has something to wait for by itself.
    `drop`: lets go of what the scheduler keeps; what is in flight. `resume`: the request that a check comes to next.
    `take_aside`: the requests that wait outside of gates. `give_up`: ends the crawl without Redis."""

    def __init__(
        self,
        parts: WorkerContext,
        *,
        pending: Callable[[], bool],
        drop: Callable[[], list[Request]],
        resume: Resume,
        take_aside: Callable[[], list[Request]],
        give_up: Callable[[], None],
    ):
        self._parts = parts
        self._session, self._ledger = parts.session, parts.ledger
        self._pending = pending
        self._drop, self._take_aside = drop, take_aside
        self._give_up = give_up
        self._resume = resume
        self.travels = CheckTransfers(parts)
        self.leases = Leases(parts, self.travels, self._arrive)
        self.permits = RatePermits(parts, self._spawn, self.leases.feeds)
        self.leases.is_asking = self.permits.is_asking
        self._agreement = PolicyVersion(parts.session)
        self.beat: HeartbeatReply | None = None
        self._joined = False
        self._away_since: float | None = None
        self._told = self._looked = float("-inf")
        self._nothing_left = self._has_looked = False
        self._quiet_since: float | None = None
        self._flying = InFlightReporter(parts.ledger, self._spawn)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._loops: list[asyncio.Task[None]] = []
        #: Sessions that were lost, and when the last of them was (Unix seconds).
        self.losses, self.lost_at = 0, float("-inf")

    # What the scheduler asks.

    def holds(self) -> bool:
        """Whether our leases are ours at this moment. Notices their end."""
        if not self._joined:
            return False
        if time.monotonic() < self._ledger.deadline:
            return True
        self._lose("Redis was not heard of in time")
        return False

    @property
    def may_end(self) -> bool:
        """Whether nothing is left to do, or to wait for, in the whole cluster."""
        return self._nothing_left and not self._is_busy()

    def has_elsewhere(self, gate: str, placed: RoutedTask) -> bool:
        """Whether a task for a gate is none of ours: it has been passed on, or is dropped because it is still due."""
        task = placed.task
        if isinstance(task, DueLink):
            if self.leases.feeds(gate):
                return False
            self._parts.queue.forget(task.id)
            return True
        context = context_of(task)
        if context.lease_epoch != self._session.lease_epoch:
            return True
        if self.leases.feeds(gate):
            return False
        if context.check is not None:
            self.travels.send(task, gate)
        elif self.leases.has(gate) and not self.leases.is_regrouping:
            return False
        else:
            self.leases.want(gate, placed)
        return True

    def is_parked(self, link: DueLink) -> bool:
        """Whether the link has killed too many workers."""
        return self.leases.deaths(self._parts.keeper.name(link.host), link.id) >= DEATHS

    async def locate(self, host: str) -> None:
        """Have the gate of a host settled, as soon as Redis can be asked."""
        while True:
            with suppress(SessionLost, redis.RedisError):
                if self._joined:  # else what the generation of before says may not hold any more
                    await self.leases.places.locate([host])
                    if host in self._parts.keeper.known:
                        await self.leases.adopt(host)
                        return
            await asyncio.sleep(ROUND)

    def handed_out(self, gate: str, request: Request) -> None:
        """A request goes out: should it be our last, the next holder knows over what."""
        context = context_of(request)
        context.may_send = self.holds
        if context.link is not None:
            self._flying.note(gate, context.link.id)

    def regroup(self) -> None:
        """Policies have changed, and with them perhaps which hosts share a gate: give all gates back, and take anew."""
        if self.beat is not None:
            self.beat = evolve(self.beat, agreed=False)  # until all others have read them, and given back their gates
        self.leases.close_all()
        for request in self._take_aside():
            self.leases.pass_on(request)

    # Its life.

    async def start(self) -> None:
        """Join, and keep the session alive from now on."""
        await self._try(self._live)
        loop = asyncio.get_running_loop()
        self._loops = [
            loop.create_task(self._every(BEAT, self._live)),
            loop.create_task(self._every(ROUND, self._round)),
        ]

    async def close(self) -> None:
        """Give everything back and leave."""
        for task in [*self._loops, *self._tasks]:
            task.cancel()
        if self.holds():
            await self._try(self._leave)
        await self._ledger.close()

    async def _leave(self) -> None:
        await self.travels.tell_ended()
        await self.leases.give_all()
        await self._ledger.leave()

    async def _every(self, seconds: float, do: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._try(do)
            self.holds()
            takes_more = seconds == ROUND and self.beat is not None and self.leases.has_room(self.beat)
            await asyncio.sleep(SOON if takes_more else seconds)

    async def _try(self, do: Callable[[], Awaitable[None]]) -> None:
        epoch = self._session.lease_epoch
        try:
            await do()
        except SessionLost as fault:
            if self._session.lease_epoch == epoch:
                self._lose(str(fault))
        except (redis.RedisError, OSError) as fault:
            self._complain(fault)
        except StoreLost as fault:  # the records pipeline tells of it
            logger.debug("The store can't be asked: %s", fault)
        except Exception:
            logger.exception("The cluster met a fault of ours and goes on")

    async def _live(self) -> None:
        """Renew the session, or begin one; and take what others have for us."""
        policies = self._agreement.say(is_regrouping=self.leases.is_regrouping)
        if not self._joined:
            about = {"host": socket.gethostname(), "pid": os.getpid(), "since": self._session.now()}
            await self._ledger.join(about, policies)
            self._joined = True
        beat = await self._ledger.beat(busy=self._is_busy(), load=self.leases.load, policies=policies)
        self.beat = self._agreement.hear(beat)
        if self._away_since is not None:
            if self._told >= self._away_since:
                logger.warning("Redis is back after %.0f s", self._session.now() - self._away_since)
            self._away_since = None
        self.leases.ring(self.beat.bells)

    async def _round(self) -> None:
        if not self._joined or self.beat is None:
            return
        beat, now = self.beat, self._session.now()
        self.permits.give_back_unused()
        await self._arrive(())
        await self.travels.tell_ended()
        await self.leases.answer_bells()
        await self.leases.give(beat)
        await self.leases.take(beat)
        if now - self._looked > LOOK:
            self._looked = now
            await self.travels.look()
        self._has_looked = True
        await self._settle(beat)

    async def _settle(self, beat: HeartbeatReply) -> None:
        """Whether a crawl that is not continuous may end: everybody has been without work for a while (a word of theirs
        may be on its way), and another look finds none."""
        now = self._session.now()
        # While policies differ gates lie idle: others are about to read the file, or never will.
        differ = not beat.agreed and not self._agreement.differ_for(self._session.config.patience)
        if self._session.arguments.continuous or self._is_busy() or beat.busy or differ:
            self._nothing_left, self._quiet_since = False, None
            return
        if self._quiet_since is None:
            self._quiet_since = now
        if not self._nothing_left and (beat.others == 0 or now - self._quiet_since > QUIET):
            await self._parts.feeder.refresh_now()
            await self.leases.take(beat, all_of_them=True)
            self._nothing_left = not self._is_busy() and not self.leases.is_shut
            self._session.wake_engine()

    def _is_busy(self) -> bool:
        at_work = self._pending() or self.leases.is_busy or self.travels.is_sending or bool(self._tasks)
        return at_work or not self._has_looked

    # Inside.

    def _lose(self, why: str) -> None:
        """Everything that was held is dropped; what is in flight is cut off."""
        self._joined, self.beat = False, None
        self.lost_at = self._session.now() + min(0.0, self._ledger.deadline - time.monotonic())
        self._session.lease_epoch += 1
        self.losses += 1
        logger.error("The leases of this worker are over (%s): what it held is left to others", why)
        loop = asyncio.get_running_loop()
        for request in self._drop():
            deadline = context_of(request).deadline
            if deadline is not None:
                with suppress(RuntimeError):  # it has ended just now
                    deadline.reschedule(loop.time())
        for gate in self._parts.bench.gates.values():
            self._parts.bench.drain(gate)
        self.leases.clear()
        self.travels.clear()
        self._parts.desk.clear()
        self._parts.queue.clear()
        self._parts.feeder.clear()
        self._flying.clear()
        self.permits.clear()
        self._nothing_left = self._has_looked = False

    def _complain(self, fault: Exception) -> None:
        now = self._session.now()
        if self._away_since is None:
            self._away_since = now
        if now - self._told > REPEAT:
            self._told = now
            logger.error("LINKCRAWL_FRONTIER: Redis can't be asked (%s): nothing is sent past the lease", fault)
        if now - self._away_since > self._session.config.patience:
            self._give_up()

    async def _arrive(self, hops: Iterable[WaitingTransfer]) -> None:
        """Checks of others whose next hop is ours; and those that arrived before and could not be taken in."""
        self.travels.arrive(hops)
        while self.travels.has_arriving:
            for request in await self.travels.take_in(self._resume):
                self._parts.place(request, Lane.HOP)
            self._session.wake_engine()

    def _spawn(self, do: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.get_running_loop().create_task(self._try(do))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
