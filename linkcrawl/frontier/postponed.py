"""Hops to hosts that are closed: they wait here, outside their gate, which goes on with its other hosts."""

from __future__ import annotations

from math import inf

from scrapy.http import Request

from linkcrawl.check.procedure import Denial
from linkcrawl.frontier.dispatcher import Dispatcher
from linkcrawl.frontier.due_queue import DueQueue
from linkcrawl.frontier.feeder import Feeder
from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import Lane, Workbench
from linkcrawl.frontier.ports import Checks, Ownership, Task, context_of, host_of
from linkcrawl.frontier.router import HostRouter
from linkcrawl.items import DueLink
from linkcrawl.session import Session

#: Seconds for which a hop waits in a gate that it shares with other hosts; for longer it waits aside. The next review
#: comes after as long.
SHORT = 2.0


class PostponedHops:
    """Reviews them regularly: which hops still wait, and which checks end."""

    def __init__(
        self,
        session: Session,
        *,
        bench: Workbench[Task],
        keeper: Gatekeeper,
        queue: DueQueue,
        feeder: Feeder,
        router: HostRouter,
        dispatcher: Dispatcher,
        checks: Checks,
        ownership: Ownership,
    ):
        self._session = session
        self._bench = bench
        self._keeper = keeper
        self._queue = queue
        self._feeder = feeder
        self._router = router
        self._dispatcher = dispatcher
        self._checks = checks
        self._ownership = ownership
        self._aside: list[Request] = []

    def add(self, request: Request) -> None:
        """Keep a hop that had its turn while its host is closed."""
        self._aside.append(request)

    def take_all(self) -> list[Request]:
        """Remove all postponed hops, and return them."""
        aside, self._aside = self._aside, []
        return aside

    def review(self) -> None:
        """Place again what waits aside. A check whose next hop goes to a host that no time opens ends: as
        `host_blocked` where a person or the ban circuit has blocked the host, and without a record where it is paused.
        Links of the host itself wait, and stay due."""
        waiting: list[Task] = list(self.take_all())
        now = self._session.now()
        for gate in [gate for gate in self._bench.gates.values() if gate.has(Lane.HOP)]:
            for tenant in [tenant for tenant in gate.lanes if gate.lane(Lane.HOP, tenant)]:
                opens = max(gate.wake, gate.opens.get(tenant, -inf))
                if opens == inf or (opens > now and self._keeper.has_turned_away(gate.name, tenant)):
                    waiting += [task for _, task in self._bench.drain(gate, tenant)]
        for task in waiting:
            self._place_or_end(task)

    def _place_or_end(self, task: Task) -> None:
        host, now = host_of(task), self._session.now()
        gate = self._router.gate(host).name
        link = context_of(task).link if isinstance(task, Request) else None
        shut = self._keeper.is_shut(gate, host, now)
        if isinstance(task, DueLink) or not shut or link is None or link.host in self._keeper.members_like(gate, host):
            opens = self._keeper.host_wait(gate, host, now).at
            if isinstance(task, Request) and self._keeper.is_shared(gate) and opens > now + SHORT:
                self._aside.append(task)
            else:
                self._router.place(task)
        elif self._keeper.is_paused(host):
            self._end_without_record(task, link)
        else:
            denial = Denial(reason="host_blocked", error=f"{host} is blocked")
            self._dispatcher.emit(self._checks.deny(task, denial))

    def _end_without_record(self, task: Request, link: DueLink) -> None:
        """The link stays due."""
        if self._ownership.let_go(link.id):
            self._feeder.check_ended()
            self._queue.defer(link)
        else:
            self._router.place(task)
