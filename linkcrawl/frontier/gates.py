"""Which gate a host belongs to, what it must keep, and when it opens again: policy, robots.txt and pace together."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from linkcrawl.check.outcome import Outcome
from linkcrawl.frontier.workbench import Gate
from linkcrawl.politeness.pacing import Pace, Terms, delay, note, pace_from_row, ready_at, restarted
from linkcrawl.politeness.signals import answer_of
from linkcrawl.session import Session


class Gatekeeper:
    """Keeps a Pace for every gate. The arithmetic is politeness.pacing's; here it is fed and remembered."""

    def __init__(self, session: Session):
        self._session = session
        self._paces: dict[str, Pace] = {}

    def name(self, host: str) -> str:
        """The gate of a host."""
        return host

    def terms(self, host: str) -> Terms:
        """What requests to this host must keep, each number with its origin."""
        config = self._session.config
        return Terms(floor=config.delay, k=1 / config.target_concurrency, max_adaptive=config.max_adaptive_delay)

    def open(self, gate: Gate[Any], host: str) -> None:
        """Set a new gate's delay, and when it may first go in this crawl.

        After a crawl that was cut off that is one full delay after our start, for a request may have been sent that
        nobody has noted; else it is as if there had been no restart.
        """
        session = self._session
        pace = pace_from_row(session.hosts.get(gate.name).pace)
        if not session.clean:
            pace = restarted(pace, session.started_at)
        self._paces[gate.name] = pace
        terms = self.terms(host)
        gate.delay = delay(pace, terms).seconds
        gate.wake = ready_at(pace, terms).at

    def ended(self, gate: Gate[Any], host: str, outcome: Outcome) -> float:
        """Take note of what came of a request, and say when the gate opens again (Unix seconds)."""
        now = self._session.now()  # not the outcome's own wall clock, which may be set right meanwhile
        terms = self.terms(host)
        pace, _events = note(self._paces[gate.name], terms, answer_of(evolve(outcome, ended_at=now)))
        self._paces[gate.name] = pace
        hosts = self._session.hosts
        hosts.learn_answer(host, outcome.status is not None, now)
        hosts.change(gate.name, pace=pace)
        gate.delay = delay(pace, terms).seconds
        return ready_at(pace, terms).at
