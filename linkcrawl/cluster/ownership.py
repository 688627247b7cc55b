"""The frontier's Ownership in a cluster: a gate is this worker's to use while it leases it."""

from __future__ import annotations

import time
from collections.abc import Mapping

from attrs import evolve
from scrapy.http import Request

from linkcrawl.check.procedure import Denial
from linkcrawl.clock import boot_time
from linkcrawl.cluster.coordinator import Coordinator
from linkcrawl.cluster.worker import DEATHS, ClusterWorker
from linkcrawl.errors import LeaseLost
from linkcrawl.frontier.gates.workbench import Gate, Lane
from linkcrawl.frontier.parts import Frontier
from linkcrawl.frontier.ports import RoutedTask, Task, context_of
from linkcrawl.items import DueLink
from linkcrawl.session import Session


class ClusterOwnership:
    """`frontier.parts.Membership` of a worker. The worker itself is made when the crawl opens, on the frontier's
    parts."""

    def __init__(self, session: Session, coordinator: Coordinator):
        self._session = session
        self._coordinator = coordinator
        self._opened: ClusterWorker | None = None
        #: Seconds that are added to outcomes' times, which are read from this machine's clock.
        self._clock_offset = session.now() - time.time()

    async def open(self, frontier: Frontier) -> None:
        self._opened = ClusterWorker(frontier, self._coordinator)
        await self._opened.start()

    async def close(self) -> None:
        await self._worker.close()

    @property
    def _worker(self) -> ClusterWorker:
        assert self._opened is not None
        return self._opened

    @property
    def may_end(self) -> bool:
        return self._worker.may_end

    def may_send(self) -> bool:
        """The worker wakes the engine when it has joined again and leases a gate."""
        return self._worker.has_session()

    def owns(self, link_id: int | str) -> bool:
        return self._worker.has_session() and link_id in self._worker.transfers.under_way

    def feeds_host(self, host: str) -> bool:
        return self._worker.table.feeds_host(host)

    def links_are_due(self) -> None:
        self._worker.stir()

    def keeps_state_of(self, name: str) -> bool:
        return self._worker.table.knows(name)

    async def place_host(self, host: str) -> bool:
        await self._worker.locate(host)
        return True

    def relocates(self, host: str, addresses: tuple[str, ...]) -> bool:
        self._worker.leases.relocate(host, addresses)
        return True

    def routes_elsewhere(self, gate: str, routed: RoutedTask) -> bool:
        return self._worker.routes_elsewhere(gate, routed)

    def regroup(self) -> bool:
        self._worker.regroup()
        return False

    def acquire_permits(self, gate: Gate[Task], task: Task, lane: Lane) -> bool:
        return self._worker.permits.acquire(gate, task, lane)

    def return_permits(self, task: Task) -> None:
        self._worker.permits.settle(task, used=False)

    def begin(self, link: DueLink) -> Denial | None:
        self._worker.transfers.begin(link)
        if self._worker.is_poison(link):
            return Denial(reason="poison_link", error=f"{DEATHS} workers died over it")
        return None

    def handed_out(self, gate: str, request: Request) -> None:
        self._worker.handed_out(gate, request)

    def started(self, request: Request) -> None:
        self._worker.permits.settle(request, used=True)

    def settled(self, request: Request) -> bool:
        """Puts the outcome's times into the cluster's clock; where the leases were lost while the request was in
        flight, it ends with them: where this machine stood still, the end was read long after it was."""
        worker, context = self._worker, context_of(request)
        worker.permits.settle(request, used=True)  # it may have failed before it was sent
        is_ours = worker.has_session() and context.lease_epoch == self._session.lease_epoch
        outcome = context.outcome
        if outcome is not None:
            sent_at, ended_at = outcome.sent_at + self._clock_offset, outcome.ended_at + self._clock_offset
            if not is_ours:
                ended_at = max(sent_at, min(ended_at, worker.lost_at))
            context.outcome = evolve(outcome, sent_at=sent_at, ended_at=ended_at)
        return is_ours

    def ensure_leased(self) -> None:
        if boot_time() >= self._coordinator.deadline:
            raise LeaseLost("the leases were over before the store was reached")

    def forget(self, link_id: int | str) -> bool:
        if link_id not in self._worker.transfers.under_way:
            return False
        self._worker.transfers.end(link_id)
        return True

    def let_go(self, link_id: int | str) -> bool:
        """A foreign check goes on waiting: let go of, its link's own gate would begin it again at once."""
        if self._worker.transfers.is_foreign(link_id):
            return False
        self._worker.transfers.end(link_id)
        return True

    def metrics(self) -> Mapping[str, tuple[str, float]]:
        if self._opened is None:
            return {}
        worker, coordinator, heartbeat = self._opened, self._coordinator, self._opened.heartbeat
        return {
            "leases": ("Gates that this worker leases.", len(worker.table)),
            "lease_losses_total": ("Times that this worker lost all its leases.", worker.losses),
            "workers": (
                "Workers alive, this one included.",
                0 if heartbeat is None else heartbeat.others + 1,
            ),
            "checks_elsewhere": (
                "Checks of this worker's links that go on at another.",
                worker.transfers.remote_checks,
            ),
            "redis_calls_total": ("Scripts that this worker had Redis run.", coordinator.calls),
            "redis_seconds_total": ("Seconds that these took, waiting included.", coordinator.seconds),
        }
