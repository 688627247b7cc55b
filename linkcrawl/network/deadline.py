"""Time limits in which a standstill of our own process doesn't count.

A process that is stopped (SIGSTOP, a paused virtual machine, a swapped-out host) reads nothing while its timers go on.
When it runs again answers lie in its sockets, and every limit is over.
"""

from __future__ import annotations

import asyncio
from types import TracebackType

#: Seconds between two ticks while a limit runs, and by how much a tick has to be late to count as a standstill.
TICK, GRACE = 0.5, 0.5


class StandstillMonitor:
    """Measures how long the event loop stood still while time limits ran. It ticks only while any run."""

    def __init__(self) -> None:
        self._seconds = 0.0
        self._running = 0
        self._ticked_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def seconds(self) -> float:
        """All standstills up to now; only differences mean something."""
        return self._seconds + self._late()

    def begin(self) -> None:
        """A limit begins; `end` must follow."""
        self._running += 1
        if self._timer is None:
            self._arm()

    def end(self) -> None:
        """A limit has ended. The timer, if it runs, finds out by itself."""
        self._running -= 1

    def _late(self) -> float:
        if self._timer is None:
            return 0.0
        late = asyncio.get_running_loop().time() - self._ticked_at - TICK
        return late if late > GRACE else 0.0

    def _arm(self) -> None:
        loop = asyncio.get_running_loop()
        self._ticked_at = loop.time()
        self._timer = loop.call_later(TICK, self._tick)

    def _tick(self) -> None:
        self._seconds += self._late()
        self._timer = None
        if self._running:
            self._arm()


class Deadline:
    """`async with Deadline(monitor, seconds)` raises TimeoutError like asyncio.timeout, of which it gives the Timeout.

    It is extended by each standstill. When it is over the loop gets one more pass: what has come by then is read first.
    """

    __slots__ = ("_before", "_extended", "_loop", "_monitor", "_seconds", "_timeout", "_timer")

    def __init__(self, monitor: StandstillMonitor, seconds: float):
        self._monitor, self._seconds = monitor, seconds
        self._extended = 0.0

    @property
    def stood_still(self) -> float:
        """Seconds that the process stood still since the limit began."""
        return self._monitor.seconds() - self._before

    async def __aenter__(self) -> asyncio.Timeout:
        self._loop = asyncio.get_running_loop()
        self._monitor.begin()
        self._before = self._monitor.seconds()
        self._timer = self._loop.call_later(self._seconds, self._over)
        self._timeout = asyncio.timeout(None)
        return await self._timeout.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        self._monitor.end()
        await self._timeout.__aexit__(kind, error, trace)

    def _over(self) -> None:
        owed = self.stood_still - self._extended
        if owed > 0:
            self._extended += owed
            self._timer = self._loop.call_later(owed, self._over)
        else:
            self._timeout.reschedule(self._loop.time())  # in the loop's next pass, after what has come in this one
