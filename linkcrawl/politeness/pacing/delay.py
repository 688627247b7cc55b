"""The arithmetic of pacing. Pure: times are arguments, and each answer makes a new `Pace` from the old one.

The delay of a gate, in seconds from the end of an answer to the start of the next request, is the largest of

* the floor: DOWNLOAD_DELAY, or the `delay` of a policy rule,
* Crawl-delay and Request-rate of robots.txt, or the delay that was agreed on in their place,
* k times the answer time (the last or the smoothed one, whichever is longer), at most `max_adaptive`;
  k is 1 / AUTOTHROTTLE_TARGET_CONCURRENCY,
* the largest of these times the slowdown (1 to 4), once the server answers more slowly than it used to,
* the back-off: twice the delay in force after each throttling answer or time-out; each good answer takes a step off.

A time that the server names (Retry-After, RateLimit) shuts the gate besides, and so does a full quota.
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
    ShutOut,
    Silenced,
    Wait,
    WaitKind,
)
from linkcrawl.politeness.policy.limits import count_request
from linkcrawl.units import DAY, HOUR

#: Longest silence that one answer can ask for, in seconds. A longer one is cut to it, and the log says so.
MAX_SILENCE = DAY

#: Weight of a new answer in the smoothed answer time.
SMOOTHING = 0.25
#: Trend (weight TREND) and baseline are means of the logarithm of answer times, which one slow answer hardly moves. The
#: baseline is the mean of the first answers and then drifts towards the trend. While the slowdown is above 1 it drifts
#: slower; at the largest slowdown faster again, for then slowing down has not helped: we are not what slows the server.
TREND, FIRST_ANSWERS, DRIFT, DRIFT_SLOWED, DRIFT_IN_VAIN = 1 / 8, 8, 1 / 64, 1 / 512, 1 / 32
#: The slowdown grows by at most GROWTH an answer while the trend is more than SLOWER times the baseline, and shrinks
#: otherwise. Simulated: log-normal answer times (sigma 0.6) cause none; 20 or 500 ms at random cause 1.2 on average.
SLOWER, GROWTH, RELIEF, MAX_SLOWDOWN = 1.5, 1.1, 0.9, 4.0
#: Seconds added to answer times before they are compared: differences below it are noise.
NOISE = 0.02
#: Seconds of the shortest back-off: twice a delay of 0 would be none.
LEAST_BACK_OFF = 1.0
#: Good answers in a row before a back-off shrinks, and the factor that each further one shrinks it by.
QUIET_ANSWERS, RECOVERY = 3, 0.9

#: The ban circuit opens when BANNED of the last WINDOW answers are refusals, at a host with WORKED good answers before.
BANNED, WINDOW, WORKED = 8, 10, 5
#: Seconds that such a host is left alone when BANNED connections in a row were refused, reset or dropped. It may be
#: down as well, so no person is needed afterwards. fail2ban's own ban lasts for ten minutes by default.
SHUT_OUT_PAUSE = HOUR
#: Connections in a row from which on each doubles the delay; one alone is an accident.
SHUT_IN_A_ROW = 2


def delay(pace: Pace, limits: PacingLimits) -> Delay:
    """The delay in force, for a request of cost 1."""
    seconds, origin = max(_candidates(pace, limits), key=_first)
    return Delay(seconds=seconds, origin=origin)


def considered(pace: Pace, limits: PacingLimits) -> list[Delay]:
    """All numbers that the delay in force is the largest of; 0 where one doesn't apply."""
    return [Delay(seconds=seconds, origin=origin) for seconds, origin in _candidates(pace, limits)]


def required(pace: Pace, limits: PacingLimits, in_force: Delay) -> Delay:
    """The gap between the end of the last request and the start of the next, and its origin. `in_force`: the delay."""
    spaced = in_force
    if pace.last_cost > 1:
        spaced = Delay(seconds=in_force.seconds * pace.last_cost, origin=in_force.origin)
    if pace.last_end is None:
        return spaced
    until, origin = max(_shut_until(pace, limits), key=_first)
    return spaced if until - pace.last_end <= spaced.seconds else Delay(seconds=until - pace.last_end, origin=origin)


def _shut_until(pace: Pace, limits: PacingLimits) -> list[tuple[float, str]]:
    """What shuts the gate besides the delay: moments (Unix seconds) and their origins."""
    moments = [(pace.silent_until, "connections refused" if _is_shut_out(pace) else "Retry-After or RateLimit")]
    moments += [(quota.shut_until(pace.counts), quota.origin) for quota in limits.quotas]
    if pace.blocked_since is not None and limits.probation is not None:
        moments.append((_last_tried(pace) + limits.probation, "probation"))
    return moments


