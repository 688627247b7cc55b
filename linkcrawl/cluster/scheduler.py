"""The scheduler of a worker in a cluster: the one of a crawl alone, for the gates that this worker leases."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from attrs import evolve
from scrapy.http import Request

from linkcrawl.check.procedure import Check, Denial
from linkcrawl.cluster.context import WorkerContext
from linkcrawl.cluster.coordinator import Coordinator
from linkcrawl.cluster.worker import DEATHS, ClusterWorker
from linkcrawl.errors import LeaseLost
from linkcrawl.frontier.gates.workbench import Gate, Lane
from linkcrawl.frontier.ports import context_of
from linkcrawl.frontier.router import Task, limits_of
from linkcrawl.frontier.scheduler import Scheduler
from linkcrawl.items import DueLink, Finished
from linkcrawl.network.resolver import resolver_of

if TYPE_CHECKING:
    from scrapy.crawler import Crawler


class ClusterScheduler(Scheduler):
    """Hands out nothing that it doesn't lease, and keeps nothing that it doesn't lease any more."""

    def __init__(self, crawler: Crawler):
        super().__init__(crawler)
        session = self._session
        self.ledger = Coordinator.connect(session.config.frontier, session.config.lease)
        parts = WorkerContext(
            session=session,
            ledger=self.ledger,
            bench=self.bench,
            keeper=self.keeper,
            queue=self.queue,
            feeder=self.feeder,
            desk=self.desk,
            resolver=resolver_of(crawler, session.config.allowed_networks),
            offer=self._placer.offer,
            place=self._placer.place,
            remember=self.watch.remember,
        )
        self.cluster = ClusterWorker(
            parts,
            pending=self._has_own_work,
            drop=self._drop,
            resume=self._resume,
            take_aside=self._take_aside,
            give_up=self._give_up,
        )
        self._placer.cluster = self.cluster
        self.feeder.feeds = self.cluster.leases.feeds_host
        session.hosts.owned = self.cluster.leases.knows
        #: What is added to outcomes' times, which are read from this machine's clock.
        self._skew = session.now() - time.time()
        self._ending: asyncio.Task[None] | None = None

    async def _open(self) -> None:
        await self.cluster.start()
        await super()._open()

    async def _close(self, reason: str) -> None:
        await self.cluster.close()
        await super()._close(reason)

    def has_pending_requests(self) -> bool:
        return super().has_pending_requests() or not self.cluster.may_end

    def next_request(self) -> Request | None:
        if not self.cluster.holds():
            return None  # the cluster nudges when it has joined again
        return super().next_request()

    def ended(self, request: Request) -> None:
        self._strike(request)  # it may have failed before it was sent
        context = context_of(request)
        outcome = context.outcome
        if outcome is not None and request in self._flying:
            sent, ended = outcome.sent_at + self._skew, outcome.ended_at + self._skew
            context.outcome = outcome = evolve(outcome, sent_at=sent, ended_at=ended)
        if self.cluster.holds() and context.lease_epoch == self._session.lease_epoch:
            super().ended(request)
            return
        gate = self._flying.pop(request, None)
        if gate is not None:  # its pace is another worker's to keep, and it says nothing any more
            if outcome is not None:  # where we stood still we have read its end long after it was
                ended = max(outcome.sent_at, min(outcome.ended_at, self.cluster.lost_at))
                self._endings.audit(gate, request, evolve(outcome, ended_at=ended))
            self.bench.release(gate, max(gate.wake, self._session.now() + gate.delay))

    def owns(self, link_id: int | str) -> bool:
        return self.cluster.holds() and link_id in self.cluster.travels.under_way

    def finish(self, finished: Sequence[Finished]) -> frozenset[int | str]:
        if time.monotonic() >= self.ledger.deadline:
            raise LeaseLost("the leases were over before the store was reached")
        return super().finish(finished)

    def forget(self, link_id: int | str) -> None:
        if link_id in self.cluster.travels.under_way:
            self.cluster.travels.end(link_id)
            super().forget(link_id)

    def numbers(self) -> dict[str, tuple[str, float]]:
        """What metrics tell of a worker: by name, what it is and its value."""
        cluster, ledger = self.cluster, self.ledger
        beat = cluster.beat
        return {
            "leases": ("Gates that this worker leases.", len(cluster.leases)),
            "lease_losses_total": ("Times that this worker lost all its leases.", cluster.losses),
            "workers": (
                "Workers alive, this one included.",
                0 if beat is None else beat.others + 1,
            ),
            "checks_elsewhere": ("Checks of this worker's links that go on at another.", cluster.travels.away),
            "redis_calls_total": ("Scripts that this worker had Redis run.", ledger.calls),
            "redis_seconds_total": ("Seconds that these took, waiting included.", ledger.seconds),
        }

    def _drop(self) -> list[Request]:
        """All is lost: what waits aside goes, and what is in flight is to be cut off."""
        self._aside.clear()
        return list(self._flying)

    def _take_aside(self) -> list[Request]:
        aside, self._aside = self._aside, []
        return aside

    def _has_own_work(self) -> bool:
        return bool(self._flying) or self.feeder.is_fetching or self._has_work()

    def _hand_out(self, request: Request, gate: Gate[Task]) -> Request:
        self.cluster.handed_out(gate.name, request)
        return super()._hand_out(request, gate)

    def _prepare(self, gate: Gate[Task], task: Task, now: float) -> Request | None:
        limits = limits_of(self._session.policies, task)
        if limits and self.cluster.permits.asks(gate, task, self._lane(task), limits):
            return None
        return super()._prepare(gate, task, now)

    def _instead(self, gate: Gate[Task], robots: Request) -> Request | None:
        limits = limits_of(self._session.policies, robots)
        if limits and self.cluster.permits.asks(gate, robots, Lane.HOP, limits):
            return None
        return super()._instead(gate, robots)

    def _lane(self, task: Task) -> Lane:
        if isinstance(task, Request):
            return Lane.HOP
        return Lane.ON_DEMAND if self._session.arguments.recheck else Lane.LINK

    def _tick(self, request: Request, now: float, goes: bool) -> None:
        super()._tick(request, now, goes)
        if not goes:
            self.cluster.permits.struck(request, begun=False)

    def _start_limits(self, request: Request) -> None:
        super()._start_limits(request)
        context = context_of(request)
        if not context.spaced_by and not context.starts_limits:
            return
        started = context.on_sent

        def sent() -> None:
            started()
            self._strike(request)

        context.on_sent = sent

    def _strike(self, request: Request) -> None:
        self.cluster.permits.struck(request, begun=True)

    def _begin(self, link: DueLink, now: float) -> Request | None:
        self.cluster.travels.begin(link)
        begun = self.feeder.under_way
        request = super()._begin(link, now)
        if request is None:
            if self.feeder.under_way == begun:  # it isn't its time
                self.cluster.travels.end(link.id)
            self.cluster.permits.struck(link, begun=False)
            return None
        if not context_of(request).starts_limits:  # rules have changed since it was granted
            self.cluster.permits.struck(link, begun=False)
        if self.cluster.is_parked(link):
            self.cluster.permits.struck(link, begun=False)
            self._emit(self._spider.deny(request, Denial(reason="poison_link", error=f"{DEATHS} workers died over it")))
            return None
        return request

    def _resume(self, link: DueLink, check: Check) -> Request:
        """The next request of a check that comes from another worker; its first one has still to clear its limits."""
        request = self._spider.resume(link, check)
        if not check.hops:
            applied = self._session.policies.of_link(link.host, link.collections, link.providers)
            context_of(request).starts_limits = bool(applied.limits)
        return request

    def _let_go(self, task: Request, link: DueLink) -> None:
        if self.cluster.travels.is_guest(link.id):  # let go of, its home would begin it again at once
            self._placer.place(task, Lane.HOP)
            return
        super()._let_go(task, link)
        self.cluster.travels.end(link.id)

    def _give_up(self) -> None:
        close = self._crawler.engine.close_spider_async(reason="frontier_lost")
        self._ending = self._ending or asyncio.get_running_loop().create_task(close)
