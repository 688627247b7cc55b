"""Whether silence is the hosts' own, or our network's: the rule. PURE.

Only silence that is news counts: of a gate that answered when it was asked before; and, while nothing at all has
answered in a crawl, of a domain that was never asked before. A host that has been dead for days says nothing of us.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from linkcrawl.check.outcome import SILENT, TIMEOUTS, UNSENT, Failure, Outcome

#: Gates that have to fall silent, without an answer from any other, until our own network is suspected.
SILENT_GATES = 8

#: Seconds for which answers come in after a failure of our network that had been sent before.
ON_THE_WAY = 1.0

#: Somebody has said no. One such end shows that the network lives, unless everybody says it: then it may be a firewall
#: of ours, or the machine that all these hosts are behind.
REJECTED = frozenset({Failure.REFUSED, Failure.RESET})
#: Ends that our own network may have caused. A time-out after connecting is one: the connection may have been a kept
#: one, or a middlebox's.
DOUBTFUL = SILENT | TIMEOUTS | REJECTED
#: Ends that our resolver may have caused.
NAMES = frozenset({Failure.DNS_NOT_FOUND, Failure.DNS_TROUBLE})

#: Ends that show life of a kind, and so end the suspicion that silence of other kinds has raised. "No such name" shows
#: that the resolver lives.
_SIGNS = REJECTED | {Failure.DNS_NOT_FOUND}


@frozen(kw_only=True)
class OwnNetwork:
    """`silent`: gates whose silence is news and that any gate has answered after none of, each with its failure;
    `since`: when the first of them fell silent (Unix seconds)."""

    silent: Mapping[str, Failure] = field(factory=dict)
    since: float | None = None

    @property
    def is_suspect(self) -> bool:
        """True where so many gates are silent that it may be us."""
        return len(self.silent) >= SILENT_GATES

    def names_failed(self) -> bool:
        """True where most of the silence may be the resolver's."""
        return 2 * sum(failure in NAMES for failure in self.silent.values()) > len(self.silent)

    def without(self, failures: frozenset[Failure]) -> OwnNetwork:
        """The state without the silence of these kinds, for another cause of it is known."""
        silent = {gate: failure for gate, failure in self.silent.items() if failure not in failures}
        return OwnNetwork(silent=silent, since=self.since if silent else None)


def is_news(state: OwnNetwork, *, worked: bool, failing_since: float | None, answered: bool) -> bool:
    """Whether the silence of a host is news. `worked`: its gate has answered before; `failing_since`: since when
    nothing there has answered, before this end (Unix seconds); `answered`: anything has answered in this crawl."""
    if failing_since is not None and (state.since is None or failing_since < state.since):
        return False
    return worked or not answered


def note_end(state: OwnNetwork, gate: str, news: bool, outcome: Outcome) -> OwnNetwork:
    """The state after the end of a request. `news`: silence there would be news (`is_news`)."""
    if outcome.failure in UNSENT or outcome.stale or _is_late(state, outcome):
        return state
    if outcome.failure not in DOUBTFUL:
        return OwnNetwork()
    if outcome.failure in _SIGNS:
        state = state.without(_explained_by(outcome.failure, state))
    if not news:
        return state
    since = outcome.ended_at if state.since is None else state.since
    return OwnNetwork(silent={**state.silent, gate: outcome.failure}, since=since)


def _is_late(state: OwnNetwork, outcome: Outcome) -> bool:
    """True for an answer that may have been on its way when our network failed: it clears nobody."""
    if state.since is None or outcome.failure in DOUBTFUL:
        return False
    return outcome.sent_at < state.since and outcome.ended_at <= state.since + ON_THE_WAY


def _explained_by(failure: Failure, state: OwnNetwork) -> frozenset[Failure]:
    """The kinds of silence that are the hosts' own, as this end shows. Where our network is suspected already, "no such
    name" clears the resolver only: it may be one on this side of the failure."""
    if failure is Failure.DNS_NOT_FOUND and state.is_suspect:
        return frozenset({Failure.DNS_TROUBLE})
    return DOUBTFUL - _SIGNS


def looks_like(state: OwnNetwork) -> str:
    """What has failed and what to look at, for people."""
    kinds = set(state.silent.values())
    if kinds <= NAMES:
        found = "says that the names don't exist" if kinds == {Failure.DNS_NOT_FOUND} else "gives no answer"
        return f"the DNS resolver {found}; look at the resolver of this machine (/etc/resolv.conf)"
    if kinds <= REJECTED:
        return "connections are refused or reset; look at the firewall of this machine and on its way out"
    return "no connection comes about; look at the cable, the route, and the firewall of this machine"
