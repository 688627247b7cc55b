"""Scrapy's scheduler interface over the workbench: hands out only what may go now.

The way of a request: due links come from the store, hops from the spider, robots.txt from the robots fetcher; each
waits at its gate; `next_request` takes those whose gates are open, asks policy and robots.txt, and dispatches them.
When a request has ended, in whatever way, the completion handler has its gate open again after its delay.

What goes now is decided here, on the parts that frontier.parts has wired; a worker of a cluster differs by its
Ownership."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Self

from attrs import frozen
from scrapy.core.scheduler import BaseScheduler
from scrapy.http import Headers, Request
from scrapy.utils.defer import deferred_from_coro

from linkcrawl.check.outcome import Failure
from linkcrawl.check.procedure import Denial
from linkcrawl.errors import StoreLost
from linkcrawl.frontier.downloader import request_ended
from linkcrawl.frontier.engine import ScrapyEngine
from linkcrawl.frontier.gates.eta import FrontierStats, frontier_stats
from linkcrawl.frontier.gates.workbench import Gate
from linkcrawl.frontier.parts import Frontier, Membership, build_frontier
from linkcrawl.frontier.ports import Checks, RequestContext, Task, context_of, host_of
from linkcrawl.items import DueLink, Finished, Record
from linkcrawl.network.resolver import resolver_of
from linkcrawl.session import session_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.spiders import Spider
    from twisted.internet.defer import Deferred

logger = logging.getLogger(__name__)

#: As browsers send it when somebody follows a link: servers answer 404 or 406 to a bare `*/*`, and a person would get
#: the page, not the data that a server prefers to send.
ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

#: Records without a request (refused by robots.txt, policy or their URL) that are made before the loop gets its turn.
BURST = 100
#: Seconds between two tests whether our own network, or the store, is back.
STILL_DOWN = 1.0


@frozen(kw_only=True)
class FrontierGauges:
    """For metrics: gates that a back-off slows down, links due as the last reading of the store has it, and whether the
    store is lost."""

    backing_off: int
    backlog: int
    store_lost: bool


class Scheduler(BaseScheduler):
    """The frontier of one crawl, as Scrapy's engine and linkcrawl's other components see it."""

    def __init__(self, frontier: Frontier, ownership: Membership):
        self._frontier = frontier
        self._ownership = ownership
        self._session = frontier.session
        self._engine, self._checks = frontier.engine, frontier.checks
        self._bench, self._keeper, self._queue = frontier.bench, frontier.keeper, frontier.queue
        self._feeder, self._limits, self._robots = frontier.feeder, frontier.limits, frontier.robots
        self._in_flight, self._dispatcher, self._outage = frontier.in_flight, frontier.dispatcher, frontier.outage
        self._watch = frontier.watch
        self._timer: asyncio.TimerHandle | None = None
        config = self._session.config
        # Said with every request, robots.txt and all (RFC 9110, 10.1.2 and 10.1.5).
        self._identity = Headers({"User-Agent": config.user_agent, "From": config.sender, "Accept": ACCEPT})

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """The scheduler of a crawl. Its spider is the frontier's Checks, and says by its `ownership` whether the crawl
        is alone or a worker of a cluster."""
        session = session_of(crawler)
        checks: Checks = crawler.spider  # type: ignore[assignment]
        ownership: Membership = crawler.spider.ownership  # type: ignore[union-attr]
        frontier = build_frontier(
            session,
            engine=ScrapyEngine(crawler),
            checks=checks,
            ownership=ownership,
            resolver=resolver_of(crawler, session.config.allowed_networks),
            stats=crawler.stats,
        )
        crawler.signals.connect(frontier.completion.on_completed, signal=request_ended)
        return cls(frontier, ownership)

    # Scrapy's interface.

    def open(self, spider: Spider) -> Deferred[None]:
        return deferred_from_coro(self._open())

    async def _open(self) -> None:
        self._frontier.withdrawals.resume(memory.host for memory in self._session.hosts)
        await self._ownership.open(self._frontier)
        await self._frontier.maintenance.start()
        if not self._session.takes_up_seeds:
            await self._feeder.refresh_now()

    def close(self, reason: str) -> Deferred[None]:
        return deferred_from_coro(self._close(reason))

    def has_pending_requests(self) -> bool:
        """True while a request is in flight or may go within LINKCRAWL_PATIENCE, links are being fetched, or other
        workers have work."""
        frontier = self._frontier
        if self._session.arguments.continuous or self._feeder.is_busy or frontier.has_work():
            return True
        frontier.postponed.review()  # what has met a block since the last review gets its record before the crawl ends
        return frontier.has_work() or not self._ownership.may_end

    def enqueue_request(self, request: Request) -> bool:
        """Every hop, and any other component's request, waits for the host that it goes to."""
        return self._frontier.router.enqueue(request)

    def next_request(self) -> Request | None:
        """The next request of another component. Those of checks and for robots.txt are dispatched from here."""
        if not self._ownership.may_send():
            return None  # the ownership wakes the engine when it may
        now = self._session.now()
        if self._session.store_lost or not self._session.store.may_send or not self._watch.may_send():
            self._arm(now, least=STILL_DOWN)
            return None
        for _ in range(BURST):
            if self._dispatcher.is_full:
                return None
            taken = self._bench.take(now)
            if taken is None:
                self._arm(now)
                return None
            gate, task = taken
            opens = self._keeper.earliest_for(gate.name, host_of(task), now)
            if opens > now:
                self._not_yet(gate, task, opens)
                continue
            request = self._prepare(gate, task, now)
            if request is None:
                self._bench.release(gate, gate.wake)
                continue
            context = self._hand_out(request, gate, now)
            if context.link is None and context.robots is None and not context.probe:
                return request  # another component's: the engine has the whole way for it
            self._dispatcher.dispatch(request)
            if self._outage.down_since is not None:
                return None  # it was the probe
        asyncio.get_running_loop().call_soon(self._engine.wake)
        return None

    # For the records pipeline.

    async def confirm(self, record: Record) -> bool:
        """True where a record may be kept; False where its failure is our own network's, and the link stays due."""
        return await self._watch.confirm(record)

    def owns(self, link_id: int | str) -> bool:
        """True where a check's record is this crawl's to store."""
        return self._ownership.owns(link_id)

    def store(self, finished: Sequence[Finished]) -> frozenset[int | str]:
        """Store records, in the store's thread. Returns the links whose check another worker has recorded first. Raises
        LeaseLost, StoreLost."""
        self._ownership.ensure_leased()
        return self._session.store.finish(finished)

    def forget(self, link_id: int | str) -> None:
        """The link's record is stored, or it won't be in this crawl."""
        if self._ownership.forget(link_id):
            self._queue.forget(link_id)
            self._feeder.check_ended()
            self._feeder.feed()

    def set_aside(self, link_id: int | str, until: float) -> None:
        """The store can't keep the link's record: don't ask the link again before `until` (Unix seconds)."""
        self._queue.set_aside(link_id, until)

    def check_again(self, finished: Finished) -> None:
        """The check of a link has met our own network's failure, and is begun once more when that is over."""
        link = finished.of
        if link is None:
            self.forget(finished.record.link_id)
        elif self._ownership.forget(link.id):
            self._feeder.check_ended()
            if self._queue.again(link):
                self._frontier.router.place(link)

    @property
    def is_giving_up(self) -> bool:
        """True once the crawl ends because its store is lost."""
        return self._frontier.store_loss.is_final

    def give_up(self, fault: StoreLost) -> None:
        """The store did not come back in LINKCRAWL_PATIENCE: the crawl ends, with `store_lost`."""
        self._frontier.store_loss.give_up(fault)

    # For those who take seeds up.

    def refresh_backlog(self) -> None:
        """New links may be due: read the store's backlog soon."""
        self._feeder.refresh_backlog()

    async def warn_unmeetable_rechecks(self) -> None:
        """Log the hosts whose links are more than the recheck plan leaves time for."""
        await self._frontier.maintenance.warn_unmeetable_rechecks()

    # For those who show the crawl.

    @property
    def in_flight(self) -> list[Request]:
        """Requests handed out that have not ended, longest first; their contexts say since when."""
        return self._in_flight.requests()

    def stats(self, response_time: float) -> FrontierStats:
        """How many gates are in which state, and when the crawl may end. `response_time`: seconds, of the mean."""
        config = self._session.config
        return frontier_stats(
            list(self._bench.gates.values()),
            self._session.now(),
            response_time=response_time,
            concurrency=config.concurrent_requests,
            patience=config.patience,
        )

    def gauges(self) -> FrontierGauges:
        """Further numbers of now. May be called in any thread."""
        gates, hosts = list(self._bench.gates.values()), list(self._queue.hosts.values())
        return FrontierGauges(
            backing_off=sum(self._keeper.is_backing_off(gate.name) for gate in gates),
            backlog=sum(host.due for host in hosts) + len(self._queue),
            store_lost=self._session.store_lost,
        )

    def ownership_metrics(self) -> Mapping[str, tuple[str, float]]:
        """Numbers of a cluster's worker: by name, what it is and its value. May be called in any thread."""
        return self._ownership.metrics()

    # Inside.

    def _may_send(self) -> bool:
        return self._ownership.may_send() and self._session.store.may_send

    def _not_yet(self, gate: Gate[Task], task: Task, opens: float) -> None:
        """It is not this host's time after all. The task waits at its gate where that is its host's own; else the gate
        goes on with its other hosts: a link is met again later, a hop waits aside."""
        self._limits.refund(task)
        if not self._keeper.is_shared(gate.name):
            tenant = self._keeper.tenant(gate.name, host_of(task))
            self._bench.put_back(gate, task, self._limits.names(task), tenant=tenant)
            self._bench.release(gate, opens)
            return
        if isinstance(task, DueLink):
            self._queue.had_turn(task)
            self._queue.defer_host(task, opens)
        else:
            self._frontier.postponed.add(task)
        self._bench.release(gate, gate.wake)

    def _hand_out(self, request: Request, gate: Gate[Task], now: float) -> RequestContext:
        self._in_flight.add(request, gate)
        context, keeper = context_of(request), self._keeper
        host = context.target.host
        tenant = keeper.tenant(gate.name, host)
        context.gate, context.required = gate.name, keeper.required(gate.name, tenant)
        context.quotas = keeper.pacing_limits(gate.name, tenant).quotas
        if context.link is not None or context.robots is not None:  # another component's is sent as it is
            context.address = keeper.address_of(host)
        context.handed_out_at, context.cleared = now, True
        self._keeper.handed_out(gate.name)
        context.may_send = self._may_send
        self._ownership.handed_out(gate.name, request)
        request.meta["download_slot"] = gate.name
        dict.update(request.headers, self._identity)  # in their normal form already
        return context

    def _prepare(self, gate: Gate[Task], task: Task, now: float) -> Request | None:
        """The request to send for a task; None where it has become a record, waits for a robots.txt or for a permit, or
        is deferred."""
        if not self._ownership.acquire_permits(gate, task, self._frontier.router.lane_of(task)):
            return None
        if isinstance(task, DueLink):
            self._note_taken(gate, task)
            request = self._begin(task, now)
            if request is None:
                self._limits.refund(task)
                return None
        else:
            request = task
        if context_of(request).robots is not None:
            self._limits.start(request)
            return request
        answer = self._judge(request, now)
        if answer is request:
            self._limits.start(request)
            return request
        # A request starts its limits when it goes itself: where robots.txt is fetched in its place, that starts those
        # of its host only; where nothing is sent, nothing does.
        self._limits.refund(request)
        self._ownership.return_permits(request)
        if isinstance(answer, Denial):
            if context_of(request).probe:
                return None  # robots.txt has changed since: somebody else is heard
            self._go_on(self._checks.deny(request, answer))
            return None
        if answer is None or not self._ownership.acquire_permits(gate, answer, self._frontier.router.lane_of(answer)):
            return None
        self._limits.start(answer)  # a robots.txt, fetched in the turn of the request that waits for it
        return answer

    def _begin(self, link: DueLink, now: float) -> Request | None:
        """The first request of a link's check. None where it has become a record at once, or where rules of its
        collections say that it isn't its time: then the link stays due, and is met again at a later look."""
        if self._queue.is_retired(link.id):
            self._queue.forget(link.id)
            self._ownership.return_permits(link)
            return None
        applied = self._session.policies.of_link(link.host, link.collections, link.providers)
        opens = inf if applied.paused_by is not None else self._keeper.opens(applied, now)
        if opens > now:
            self._queue.defer(link, opens)
            self._ownership.return_permits(link)
            return None
        self._feeder.check_began()
        denial = self._ownership.begin(link)
        begun = self._checks.begin(link, applied)
        if isinstance(begun, Finished):
            step: Request | Finished = begun
        else:
            context_of(begun).starts_limits = bool(applied.limits)
            if denial is None:
                if not applied.limits:  # rules have changed since it had its permits
                    self._ownership.return_permits(link)
                return begun
            step = self._checks.deny(begun, denial)
        self._ownership.return_permits(link)
        self._go_on(step)
        return None

    def _go_on(self, step: Request | Finished) -> None:
        if isinstance(step, Request):
            self._frontier.router.enqueue(step)
        else:
            self._dispatcher.emit(step)

    def _judge(self, request: Request, now: float) -> Request | Denial | None:
        """What policy and robots.txt say to a request, as RobotsFetcher.check gives it; a fault of ours ends the check
        of this request only."""
        try:
            return self._policy_denial(request) or self._robots.check(request, now)
        except Exception as fault:
            if context_of(request).link is None:
                raise
            logger.exception("A fault of ours kept policies and robots.txt from being applied to %s", request)
            return Denial(reason=Failure.PROTOCOL, error=f"internal error: {type(fault).__name__}")

    def _policy_denial(self, request: Request) -> Denial | None:
        context = context_of(request)
        link = context.link
        if link is None:
            return None
        applied = self._session.policies.of_link(context.target.host, link.collections, link.providers)
        rule = applied.skipped_by(request.url)
        return None if rule is None else Denial(reason="skipped_by_policy", error=f"policy {rule} skips this URL")

    def _note_taken(self, gate: Gate[Task], link: DueLink) -> None:
        gate.backlog = self._queue.hosts[link.host].due
        low = self._queue.had_turn(link)
        if low is not None:
            self._feeder.wants_refill(low)

    def _arm(self, now: float, least: float = 0.0) -> None:
        """Have the engine ask again when the next gate opens, in `least` seconds at the earliest."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        wake = self._bench.next_wake()
        if least:
            wake = now + least if wake is None else max(wake, now + least)
        if wake is not None and wake != inf:
            self._timer = asyncio.get_running_loop().call_later(max(0.0, wake - now), self._engine.wake)

    async def _close(self, reason: str) -> None:
        """Everything that waits is dropped here and stays due in the store."""
        frontier, session = self._frontier, self._session
        await self._ownership.close()
        if self._timer is not None:
            self._timer.cancel()
        self._feeder.close()
        frontier.router.close()
        frontier.robots.close()
        frontier.maintenance.close()
        frontier.host_states.close()
        try:
            await frontier.completion.close()
            await frontier.watch.finish()
            await frontier.host_states.save()
            if reason == "finished":
                frontier.watch.close()
                await frontier.maintenance.prune()
            await session.worker.call(session.store.mark_clean)
        except StoreLost as fault:
            logger.error("The store is lost; the next crawl will wait one full delay at every host: %s", fault)
        finally:
            await asyncio.to_thread(session.worker.close)
