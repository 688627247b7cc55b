"""When single hosts may be asked, apart from pace: pauses, quiet hours, orders of people, Visit-time of robots.txt."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from linkcrawl.items import Order
from linkcrawl.politeness.pacing.state import Wait, WaitKind
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.politeness.robots.cache import RobotsCache
from linkcrawl.politeness.robots.parser import Robots

ALWAYS = Wait(at=-math.inf, why="ready")


class AvailabilityContext(Protocol):
    """What has to be known for that."""

    @property
    def policies(self) -> Policies: ...
    @property
    def robots(self) -> RobotsCache: ...
    @property
    def now(self) -> Callable[[], float]: ...
    @property
    def skew(self) -> float: ...


class Hours(Protocol):
    """What opens and closes by the hour: policy rules, Visit-time of robots.txt."""

    def open_at(self, now: float) -> float: ...


class HostAvailability:
    """Asked for a host, or for all hosts of a gate: the gate opens with the first of them, and then lets only those
    hosts' requests go whose own time it is."""

    def __init__(self, knowledge: AvailabilityContext):
        self._knowledge = knowledge
        self.orders: dict[str, Order] = {}
        #: Until when hosts are left alone whose robots.txt has just now not been had, though it was there before.
        self.put_off: dict[str, float] = {}

    def of_host(self, host: str, now: float) -> Wait:
        """When the host may be asked, and why not before."""
        return max(self._waits(host, now), key=_at, default=ALWAYS)

    def of_gate(self, hosts: Iterable[str], now: float) -> Wait:
        """When the first of these hosts may be asked."""
        first = ALWAYS
        for number, host in enumerate(hosts):
            wait = self.of_host(host, now)
            if wait.at <= now:
                return wait
            first = min(first, wait, key=_at) if number else wait
        return first

    def opens(self, hours: Hours, now: float) -> float:
        """When these hours open. While it isn't certain which reading of the clock is right, by both of them."""
        at, shown = hours.open_at(now), now + self._knowledge.skew
        if shown != now and (shown_at := hours.open_at(shown)) > shown:
            at = max(at, now + (shown_at - shown))
        return at

    def is_paused(self, host: str) -> bool:
        """Whether a policy rule keeps the host shut for ever: a pause, or quiet hours that never end."""
        applied = self._knowledge.policies.of_host(host)
        return applied.paused_by is not None or applied.open_at(self._knowledge.now()) == math.inf

    def _waits(self, host: str, now: float) -> Iterator[Wait]:
        applied = self._knowledge.policies.of_host(host)
        if applied.paused_by is not None:
            yield Wait(at=math.inf, why=f"paused by policy {applied.paused_by}", kind=WaitKind.BLOCKED)
        if (open_at := self.opens(applied, now)) > now:
            yield Wait(at=open_at, why="quiet hours", kind=WaitKind.QUIET)
        order = self.orders.get(host)
        if order is not None and order.blocks(now):
            yield Wait(at=order.until or math.inf, why=f"blocked: {order.reason}", kind=WaitKind.BLOCKED)
        if (again_at := self.put_off.get(host, now)) > now:
            yield Wait(at=again_at, why="robots.txt can't be had just now, it is asked for again")
        for robots in robots_of(self._knowledge.robots, host):
            if (open_at := self.opens(robots, now)) > now:
                yield Wait(at=open_at, why="Visit-time of robots.txt", kind=WaitKind.QUIET)


def robots_of(cache: RobotsCache, host: str) -> list[Robots]:
    """What the robots.txt files of a host say that are known, of either scheme."""
    entries = (cache.get(f"{scheme}://{host}") for scheme in ("http", "https"))
    return [entry.robots for entry in entries if entry is not None and entry.robots is not None]


def _at(wait: Wait) -> float:
    return wait.at
