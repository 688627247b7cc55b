"""The time of a crawl: Unix seconds that never jump by themselves, compared with the machine's clock every few seconds.

Delays need a clock that nobody sets: a correction by NTP must not shorten one. Hours, days and due times need the time
that people read. So the
crawl's time starts at the machine's time and goes on by a clock that counts suspensions too. If the machine's clock
is set, the crawl's time follows once the change has lasted. The workers of a cluster go by the
clock of a server instead, and follow it at once.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from attrs import frozen

from linkcrawl.errors import ConfigError
from linkcrawl.items import iso

#: Seconds by which the machine's clock may differ from the crawl's time before it counts as set: NTP slews smaller
#: errors.
TOLERANCE = 1.0
#: Seconds after which a machine's clock that was set is followed: some are set several times until they are right.
SETTLED = 60.0
#: No machine of today is before this (2026-01-01); one without a battery is in 1970 until it has asked for the time.
EARLIEST = 1_767_225_600.0


def boot_time() -> float:
    """Seconds since the machine was started, suspensions included where the system can tell (Linux)."""
    return time.clock_gettime(_BOOT)


def until_next(seconds: float) -> float:
    """Seconds until the loop's clock comes to a multiple of `seconds`, a tenth more at most. Whatever sleeps so long
    wakes together, so that a process that has nothing to do wakes seldom."""
    wait = seconds - asyncio.get_running_loop().time() % seconds
    return wait if wait > seconds / 10 else wait + seconds


_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


@frozen(kw_only=True)
class Jump:
    """A clock has been set by `seconds` (forward: positive). `adopted`: `now` has just moved by as much; else it has
    not moved yet, and may never do. `clock`: whose it is, for people."""

    seconds: float
    adopted: bool
    clock: str = "The machine's clock"


class Clock:
    """`wall`: the machine's clock, Unix seconds. `steady`: seconds that only go forward, evenly."""

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = boot_time):
        self.wall, self.steady = wall, steady
        self._offset = wall() - steady()
        self._since = 0.0
        #: By how many seconds the machine's clock is ahead of `now`, where it was set and hasn't been followed yet.
        self.skew = 0.0
        #: By how many seconds `now` has been moved since the start.
        self.moved = 0.0

    def now(self) -> float:
        """The time of the crawl, Unix seconds. It moves by itself only as time goes by."""
        return self.steady() + self._offset

    __call__ = now

    @classmethod
    def of_server(cls, reading: float, steady: Callable[[], float] = boot_time) -> Clock:
        """A clock that goes by a server's, which has just been read (Unix seconds): `follow` gets further readings, and
        this machine's own clock doesn't matter."""
        clock = cls(wall=lambda: reading, steady=steady)
        clock.wall = clock.now
        return clock

    def follow(self, reading: float, *, at: float, error: float) -> Jump | None:
        """Take in a reading of the server's clock, made at `at` by the steady clock, give or take `error` seconds.
        Where the server's clock has been set, `now` moves at once: what workers share is timed by it. Whoever calls has
        to move all moments in memory with it."""
        skew = reading - (at + self._offset)
        if abs(skew) - error < TOLERANCE:
            return None
        self._offset += skew
        self.moved += skew
        return Jump(seconds=skew, adopted=True, clock="The cluster's clock")

    def check_jump(self) -> Jump | None:
        """Compare the two clocks; whoever calls has to move all moments in memory with an adopted jump."""
        skew = self.wall() - self.now()
        if abs(skew) < TOLERANCE:
            self.skew = 0.0
            return None
        if abs(skew - self.skew) >= TOLERANCE:
            self.skew, self._since = skew, self.steady()
            return Jump(seconds=skew, adopted=False)
        if self.steady() - self._since < SETTLED:
            return None
        self._offset += skew
        self.moved += skew
        self.skew = 0.0
        return Jump(seconds=skew, adopted=True)


def machine_clock() -> Clock:
    """The clock of a crawl that shares its work with nobody. Raises ConfigError where the machine's is not set."""
    clock = Clock()
    if clock.now() < EARLIEST:
        raise ConfigError(
            f"the machine's clock: {iso(clock.now())} can't be; set it, or start the crawl when the time is known"
        )
    return clock
