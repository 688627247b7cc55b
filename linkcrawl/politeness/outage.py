"""The state of our own network in a crawl: while it has failed nothing is sent but a probe, and nothing is judged.

The rule is in own_network.py. Before "our own network has failed" is said, gates that may know better are heard:
those that answered in this crawl are asked, and what is in flight is awaited.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from enum import Enum

from attrs import evolve

from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.check.verdict import reason_of_failure
from linkcrawl.items import Record
from linkcrawl.politeness.own_network import DOUBTFUL, SILENT_GATES, OwnNetwork, is_news, looks_like, note_end
from linkcrawl.politeness.portal import Run
from linkcrawl.urls.domains import registered_domain

logger = logging.getLogger(__name__)

#: Seconds between two probes while our network is taken to be down.
PROBE = 30.0
#: Seconds that a record of silence waits for a sign of life of any host; longer while our network is suspected.
HOLD_SECONDS = 60.0
#: Seconds after which our network counts as failed though somebody who was asked has not answered yet.
MAX_DOUBT = 90.0
#: Hosts that fail in a crawl in which nothing answers, from which on that is told at its end.
TOLD = 3
#: Reasons of records that our own network may have caused. A record doesn't tell what a time-out was waiting for, nor
#: why a robots.txt could not be had.
_DOUBTFUL = frozenset({*map(reason_of_failure, DOUBTFUL), "robots_unreachable", "stopped_answering"})


class NetworkChange(Enum):
    """What the end of a request has changed of our own network."""

    SUSPECTED = "suspected"  # others are to be heard: `expect`
    FAILED = "failed"
    BACK = "back"


class OutageDetector:
    """The state of our own network, and the records that wait for certainty about it.

    `now`: Unix seconds; `hosts`: how many hosts the crawl knows of by now. Where they are fewer than SILENT_GATES
    nothing is ever known for certain, and no record waits.
    """

    def __init__(self, now: Callable[[], float], hosts: Callable[[], int]):
        self._now = now
        self._hosts = hosts
        self._state = OwnNetwork()
        self._answered = False
        self._suspected_at: float | None = None
        self._answered_late = False
        self._expected: set[str] | None = None
        self._is_down = False
        self._portal: Run | None = None
        self._probed_at = 0.0
        self._waiting: set[asyncio.Future[bool]] = set()

    @property
    def down_since(self) -> float | None:
        """Since when our network is taken to be down (Unix seconds); None while it isn't."""
        if self._portal is not None:
            return self._portal.since
        return self._state.since if self._is_down else None

    @property
    def state(self) -> OwnNetwork:
        """Who is silent, and in what way."""
        return self._state

    @property
    def cause(self) -> str:
        """What has failed and what to look at, for people."""
        if self._portal is not None and self._portal.page is not None:
            return (
                f"a captive portal answers in the hosts' place, with {self._portal.page.text}; look at how this "
                "machine gets to the Internet"
            )
        return looks_like(self._state)

    @property
    def nothing_answered(self) -> bool:
        """True where several hosts were asked for the first time, or answered before, and nothing has answered."""
        return not self._answered and len(self._state.silent) >= TOLD

    def may_send(self) -> bool:
        """True where a request may be sent: always while our network works, else a probe every PROBE seconds."""
        if self.down_since is None:
            return True
        if self._now() - self._probed_at < PROBE:
            return False
        self._probed_at = self._now()
        return True

    def probe_again(self) -> None:
        """The last probe was not sent after all: another may be at once."""
        self._probed_at = self._now() - PROBE

    def note(
        self, gate: str, worked: bool, outcome: Outcome, failing_since: float | None = None
    ) -> NetworkChange | None:
        """Take note of the end of a request. `worked`: the gate has answered before; `failing_since`: since when
        nothing at the host has answered, before this end (Unix seconds). After SUSPECTED `expect` is to be called."""
        news = is_news(self._state, worked=worked, failing_since=failing_since, answered=self._answered)
        self._answered = self._answered or outcome.status is not None
        # of hosts never asked before several of one domain are one: they may well be dead together
        self._state = note_end(self._state, gate if worked else registered_domain(gate), news, outcome)
        if outcome.status is not None and self._suspected_at is not None:  # too late to clear us, but it is a witness
            self._answered_late = True
        return self._judge(gate)

    def explain(self, failures: frozenset[Failure]) -> NetworkChange | None:
        """Silence of these kinds is the hosts' own: the resolver answers others."""
        self._state = self._state.without(failures)
        return self._judge("")

    def meet_portal(self, run: Run) -> NetworkChange:
        """Something answers in the hosts' place: our network counts as failed until another answer comes."""
        self._portal = run
        self._probed_at = self._now()
        logger.error(
            "Our own network has failed: %d hosts of different domains and servers give one answer. It looks as if %s. "
            "Nothing is sent but a probe every %d s, nothing is judged.",
            len(run.domains),
            self.cause,
            PROBE,
        )
        self._tell(False)
        return NetworkChange.FAILED

    def leave_portal(self) -> NetworkChange:
        """Another answer has come."""
        self._portal = None
        logger.warning("Our network is back: the crawl goes on.")
        return NetworkChange.BACK

    def expect(self, gates: Iterable[str]) -> NetworkChange | None:
        """Our network is suspected: the ends of requests to these gates are awaited. FAILED where there are none."""
        self._expected = set(gates) - set(self._state.silent)
        return self._judge("")

    def heard(self, name: str) -> NetworkChange | None:
        """One of those that `expect` has named knows nothing better."""
        return self._judge(name)

    def shift(self, seconds: float) -> None:
        """The clock has been moved by `seconds`."""
        self._probed_at += seconds
        if self._suspected_at is not None:
            self._suspected_at += seconds
        if self._state.since is not None:
            self._state = evolve(self._state, since=self._state.since + seconds)

    async def confirm(self, record: Record) -> bool:
        """True where a record may be kept: at once, or once its failure is known not to be our own network's."""
        if self._portal is not None:
            return False
        if record.status is not None or record.reason not in _DOUBTFUL or not self._state.silent:
            return True
        if self._is_down:
            return False
        if self._hosts() < SILENT_GATES:
            return True
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        try:
            while True:
                done, _ = await asyncio.wait((waiter,), timeout=HOLD_SECONDS)
                if done:
                    return waiter.result()
                if self._suspected_at is None:
                    return True
        finally:
            self._waiting.discard(waiter)

    def close(self) -> None:
        """On close, release held records: as valid, unless our network is down or suspected."""
        self._tell(not self._state.is_suspect)

    def _judge(self, heard: str) -> NetworkChange | None:
        """What follows from the state; `heard`: whose end it was."""
        if not self._state.is_suspect:
            was_down, self._is_down = self._is_down, False
            self._suspected_at = self._expected = None
            self._answered_late = False
            if not self._state.silent:
                self._tell(True)
            if was_down:
                logger.warning("Our network is back: the crawl goes on.")
                return NetworkChange.BACK
            return None
        if self._is_down:
            return None
        if self._suspected_at is None:
            self._suspected_at = self._now()
            return NetworkChange.SUSPECTED
        if self._expected is None:
            return None
        self._expected.discard(heard)
        if self._expected and self._now() - self._suspected_at < MAX_DOUBT:
            return None
        if self._answered_late:
            self._answered_late = False
            return NetworkChange.SUSPECTED
        return self._fail()

    def _fail(self) -> NetworkChange:
        self._is_down = True
        self._probed_at = self._now()
        silent = f"{len(self._state.silent)} hosts that worked are silent and none answers"
        if not self._answered:
            silent = f"nothing has answered in this crawl yet, {len(self._state.silent)} hosts are silent"
        logger.error(
            "Our own network has failed: %s. It looks as if %s. Nothing is sent but a probe every %d s, nothing is "
            "judged.",
            silent,
            self.cause,
            PROBE,
        )
        self._tell(False)
        return NetworkChange.FAILED

    def _tell(self, belief: bool) -> None:
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(belief)
