"""The arithmetic of pace. Pure: time and chance are arguments, and each answer makes a new `Pace` of the old one.

The delay of a gate, in seconds from the end of an answer to the start of the next request, is the largest of

* the floor (DOWNLOAD_DELAY, or what a policy rule says instead),
* Crawl-delay and Request-rate of robots.txt, or the delay agreed on instead of them,
* k times the answer time, the last or the smoothed, whichever is longer, at most `max_adaptive`
  (k = 1 / AUTOTHROTTLE_TARGET_CONCURRENCY),
* all that times the strain (1 to 4), once the server answers slower than it used to,
* the back-off: twice the delay in force after each throttling answer or time-out, less by a step for each good answer.

A wait that the server asks for by itself (Retry-After, RateLimit) silences the gate besides.
"""

from __future__ import annotations

import math
from typing import Any

from attrs import evolve

from linkcrawl.politeness.pacing.state import (
    AnswerKind,
    Blocked,
    Delay,
    Event,
    Pace,
    PaceSample,
    PacingLimits,
    Reopened,
    Silenced,
    Wait,
    WaitKind,
)

#: Longest silence that an answer can ask for, in seconds; more is cut to it, and told.
DAY = MAX_SILENCE = 86400.0

#: Weight of a new answer in the smoothed answer time.
SMOOTHING = 0.25
#: Strain. The trend (weight TREND) and the baseline are means of the logarithm, which one slow answer hardly moves.
#: The baseline is the mean of the first answers, then drifts; while there is strain it hardly rises, unless the strain
#: is the largest already: then slowing down has not helped, and the slowness is none of our doing.
TREND, FIRST_ANSWERS, DRIFT, DRIFT_STRAINED, DRIFT_IN_VAIN = 1 / 8, 8, 1 / 64, 1 / 512, 1 / 32
#: Strain grows while the trend is above so many times the baseline, by at most so much an answer, up to a largest,
#: and else falls. Simulated: log-normal answer times (sigma 0.6) make none, 20 or 500 ms at random 1.2 on average.
SLOWER, GROWTH, RELIEF, MOST_STRAIN = 1.5, 1.1, 0.9, 4.0
NOISE = 0.02  #: Seconds added to answer times before they are compared: below it differences are noise.
#: Seconds of a back-off at least; twice a delay of nothing would be no back-off.
LEAST_BACK_OFF = 1.0
#: Good answers in a row after which a back-off comes down, and what each further one leaves of it.
QUIET_ANSWERS, RECOVERY = 3, 0.9

#: The ban circuit: so many of the last so many answers, from a host that has answered well so often before.
BANNED, WINDOW, WORKED = 8, 10, 5


def delay(pace: Pace, terms: PacingLimits) -> Delay:
    """The delay in force, for a request of cost 1."""
    seconds, origin = max(_candidates(pace, terms), key=_seconds)
    return Delay(seconds=seconds, origin=origin)


def required(pace: Pace, terms: PacingLimits, one: Delay) -> Delay:
    """What has to lie between the end of the last request and the next one, and whose word the longest of it is.
    `one`: the delay in force."""
    spaced = one if pace.last_cost <= 1 else Delay(seconds=one.seconds * pace.last_cost, origin=one.origin)
    if pace.last_end is None:
        return spaced
    until, origin = max(_besides(pace, terms), key=_seconds)
    return spaced if until - pace.last_end <= spaced.seconds else Delay(seconds=until - pace.last_end, origin=origin)


def _besides(pace: Pace, terms: PacingLimits) -> list[tuple[float, str]]:
    """What is waited for besides the delay: moments, and whose word they are."""
    found = [(pace.silent_until, "Retry-After or RateLimit")]
    if terms.max_per_day is not None and pace.sent >= terms.max_per_day:
        found.append(((pace.day + 1) * DAY, f"max_per_day of {terms.max_per_day}"))
    if pace.blocked_since is not None and terms.probation is not None:
        found.append((_tried(pace) + terms.probation, "probation"))
    return found


def considered(pace: Pace, terms: PacingLimits) -> list[Delay]:
    """Every number that the delay is the largest of; 0 where there is nothing of the kind."""
    return [Delay(seconds=seconds, origin=origin) for seconds, origin in _candidates(pace, terms)]


