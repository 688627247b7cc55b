"""PURE. Where the gates of a crawl stand, and how long their work will take at least.

The arithmetic is that of the bound (docs/politeness.md): a crawl lasts as long as its slowest gate, and as long as all
its requests take when CONCURRENT_REQUESTS of them are in flight.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any

from attrs import frozen

from linkcrawl.frontier.workbench import Gate, Place


@frozen(kw_only=True)
class Gauges:
    """Gates by what they do, and the work left. `waiting`: for their delay, a silence or a clock; `blocked`: until a
    person unblocks them; their links are not counted in `due`, nor in `eta` those of gates that stay closed for longer
    than the crawl is patient. `eta`: seconds. `slowest`: the gate that `eta` waits for, and its own seconds.
    """

    ready: int
    waiting: int
    in_flight: int
    blocked: int
    due: int
    eta: float
    slowest: tuple[str, float] | None


def gauges(gates: Iterable[Gate[Any]], now: float, *, service: float, permits: int, patience: float) -> Gauges:
    """Read the gates once. `service`: seconds that a check takes without waiting, on average; `permits`:
    CONCURRENT_REQUESTS; `patience`: LINKCRAWL_PATIENCE, seconds."""
    places = dict.fromkeys(Place, 0)
    blocked = due = within = 0
    longest, slowest = 0.0, None
    for gate in gates:
        left = len(gate) + gate.backlog
        if gate.wake == inf and gate.place is not Place.IN_FLIGHT:
            blocked += bool(left)
            continue
        places[gate.place] += 1
        due += left
        wait = max(0.0, gate.wake - now)
        if not left or wait > patience:
            continue
        within += left
        seconds = wait + left * service + (left - 1) * gate.delay
        if seconds > longest:
            longest, slowest = seconds, gate.name
    return Gauges(
        ready=places[Place.READY],
        waiting=places[Place.WAITING] + places[Place.PARKED],
        in_flight=places[Place.IN_FLIGHT],
        blocked=blocked,
        due=due,
        eta=max(longest, within * service / max(1, permits)),
        slowest=None if slowest is None else (slowest, longest),
    )
