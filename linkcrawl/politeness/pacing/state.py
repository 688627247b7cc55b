"""What is known of a gate's pace, what bounds it, and what comes of that: data. The arithmetic is pacing's. Pure."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from attrs import asdict, frozen


class AnswerKind(StrEnum):
    """What an answer means for pace."""

    OK = "ok"  # below 400
    ERROR = "error"  # an error page or challenge: its quickness says nothing
    THROTTLED = "throttled"  # too many requests, overloaded
    TIMEOUT = "timeout"
    FAILURE = "failure"  # no answer, for any other reason: says nothing about load


@frozen(kw_only=True)
class PaceSample:
    """What came of one request, as far as pace goes (signals.answer_of makes it).

    `ended`: Unix seconds. `refused`: looks like a ban (403, 429, challenge). `latency`: seconds. `retry_at`: until
    when the server wants to be left alone. `cost`: how many delays the request is worth.
    """

    ended: float
    kind: AnswerKind
    refused: bool = False
    latency: float | None = None
    retry_at: float | None = None
    cost: float = 1.0


@frozen(kw_only=True)
class PacingLimits:
    """What bounds a gate's pace: seconds, and whose word they are. `agreed_delay` stands instead of both of
    robots.txt's; it doesn't go below the floor either. `max_adaptive`: AUTOTHROTTLE_MAX_DELAY. `max_per_day`: requests
    on one day (UTC). `probation`: how long a host that has turned us away is left alone until one request tries it;
    None: until a person says so."""

    floor: float
    floor_from: str = "DOWNLOAD_DELAY"
    crawl_delay: float | None = None
    request_rate_delay: float | None = None
    agreed_delay: float | None = None
    agreed_from: str = "agreement"
    k: float = 5.0
    max_adaptive: float = 60.0
    max_per_day: int | None = None
    probation: float | None = None


@frozen(kw_only=True)
class Pace:
    """What is known of a gate. PaceSample times in seconds, moments in Unix seconds.

    `answer_time`: smoothed; `last_time`: of the last answer; `timed`: good answers that were timed. `trend`,
    `baseline`: logarithms of what good answers take now and used to take; `strain`: of their difference. `back_off`:
    0 when there is none; `calm`: good answers since. `silent_until`: asked for by the server. `last_end`,
    `last_cost`: of the last request. `recent`: when each of the last answers came, whether it was good, whether it
    refused us; `good`, `refused`: how many before them, for the ban circuit. `blocked_since`: the turn, once that has
    opened. `day`: of the last request, since 1970; `sent`: requests on it. `asked_at`: when a request was last handed
    out.
    """

    answer_time: float | None = None
    last_time: float = 0.0
    timed: int = 0
    trend: float = 0.0
    baseline: float = 0.0
    strain: float = 1.0
    back_off: float = 0.0
    calm: int = 0
    silent_until: float = 0.0
    last_end: float | None = None
    last_cost: float = 1.0
    recent: tuple[tuple[float, bool, bool], ...] = ()
    good: int = 0
    refused: int = 0
    blocked_since: float | None = None
    day: int = 0
    sent: int = 0
    asked_at: float | None = None

    def to_row(self) -> dict[str, Any]:
        """The pace, ready for JSON."""
        return asdict(self)


@frozen(kw_only=True)
class Silenced:
    """An event: the server wants to be left alone until `until`; `asked` is more where we cap it."""

    until: float
    asked: float


@frozen(kw_only=True)
class Blocked:
    """An event: a host that used to work has turned us away since `since`. Records of refusals since then are not to
    be believed."""

    since: float


@frozen(kw_only=True)
class Reopened:
    """An event: a host that had turned us away since `since` has answered again when its probation was over."""

    since: float


Event = Silenced | Blocked | Reopened


@frozen(kw_only=True)
class Delay:
    """Seconds between an answer and the next request, and where that number comes from."""

    seconds: float
    origin: str


class WaitKind(StrEnum):
    """What kind of wait it is: until its time, for as long as people or a ban say, or for its hours."""

    WAITING = "waiting"
    BLOCKED = "blocked"
    QUIET = "quiet"


@frozen(kw_only=True)
class Wait:
    """When the next request may go (Unix seconds; infinite while blocked), and why not before."""

    at: float
    why: str
    standing: WaitKind = WaitKind.WAITING