def ready_at(pace: Pace, limits: PacingLimits, in_force: Delay) -> Wait:
    """When the gate may send its next request. `in_force`: the delay."""
    if pace.blocked_since is not None:
        why = "blocked: it used to work and has turned us away"
        at = math.inf if limits.probation is None else max(_last_tried(pace) + limits.probation, pace.silent_until)
        return Wait(at=at, why=why, kind=WaitKind.BLOCKED)
    if pace.last_end is None:
        spaced = Wait(at=0.0, why="nothing asked yet")
    else:
        at = pace.last_end + in_force.seconds * max(pace.last_cost, 1.0)
        spaced = Wait(at=at, why=f"delay of {in_force.seconds:.3g} s ({in_force.origin})")
    why = "silenced by the server (Retry-After or RateLimit)"
    if _is_shut_out(pace):
        why = "left alone: it used to work and refuses or drops connections"
    waits = [spaced, Wait(at=pace.silent_until, why=why)]
    waits += [Wait(at=quota.shut_until(pace.counts), why=f"{quota.origin} is reached") for quota in limits.quotas]
    return max(waits, key=lambda wait: wait.at)


def after_answer(pace: Pace, limits: PacingLimits, answer: PaceSample) -> tuple[Pace, tuple[Event, ...]]:
    """The pace after an answer, and the events that people should know of."""
    times = _answer_times(pace, answer)
    silence, silenced = _silence(pace, answer)
    ban, turned = _ban_circuit(pace, limits, answer)
    after = evolve(
        pace,
        last_end=answer.ended,
        last_cost=answer.cost,
        counts=count_request(pace.counts, answer.ended),
        **times,
        **_backed_off(pace, limits, answer, times),
        **silence,
        **ban,
    )
    after, shut = _shut_out(after, answer)
    return after, (*silenced, *turned, *shut)


def _first(candidate: tuple[float, str]) -> float:
    return candidate[0]


def _candidates(pace: Pace, limits: PacingLimits) -> list[tuple[float, str]]:
    """Seconds and origin of everything that the delay is the largest of."""
    candidates = _base_candidates(pace, limits)
    base = max(candidates)[0]
    candidates.append((_slowed_down(pace, limits, base), "answers slower than usual"))
    candidates.append((_capped_back_off(pace.back_off, limits, base), "back-off"))
    return candidates


def _base_candidates(pace: Pace, limits: PacingLimits) -> list[tuple[float, str]]:
    """Seconds and origin of the floor, of what robots.txt or an agreement asks for, and of the adaptive part."""
    slow = max(pace.answer_time or 0.0, pace.last_time)
    adaptive = (min(limits.k * slow, limits.max_adaptive), f"{limits.k:g} x answer time")
    floor = (limits.floor, limits.floor_from)
    if limits.agreed_delay is not None:
        return [floor, (limits.agreed_delay, limits.agreed_from), adaptive]
    robots = [(limits.crawl_delay or 0.0, "Crawl-delay"), (limits.request_rate_delay or 0.0, "Request-rate")]
    return [floor, *robots, adaptive]


def _slowed_down(pace: Pace, limits: PacingLimits, base: float) -> float:
    return max(base, min(base * pace.slowdown, limits.max_adaptive))


def _capped_back_off(seconds: float, limits: PacingLimits, base: float) -> float:
    """A back-off of at most `max_adaptive`, or of one doubling where that is more."""
    return min(seconds, max(limits.max_adaptive, 2 * base, LEAST_BACK_OFF))


def _answer_times(pace: Pace, answer: PaceSample) -> dict[str, Any]:
    """What changes by an answer's time. The time of an error page only counts where it is slower than usual."""
    latency, known = answer.latency, pace.answer_time
    if latency is None or answer.kind in (AnswerKind.TIMEOUT, AnswerKind.FAILURE):
        return {}
    smoothed = latency if known is None else known + SMOOTHING * (latency - known)
    if answer.kind is not AnswerKind.OK:
        return {"answer_time": max(smoothed, known or 0.0), "last_time": latency}
    return {
        "answer_time": smoothed,
        "last_time": latency,
        "samples": pace.samples + 1,
        **_trends(pace, math.log(latency + NOISE)),
    }


def _trends(pace: Pace, new: float) -> dict[str, float]:
    """Trend, baseline and slowdown after an answer whose time has the logarithm `new`. The baseline takes the answer in
    with the next one only, so that a slower answer never lowers the slowdown."""
    if pace.samples < FIRST_ANSWERS:
        mean = pace.baseline + (new - pace.baseline) / (pace.samples + 1)
        return {"trend": mean, "baseline": mean}
    if pace.trend < pace.baseline or pace.slowdown == 1:
        drift = DRIFT
    else:
        drift = DRIFT_IN_VAIN if pace.slowdown >= MAX_SLOWDOWN else DRIFT_SLOWED
    trend = pace.trend + TREND * (new - pace.trend)
    excess = math.exp(trend - pace.baseline) / SLOWER
    slowdown = pace.slowdown * min(max(excess, RELIEF), GROWTH)
    return {
        "trend": trend,
        "baseline": pace.baseline + drift * (pace.trend - pace.baseline),
        "slowdown": min(max(slowdown, 1.0), MAX_SLOWDOWN),
    }


