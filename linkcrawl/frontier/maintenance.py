"""What a running crawl does every few seconds: read the policy file and people's orders, look for new links and for
those that somebody has asked for, save host state, prune history."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from linkcrawl.clock import until_next
from linkcrawl.errors import ClaimLost, PolicyError, StoreLost
from linkcrawl.frontier.clock_follower import ClockFollower
from linkcrawl.frontier.due_queue import DueQueue
from linkcrawl.frontier.feeder import Feeder
from linkcrawl.frontier.gates.eta import recheck_cycles
from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import GateState, Workbench
from linkcrawl.frontier.host_state_saver import HostStateSaver
from linkcrawl.frontier.ports import Engine, Task
from linkcrawl.frontier.postponed import PostponedHops
from linkcrawl.frontier.requested import RequestedLinks
from linkcrawl.frontier.router import HostRouter
from linkcrawl.frontier.tasks import INTERNAL_ERROR, start_task
from linkcrawl.items import Order
from linkcrawl.session import FUTURE, Session
from linkcrawl.stores.history import oldest, prune_windows
from linkcrawl.text import span
from linkcrawl.units import DAY

logger = logging.getLogger(__name__)

#: Seconds between two ticks, also while a continuous crawl has nothing to do. Orders and policies are promised to act
#: within 5 seconds.
TICK, IDLE_TICK = 2.0, 4.0
#: Ticks between two times that host state is saved.
REMEMBER = 2
#: Seconds between two prunings of the history in a continuous crawl.
PRUNE = DAY
#: A time by which every link is due.
EVER = 1e12
#: Hosts whose recheck cycles are computed, and logged one by one.
LARGEST, LOGGED = 1000, 5
#: Links in memory that the store is asked about in one call.
HELD_A_CALL = 5000
#: Seconds between two readings of the backlog in a continuous crawl, and so many times what a reading takes.
REFRESH, REFRESH_COST = 2.0, 50.0


class MaintenanceLoop:
    """Runs from `start` until `close`. The records pipeline logs a store that is lost for a while. `give_up` is called
    when another crawl has taken the store."""

    def __init__(
        self,
        session: Session,
        *,
        bench: Workbench[Task],
        keeper: Gatekeeper,
        router: HostRouter,
        queue: DueQueue,
        feeder: Feeder,
        postponed: PostponedHops,
        requested: RequestedLinks,
        host_states: HostStateSaver,
        clock_follower: ClockFollower,
        engine: Engine,
        give_up: Callable[[StoreLost], None],
    ):
        self._session = session
        self._bench = bench
        self._keeper = keeper
        self._router = router
        self._queue = queue
        self._feeder = feeder
        self._postponed = postponed
        self._requested = requested
        self._host_states = host_states
        self._clock_follower = clock_follower
        self._engine = engine
        self._give_up = give_up
        self._beat_at = session.clock.steady()
        self._task: asyncio.Task[None] | None = None
        self._revision = -1
        self._retirements: int | None = None
        self._refreshed_at = self._next_due = float("-inf")
        self._oldest: float | None = None
        self._pruned_at: float | None = None

    async def start(self) -> None:
        """Take the orders that stand, before anything is handed out; then tick. Raises StoreLost."""
        session = self._session
        self._warn_of_the_future()
        now = session.now()
        links, latest = await session.worker.call(session.store.recall_future, now + FUTURE, now)
        if links:
            logger.warning(
                "%d links were last checked in the future (up to %s ahead): a clock was wrong, or this machine's "
                "is. They count as checked now",
                links,
                span(latest - now),
            )
        self._keeper.take_orders(await session.worker.call(session.store.orders))
        await self._requested.take_up()
        await self.warn_unmeetable_rechecks()
        self._task = start_task("maintenance", self._run(), on_fault=lambda: self._engine.close(INTERNAL_ERROR))

    def _warn_of_the_future(self) -> None:
        ahead = self._session.hosts.take_ahead()
        if ahead and max(ahead.values()) > FUTURE:
            logger.warning(
                "The memory of %d hosts is from the future (up to %s ahead): a clock was wrong, or this "
                "machine's is. It counts as of now; orders stand as they are",
                len(ahead),
                span(max(ahead.values())),
            )

    async def warn_unmeetable_rechecks(self) -> None:
        """Log the hosts that have too many links to be checked within the recheck intervals. Only hosts with the most
        links are looked at, for few links are soon checked. Raises StoreLost."""
        session = self._session
        backlog = await session.worker.call(session.store.backlog, EVER)
        largest = sorted((line for line in backlog if line.host), key=lambda line: -line.due)[:LARGEST]
        links = {line.host: line.due for line in largest}
        late = [
            cycle for cycle in recheck_cycles(links, Gatekeeper(session), session.intervals.ok) if not cycle.can_be_met
        ]
        for cycle in late[:LOGGED]:
            logger.warning(
                "The recheck plan can't be met at %s: %d links at %.3g s take %s a round, and are due again after %s",
                cycle.gate,
                cycle.links,
                cycle.gap,
                span(cycle.seconds),
                span(cycle.interval),
            )
        if len(late) > LOGGED:
            logger.warning("The recheck plan can't be met at %d more hosts", len(late) - LOGGED)

    def close(self) -> None:
        """Tick no more."""
        if self._task is not None:
            self._task.cancel()

    async def prune(self) -> None:
        """Remove records that LINKCRAWL_HISTORY_DAYS doesn't keep, a window of time in each call of the store, so that
        records are stored in between; and robots.txt files that are of no use any more. Raises StoreLost."""
        session, now = self._session, self._session.now()
        days, store = session.config.history_days, session.store
        await session.worker.call(store.forget_robots, now)
        if days == 0:
            return
        if self._oldest is None:
            self._oldest = await session.worker.call(oldest, store)
        if self._oldest is None:
            return
        removed = 0
        for since, until in prune_windows(self._oldest, days, now, self._pruned_at):
            removed += await session.worker.call(store.prune, since, until)
        self._pruned_at = now
        if removed:
            logger.info("History pruned: %d records removed", removed)

    async def _run(self) -> None:
        count = 0
        while True:
            await asyncio.sleep(until_next(IDLE_TICK) if self._is_idle() else TICK)
            count += 1
            try:
                self._check_clock()
                self._warn_of_the_future()
                self._read_policies()
                revision = await self._read_store()
                await self._leave_out_retired()
                self._postponed.review()
                if count % REMEMBER == 0:
                    await self._host_states.save()
                if self._session.arguments.continuous:
                    if self._session.now() - (self._pruned_at or self._session.started_at) > PRUNE:
                        await self.prune()
                    await self._look_for_links(revision)
            except ClaimLost as fault:
                self._give_up(fault)
                return
            except StoreLost as fault:  # the records pipeline logs it
                logger.debug("The store can't be asked: %s", fault)
            except Exception:
                logger.exception("Maintenance met a fault of ours and goes on")

    def _check_clock(self) -> None:
        """Follow the machine's clock where it has been set. After a suspension wake the engine: timers did not run
        meanwhile, and gates may be open."""
        session, beat = self._session, self._session.clock.steady()
        if beat - self._beat_at > 2 * IDLE_TICK:
            self._engine.wake()
        self._beat_at = beat
        jump = session.clock.check_jump()
        if jump is None:
            return
        if jump.adopted:
            self._refreshed_at = self._next_due = float("-inf")
            if self._pruned_at is not None:
                self._pruned_at += jump.seconds
        self._clock_follower.follow(jump)

    def _is_idle(self) -> bool:
        """True while a continuous crawl has nothing to send or to store before links come due or are added."""
        wake = self._bench.next_wake()
        at_rest = (wake is None or wake == float("inf")) and not self._feeder.is_busy and not self._feeder.under_way
        return at_rest and self._session.arguments.continuous

    async def _leave_out_retired(self) -> None:
        """Links that were retired since the last look, while they were in memory, aren't asked any more."""
        session, held = self._session, self._queue.held()
        if not held:
            return
        retirements = await session.worker.call(session.store.retirements)
        if retirements == self._retirements:
            return
        self._retirements = retirements
        for first in range(0, len(held), HELD_A_CALL):
            part = held[first : first + HELD_A_CALL]
            self._queue.retire(await session.worker.call(session.store.retired_among, part))

    async def _look_for_links(self, revision: int) -> None:
        """Read the backlog where another process has added links or a link has come due, as often as costs little."""
        session, store = self._session, self._session.store
        now = session.now()
        if now < self._refreshed_at + REFRESH + REFRESH_COST * self._feeder.refresh_seconds:
            return
        if revision != self._revision or now >= min(self._next_due, self._feeder.again_at):
            self._revision, self._refreshed_at = revision, now
            self._feeder.refresh_backlog()
            next_due = await session.worker.call(store.next_due_at, now)
            self._next_due = float("inf") if next_due is None else next_due

    def _read_policies(self) -> None:
        if self._session.policy_file is None:
            return
        read = self._session.policy_file.poll(self._session.clock.wall())
        if isinstance(read, PolicyError):
            logger.error("The old policies stay in force: %s", read)
        elif read is not None:
            logger.info("Policies read again: %d rules", len(read.rules))
            self._session.policies = read
            self._router.regroup()
            self._feeder.reconsider()
            self._engine.wake()

    async def _read_store(self) -> int:
        """Take people's orders and the links that they have asked for, and return the store's revision, in one visit of
        its thread."""
        store, requested, epoch = self._session.store, self._requested, self._session.lease_epoch
        orders, links, revision = await self._session.worker.call(
            lambda: (store.orders(), requested.read(), store.revision())
        )
        self._take_orders(orders)
        requested.take(links, epoch)
        return revision

    def _take_orders(self, orders: dict[str, Order]) -> None:
        changed = self._keeper.take_orders(orders)
        if changed:
            self._feeder.reconsider()
        for name in changed:
            gate = self._bench.gates.get(name)
            if gate is not None:
                self._keeper.recompute(gate)
                if gate.state is not GateState.IN_FLIGHT:
                    self._bench.retime(gate, gate.wake)
                logger.info("Order for %s: %s", name, self._keeper.wait(name, self._session.now()).why)
                self._engine.wake()
