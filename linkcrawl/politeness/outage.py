"""Whether it is our own network that has failed: then nothing is sent but a probe, and nothing is judged.

`OwnNetwork` and `note_end` are the rule, and pure; `OutageDetector` keeps the state of a crawl.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from attrs import evolve, field, frozen

from linkcrawl.check.outcome import SILENT, UNSENT, Outcome
from linkcrawl.check.verdict import reason_of_failure
from linkcrawl.items import Record

logger = logging.getLogger(__name__)

#: Gates that have to fall silent, without an answer from any other, until it is taken to be us.
SILENT_GATES = 8
#: Seconds between two probes while our network is taken to be down.
PROBE = 30.0
#: Seconds that a record of silence waits for a sign of life of any host, or for certainty that it is us.
HOLD_SECONDS = 60.0
#: Reasons of records that our own network may have caused. A record doesn't tell what a time-out was waiting for.
_DOUBTFUL = frozenset(map(reason_of_failure, SILENT))


@frozen(kw_only=True)
class OwnNetwork:
    """`silent`: gates that had answered before, and have fallen silent since any gate last answered; `since`: when the
    first of them did (Unix seconds)."""

    silent: frozenset[str] = field(default=frozenset())
    since: float | None = None

    @property
    def is_down(self) -> bool:
        """True where so many gates are silent that it must be us: nothing since `since` says anything of links."""
        return len(self.silent) >= SILENT_GATES


def note_end(state: OwnNetwork, gate: str, worked: bool, outcome: Outcome) -> OwnNetwork:
    """The state after the end of a request. `worked`: the gate has answered before; silence of a gate that never did,
    as on a list of dead hosts, says nothing. Any answer, a refusal or a reset included, is a sign of life."""
    if outcome.failure in UNSENT:
        return state
    if outcome.failure not in SILENT:
        return OwnNetwork()
    if not worked:
        return state
    since = outcome.ended_at if state.since is None else state.since
    return OwnNetwork(silent=state.silent | {gate}, since=since)


class OutageDetector:
    """The state of our own network, and the records that wait for certainty about it. `now`: Unix seconds."""

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
        """True where a request may be sent: always while our network works, else a probe every PROBE seconds."""
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
        """True where a record may be kept: at once, or once its failure is known not to be our own network's."""
        if record.status is not None or record.reason not in _DOUBTFUL or not self._state.silent:
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
        """On close, release held records as valid."""
        self._tell(True)

    def _tell(self, belief: bool) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(belief)