def _backed_off(pace: Pace, limits: PacingLimits, answer: PaceSample, times: dict[str, Any]) -> dict[str, Any]:
    """The back-off after an answer. A throttling one doubles the delay that was in force. `times`: what changes in the
    pace by the answer's time."""
    shut = answer.shut and _used_to_work(pace) and pace.shut_ends + 1 >= SHUT_IN_A_ROW
    if shut or answer.kind in (AnswerKind.THROTTLED, AnswerKind.TIMEOUT):
        doubled = max(2 * max(_candidates(pace, limits))[0], LEAST_BACK_OFF)
        return {"back_off": _capped_back_off(doubled, limits, _base(pace, limits, times)), "good_streak": 0}
    if answer.kind is not AnswerKind.OK:
        return {}
    good_streak = pace.good_streak + 1
    if not pace.back_off:
        return {"good_streak": good_streak}
    eased = pace.back_off * RECOVERY if good_streak > QUIET_ANSWERS else pace.back_off
    return {"back_off": eased if eased > _base(pace, limits, times) else 0.0, "good_streak": good_streak}


def _base(pace: Pace, limits: PacingLimits, times: dict[str, Any]) -> float:
    """The delay of a pace with these answer times, without slowdown and back-off."""
    return max(_base_candidates(evolve(pace, **times), limits))[0]


def _silence(pace: Pace, answer: PaceSample) -> tuple[dict[str, Any], tuple[Event, ...]]:
    if answer.retry_at is None or answer.retry_at <= max(answer.ended, pace.silent_until):
        return {}, ()
    until = min(answer.retry_at, answer.ended + MAX_SILENCE)
    until = max(until, pace.silent_until)
    return {"silent_until": until}, (Silenced(until=until, asked=answer.retry_at),)


def _last_tried(pace: Pace) -> float:
    """When a blocked gate was asked last (Unix seconds)."""
    return max(pace.last_end or 0.0, pace.blocked_since or 0.0)


def _ban_circuit(pace: Pace, limits: PacingLimits, answer: PaceSample) -> tuple[dict[str, Any], tuple[Event, ...]]:
    """Whether the host has turned us away. One that has always refused a good part of its links has not."""
    if answer.kind in (AnswerKind.TIMEOUT, AnswerKind.FAILURE):
        return {}, ()
    if pace.blocked_since is not None:
        return _on_probation(pace, pace.blocked_since, limits, answer)
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


def may_turn(pace: Pace) -> bool:
    """True where a gate that used to work has refused half of what a ban takes: its refusals must outlive a crash."""
    refused = sum(refused for _, _, refused in pace.recent) + pace.shut_ends
    return _used_to_work(pace) and refused >= BANNED // 2


def _used_to_work(pace: Pace) -> bool:
    return pace.good + sum(good for _, good, _ in pace.recent) >= WORKED


def _is_shut_out(pace: Pace) -> bool:
    return pace.shut_ends >= BANNED


def _shut_out(pace: Pace, answer: PaceSample) -> tuple[Pace, tuple[Event, ...]]:
    """Whether a host that used to work shuts us out by refusing connections. After refusals that were answers these
    count like more of them; alone they may as well mean that it is down, and it is left alone for a time, once."""
    if not answer.shut:
        answered = answer.kind not in (AnswerKind.TIMEOUT, AnswerKind.FAILURE)
        return (evolve(pace, shut_ends=0) if answered and pace.shut_ends else pace), ()
    if pace.blocked_since is not None or not _used_to_work(pace):
        return pace, ()
    pace = evolve(pace, shut_ends=pace.shut_ends + 1)
    turned: list[float] = []  # the refusals just before, latest first
    for at, _, refused in reversed(pace.recent):
        if not refused:
            break
        turned.append(at)
    if turned and len(turned) + pace.shut_ends >= BANNED and pace.refused * 2 <= pace.good:
        return evolve(pace, blocked_since=turned[-1]), (Blocked(since=turned[-1]),)
    if pace.shut_ends != BANNED:
        return pace, ()
    until = max(answer.ended + SHUT_OUT_PAUSE, pace.silent_until)
    return evolve(pace, silent_until=until), (ShutOut(until=until),)


def _on_probation(
    pace: Pace, since: float, limits: PacingLimits, answer: PaceSample
) -> tuple[dict[str, Any], tuple[Event, ...]]:
    """One answer decides: no refusal opens the gate. The earlier refusals stay in `recent`, so that one or two more
    block it again; the event of a refusal has its record withdrawn."""
    if limits.probation is None:
        return {}, ()
    if answer.refused or answer.kind is AnswerKind.THROTTLED:
        return {}, (Blocked(since=answer.ended),)
    window = (*pace.recent, (answer.ended, answer.kind is AnswerKind.OK, False))[-WINDOW:]
    return {"blocked_since": None, "recent": window}, (Reopened(since=since),)
