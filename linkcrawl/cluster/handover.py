"""What waits at a gate that goes to another worker: it goes on there, and the gate need not wait for it."""

from __future__ import annotations

from collections.abc import Iterable

from scrapy.http import Request

from linkcrawl.cluster.context import WorkerContext
from linkcrawl.cluster.transfers import CheckTransfers
from linkcrawl.frontier.gates.workbench import Lane
from linkcrawl.frontier.ports import context_of
from linkcrawl.frontier.router import RoutedTask, host_of


class PendingLeases:
    """Tasks that can't be passed on (a robots.txt that redirects there), by the gate of another that they need."""

    def __init__(self, parts: WorkerContext):
        self._session = parts.session
        self._waiting: dict[str, list[RoutedTask]] = {}
        self._since: dict[str, float] = {}

    def add(self, gate: str, placed: RoutedTask) -> None:
        """A task needs the gate."""
        self._waiting.setdefault(gate, []).append(placed)
        self._since.setdefault(gate, self._session.now())

    def pop(self, gate: str) -> list[RoutedTask]:
        """The gate has come: its tasks. Or it is not wanted any more."""
        self._since.pop(gate, None)
        return self._waiting.pop(gate, [])

    def items(self) -> list[tuple[str, list[RoutedTask]]]:
        """The gates with what needs them."""
        return list(self._waiting.items())

    def __contains__(self, gate: str) -> bool:
        return gate in self._waiting

    @property
    def may_come(self) -> bool:
        """Whether one is wanted that has not been waited for longer than this crawl waits for anything."""
        return any(self._session.now() - since < self._session.config.patience for since in self._since.values())

    def clear(self) -> None:
        """All is lost."""
        self._waiting.clear()
        self._since.clear()


class Handover:
    """Passes on what waits here."""

    def __init__(self, parts: WorkerContext, travels: CheckTransfers, wants: PendingLeases):
        self._bench, self._keeper, self._desk, self._place = parts.bench, parts.keeper, parts.desk, parts.place
        self._travels, self._wants = travels, wants

    def pass_on(self, request: Request) -> None:
        """Pass a request on to whoever leases its gate, be it ourselves."""
        if context_of(request).check is not None:
            self._travels.send(request, self._keeper.name(host_of(request)))
        else:
            self._place(request, Lane.HOP)

    def empty(self, name: str) -> None:
        """Pass on the checks that wait in a gate, and those that wait for a robots.txt which does. Its links are the
        next holder's to begin."""
        gate = self._bench.gates[name]
        for lane, task in self._bench.drain(gate):
            if not isinstance(task, Request):
                continue
            context = context_of(task)
            if context.check is not None:
                self.pass_on(task)
            elif context.robots is not None:
                self.give_up(task)
            else:
                self._bench.offer(gate, task, lane=lane)

    def give_up(self, robots: Request) -> None:
        """Fetch this robots.txt no further; who waits for it has it fetched by whoever leases its gate next."""
        fetching = context_of(robots).robots
        assert fetching is not None
        for request in self._desk.let_go(fetching.authority):
            self.pass_on(request)

    def give_way(self, hosts: Iterable[str]) -> None:
        """Another worker wants the gate of these hosts, and may have what their robots.txt waits for here."""
        authorities = {f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts}
        for gate, waiting in self._wants.items():
            yielded = [each for each in waiting if _authority(each) in authorities]
            kept = [each for each in waiting if each not in yielded]
            self._wants.pop(gate)
            for each in kept:
                self._wants.add(gate, each)
            for each in yielded:
                assert isinstance(each.task, Request)
                self.give_up(each.task)

    def start_over(self) -> None:
        """Rules have changed, and with them what is wanted may be in other gates."""
        for gate, waiting in self._wants.items():
            self._wants.pop(gate)
            for each in waiting:
                if isinstance(each.task, Request) and _authority(each) is not None:
                    self.give_up(each.task)
                else:
                    self._place(each.task, each.lane)


def _authority(placed: RoutedTask) -> str | None:
    """Whose robots.txt a request fetches; None for any other."""
    task = placed.task
    fetching = context_of(task).robots if isinstance(task, Request) else None
    return None if fetching is None else fetching.authority