def ready_at(pace: Pace, terms: PacingLimits, one: Delay) -> Wait:
    """When the gate may send again. `one`: the delay in force."""
    if pace.blocked_since is not None:
        why = "blocked: it used to work and has turned us away"
        at = math.inf if terms.probation is None else max(_tried(pace) + terms.probation, pace.silent_until)
        return Wait(at=at, why=why, standing=WaitKind.BLOCKED)
    if pace.last_end is None:
        spaced = Wait(at=0.0, why="nothing asked yet")
    else:
        at = pace.last_end + one.seconds * max(pace.last_cost, 1.0)
        spaced = Wait(at=at, why=f"delay of {one.seconds:.3g} s ({one.origin})")
    waits = [spaced, Wait(at=pace.silent_until, why="silenced by the server (Retry-After or RateLimit)")]
    if terms.max_per_day is not None and pace.sent >= terms.max_per_day:
        waits.append(Wait(at=(pace.day + 1) * DAY, why=f"max_per_day of {terms.max_per_day} is reached"))
    return max(waits, key=lambda wait: wait.at)


def note(pace: Pace, terms: PacingLimits, answer: PaceSample) -> tuple[Pace, tuple[Event, ...]]:
    """The pace after an answer, and what happened by it that people should know."""
    before = max(_candidates(pace, terms), key=_seconds)[0]
    last: dict[str, Any] = {"last_end": answer.ended, "last_cost": answer.cost}
    pace = evolve(pace, **last, **_timed(pace, answer), **_count(pace, answer.ended))
    silence, silenced = _silenced(pace, answer)
    judgement, blocked = _judged(pace, terms, answer)
    pace = evolve(pace, **_backed_off(pace, terms, answer, before), **silence, **judgement)
    return pace, (*silenced, *blocked)


def counted(pace: Pace) -> Pace:
    """The pace after one request more on the day of `last_end`."""
    return evolve(pace, **_count(pace, pace.last_end or 0.0))


