"""Requests that were handed out and have not ended, and the gates that stay closed because of them."""

from __future__ import annotations

from collections.abc import Callable

from scrapy.http import Request

from linkcrawl.frontier.gates.workbench import Gate, Workbench
from linkcrawl.frontier.ports import Task, host_of


class InFlight:
    """Each request with the gate that has let it go, longest in flight first."""

    def __init__(self, bench: Workbench[Task]):
        self._bench = bench
        self._gates: dict[Request, Gate[Task]] = {}
        self._moved: dict[Request, Gate[Task]] = {}

    def __len__(self) -> int:
        return len(self._gates)

    def requests(self) -> list[Request]:
        """The requests; their contexts say since when, and through which gate."""
        return list(self._gates)

    def gates(self) -> set[str]:
        """The gates that have let them go."""
        return {gate.name for gate in self._gates.values()}

    def add(self, request: Request, gate: Gate[Task]) -> None:
        """A gate hands a request out."""
        self._gates[request] = gate

    def pop(self, request: Request) -> tuple[Gate[Task] | None, Gate[Task] | None]:
        """The request has ended. Returns its gate, and the gate that its host has moved to meanwhile; None for an
        unknown request."""
        return self._gates.pop(request, None), self._moved.pop(request, None)

    def follow(self, gate_of: Callable[[str], Gate[Task]]) -> None:
        """Hosts have moved to other gates (`gate_of` a host key): these stay closed while a request to the host is in
        flight."""
        for request, gate in self._gates.items():
            held, now = self._moved.pop(request, None), gate_of(host_of(request))
            if now is not gate:
                self._bench.hold(now)
                self._moved[request] = now
            if held is not None:
                self._bench.release(held, held.wake)
