"""Handles the end of a request: its gate's pace, the audit, the ban circuit, the detection of an outage of our own
network."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from attrs import evolve
from scrapy.http import Request

from linkcrawl.audit.log import AuditEntry, AuditLimit, Quotas
from linkcrawl.check.outcome import UNJUDGED, UNSENT, Failure
from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import Gate, Workbench
from linkcrawl.frontier.host_state_saver import HostStateSaver
from linkcrawl.frontier.in_flight import InFlight
from linkcrawl.frontier.network_watch import NetworkWatch
from linkcrawl.frontier.ports import Ownership, RequestContext, Task, context_of
from linkcrawl.frontier.withdrawals import Withdrawals
from linkcrawl.politeness.outage import OutageDetector
from linkcrawl.politeness.pacing.delay import may_turn
from linkcrawl.politeness.pacing.state import Blocked, Reopened, ShutOut, Silenced
from linkcrawl.politeness.policy.limits import Quota
from linkcrawl.session import Session
from linkcrawl.text import span

if TYPE_CHECKING:
    from scrapy.statscollectors import StatsCollector

logger = logging.getLogger(__name__)

#: Ends of requests that never left this machine.
NEVER_LEFT = UNSENT | {Failure.DNS_NOT_FOUND, Failure.DNS_TROUBLE}


class CompletionHandler:
    """Takes note of every end, frees the request's gate, and acts on what follows. `relocate` is told where a host has
    answered that its gate wasn't chosen by."""

    def __init__(
        self,
        session: Session,
        *,
        bench: Workbench[Task],
        keeper: Gatekeeper,
        in_flight: InFlight,
        outage: OutageDetector,
        watch: NetworkWatch,
        host_states: HostStateSaver,
        ownership: Ownership,
        relocate: Callable[[str, tuple[str, ...]], None],
        stats: StatsCollector,
        withdrawals: Withdrawals,
    ):
        self._session = session
        self._bench = bench
        self._keeper = keeper
        self._in_flight = in_flight
        self._outage = outage
        self._watch = watch
        self._host_states = host_states
        self._ownership = ownership
        self._relocate = relocate
        self._stats = stats
        self._withdrawals = withdrawals

    def on_completed(self, request: Request) -> None:
        """The request has ended, in whatever way: its gate opens after its delay. Idempotent."""
        gate, moved = self._in_flight.pop(request)
        if gate is None:
            return
        is_ours = self._ownership.settled(request)
        context = context_of(request)
        answered = context.outcome is not None
        if not is_ours:  # its pace is another worker's to keep by now
            if answered:
                self._audit(gate, request, context)
            self._bench.release(gate, max(gate.wake, self._session.now() + gate.delay))
            return
        if not answered:
            self._watch.came_to_nothing()
        wake = self.note(gate, request, context) if answered else gate.wake
        if moved is not None:
            self._bench.release(moved, self._note_moved(moved, request, context) if answered else moved.wake)
        self._bench.release(gate, wake)
        self._note_address(request)

    def _note_address(self, request: Request) -> None:
        """Another of the name's addresses has answered than the one that was asked first: the host belongs to the gate
        of that one's server."""
        context = context_of(request)
        ip = None if context.outcome is None else context.outcome.ip
        if ip and context.address is not None and ip != context.address:
            self._relocate(context.target.host, (ip,))

    def note(self, gate: Gate[Any], request: Request, context: RequestContext) -> float:
        """Take note of a request that has an outcome. Returns when its gate opens again (Unix seconds)."""
        outcome, host = context.outcome, context.target.host
        assert outcome is not None
        self._audit(gate, request, context)  # on the clock that the crawl began with: gaps are proved on one line
        if moved := self._session.clock.moved:
            outcome = evolve(outcome, sent_at=outcome.sent_at + moved, ended_at=outcome.ended_at + moved)
            context.outcome = outcome
        tenant = self._keeper.tenant(gate.name, host)
        self._watch.note(gate.name, request)
        if self._outage.down_since is not None or outcome.failure in UNJUDGED:
            return self._unlearned(gate)
        ended = self._keeper.completed(gate, host, outcome, self._cost(request, context))
        if ended.refused and context.link is not None:
            self._keeper.note_refusal(gate.name, tenant, context.link.id)
        for event in ended.events:
            if isinstance(event, Blocked):
                self._ban(gate.name, tenant, host, event)
            elif isinstance(event, Reopened):
                self._stats.inc_value("linkcrawl/reopened")
                logger.warning("%s answers again after its probation: it is open", host)
            elif isinstance(event, ShutOut):
                self._stats.inc_value("linkcrawl/shut_out")
                logger.warning(
                    "%s used to work and refuses or drops our connections: it is down, or has shut us out. It is left "
                    "alone for %s, its links are due",
                    host,
                    span(event.until - self._session.now()),
                )
            elif isinstance(event, Silenced):
                self._stats.inc_value("linkcrawl/silenced")
                cut = " (cut to one day)" if event.asked > event.until + 1 else ""
                seconds = event.until - self._session.now()
                logger.info("%s asks for a pause of %.0f s%s", tenant or gate.name, seconds, cut)
        if ended.events or (ended.refused and may_turn(self._keeper.pace_of(gate.name, tenant))):
            self._host_states.save_soon()
        return ended.wake

    def _note_moved(self, gate: Gate[Any], request: Request, context: RequestContext) -> float:
        """Take note of a request whose host has come to this gate while it was in flight. Returns when the gate
        opens."""
        if self._outage.down_since is not None:
            return self._unlearned(gate)
        assert context.outcome is not None
        return self._keeper.completed(gate, context.target.host, context.outcome, self._cost(request, context)).wake

    async def close(self) -> None:
        """Withdraw at once what was to be withdrawn soon: by now everything is stored. Raises StoreLost."""
        self._outage.close()
        try:
            await self._withdrawals.close()
        finally:
            self._session.audit.close()

    def _cost(self, request: Request, context: RequestContext) -> float:
        host, link = context.target.host, context.link
        if link is None:
            return self._keeper.applied(host).cost(request.url)
        applied = self._session.policies.of_link(host, link.collections, link.providers)
        return applied.cost(request.url)

    def _audit(self, gate: Gate[Any], request: Request, context: RequestContext) -> None:
        """Write the audit's line for a request, unless it never left."""
        outcome = context.outcome
        assert outcome is not None
        if context.unsent or outcome.failure in NEVER_LEFT:
            return
        self._stats.inc_value("linkcrawl/requests")
        required = context.required
        assert required is not None
        line = AuditEntry(
            outcome.sent_at,
            outcome.ended_at,
            context.target.host,
            gate.name,
            required.seconds,
            required.origin,
            tuple(AuditLimit(limit.name, limit.delay, _rows(limit.quotas)) for limit in context.spaced_by),
            request.method,
            outcome.status or 0,
            _rows(context.quotas),
        )
        self._session.audit.add(line)

    def _unlearned(self, gate: Gate[Any]) -> float:
        """When a gate opens after a request that our own network failed: its pace learns nothing of that, but what it
        waited for before it still waits for."""
        now = self._session.now()
        return max(now + gate.delay, self._keeper.wait(gate.name, now).at)

    def _ban(self, gate: str, tenant: str, host: str, event: Blocked) -> None:
        """The host has turned us away since `event.since`: say so, and take back what was judged since."""
        self._stats.inc_value("linkcrawl/banned")
        probation = self._session.config.probation
        logger.error(
            "%s has turned us away: blocked. Verdicts since then are withdrawn and its links are due again. "
            "Write to its administrator; then: scrapy hosts unblock %s%s",
            host,
            host,
            "" if probation is None else f". Without that one request tries it again in {span(probation)}",
        )
        self._withdrawals.begin(gate, tenant, event.since)


def _rows(quotas: Iterable[Quota]) -> Quotas:
    return tuple(quota.row for quota in quotas)
