"""The parts of one crawl's frontier, made in one place: each is handed what it needs, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from attrs import frozen

from linkcrawl.frontier.clock_follower import ClockFollower
from linkcrawl.frontier.completion import CompletionHandler
from linkcrawl.frontier.dispatcher import Dispatcher
from linkcrawl.frontier.due_queue import DueQueue
from linkcrawl.frontier.feeder import Feeder
from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import Workbench
from linkcrawl.frontier.host_state_saver import HostStateSaver
from linkcrawl.frontier.in_flight import InFlight
from linkcrawl.frontier.maintenance import MaintenanceLoop
from linkcrawl.frontier.network_watch import NetworkWatch
from linkcrawl.frontier.ports import Checks, Engine, Ownership, Task
from linkcrawl.frontier.postponed import PostponedHops
from linkcrawl.frontier.requested import RequestedLinks
from linkcrawl.frontier.robots_fetcher import RobotsFetcher
from linkcrawl.frontier.router import HostRouter
from linkcrawl.frontier.shared_limits import SharedLimits
from linkcrawl.frontier.store_loss import StoreLoss
from linkcrawl.frontier.withdrawals import Withdrawals
from linkcrawl.network.resolver import Resolver
from linkcrawl.politeness.outage import OutageDetector
from linkcrawl.session import Session

if TYPE_CHECKING:
    from scrapy.statscollectors import StatsCollector


@frozen(kw_only=True)
class Frontier:
    """The parts. A cluster's Ownership uses them as the scheduler does."""

    session: Session
    checks: Checks
    engine: Engine
    bench: Workbench[Task]
    keeper: Gatekeeper
    queue: DueQueue
    feeder: Feeder
    limits: SharedLimits
    router: HostRouter
    resolver: Resolver
    robots: RobotsFetcher
    in_flight: InFlight
    postponed: PostponedHops
    clock_follower: ClockFollower
    dispatcher: Dispatcher
    completion: CompletionHandler
    outage: OutageDetector
    watch: NetworkWatch
    host_states: HostStateSaver
    maintenance: MaintenanceLoop
    withdrawals: Withdrawals
    store_loss: StoreLoss

    def has_work(self) -> bool:
        """True while something is in flight or being stored, a gate opens within LINKCRAWL_PATIENCE, or our own network
        is down and may come back."""
        if self.dispatcher.is_busy or self.router.is_looking_up or self.robots.is_looking_up:
            return True
        now, patience = self.session.now(), self.session.config.patience
        wake = self.bench.next_wake()
        if self.outage.down_since is not None:
            return wake is not None and not self.watch.is_over
        return wake is not None and wake <= now + patience


class Membership(Ownership, Protocol):
    """An Ownership that is opened and closed. Only `metrics` may be called before `open`."""

    async def open(self, frontier: Frontier) -> None:
        """The crawl opens; these parts are at work from now on."""

    async def close(self) -> None:
        """The crawl ends: give back what is owned."""


def build_frontier(
    session: Session, *, engine: Engine, checks: Checks, ownership: Ownership, resolver: Resolver, stats: StatsCollector
) -> Frontier:
    """The parts of a crawl's frontier, wired."""
    bench: Workbench[Task] = Workbench()
    keeper = Gatekeeper(session)
    queue = DueQueue(session.narrow, session.due_before, session.arguments.limit)
    limits = SharedLimits(session, bench, keeper, ownership)
    in_flight = InFlight(bench)
    router = HostRouter(
        session,
        bench=bench,
        keeper=keeper,
        limits=limits,
        in_flight=in_flight,
        resolver=resolver,
        ownership=ownership,
        engine=engine,
    )
    store_loss = StoreLoss(engine)
    feeder = Feeder(
        session,
        queue=queue,
        ownership=ownership,
        engine=engine,
        deliver=router.place_links,
        give_up=store_loss.give_up,
    )
    outage = OutageDetector(session.now, hosts=lambda: max(len(bench.gates), len(queue.hosts)))
    watch = NetworkWatch(
        session,
        outage=outage,
        bench=bench,
        in_flight=in_flight,
        router=router,
        names=resolver,
        engine=engine,
        stats=stats,
    )
    host_states = HostStateSaver(session, ownership)
    withdrawals = Withdrawals(session, keeper)
    completion = CompletionHandler(
        session,
        bench=bench,
        keeper=keeper,
        in_flight=in_flight,
        outage=outage,
        watch=watch,
        host_states=host_states,
        ownership=ownership,
        relocate=router.relocate,
        stats=stats,
        withdrawals=withdrawals,
    )
    dispatcher = Dispatcher(engine, enqueue=router.enqueue, relocate=router.relocate, ended=completion.on_completed)
    postponed = PostponedHops(
        session,
        bench=bench,
        keeper=keeper,
        queue=queue,
        feeder=feeder,
        router=router,
        dispatcher=dispatcher,
        checks=checks,
        ownership=ownership,
    )
    clock_follower = ClockFollower(session, bench=bench, keeper=keeper, feeder=feeder, outage=outage, engine=engine)
    requested = RequestedLinks(session, queue=queue, feeder=feeder, router=router, ownership=ownership, engine=engine)
    maintenance = MaintenanceLoop(
        session,
        bench=bench,
        keeper=keeper,
        router=router,
        queue=queue,
        feeder=feeder,
        postponed=postponed,
        requested=requested,
        host_states=host_states,
        clock_follower=clock_follower,
        engine=engine,
        give_up=store_loss.give_up,
    )
    return Frontier(
        session=session,
        checks=checks,
        engine=engine,
        bench=bench,
        keeper=keeper,
        queue=queue,
        feeder=feeder,
        limits=limits,
        router=router,
        resolver=resolver,
        robots=RobotsFetcher(session, router, outage),
        in_flight=in_flight,
        postponed=postponed,
        clock_follower=clock_follower,
        dispatcher=dispatcher,
        completion=completion,
        outage=outage,
        watch=watch,
        host_states=host_states,
        maintenance=maintenance,
        withdrawals=withdrawals,
        store_loss=store_loss,
    )
