"""Passes on the checks that wait at a gate when another worker gets it, so that the gate need not wait for them."""

from __future__ import annotations

from collections.abc import Iterable

from scrapy.http import Request

from linkcrawl.cluster.transfers import CheckTransfers
from linkcrawl.frontier.parts import Frontier
from linkcrawl.frontier.ports import RoutedTask, context_of, host_of
from linkcrawl.session import Session


class PendingLeases:
    """Tasks that can't be passed on (a robots.txt that redirects there), by the gate of another worker that they
    need."""

    def __init__(self, session: Session):
        self._session = session
        self._waiting: dict[str, list[RoutedTask]] = {}
        self._since: dict[str, float] = {}

    def add(self, gate: str, routed: RoutedTask) -> None:
        """A task needs the gate."""
        self._waiting.setdefault(gate, []).append(routed)
        self._since.setdefault(gate, self._session.now())

    def pop(self, gate: str) -> list[RoutedTask]:
        """The tasks of a gate that has come, or isn't needed any more."""
        self._since.pop(gate, None)
        return self._waiting.pop(gate, [])

    def items(self) -> list[tuple[str, list[RoutedTask]]]:
        """The gates with the tasks that need them."""
        return list(self._waiting.items())

    def __contains__(self, gate: str) -> bool:
        return gate in self._waiting

    @property
    def may_come(self) -> bool:
        """True while a gate is needed that has not been waited for longer than LINKCRAWL_PATIENCE."""
        return any(self._session.now() - since < self._session.config.patience for since in self._since.values())

    def clear(self) -> None:
        """All leases are lost."""
        self._waiting.clear()
        self._since.clear()


class Handover:
    """Passes on waiting checks."""

    def __init__(self, frontier: Frontier, transfers: CheckTransfers, pending: PendingLeases):
        self._bench, self._keeper, self._robots = frontier.bench, frontier.keeper, frontier.robots
        self._router = frontier.router
        self._transfers, self._pending = transfers, pending

    def pass_on(self, request: Request) -> None:
        """Pass a request on to the worker that leases its gate, possibly this one."""
        if context_of(request).check is not None:
            self._transfers.send(request, self._keeper.gate_of(host_of(request)))
        else:
            self._router.place(request)

    def drain(self, gate_name: str) -> None:
        """Pass on the checks that wait at a gate, and those that wait for a robots.txt which waits there. The next
        holder begins the links; requests of other components stay."""
        gate = self._bench.gates[gate_name]
        for lane, task in self._bench.drain(gate):
            if not isinstance(task, Request):
                continue
            context = context_of(task)
            if context.check is not None:
                self.pass_on(task)
            elif context.robots is not None:
                self.abandon_robots(task)
            else:
                tenant = self._keeper.tenant(gate_name, host_of(task))
                self._bench.offer(gate, task, lane=lane, tenant=tenant)

    def abandon_robots(self, robots: Request) -> None:
        """Fetch a robots.txt no further; the requests that wait for it are passed on, and have it fetched where they
        come to."""
        fetching = context_of(robots).robots
        assert fetching is not None
        for request in self._robots.let_go(fetching.authority):
            self.pass_on(request)

    def yield_lease(self, hosts: Iterable[str]) -> None:
        """Another worker needs the gate of these hosts, and may lease what their robots.txt waits for here: that is not
        waited for any more."""
        authorities = {f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts}
        for gate, waiting in self._pending.items():
            yielded = [routed for routed in waiting if _robots_authority(routed) in authorities]
            kept = [routed for routed in waiting if routed not in yielded]
            self._pending.pop(gate)
            for routed in kept:
                self._pending.add(gate, routed)
            for routed in yielded:
                assert isinstance(routed.task, Request)
                self.abandon_robots(routed.task)

    def requeue_all(self) -> None:
        """Policies have changed: the tasks may need other gates now."""
        for gate, waiting in self._pending.items():
            self._pending.pop(gate)
            for routed in waiting:
                if isinstance(routed.task, Request) and _robots_authority(routed) is not None:
                    self.abandon_robots(routed.task)
                else:
                    self._router.place(routed.task)


def _robots_authority(routed: RoutedTask) -> str | None:
    """Whose robots.txt a request fetches; None for any other."""
    fetching = context_of(routed.task).robots if isinstance(routed.task, Request) else None
    return None if fetching is None else fetching.authority
