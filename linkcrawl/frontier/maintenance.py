"""What a running crawl looks after now and then: the policy file, orders of people, new links, host memory."""

from __future__ import annotations

import asyncio
import logging

from linkcrawl.errors import PolicyError, StoreLost
from linkcrawl.frontier.clock_follower import ClockFollower
from linkcrawl.frontier.feeder import Feeder
from linkcrawl.frontier.gates.eta import recheck_cycles
from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import GateState, Workbench
from linkcrawl.frontier.host_state_saver import HostStateSaver
from linkcrawl.frontier.ports import Engine, Task
from linkcrawl.frontier.postponed import PostponedHops
from linkcrawl.frontier.router import HostRouter
from linkcrawl.session import FUTURE, Session
from linkcrawl.stores.history import oldest, prune_windows
from linkcrawl.text import span

logger = logging.getLogger(__name__)

#: Seconds between two looks at orders and the policy file; they act within 5 seconds (the contract's).
WATCH = 2.0
#: Looks between two times that host memory is stored.
REMEMBER = 2
#: Seconds between two thinnings of the history in a continuous crawl.
THIN = 86400.0
#: A time by which every link is due.
EVER = 1e12
#: Hosts whose recheck_cycles are worked out, and told of one by one.
LARGEST, TOLD = 1000, 5
#: A continuous crawl looks for due links after so many seconds at the earliest, and so many times what a look takes.
LEAST_BETWEEN, LOOKS_COST = 2.0, 50.0


