"""Whether it is our own network that has failed. Pure."""

from __future__ import annotations

from attrs import field, frozen

from linkcrawl.check.outcome import Failure, Outcome

#: Gates that have to fall silent, without an answer from any other, until it is taken to be us.
SILENT_GATES = 8

#: What requests end in when our own network, resolver or route is gone.
SILENCE = frozenset({Failure.DNS_NOT_FOUND, Failure.DNS_TROUBLE, Failure.UNREACHABLE, Failure.TIMEOUT_CONNECT})
#: Ends that say nothing either way: nothing was sent.
UNSENT = frozenset({Failure.FORBIDDEN_ADDRESS, Failure.FORBIDDEN_PORT, Failure.LOCAL_SHORTAGE})


@frozen(kw_only=True)
class OwnNetwork:
    """What is known: gates that had answered before and have fallen silent since the last sign of life of any
    (`silent`), and when the first of them did (`since`, Unix seconds)."""

    silent: frozenset[str] = field(default=frozenset())
    since: float | None = None

    @property
    def is_down(self) -> bool:
        """True: what has been observed since `since` is about us, and no verdict on anybody's links."""
        return len(self.silent) >= SILENT_GATES


def note_end(state: OwnNetwork, gate: str, worked: bool, outcome: Outcome) -> OwnNetwork:
    """The state after the end of a request. `worked`: the gate has answered before; the silence of one that never
    did, as of a list of dead hosts, says nothing. Any answer, a refusal or a reset included, is a sign of life."""
    if outcome.failure in UNSENT:
        return state
    if outcome.failure not in SILENCE:
        return OwnNetwork()
    if not worked:
        return state
    since = outcome.ended_at if state.since is None else state.since
    return OwnNetwork(silent=state.silent | {gate}, since=since)
