"""Whether it is our own network that has failed: then nothing is sent but a probe, and nothing is judged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from attrs import evolve

from linkcrawl.check.outcome import Outcome
from linkcrawl.items import Record
from linkcrawl.politeness.outage import OwnNetwork, note_end

logger = logging.getLogger(__name__)

#: Seconds between two probes while our network is taken to be down.
PROBE = 30.0
#: Seconds that a doubtful record waits for a sign of life, or for certainty that it is us.
HOLD_SECONDS = 60.0
#: Reasons that our own network's failure looks like.
_SILENT = frozenset({"dns_not_found", "dns_trouble", "host_unreachable", "timeout"})


class OutageDetector:
    """Keeps the state of politeness.own_network, and those waiting who need to know."""

    def __init__(self, now: Callable[[], float]):
        self._now = now
        self._state = OwnNetwork()
        self._probed_at = 0.0
        self._waiting: set[asyncio.Future[bool]] = set()

    @property
    def down_since(self) -> float | None:
        """Since when our network is taken to be down (Unix seconds); None while it isn't."""
        return self._state.since if self._state.is_down else None

    def may_send(self) -> bool:
        """Whether a request may go: always while the network works, else a probe now and then."""
        if not self._state.is_down:
            return True
        if self._now() - self._probed_at < PROBE:
            return False
        self._probed_at = self._now()
        return True

    def note(self, gate: str, worked: bool, outcome: Outcome) -> bool:
        """Take note of the end of a request; True where our network has come back by it."""
        was_down = self._state.is_down
        self._state = note_end(self._state, gate, worked, outcome)
        if self._state.is_down and not was_down:
            self._probed_at = self._now()
            logger.error(
                "Our own network has failed: %d hosts that worked are silent and none answers. Nothing is sent but a "
                "probe every %d s, nothing is judged.",
                len(self._state.silent),
                PROBE,
            )
            self._tell(False)
        elif was_down and not self._state.is_down:
            logger.warning("Our network is back: the crawl goes on.")
            return True
        elif not self._state.silent:
            self._tell(True)
        return False

    def shift(self, seconds: float) -> None:
        """The clock has been moved by `seconds`."""
        self._probed_at += seconds
        if self._state.since is not None:
            self._state = evolve(self._state, since=self._state.since + seconds)

    async def confirm(self, record: Record) -> bool:
        """Whether a record may be kept: at once, or when it is known that its failure was not our own network's."""
        if record.status is not None or record.reason not in _SILENT or not self._state.silent:
            return True
        if self._state.is_down:
            return False
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        try:
            return await asyncio.wait_for(waiter, HOLD_SECONDS)
        except TimeoutError:
            return True
        finally:
            self._waiting.discard(waiter)

    def close(self) -> None:
        """The crawl ends: what is still in doubt is believed."""
        self._tell(True)

    def _tell(self, belief: bool) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(belief)
