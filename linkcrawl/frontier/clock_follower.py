"""Keeps all delays whole when a clock is set while a crawl runs."""

from __future__ import annotations

import logging

from linkcrawl.clock import Jump
from linkcrawl.frontier.feeder import Feeder
from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import GateState, Workbench
from linkcrawl.frontier.ports import Engine, Task
from linkcrawl.politeness.outage import OutageDetector
from linkcrawl.session import Session

logger = logging.getLogger(__name__)


class ClockFollower:
    """Moves the moments that the frontier keeps in memory along with the crawl's time."""

    def __init__(
        self,
        session: Session,
        *,
        bench: Workbench[Task],
        keeper: Gatekeeper,
        feeder: Feeder,
        outage: OutageDetector,
        engine: Engine,
    ):
        self._session = session
        self._bench = bench
        self._keeper = keeper
        self._feeder = feeder
        self._outage = outage
        self._engine = engine
        self._began_at = session.started_at  # moves with the clock

    def follow(self, jump: Jump) -> None:
        """A clock has been set. Every host waits one full delay, whichever reading was right; if the crawl's own time
        has moved, all moments in memory move along."""
        if jump.adopted:
            self._move_times(jump.seconds)
        now = self._session.now()
        for gate in self._bench.gates.values():
            self._keeper.recompute(gate)
            self._keeper.hold(gate, since=now)
            if gate.state is not GateState.IN_FLIGHT:
                self._bench.retime(gate, gate.wake)
        logger.warning(
            "%s has been set by %+.0f s%s. Every host waits one full delay",
            jump.clock,
            jump.seconds,
            ", and this crawl's time with it" if jump.adopted else "; hours are kept by both readings until it is sure",
        )
        self._engine.wake()

    def _move_times(self, seconds: float) -> None:
        session = self._session
        self._bench.shift(seconds)
        self._keeper.shift(seconds, self._began_at)
        session.robots.shift(seconds, self._began_at)
        self._outage.shift(seconds)
        self._began_at += seconds
        if session.started_at > session.now():  # else links would count as checked before the crawl, again and again
            session.started_at = session.now()
        self._feeder.reconsider()
