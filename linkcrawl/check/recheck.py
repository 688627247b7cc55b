"""Decides, from a check's finding and the link's history, if a failure is confirmed and when the next check is due.

A hard failure is *suspected* (`Broken`, not confirmed) until it was seen in three checks over at least six days, one of
them by GET (two checks a day apart for 410, which servers send on purpose). Only a success clears it; any other result
in between neither confirms nor clears. A failure that isn't hard never becomes `Broken` by repetition, unless nothing
at the host has answered for thirty days, seen on five of them at least. The numbers follow Internet Archive's dead link
checker (three failures, three days apart).
"""

from __future__ import annotations

from attrs import evolve, field, frozen

from linkcrawl.check.outcome import UNJUDGED, Failure
from linkcrawl.check.procedure import Finding
from linkcrawl.check.silence import ENOUGH_DAYS, Silence
from linkcrawl.check.verdict import judge, reason_of_failure
from linkcrawl.items import Category, LinkState
from linkcrawl.units import DAY, HOUR

#: Reasons without an answer that make a link Broken only after thirty days of its host's silence.
UNANSWERED = frozenset(
    reason
    for reason in ("robots_unreachable", "stopped_answering", *map(reason_of_failure, set(Failure) - UNJUDGED))
    if judge(reason).category in (Category.UNDETERMINED, Category.BLOCKED_BY_ROBOTS)
)

#: Reasons by which a server says itself that a page is gone for good: they are confirmed sooner.
_GONE = frozenset({"http_410"})
#: Walls and rules, which rarely change: such links are checked as seldom as restricted ones.
_STANDING = frozenset({"robots_disallowed", "skipped_by_policy", "bot_challenge"})


@frozen(kw_only=True)
class Intervals:
    """Seconds until a link's next check, and what confirms a hard failure.

    `ok`: after a success; each further success multiplies it by `ok_growth`, up to `ok_longest`. `suspected`: after the
    first, second, … hard failure; the last value is used from then on. `broken`: after a confirmed one. `transient`,
    `transient_growth`, `transient_longest`: the same as for `ok`, after an undetermined result. `restricted`: after a
    restricted result, a denial by robots.txt or policy, a challenge. `invalid`: after an unusable URL, which only a new
    version of linkcrawl could read. `confirm_checks` hard failures over `confirm_span` seconds confirm; for 410,
    `gone_checks` over `gone_span` do. `host_dead`: seconds of a host's silence after which its links are Broken, if it
    was seen on `host_dead_days` days.
    """

    ok: float = 7 * DAY
    ok_growth: float = 1.5
    ok_longest: float = 90 * DAY
    suspected: tuple[float, ...] = field(default=(1 * DAY, 3 * DAY, 7 * DAY))
    broken: float = 30 * DAY
    transient: float = 6 * HOUR
    transient_growth: float = 2.0
    transient_longest: float = 7 * DAY
    restricted: float = 30 * DAY
    invalid: float = 90 * DAY
    confirm_checks: int = 3
    confirm_span: float = 6 * DAY
    gone_checks: int = 2
    gone_span: float = 1 * DAY
    host_dead: float = 30 * DAY
    host_dead_days: int = ENOUGH_DAYS

    @suspected.validator
    def _some(self, _: object, value: tuple[float, ...]) -> None:
        if not value:
            raise ValueError("Intervals.suspected: () is empty; at least one interval in seconds is needed")


@frozen(kw_only=True)
class Planned:
    """What a check means given the link's history, and when the next one is due (`next_check_at`, Unix seconds)."""

    state: LinkState
    category: Category
    confirmed: bool
    attempt: int
    next_check_at: float


def plan(
    state: LinkState,
    last_category: Category | None,
    finding: Finding,
    now: float,
    intervals: Intervals,
    host_silence: Silence | None,
    *,
    retry_at: float | None = None,
    early: bool = False,
) -> Planned:
    """What a check that ended at `now` with `finding` means for a link with this `state`.

    `last_category`: of the check before, None for none. `host_silence`: of the host of `finding.final_url`, None while
    it answers. `retry_at`: the server wants no request before (Unix seconds); it
    never makes the next check earlier. `early`: the link was not
    due yet (an operator's recheck): intervals don't grow by that.
    """
    verdict = finding.verdict
    if verdict.category is Category.OK:
        growth = 1.0 if early else intervals.ok_growth
        interval = _grown(state, last_category is Category.OK, intervals.ok, growth, intervals.ok_longest)
        after = LinkState(interval=interval)
        return _planned(after, Category.OK, True, now, retry_at)
    after = evolve(state, attempt=state.attempt + 1)
    if verdict.hard:
        after = _suspect(after, finding, now)
        confirmed = _is_confirmed(after, verdict.reason, now, intervals)
        step = min(after.hard_count, len(intervals.suspected)) - 1
        after = evolve(after, interval=intervals.broken if confirmed else intervals.suspected[step])
        return _planned(after, Category.BROKEN, confirmed, now, retry_at)
    dead = host_silence is not None and host_silence.has_lasted(now, intervals.host_dead, intervals.host_dead_days)
    if dead and verdict.reason in UNANSWERED:
        return _planned(evolve(after, interval=intervals.broken), Category.BROKEN, True, now, retry_at)
    after = evolve(after, interval=_interval(state, last_category, finding, intervals, early))
    return _planned(after, verdict.category, True, now, retry_at)


def _planned(state: LinkState, category: Category, confirmed: bool, now: float, retry_at: float | None) -> Planned:
    due = now + state.interval
    return Planned(
        state=state,
        category=category,
        confirmed=confirmed,
        attempt=state.attempt,
        next_check_at=due if retry_at is None else max(due, retry_at),
    )


def _suspect(state: LinkState, finding: Finding, now: float) -> LinkState:
    """The state after one more hard failure. Where no answer came, the connection failed before the server saw a
    method: that counts like a GET."""
    return evolve(
        state,
        hard_since=now if state.hard_since is None else state.hard_since,
        hard_count=state.hard_count + 1,
        hard_by_get=state.hard_by_get or finding.method == "GET" or finding.status is None,
    )


def _is_confirmed(state: LinkState, reason: str, now: float, intervals: Intervals) -> bool:
    span = now - (now if state.hard_since is None else state.hard_since)
    seen = state.hard_count >= intervals.confirm_checks and span >= intervals.confirm_span
    gone = reason in _GONE and state.hard_count >= intervals.gone_checks and span >= intervals.gone_span
    return state.hard_by_get and (seen or gone)


def _interval(state: LinkState, last: Category | None, finding: Finding, intervals: Intervals, early: bool) -> float:
    """Until the next check, for what is neither Ok nor Broken."""
    verdict = finding.verdict
    if verdict.category is Category.INVALID:
        return intervals.invalid
    if verdict.category is Category.RESTRICTED or verdict.reason in _STANDING:
        return intervals.restricted
    again = last in (Category.UNDETERMINED, Category.BLOCKED_BY_ROBOTS)
    growth = 1.0 if early else intervals.transient_growth
    return _grown(state, again, intervals.transient, growth, intervals.transient_longest)


def _grown(state: LinkState, again: bool, first: float, growth: float, longest: float) -> float:
    """The last interval stretched, within bounds, where the same came again; else the first."""
    return min(max(state.interval * growth, first), longest) if again else min(first, longest)
