"""One worker of a cluster: its session in Redis, and the leases that come with it.

A worker feeds the gates that it leases straight from the store, as a crawl alone does with all gates; pacing inside a
lease is the same code. It sends nothing through a gate that it doesn't lease: checks that go there are passed on. A
worker whose session is over forgets everything that it held, for another may hold it now; in the store it is all still
due.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

import redis
from attrs import evolve
from scrapy.http import Request

from linkcrawl.clock import boot_time, until_next
from linkcrawl.cluster.codec import VERSION
from linkcrawl.cluster.coordinator import LAYOUT, Coordinator, HeartbeatReply, TimeReading
from linkcrawl.cluster.lease_table import LeaseTable
from linkcrawl.cluster.leases import Leases
from linkcrawl.cluster.meeting_place import cluster_name
from linkcrawl.cluster.policy_version import PolicyVersion
from linkcrawl.cluster.rate_permits import RatePermits
from linkcrawl.cluster.shared_pace import SharedPace
from linkcrawl.cluster.transfers import CheckTransfers, InFlightReporter
from linkcrawl.errors import SessionLost, StoreLost
from linkcrawl.frontier.parts import Frontier
from linkcrawl.frontier.ports import RoutedTask, context_of
from linkcrawl.frontier.tasks import INTERNAL_ERROR, start_task
from linkcrawl.items import DueLink

logger = logging.getLogger(__name__)

#: Seconds between two renewals of the session, and between two rounds of giving and taking gates.
HEARTBEAT, ROUND = 0.5, 0.25
#: Seconds between two of either while nobody in the cluster has anything to do, or this part of the lease.
IDLE, OF_LEASE = 4.0, 1 / 3
#: Seconds until the next round where there are gates to be had.
SOON = 0.02
#: Seconds between two renewals of tickets, and between two lines about a Redis that is away.
RENEW_TICKETS, REPEAT = 2.0, 60.0
#: Seconds without work anywhere, as all workers report, after which there is none.
QUIET = 4 * HEARTBEAT
#: The layout of what workers share, in Redis and in the checks that they pass on.
PROTOCOL = f"{LAYOUT}.{VERSION}"
#: Sessions that may die over a link until it is a poison link.
DEATHS = 3


class ClusterWorker:
    """Runs beside the scheduler, on the same parts."""

    def __init__(self, frontier: Frontier, coordinator: Coordinator):
        self._frontier, self._coordinator, self._session = frontier, coordinator, frontier.session
        self.table = LeaseTable(frontier.session)
        self.transfers = CheckTransfers(frontier, coordinator)
        self.permits = RatePermits(frontier, coordinator, self.table, self._spawn)
        self.leases = Leases(frontier, coordinator, table=self.table, transfers=self.transfers, permits=self.permits)
        self._policy_version = PolicyVersion(frontier.session)
        self._shared_pace = SharedPace(frontier.session)
        self.heartbeat: HeartbeatReply | None = None
        self._joined = False
        self._run_id = ""  # of Redis
        self._away_since: float | None = None
        self._warned_at = self._blocked_told_at = self._tickets_at = float("-inf")
        self._nothing_left = self._has_looked = self._saw_held = False
        self._quiet_since: float | None = None
        self._in_flight = InFlightReporter(coordinator, self._spawn)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stirred = asyncio.Event()
        self._was_idle = False  # at the last heartbeat
        self._loops: list[asyncio.Task[None]] = []
        #: Sessions that were lost, and when the last of them was (Unix seconds).
        self.losses, self.lost_at = 0, float("-inf")

    # What the ownership asks.

    def has_session(self) -> bool:
        """True while our leases are ours. Where the session is over, it is dropped here."""
        if not self._joined:
            return False
        if boot_time() < self._coordinator.deadline:
            return True
        self.drop_session("Redis was not heard of in time")
        return False

    @property
    def may_end(self) -> bool:
        """True where no worker of the cluster has work, or must wait for any."""
        return self._nothing_left and not self._is_busy()

    def routes_elsewhere(self, gate: str, routed: RoutedTask) -> bool:
        """True where a task for a gate is none of ours: it has been passed on, or is dropped because it is still
        due."""
        task = routed.task
        if isinstance(task, DueLink):
            if self.table.feeds(gate):
                return False
            self._frontier.queue.forget(task.id)
            return True
        context = context_of(task)
        if context.lease_epoch != self._session.lease_epoch:
            return True
        if self.table.feeds(gate):
            return False
        if context.check is not None:
            self.transfers.send(task, gate)
        elif self.table.has(gate) and not self.table.is_regrouping:
            return False
        else:
            self.leases.request_lease(gate, routed)
            self.stir()
        return True

    def is_poison(self, link: DueLink) -> bool:
        """True for a link over which too many sessions have died."""
        return self.table.deaths(self._frontier.keeper.gate_of(link.host), link.id) >= DEATHS

    async def locate(self, host: str) -> None:
        """Have the gate of a host recorded for all workers, as soon as Redis can be asked."""
        while True:
            with suppress(SessionLost, StoreLost, redis.RedisError):
                if self._joined:  # else what the generation of before has recorded may not hold any more
                    await self.leases.placement.locate([host])
                    if host in self._frontier.keeper.looked_up:
                        await self.leases.adopt(host)
                        return
            await asyncio.sleep(ROUND)

    def handed_out(self, gate: str, request: Request) -> None:
        """A request goes out: should it be our last, the next holder of the gate knows over which link."""
        context = context_of(request)
        if context.link is not None:
            self._in_flight.add(gate, context.link.id)

    def regroup(self) -> None:
        """Policies have changed, and with them perhaps which hosts share a gate: give all gates back, and take anew."""
        if self.heartbeat is not None:
            # until all others have read the same policies, and given back their gates
            self.heartbeat = evolve(self.heartbeat, agreed=False)
        self.stir()
        self.leases.close_all()
        self.leases.placement.clear()
        for request in self._frontier.postponed.take_all():
            self.leases.pass_on(request)

    def stir(self) -> None:
        """There is something to do: an idle worker looks at once."""
        self._stirred.set()

    # Its life.

    async def start(self) -> None:
        """Join, and keep the session alive from now on."""
        await self._try(self._renew_session)
        end = partial(self._frontier.engine.close, INTERNAL_ERROR)  # without these nothing is sent, for ever
        self._loops = [
            start_task("heartbeat", self._every(HEARTBEAT, self._renew_session), on_fault=end),
            start_task("round", self._every(ROUND, self._round), on_fault=end),
        ]

    async def close(self) -> None:
        """Give everything back and leave."""
        for task in [*self._loops, *self._tasks]:
            task.cancel()
        if self.has_session():
            await self._try(self._leave)
        await self._coordinator.close()

    def drop_session(self, why: str) -> None:
        """Forget everything that was held, and cut off what is in flight. `why`: for the log."""
        frontier = self._frontier
        self._joined, self.heartbeat = False, None
        self.lost_at = self._session.now() + min(0.0, self._coordinator.deadline - boot_time())
        self._session.lease_epoch += 1
        self.losses += 1
        logger.error("The leases of this worker are over (%s): other workers go on with its gates", why)
        loop = asyncio.get_running_loop()
        for request in frontier.in_flight.requests():
            deadline = context_of(request).deadline
            if deadline is not None:
                with suppress(RuntimeError):  # it has ended just now
                    deadline.reschedule(loop.time())
        frontier.postponed.take_all()
        for gate in frontier.bench.gates.values():
            frontier.bench.drain(gate)
        self.leases.clear()
        self.transfers.clear()
        frontier.robots.clear()
        frontier.queue.clear()
        frontier.feeder.clear()
        self._in_flight.clear()
        self.permits.clear()
        self._nothing_left = self._has_looked = False

    async def _leave(self) -> None:
        await self.transfers.report_ended()
        await self.leases.give_all()
        await self._coordinator.leave()

    async def _every(self, seconds: float, act: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self._try(act)
            self.has_session()
            takes_more = seconds == ROUND and self.heartbeat is not None and self.leases.may_take_more(self.heartbeat)
            if takes_more or not self._is_idle():
                await asyncio.sleep(SOON if takes_more else seconds)
                continue
            await self._rest()
            if seconds == ROUND and self._stirred.is_set():  # policies of others may have changed meanwhile
                await self._try(self._renew_session)

    async def _rest(self) -> None:
        """Wait until something stirs, for a while at most."""
        with suppress(TimeoutError):
            async with asyncio.timeout(until_next(min(IDLE, self._session.config.lease * OF_LEASE))):
                await self._stirred.wait()

    async def _try(self, act: Callable[[], Awaitable[None]]) -> None:
        epoch = self._session.lease_epoch
        try:
            await act()
        except SessionLost as fault:
            if self._session.lease_epoch == epoch:
                self.drop_session(str(fault))
        except (redis.RedisError, OSError) as fault:
            self._complain(fault)
        except StoreLost as fault:  # the records pipeline logs it
            logger.debug("The store can't be asked: %s", fault)
        except Exception:
            logger.exception("The cluster met a fault of ours and goes on")

    async def _renew_session(self) -> None:
        """Renew the session, or begin one; and learn what others have for us."""
        policies = self._policy_version.publish(is_regrouping=self.table.is_regrouping)
        if not self._joined:
            about = {"host": socket.gethostname(), "pid": os.getpid(), "since": self._session.now()}
            before, pace = self._coordinator.generation, self._shared_pace.own.text
            joined = await self._coordinator.join(about, policies=policies, pace=pace, protocol=PROTOCOL)
            self._redis_answers()
            if joined.blocked_by is not None:
                self._tell_blocked(joined.blocked_by)
                return
            self._joined = True
            self._name_server(joined.run_id)
            self._follow_clock(joined.time, begins_anew=before in ("", self._coordinator.generation))
        held = self.table.some()
        idle = self._is_idle()
        reply = await self._coordinator.heartbeat(
            busy=self._is_busy(),
            load=self.leases.load,
            policies=policies,
            held=list(held),
            idle=idle and self._was_idle,
        )
        self._was_idle = idle
        self._redis_answers()
        self._follow_clock(reply.time)
        if any(self.table.leases.get(gate) is held[gate] for gate in reply.missing):  # else it was given back meanwhile
            self._coordinator.declare_void()
            raise SessionLost("Redis has lost leases")
        if self._shared_pace.observe(reply):
            self.leases.recompute()
        self.heartbeat = self._policy_version.observe(reply)
        self.leases.notify(self.heartbeat.notifications)

    def _name_server(self, run_id: str) -> None:
        """The claim on the store names the server that the cluster meets at: it tells two clusters apart, and a worker
        that reaches the same server by another name belongs to us."""
        if run_id in ("", self._run_id):
            return
        self._run_id, session = run_id, self._session
        name = cluster_name(session.config.frontier, run_id)

        async def rename() -> None:
            await session.worker.call(session.store.claim, name)

        self._spawn(rename)

    def _follow_clock(self, time: TimeReading, *, begins_anew: bool = True) -> None:
        """Follow Redis' clock. Raise SessionLost where it has been set, and leases and waits in Redis are timed by the
        old one; unless another worker has begun a generation since (not `begins_anew`)."""
        jump = self._session.clock.follow(time.now, at=time.at, error=time.error)
        if jump is None:
            return
        self._frontier.clock_follower.follow(jump)
        if begins_anew:
            self._coordinator.declare_void()
            raise SessionLost("Redis' clock has been set")

    async def _round(self) -> None:
        if not self._joined or self.heartbeat is None:
            return
        heartbeat, now = self.heartbeat, self._session.now()
        self._stirred.clear()
        self.permits.return_unused()
        await self.transfers.receive()
        await self.transfers.report_ended()
        await self.leases.handle_notifications()
        await self.leases.give(heartbeat)
        await self.leases.take(heartbeat)
        if now - self._tickets_at > RENEW_TICKETS:
            self._tickets_at = now
            await self.transfers.renew_tickets()
        self._has_looked = True
        await self._check_termination(heartbeat)

    async def _check_termination(self, heartbeat: HeartbeatReply) -> None:
        """See whether a crawl that is not continuous may end: all workers have been without work for a while (a report
        of theirs may be on its way), and another reading of the backlog finds none."""
        now = self._session.now()
        # While policies differ gates lie idle: others are about to read the file, or never will.
        differ = not heartbeat.agreed and not self._policy_version.has_differed_for(self._session.config.patience)
        if self._session.arguments.continuous or self._is_busy() or heartbeat.busy or differ:
            self._nothing_left, self._quiet_since, self._saw_held = False, None, False
            return
        if self._quiet_since is None:
            self._quiet_since = now
        if not self._nothing_left and (heartbeat.others == 0 or now - self._quiet_since > QUIET):
            await self._frontier.feeder.refresh_now()
            await self.leases.take(heartbeat, all_of_them=True)
            # who has leased gates just now has not been heard of as busy yet; who is idle with them stays so
            is_news, self._saw_held = self.leases.has_held and not self._saw_held, self.leases.has_held
            if is_news:
                self._quiet_since = now
            is_waited_for = self.leases.is_shut or self.leases.has_lapsing or is_news
            self._nothing_left = not (self._is_busy() or is_waited_for)
            self._frontier.engine.wake()

    def _is_busy(self) -> bool:
        frontier = self._frontier
        has_own_work = len(frontier.in_flight) > 0 or frontier.feeder.is_fetching or frontier.has_work()
        at_work = has_own_work or self.leases.is_busy or self.transfers.is_sending or bool(self._tasks)
        return at_work or not self._has_looked

    def _is_idle(self) -> bool:
        """True where nobody in the cluster has anything to do until links come due or are added. A crawl that may end
        looks on: so does one whose Redis is away."""
        heartbeat = self.heartbeat
        if not self._session.arguments.continuous or heartbeat is None or self._away_since is not None:
            return False
        all_rest = heartbeat.agreed and not heartbeat.busy and not self._is_busy()
        return all_rest and not (self._stirred.is_set() or self.table.leases or self.leases.waits_for_others)

    # Inside.

    def _redis_answers(self) -> None:
        if self._away_since is None:
            return
        if self._warned_at >= self._away_since:
            logger.warning("Redis is back after %.0f s", self._session.now() - self._away_since)
        self._away_since = None

    def _tell_blocked(self, other: str) -> None:
        """This worker would not read what others pass on, nor they what it does."""
        now = self._session.now()
        if now - self._blocked_told_at > REPEAT:
            self._blocked_told_at = now
            logger.warning(
                "A worker of another version is at work (%s; ours is %s): this one begins when none is left; "
                "the same version of linkcrawl for all would work",
                other,
                PROTOCOL,
            )

    def _complain(self, fault: Exception) -> None:
        now = self._session.now()
        if self._away_since is None:
            self._away_since = now
        if now - self._warned_at > REPEAT:
            self._warned_at = now
            logger.error("LINKCRAWL_FRONTIER: Redis can't be asked (%s): nothing is sent past the lease", fault)
        if now - self._away_since > self._session.config.patience:
            self._frontier.engine.close("frontier_lost")

    def _spawn(self, act: Callable[[], Awaitable[None]]) -> None:
        task = start_task("cluster", self._try(act))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
