"""The data of pacing: what a gate has answered (Pace), what bounds its pace (PacingLimits), and what follows. Pure.

The arithmetic is in delay.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from attrs import field, frozen

from linkcrawl.politeness.policy.limits import Counts, Quota


class AnswerKind(StrEnum):
    """What an answer says about the load of a server."""

    OK = "ok"  # status below 400
    ERROR = "error"  # an error page or challenge: that it came quickly says nothing
    THROTTLED = "throttled"  # too many requests, or overloaded
    TIMEOUT = "timeout"
    FAILURE = "failure"  # no answer for any other reason: says nothing about load


@frozen(kw_only=True)
class PaceSample:
    """One request as pacing sees it (hints.sample_of makes it).

    `ended`: Unix seconds. `refused`: 403, 429 or a challenge, as a ban looks. `shut`: the connection was refused, reset
    or dropped, as a server does that shuts us out. `latency`: seconds until the answer. `retry_at`: the server wants no
    request before (Unix seconds). `cost`: how many delays the request counts for.
    """

    ended: float
    kind: AnswerKind
    refused: bool = False
    shut: bool = False
    latency: float | None = None
    retry_at: float | None = None
    cost: float = 1.0


@frozen(kw_only=True)
class PacingLimits:
    """What a gate has to keep. Delays are in seconds; each has its origin, a text for people.

    `agreed_delay` replaces `crawl_delay` and `request_rate_delay` of robots.txt; the floor holds all the same. `k`: the
    delay as a multiple of the answer time, at most `max_adaptive` (AUTOTHROTTLE_MAX_DELAY). `quotas`: requests in a
    window of the day. `probation`: seconds after which one request tries a host that has turned us away; None: only a
    person re-opens it.
    """

    floor: float
    floor_from: str = "DOWNLOAD_DELAY"
    crawl_delay: float | None = None
    request_rate_delay: float | None = None
    agreed_delay: float | None = None
    agreed_from: str = "agreement"
    k: float = 5.0
    max_adaptive: float = 60.0
    quotas: tuple[Quota, ...] = ()
    probation: float | None = None


@frozen(kw_only=True)
class Pace:
    """What is known of a gate from its answers. Durations are in seconds, moments in Unix seconds.

    `answer_time`: smoothed; `last_time`: of the last answer; `samples`: good answers that were measured. `trend`,
    `baseline`: means of the logarithm of good answers' times, the recent and the usual; `slowdown`: the factor on the
    delay that follows from their difference.

    `back_off`: a delay, 0 where there is none; `good_streak`: good answers since the last throttling one.
    `silent_until`: as the server asked, or left alone because it shuts us out. `shut_ends`: refused, reset or dropped
    connections in a row at a gate that used to work; 0 after any answer.

    `last_end`, `last_cost`: of the last request. `asked_at`: when a request was last handed out. `counts`: requests in
    the windows that the last one was in.

    `recent`: the last answers, each with its time, whether it was good and whether it was a refusal; `good`, `refused`:
    how many came before these. `blocked_since`: when the first refusal of a ban came; None while the gate is open.
    `refused_links`: ids of the links that were refused lately, whose records a ban takes back; none once they were.

    `strangers`: where hosts of other registered domains share the gate, what each of these has asked for
    (pacing.tenants). `own_end`, `own_cost`: then, of the last request to the gate's own hosts; None while that was the
    gate's last one, 0 where there was none.
    """

    answer_time: float | None = None
    last_time: float = 0.0
    samples: int = 0
    trend: float = 0.0
    baseline: float = 0.0
    slowdown: float = 1.0
    back_off: float = 0.0
    good_streak: int = 0
    silent_until: float = 0.0
    shut_ends: int = 0
    last_end: float | None = None
    last_cost: float = 1.0
    recent: tuple[tuple[float, bool, bool], ...] = ()
    good: int = 0
    refused: int = 0
    blocked_since: float | None = None
    counts: Counts = field(factory=dict)
    asked_at: float | None = None
    refused_links: tuple[int | str, ...] = ()
    own_end: float | None = None
    own_cost: float = 1.0
    strangers: Mapping[str, Pace] = field(factory=dict)


@frozen(kw_only=True)
class Silenced:
    """Event: the server asks for no request before `until`. `asked` is later where we cap the wait."""

    until: float
    asked: float


@frozen(kw_only=True)
class Blocked:
    """Event: a host that used to work has turned us away since `since`; refusals since then say nothing of links."""

    since: float


@frozen(kw_only=True)
class ShutOut:
    """Event: a host that used to work refuses, resets or drops our connections; it is left alone until `until`."""

    until: float


@frozen(kw_only=True)
class Reopened:
    """Event: a host that had turned us away since `since` has answered the request of its probation."""

    since: float


Event = Silenced | Blocked | ShutOut | Reopened


@frozen(kw_only=True)
class Delay:
    """Seconds between the end of an answer and the start of the next request, and where that number comes from."""

    seconds: float
    origin: str


class WaitKind(StrEnum):
    """What ends a wait: its time, a person or a probation, or the end of quiet hours."""

    WAITING = "waiting"
    BLOCKED = "blocked"
    QUIET = "quiet"


@frozen(kw_only=True)
class Wait:
    """When the next request may go (Unix seconds; infinite while blocked), and why not before."""

    at: float
    why: str
    kind: WaitKind = WaitKind.WAITING