def _count(pace: Pace, at: float) -> dict[str, Any]:
    day = int(at // DAY)
    return {"day": day, "sent": pace.sent + 1 if day == pace.day else 1}


def _seconds(candidate: tuple[float, str]) -> float:
    return candidate[0]


def _candidates(pace: Pace, terms: PacingLimits) -> list[tuple[float, str]]:
    asked = _asked(pace, terms)
    base = max(asked)[0]
    asked.append((_strained(pace, terms, base), "answers slower than usual"))
    asked.append((_back_off(pace.back_off, terms, base), "back-off"))
    return asked


def _asked(pace: Pace, terms: PacingLimits) -> list[tuple[float, str]]:
    """The floor, what robots.txt or an agreement asks for, and the adaptive part: seconds and origin of each."""
    slow = max(pace.answer_time or 0.0, pace.last_time)
    adaptive = (min(terms.k * slow, terms.max_adaptive), f"{terms.k:g} x answer time")
    floor = (terms.floor, terms.floor_from)
    if terms.agreed_delay is not None:
        return [floor, (terms.agreed_delay, terms.agreed_from), adaptive]
    robots = [(terms.crawl_delay or 0.0, "Crawl-delay"), (terms.request_rate_delay or 0.0, "Request-rate")]
    return [floor, *robots, adaptive]


def _strained(pace: Pace, terms: PacingLimits, base: float) -> float:
    return max(base, min(base * pace.strain, terms.max_adaptive))


def _back_off(seconds: float, terms: PacingLimits, base: float) -> float:
    """A back-off, capped at the adaptive part's cap; but there is always room for one doubling."""
    return min(seconds, max(terms.max_adaptive, 2 * base, LEAST_BACK_OFF))


def _timed(pace: Pace, answer: PaceSample) -> dict[str, Any]:
    """What an answer's time changes. That of an error page only counts where it is slower than usual."""
    latency, known = answer.latency, pace.answer_time
    if latency is None or answer.kind in (AnswerKind.TIMEOUT, AnswerKind.FAILURE):
        return {}
    smoothed = latency if known is None else known + SMOOTHING * (latency - known)
    if answer.kind is not AnswerKind.OK:
        return {"answer_time": max(smoothed, known or 0.0), "last_time": latency}
    return {
        "answer_time": smoothed,
        "last_time": latency,
        "timed": pace.timed + 1,
        **_trends(pace, math.log(latency + NOISE)),
    }


def _trends(pace: Pace, new: float) -> dict[str, float]:
    """Trend, baseline and strain. A slower answer never makes less strain: it moves the baseline with the next."""
    if pace.timed < FIRST_ANSWERS:
        mean = pace.baseline + (new - pace.baseline) / (pace.timed + 1)
        return {"trend": mean, "baseline": mean}
    if pace.trend < pace.baseline or pace.strain == 1:
        drift = DRIFT
    else:
        drift = DRIFT_IN_VAIN if pace.strain >= MOST_STRAIN else DRIFT_STRAINED
    trend = pace.trend + TREND * (new - pace.trend)
    excess = math.exp(trend - pace.baseline) / SLOWER
    strain = pace.strain * min(max(excess, RELIEF), GROWTH)
    return {
        "trend": trend,
        "baseline": pace.baseline + drift * (pace.trend - pace.baseline),
        "strain": min(max(strain, 1.0), MOST_STRAIN),
    }


def _backed_off(pace: Pace, terms: PacingLimits, answer: PaceSample, before: float) -> dict[str, Any]:
    """Back-off and calm. `before`: the delay that was in force for the request, which a throttling answer doubles."""
    base = max(_asked(pace, terms))[0]
    if answer.kind in (AnswerKind.THROTTLED, AnswerKind.TIMEOUT):
        return {"back_off": _back_off(max(2 * before, LEAST_BACK_OFF), terms, base), "calm": 0}
    if answer.kind is not AnswerKind.OK:
        return {}
    calm = pace.calm + 1
    eased = pace.back_off * RECOVERY if calm > QUIET_ANSWERS else pace.back_off
    return {"back_off": eased if eased > base else 0.0, "calm": calm}


def _silenced(pace: Pace, answer: PaceSample) -> tuple[dict[str, Any], tuple[Event, ...]]:
    if answer.retry_at is None or answer.retry_at <= max(answer.ended, pace.silent_until):
        return {}, ()
    until = min(answer.retry_at, answer.ended + MAX_SILENCE)
    until = max(until, pace.silent_until)
    return {"silent_until": until}, (Silenced(until=until, asked=answer.retry_at),)


def _tried(pace: Pace) -> float:
    """When a blocked gate was last asked, as far as is known."""
    return max(pace.last_end or 0.0, pace.blocked_since or 0.0)


def _judged(pace: Pace, terms: PacingLimits, answer: PaceSample) -> tuple[dict[str, Any], tuple[Event, ...]]:
    """The ban circuit. A host that has always refused a good part of its links is no host that has turned."""
    if answer.kind in (AnswerKind.TIMEOUT, AnswerKind.FAILURE):
        return {}, ()
    if pace.blocked_since is not None:
        return _on_probation(pace, pace.blocked_since, terms, answer)
    window = (*pace.recent, (answer.ended, answer.kind is AnswerKind.OK, answer.refused))
    left = window[:-WINDOW]
    window = window[-WINDOW:]
    good = pace.good + sum(good for _, good, _ in left)
    refused = pace.refused + sum(refused for _, _, refused in left)
    turned = [at for at, _, refused in window if refused]
    worked = good + sum(good for _, good, _ in window) >= WORKED and refused * 2 <= good
    counts: dict[str, Any] = {"recent": window, "good": good, "refused": refused}
    if not answer.refused or len(turned) < BANNED or not worked:
        return counts, ()
    return counts | {"blocked_since": turned[0]}, (Blocked(since=turned[0]),)


def _on_probation(
    pace: Pace, since: float, terms: PacingLimits, answer: PaceSample
) -> tuple[dict[str, Any], tuple[Event, ...]]:
    """One answer decides. Its window of refusals stays, so that a host which refuses the next ones is soon left alone
    again; what a refusal says of the link is not to be believed."""
    if terms.probation is None:
        return {}, ()
    if answer.refused or answer.kind is AnswerKind.THROTTLED:
        return {}, (Blocked(since=answer.ended),)
    window = (*pace.recent, (answer.ended, answer.kind is AnswerKind.OK, False))[-WINDOW:]
    return {"blocked_since": None, "recent": window}, (Reopened(since=since),)
