"""When a host may get requests, apart from its pace: pauses, quiet hours, people's orders, Visit-time of robots.txt.
PURE."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from linkcrawl.items import Order
from linkcrawl.politeness.host_state import HostStateCache
from linkcrawl.politeness.pacing.state import Wait, WaitKind
from linkcrawl.politeness.policy.rules import Policies

ALWAYS = Wait(at=-math.inf, why="ready")


class AvailabilityContext(Protocol):
    """What HostAvailability needs to know of a crawl."""

    @property
    def policies(self) -> Policies: ...
    @property
    def hosts(self) -> HostStateCache: ...
    @property
    def now(self) -> Callable[[], float]: ...
    @property
    def skew(self) -> float: ...


class Hours(Protocol):
    """Hours of the day: quiet hours of policies, Visit-time of a robots.txt. Times are Unix seconds."""

    def open_at(self, now: float) -> float: ...


class HostAvailability:
    """A gate opens with the first of its hosts that opens; then only requests to open hosts go."""

    def __init__(self, context: AvailabilityContext):
        self._context = context
        #: What people have ordered last, by host.
        self.orders: dict[str, Order] = {}
        #: Hosts whose robots.txt can't be read again just now, and until when they are left alone (Unix seconds).
        self.put_off: dict[str, float] = {}

    def of_host(self, host: str, now: float) -> Wait:
        """When the host may get a request, and why not before."""
        return max(self._waits(host, now), key=_at, default=ALWAYS)

    def of_gate(self, hosts: Iterable[str], now: float) -> Wait:
        """When the first of these hosts may get a request."""
        first = ALWAYS
        for number, host in enumerate(hosts):
            wait = self.of_host(host, now)
            if wait.at <= now:
                return wait
            first = min(first, wait, key=_at) if number else wait
        return first

    def opens(self, hours: Hours, now: float) -> float:
        """When these hours open. While it is open which reading of the clock is right, both must be within them."""
        at, shown = hours.open_at(now), now + self._context.skew
        if shown != now and (shown_at := hours.open_at(shown)) > shown:
            at = max(at, now + (shown_at - shown))
        return at

    def is_paused(self, host: str) -> bool:
        """True where a policy keeps the host shut for good: by a pause, or by quiet hours that never end."""
        applied = self._context.policies.of_host(host)
        return applied.paused_by is not None or applied.open_at(self._context.now()) == math.inf

    def _waits(self, host: str, now: float) -> Iterator[Wait]:
        applied = self._context.policies.of_host(host)
        if applied.paused_by is not None:
            yield Wait(at=math.inf, why=f"paused by policy {applied.paused_by}", kind=WaitKind.BLOCKED)
        if (open_at := self.opens(applied, now)) > now:
            yield Wait(at=open_at, why="quiet hours", kind=WaitKind.QUIET)
        order = self.orders.get(host)
        if order is not None and order.blocks(now):
            yield Wait(at=order.until or math.inf, why=f"blocked: {order.reason}", kind=WaitKind.BLOCKED)
        if (again_at := self.put_off.get(host, now)) > now:
            yield Wait(at=again_at, why="robots.txt can't be had just now, it is asked for again")
        for pace in self._context.hosts.robots_paces(host):
            if (open_at := self.opens(pace, now)) > now:
                yield Wait(at=open_at, why="Visit-time of robots.txt", kind=WaitKind.QUIET)


def _at(wait: Wait) -> float:
    return wait.at