class MaintenanceLoop:
    """Runs from `start` until `close`. The records pipeline logs a store that is lost for a while."""

    def __init__(
        self,
        session: Session,
        *,
        bench: Workbench[Task],
        keeper: Gatekeeper,
        router: HostRouter,
        feeder: Feeder,
        postponed: PostponedHops,
        host_states: HostStateSaver,
        clock_follower: ClockFollower,
        engine: Engine,
    ):
        self._session = session
        self._bench = bench
        self._keeper = keeper
        self._router = router
        self._feeder = feeder
        self._postponed = postponed
        self._host_states = host_states
        self._clock_follower = clock_follower
        self._engine = engine
        self._beat_at = session.clock.steady()
        self._task: asyncio.Task[None] | None = None
        self._revision = -1
        self._looked = self._next_due = float("-inf")
        self._oldest: float | None = None
        self._thinned_at: float | None = None

    async def start(self) -> None:
        """The orders that stand, before anything is handed out; then a look every few seconds."""
        session = self._session
        self._tell_of_the_future()
        now = session.now()
        links, latest = await session.worker.call(session.store.recall_future, now + FUTURE, now)
        if links:
            logger.warning(
                "%d links were last checked at a time to come (up to %s ahead): a clock was wrong, or this machine's "
                "is. They count as checked now",
                links,
                span(latest - now),
            )
        self._keeper.take_orders(await session.worker.call(session.store.orders))
        await self.warn_unmeetable_rechecks()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def _tell_of_the_future(self) -> None:
        ahead = self._session.hosts.take_ahead()
        if ahead and max(ahead.values()) > FUTURE:
            logger.warning(
                "What is remembered of %d hosts is of a time to come (up to %s ahead): a clock was wrong, or this "
                "machine's is. It counts as of now; orders stand as they are",
                len(ahead),
                span(max(ahead.values())),
            )

    async def warn_unmeetable_rechecks(self) -> None:
        """Say which hosts have more links than the recheck plan leaves time for. It is asked at the start and when
        seeds have been taken up; of hosts with the most links, for few links are no long round."""
        session = self._session
        backlog = await session.worker.call(session.store.backlog, EVER)
        largest = sorted((line for line in backlog if line.host), key=lambda line: -line.due)[:LARGEST]
        links = {line.host: line.due for line in largest}
        late = [
            each for each in recheck_cycles(links, Gatekeeper(session), session.intervals.ok) if not each.can_be_met
        ]
        for each in late[:TOLD]:
            logger.warning(
                "The recheck plan can't be met at %s: %d links at %.3g s take %s a round, and are due again after %s",
                each.gate,
                each.links,
                each.gap,
                span(each.seconds),
                span(each.interval),
            )
        if len(late) > TOLD:
            logger.warning("The recheck plan can't be met at %d more hosts", len(late) - TOLD)

    def close(self) -> None:
        """Look no more."""
        if self._task is not None:
            self._task.cancel()

    async def thin(self) -> None:
        """Thin the history that is older than LINKCRAWL_HISTORY_DAYS, a stretch at a time: records go on being stored
        in between."""
        session, now = self._session, self._session.now()
        days, store = session.config.history_days, session.store
        if days == 0:
            return
        if self._oldest is None:
            self._oldest = await session.worker.call(oldest, store)
        if self._oldest is None:
            return
        removed = 0
        for since, until in prune_windows(self._oldest, days, now, self._thinned_at):
            removed += await session.worker.call(store.prune, since, until)
        self._thinned_at = now
        if removed:
            logger.info("History thinned: %d records removed", removed)

    async def _run(self) -> None:
        count = 0
        while True:
            await asyncio.sleep(WATCH)
            count += 1
            try:
                self._check_clock()
                self._tell_of_the_future()
                self._read_policies()
                await self._take_orders()
                self._postponed.review()
                if count % REMEMBER == 0:
                    await self._host_states.save()
                if self._session.arguments.continuous:
                    if self._session.now() - (self._thinned_at or self._session.started_at) > THIN:
                        await self.thin()
                    await self._look_for_links()
            except StoreLost as fault:  # the records pipeline tells of it
                logger.debug("The store can't be asked: %s", fault)
            except Exception:
                logger.exception("The watch met a fault of ours and goes on")

    def _check_clock(self) -> None:
        """See whether the machine's clock has been set. After a suspension gates may be open whose timer isn't over: it
        did not run meanwhile."""
        session, beat = self._session, self._session.clock.steady()
        if beat - self._beat_at > 2 * WATCH:
            self._engine.wake()
        self._beat_at = beat
        jump = session.clock.check_jump()
        if jump is None:
            return
        if jump.adopted:
            self._looked = self._next_due = float("-inf")
            if self._thinned_at is not None:
                self._thinned_at += jump.seconds
        self._clock_follower.follow(jump)

    async def _look_for_links(self) -> None:
        """Look where another process has added links or a link has come due, and no oftener than it costs little."""
        session, store = self._session, self._session.store
        now = session.now()
        if now < self._looked + LEAST_BETWEEN + LOOKS_COST * self._feeder.refresh_seconds:
            return
        revision = await session.worker.call(store.revision)
        if revision != self._revision or now >= min(self._next_due, self._feeder.again_at):
            self._revision, self._looked = revision, now
            self._feeder.refresh_backlog()
            next_due = await session.worker.call(store.next_due_at, now)
            self._next_due = float("inf") if next_due is None else next_due

    def _read_policies(self) -> None:
        if self._session.policy_file is None:
            return
        read = self._session.policy_file.poll(self._session.clock.wall())
        if isinstance(read, PolicyError):
            logger.error("The policies of before stay in force: %s", read)
        elif read is not None:
            logger.info("Policies read anew: %d rules", len(read.rules))
            self._session.policies = read
            self._router.regroup()
            self._feeder.reconsider()
            self._engine.wake()

    async def _take_orders(self) -> None:
        orders = await self._session.worker.call(self._session.store.orders)
        changed = self._keeper.take_orders(orders)
        if changed:
            self._feeder.reconsider()
        for name in changed:
            gate = self._bench.gates.get(name)
            if gate is not None:
                self._keeper.recompute(gate)
                if gate.place is not GateState.IN_FLIGHT:
                    self._bench.retime(gate, gate.wake)
                logger.info("Order for %s: %s", name, self._keeper.wait(name, self._session.now()).why)
                self._engine.wake()
