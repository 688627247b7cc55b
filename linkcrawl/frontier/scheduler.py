"""Scrapy's scheduler interface over the workbench: hands out only what may go now.

The way of a request: due links come from the local queue, hops from the spider, robots.txt from the robots desk; each
waits in its gate; `next_request` takes those whose gates are open, asks policy and robots.txt, and has them asked.
`ended` (called by the downloader, whatever happened) opens the gate again after its delay.

The file is longer than others because everything here is one decision, what goes now, taken on one state; what can be
decided apart from that (gates, places, robots.txt, feeding, endings) has rooms of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Self

from scrapy.core.scheduler import BaseScheduler
from scrapy.http import Headers, Request
from scrapy.utils.defer import deferred_from_coro

from linkcrawl import urls
from linkcrawl.check.outcome import Failure
from linkcrawl.check.procedure import Denial
from linkcrawl.clock import Jump
from linkcrawl.config import LOCAL
from linkcrawl.errors import StoreLost
from linkcrawl.frontier.completion import CompletionHandler
from linkcrawl.frontier.dispatcher import Dispatcher
from linkcrawl.frontier.downloader import downloader_of
from linkcrawl.frontier.due_queue import DueQueue, HostQueue
from linkcrawl.frontier.feeder import Feeder
from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import Gate, GateState, Lane, Workbench
from linkcrawl.frontier.maintenance import WATCH, MaintenanceLoop
from linkcrawl.frontier.outage import OutageDetector
from linkcrawl.frontier.ports import RequestContext, context_of
from linkcrawl.frontier.robots_fetcher import RobotsFetcher
from linkcrawl.frontier.router import HostRouter, Task, host_of, limits_of
from linkcrawl.items import DueLink, Finished
from linkcrawl.network.resolver import resolver_of
from linkcrawl.network.transport import CONTEXT
from linkcrawl.politeness.robots.cache import RobotsEntry
from linkcrawl.session import Session, session_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.spiders import Spider
    from twisted.internet.defer import Deferred

    from linkcrawl.spiders.resourceproxies import ResourceProxies

logger = logging.getLogger(__name__)

#: As browsers send it when somebody follows a link: servers answer 404 or 406 to a bare `*/*`, and a person would get
#: the page, not the data that a server prefers to send.
ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

#: Records without a request (refused by robots.txt, policy or their URL) that are made before the loop gets its turn.
BURST = 100


class Scheduler(BaseScheduler):
    """The frontier of one crawl, as Scrapy's engine sees it."""

    def __init__(self, crawler: Crawler):
        self._crawler = crawler
        self._session: Session = session_of(crawler)
        session = self._session
        session.wake_engine = self._wake_engine
        self.bench: Workbench[Task] = Workbench()
        self.queue = DueQueue(session.narrow(), session.due_before, session.arguments.limit)
        self.keeper = Gatekeeper(session)
        self.desk = RobotsFetcher(session, self.enqueue_request, self._robots_decided, self._robots_put_off)
        self.doubt = OutageDetector(session.now)
        self.feeder = Feeder(session, self.queue, self._deliver)
        self.feeder.give_up = self.give_up
        self._giving_up: asyncio.Task[None] | None = None
        self._began_at = session.started_at  # moves with the clock
        resolver = resolver_of(crawler, session.config.allowed_networks)
        self._placer = HostRouter(session, self.bench, self.keeper, resolver)
        self._endings = CompletionHandler(crawler, session, self.keeper, self.doubt)
        self.watch = MaintenanceLoop(
            session,
            self.bench,
            self.keeper,
            self._placer,
            self.feeder,
            self.let_go_of_blocked,
            self._clock_jumped,
        )
        self._endings.on_backpressure = self.watch.remember_soon
        self._flying: dict[Request, Gate[Task]] = {}
        self._moved: dict[Request, Gate[Task]] = {}  # the gates that their hosts have come to meanwhile
        self._placer.regrouped = self._hold_moved
        self._aside: list[Request] = []  # hops to hosts whose time it isn't, while their gate goes on
        self._timer: asyncio.TimerHandle | None = None
        self._asker = Dispatcher(crawler, self.enqueue_request)
        config = session.config
        # Said with every request, robots.txt and all (RFC 9110, 10.1.2 and 10.1.5).
        self._identity = Headers({"User-Agent": config.user_agent, "From": config.sender, "Accept": ACCEPT})

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        if session_of(crawler).config.frontier == LOCAL:
            return cls(crawler)
        from linkcrawl.cluster.scheduler import ClusterScheduler  # it needs the extra `redis`

        return ClusterScheduler(crawler)  # type: ignore[return-value]

    # Scrapy's interface.

    def open(self, spider: Spider) -> Deferred[None]:
        return deferred_from_coro(self._open())

    async def _open(self) -> None:
        downloader_of(self._crawler).ended = self.ended
        await self.watch.start()
        await self.feeder.refresh_now()

    def close(self, reason: str) -> Deferred[None]:
        return deferred_from_coro(self._close(reason))

    def has_pending_requests(self) -> bool:
        """Whether waiting makes sense: something is being fetched, or may go within the crawl's patience."""
        if self._session.arguments.continuous or self.feeder.is_busy or self._has_work():
            return True
        self.let_go_of_blocked()  # what has met a block since the last look gets its record before the crawl ends
        return self._has_work()

    def _has_work(self) -> bool:
        session = self._session
        if self._asker.is_busy or self._placer.is_looking_up:
            return True
        wake = self.bench.next_wake()
        down = self.doubt.down_since
        if down is not None and session.now() - down > session.config.patience:
            return False
        return wake is not None and wake <= session.now() + session.config.patience

    def enqueue_request(self, request: Request) -> bool:
        """Every hop, and any other request of the spider, waits for the host that it goes to."""
        if CONTEXT not in request.meta:
            target = urls.read(request.url)
            if isinstance(target, urls.Refused):
                return False
            request.meta[CONTEXT] = RequestContext(target=target, lease_epoch=self._session.lease_epoch)
        self._placer.place(request, Lane.HOP)
        return True

    def next_request(self) -> Request | None:
        now = self._session.now()
        if self._session.store_lost:
            return None
        if not self.doubt.may_send():
            self._arm(now, least=1.0)
            return None
        for _ in range(BURST):
            if self._asker.is_full:
                return None
            taken = self.bench.take(now)
            if taken is None:
                self._arm(now)
                return None
            gate, task = taken
            opens = self.keeper.earliest_for(gate.name, host_of(task), now)
            if opens > now:
                self._not_yet(gate, task, opens, now)
                continue
            request = self._prepare(gate, task, now)
            if request is None:
                self.bench.release(gate, gate.wake)
                continue
            self._hand_out(request, gate)
            context = context_of(request)
            if context.link is None and context.robots is None:
                return request  # another component's: the engine has the whole way for it
            self._asker.ask(request)
            if self.doubt.down_since is not None:
                return None  # it was the probe
        asyncio.get_running_loop().call_soon(self._wake_engine)
        return None

    def _not_yet(self, gate: Gate[Task], task: Task, opens: float, now: float) -> None:
        """It is not this host's time after all. It waits in its gate where that is its own; else the gate goes on with
        its other hosts: a link is met again later, a hop waits aside."""
        limits = self._limit_names(task)
        self.bench.refund(limits, now)
        if not self.keeper.is_shared(gate.name):
            self.bench.put_back(gate, task, limits)
            self.bench.release(gate, opens)
            return
        if isinstance(task, DueLink):
            self.queue.took(task)
            self.queue.defer_host(task, opens)
        else:
            self._aside.append(task)
        self.bench.release(gate, gate.wake)

    # What others of the project call.

    @property
    def in_flight(self) -> list[Request]:
        """Requests handed out that have not ended, longest first; their contexts say since when."""
        return list(self._flying)

    def ended(self, request: Request) -> None:
        """The request has ended, in whatever way; its gate opens after its delay. Called twice, it does nothing."""
        gate, moved = self._flying.pop(request, None), self._moved.pop(request, None)
        if gate is None:
            return
        answered = context_of(request).outcome is not None
        wake = self._endings.note(gate, request) if answered else gate.wake
        if moved is not None:
            self.bench.release(moved, self._endings.note_moved(moved, request) if answered else moved.wake)
        self.bench.release(gate, wake)

    def _hold_moved(self) -> None:
        """Hosts have come to other gates: those stay closed while a request to the host is in flight."""
        for request, gate in self._flying.items():
            held, now = self._moved.pop(request, None), self._placer.gate(host_of(request))
            if now is not gate:
                self.bench.hold(now)
                self._moved[request] = now
            if held is not None:
                self.bench.release(held, held.wake)

    def owns(self, link_id: int | str) -> bool:
        """Whether a check's record is this crawl's to store."""
        return True

    def finish(self, finished: Sequence[Finished]) -> frozenset[int | str]:
        """Store records, in the store's thread; the links whose check another worker has recorded first."""
        return self._session.store.finish(finished)

    def forget(self, link_id: int | str) -> None:
        """The link's record is stored, or it won't be in this crawl."""
        self.queue.forget(link_id)
        self.feeder.under_way -= 1
        self.feeder.feed()

    @property
    def is_giving_up(self) -> bool:
        """Whether the crawl ends because its store is lost."""
        return self._giving_up is not None

    def give_up(self, fault: StoreLost) -> None:
        """The store did not come back in LINKCRAWL_PATIENCE: the crawl ends, with `store_lost`."""
        if self._giving_up is None:
            logger.error("The store did not come back in LINKCRAWL_PATIENCE, the crawl ends: %s", fault)
            close = self._crawler.engine.close_spider_async(reason="store_lost")
            self._giving_up = asyncio.get_running_loop().create_task(close)

    # Inside.

    def _hand_out(self, request: Request, gate: Gate[Task]) -> Request:
        self._flying[request] = gate
        context = context_of(request)
        context.gate, context.required = gate.name, self.keeper.required(gate.name)
        context.handed_out_at, context.cleared = self._session.now(), True
        self.keeper.handed_out(gate.name)
        request.meta["download_slot"] = gate.name
        dict.update(request.headers, self._identity)  # in their normal form already
        return request

    def _prepare(self, gate: Gate[Task], task: Task, now: float) -> Request | None:
        """The request to send for a task; None where it has become a record, waits for robots.txt, or passes."""
        if isinstance(task, DueLink):
            self._note_taken(gate, task)
            request = self._begin(task, now)
            if request is None:
                self.bench.refund(self._limit_names(task), now)
                return None
        else:
            request = task
        if self.desk.is_robots(request):
            self._start_limits(request)
            return request
        answer = self._judge(request, now)
        self._tick(request, now, goes=answer is request)
        if isinstance(answer, Denial):
            self._emit(self._spider.deny(request, answer))
            return None
        return answer if answer is None or answer is request else self._instead(gate, answer)

    def _instead(self, gate: Gate[Task], robots: Request) -> Request | None:
        """A robots.txt is fetched first, in the turn of the request that waits for it."""
        self._start_limits(robots)
        return robots

    def _tick(self, request: Request, now: float, goes: bool) -> None:
        """A request starts its limits when it goes itself: not when robots.txt is fetched in its place, which starts
        those of its host only, and not where nothing is sent."""
        if goes:
            self._start_limits(request)
        else:
            self.bench.refund(self._limit_names(request), now)

    def _start_limits(self, request: Request) -> None:
        """What goes counts for the day at once: others may be handed out before it is sent."""
        limits = limits_of(self._session.policies, request)
        context = context_of(request)
        if not limits and not context.starts_limits:  # where policies have changed, it had some
            return
        for limit in limits:
            self.keeper.limit_started(limit.name)
            self.bench.set_limit(limit.name, limit.delay, self.keeper.limit_opens(limit))
        names = tuple(limit.name for limit in limits)
        context.spaced_by = tuple((limit.name, limit.delay) for limit in limits)
        context.on_sent = lambda: self._sent(names)

    def _limit_names(self, task: Task) -> tuple[str, ...]:
        return tuple(limit.name for limit in limits_of(self._session.policies, task))

    def _sent(self, limits: tuple[str, ...]) -> None:
        """What the limits space has begun: what comes next counts from now, however late a busy machine has sent it."""
        self.bench.commit(limits, self._session.now())
        for name in limits:
            self.keeper.limit_started(name, counts=False)

    def _begin(self, link: DueLink, now: float) -> Request | None:
        """The first request of a link's check. Nothing where rules of its collections say that it isn't its time: the
        link stays due, and is met again at the next look."""
        applied = self._session.policies.of_link(link.host, link.collections, link.providers)
        opens = inf if applied.paused_by is not None else self.keeper.availability.opens(applied, now)
        if opens > now:
            self.queue.defer(link, opens)
            return None
        self.feeder.under_way += 1
        begun = self._spider.begin(link, applied)
        if isinstance(begun, Finished):
            self._emit(begun)
            return None
        context_of(begun).starts_limits = bool(applied.limits)
        return begun

    def _judge(self, request: Request, now: float) -> Request | Denial | None:
        """What policy and robots.txt say to a request, as RobotsFetcher.ask gives it; a fault of ours ends the check of
        this request only."""
        try:
            return self._policy_bar(request) or self.desk.ask(request, now)
        except Exception as fault:
            if context_of(request).link is None:
                raise
            logger.exception("Policy and robots.txt can't be asked about %s", request)
            return Denial(reason=Failure.PROTOCOL, error=f"internal error: {type(fault).__name__}")

    def _policy_bar(self, request: Request) -> Denial | None:
        context = context_of(request)
        link = context.link
        if link is None:
            return None
        applied = self._session.policies.of_link(context.target.host, link.collections, link.providers)
        rule = applied.skipped_by(request.url)
        return None if rule is None else Denial(reason="skipped_by_policy", error=f"policy {rule} skips this URL")

    def let_go_of_blocked(self) -> None:
        """Checks that were asked elsewhere before, and whose next hop goes to a host that no time opens: where a person
        or the ban circuit has blocked it they end as `host_blocked`; where it is paused they are let go of without a
        record. Links of the host itself wait, and stay due."""
        aside, self._aside = self._aside, []
        waiting: list[tuple[Lane, Task]] = [(Lane.HOP, request) for request in aside]
        now = self._session.now()
        for gate in [gate for gate in self.bench.gates.values() if gate.lanes[Lane.HOP] and gate.wake > now]:
            if gate.wake == inf or self.keeper.pace(gate.name).blocked_since is not None:
                waiting += self.bench.drain(gate)
        for lane, task in waiting:
            self._place_or_let_go(lane, task)

    def _place_or_let_go(self, lane: Lane, task: Task) -> None:
        host, now = host_of(task), self._session.now()
        gate = self._placer.gate(host).name
        opens = self.keeper.host_wait(gate, host, now).at
        link = context_of(task).link if isinstance(task, Request) else None
        shut = self.keeper.is_shut(gate, host, now)
        if isinstance(task, DueLink) or not shut or link is None or link.host in self.keeper.members(gate):
            if isinstance(task, Request) and self.keeper.is_shared(gate) and opens > now + WATCH:
                self._aside.append(task)
            else:
                self._placer.place(task, lane)
        elif self.keeper.availability.is_paused(host):
            self._let_go(task, link)
        else:
            self._emit(self._spider.deny(task, Denial(reason="host_blocked", error=f"{host} is blocked")))

    def _let_go(self, task: Request, link: DueLink) -> None:
        """A check ends without a record; its link stays due."""
        self.feeder.under_way -= 1
        self.queue.defer(link)

    def _note_taken(self, gate: Gate[Task], link: DueLink) -> None:
        gate.backlog = self.queue.hosts[link.host].due
        hungry = self.queue.took(link)
        if hungry is not None:
            self.feeder.wants_refill(hungry)

    def _deliver(self, queue: HostQueue, links: list[DueLink]) -> None:
        lane = Lane.ON_DEMAND if self._session.arguments.recheck else Lane.LINK
        for link in links:
            self._placer.place(link, lane)

    def _robots_decided(self, authority: str, entry: RobotsEntry, waiting: list[Request]) -> None:
        """robots.txt of an authority is known: its host's gate keeps it, and what waited for it has its turn again."""
        self._renew_for(authority, waiting)

    def _clock_jumped(self, jump: Jump) -> None:
        """The machine's clock has been set. Whatever the truth is, no delay may come out shorter for it: every host
        waits one full delay; where the crawl's own time has moved, all that is remembered of it moves along."""
        if jump.adopted:
            self._move_times(jump.seconds)
        now = self._session.now()
        for gate in self.bench.gates.values():
            self.keeper.recompute(gate)
            if gate.place is not GateState.IN_FLIGHT:
                self.bench.retime(gate, max(gate.wake, now + gate.delay))
        logger.warning(
            "The machine's clock has been set by %+.0f s%s. Every host waits one full delay",
            jump.seconds,
            ", and this crawl's time with it" if jump.adopted else "; hours are kept by both readings until it is sure",
        )
        self._session.wake_engine()

    def _move_times(self, seconds: float) -> None:
        session = self._session
        self.bench.shift(seconds)
        self.keeper.shift(seconds, self._began_at)
        self.doubt.shift(seconds)
        self._began_at += seconds
        if session.started_at > session.now():  # else links would count as checked before the crawl, again and again
            session.started_at = session.now()
        self.queue.narrow(session.narrow())
        self.feeder.reconsider()

    def _robots_put_off(self, authority: str, until: float, waiting: list[Request]) -> None:
        """robots.txt of an authority is to be asked for again: its host is left alone until then."""
        host = urls.read(authority)
        if isinstance(host, urls.Target):
            self.keeper.availability.put_off[host.host] = until
        self._renew_for(authority, waiting)

    def _renew_for(self, authority: str, waiting: list[Request]) -> None:
        host = urls.read(authority)
        if isinstance(host, urls.Target):
            gate = self._placer.gate(host.host)
            self.keeper.recompute(gate)
            self.bench.retime(gate, gate.wake)  # it may be waiting already, for the delay of before
        for request in reversed(waiting):
            self._placer.place(request, Lane.HOP, first=True)

    def _emit(self, finished: Finished) -> None:
        """A record that needed no request goes to the pipelines by itself."""
        self._asker.emit(finished)

    @property
    def _spider(self) -> ResourceProxies:
        return self._crawler.spider  # type: ignore[return-value]

    def _arm(self, now: float, least: float = 0.0) -> None:
        """Have the engine ask again when the next gate opens."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        wake = self.bench.next_wake()
        if wake is not None and wake != inf:
            self._timer = asyncio.get_running_loop().call_later(max(least, wake - now), self._wake_engine)

    def _wake_engine(self) -> None:
        self._asker.wake_engine()

    async def _close(self, reason: str) -> None:
        """Everything that waits is dropped here and stays due in the store."""
        session = self._session
        if self._timer is not None:
            self._timer.cancel()
        self.feeder.close()
        self._placer.close()
        self.watch.close()
        try:
            await self._endings.close()
            await self.watch.remember()
            if reason == "finished":
                await self.watch.thin()
            await session.worker.call(session.store.mark_clean)
        except StoreLost as fault:
            logger.error("The store is lost; the next crawl will wait one full delay at every host: %s", fault)
        finally:
            await asyncio.to_thread(session.worker.close)
