"""The arithmetic of pace: what it must never do, and what it does in time."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.politeness.pacing.delay import (
    BANNED,
    LEAST_BACK_OFF,
    MAX_SILENCE,
    SHUT_OUT_PAUSE,
    after_answer,
    delay,
    ready_at,
    required,
)
from linkcrawl.politeness.pacing.persistence import assume_just_requested, pace_from_row, pace_to_row, unblocked
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
from linkcrawl.politeness.policy.limits import DAYS, Quota
from linkcrawl.units import DAY

T0 = 1_800_000_000.0
seconds = st.floats(0, 5000)
maybe = st.none() | seconds
limits_any = st.builds(
    PacingLimits, floor=seconds, crawl_delay=maybe, request_rate_delay=maybe, agreed_delay=maybe, max_adaptive=seconds
)
answers_any = st.builds(
    PaceSample,
    ended=st.floats(T0, T0 + 1e6),
    kind=st.sampled_from(AnswerKind),
    refused=st.booleans(),
    latency=st.none() | st.floats(0, 100),
    retry_at=st.none() | st.floats(T0, T0 + 1e9) | st.just(math.inf),
    cost=st.floats(1, 9),
)


def after(limits: PacingLimits, *answers: PaceSample, pace: Pace = Pace()) -> tuple[Pace, list[Event]]:
    events: list[Event] = []
    for answer in answers:
        pace, happened = after_answer(pace, limits, answer)
        events.extend(happened)
    return pace, events


def ready(pace: Pace, limits: PacingLimits) -> Wait:
    return ready_at(pace, limits, delay(pace, limits))


def needed(pace: Pace, limits: PacingLimits) -> Delay:
    return required(pace, limits, delay(pace, limits))


def ok(latency: float = 0.05, at: float = 0.0) -> PaceSample:
    return PaceSample(ended=T0 + at, kind=AnswerKind.OK, latency=latency)


def bad(kind: AnswerKind, latency: float = 0.01, at: float = 0.0, **more: float | bool) -> PaceSample:
    return PaceSample(ended=T0 + at, kind=kind, latency=latency, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("limits", "latency", "expected", "origin"),
    [
        (PacingLimits(floor=1), 0.05, 1.0, "DOWNLOAD_DELAY"),
        (PacingLimits(floor=0.1, floor_from="policy hdl"), 0.001, 0.1, "policy hdl"),
        (PacingLimits(floor=1, crawl_delay=10), 0.05, 10.0, "Crawl-delay"),
        (PacingLimits(floor=1, crawl_delay=0.5), 0.05, 1.0, "DOWNLOAD_DELAY"),
        (PacingLimits(floor=1, crawl_delay=3600), 0.05, 3600.0, "Crawl-delay"),
        (PacingLimits(floor=1, crawl_delay=5, request_rate_delay=600), 0.05, 600.0, "Request-rate"),
        (PacingLimits(floor=1), 1.7, 8.5, "5 x answer time"),
        (PacingLimits(floor=1), 40, 60.0, "5 x answer time"),
        (PacingLimits(floor=1, crawl_delay=90), 40, 90.0, "Crawl-delay"),
        (PacingLimits(floor=1, crawl_delay=10, request_rate_delay=20, agreed_delay=2), 0.05, 2.0, "agreement"),
        (PacingLimits(floor=1, crawl_delay=10, agreed_delay=0.5), 0.05, 1.0, "DOWNLOAD_DELAY"),
    ],
)
def test_the_largest_counts(limits: PacingLimits, latency: float, expected: float, origin: str) -> None:
    pace, _ = after(limits, ok(latency))
    assert (delay(pace, limits).seconds, delay(pace, limits).origin) == (pytest.approx(expected), origin)


def test_it_is_counted_from_the_end_of_the_answer() -> None:
    limits = PacingLimits(floor=1, k=0)
    pace, _ = after(limits, ok(20.0, at=20))
    assert ready(pace, limits).at == T0 + 21


def test_nothing_is_waited_for_before_the_first_request_but_after_a_crash_a_full_delay() -> None:
    limits = PacingLimits(floor=1, crawl_delay=7)
    assert ready(Pace(), limits).at == 0
    assert ready(assume_just_requested(Pace(), T0), limits).at == T0 + 7


def test_an_expensive_request_costs_several_delays() -> None:
    limits = PacingLimits(floor=2)
    pace, _ = after(limits, evolve(ok(), cost=4.0))
    assert ready(pace, limits).at == T0 + 8


@pytest.mark.parametrize("kind", [AnswerKind.THROTTLED, AnswerKind.TIMEOUT])
@pytest.mark.parametrize(
    "limits",
    [PacingLimits(floor=1), PacingLimits(floor=0.1), PacingLimits(floor=1, crawl_delay=100), PacingLimits(floor=0)],
)
def test_throttling_and_time_outs_double_the_delay_in_force(kind: AnswerKind, limits: PacingLimits) -> None:
    pace, _ = after(limits, ok())
    before = delay(pace, limits).seconds
    pace, _ = after(limits, bad(kind), pace=pace)
    doubled = delay(pace, limits)
    assert doubled.seconds == max(2 * before, LEAST_BACK_OFF)
    assert doubled.origin == "back-off"


def test_back_off_grows_to_the_adaptive_cap_and_comes_down_in_small_steps_to_the_floor() -> None:
    limits = PacingLimits(floor=1)
    pace, _ = after(limits, ok(), *[bad(AnswerKind.THROTTLED)] * 20)
    assert delay(pace, limits).seconds == 60
    seen = [60.0]
    while seen[-1] > 1:
        pace, _ = after(limits, ok(), pace=pace)
        seen.append(delay(pace, limits).seconds)
        assert seen[-2] * 0.85 <= seen[-1] <= seen[-2] or seen[-1] == 1
        assert len(seen) < 100
    assert seen[:4] == [60.0] * 4  # quiet comes first
    assert len(seen) > 20


@pytest.mark.parametrize("kind", [AnswerKind.ERROR, AnswerKind.FAILURE])
def test_quick_errors_and_failures_never_shorten_a_delay(kind: AnswerKind) -> None:
    limits = PacingLimits(floor=1)
    pace, _ = after(limits, ok(2.0), bad(AnswerKind.THROTTLED))
    before = delay(pace, limits).seconds
    pace, _ = after(limits, *[bad(kind, 0.001)] * 50, pace=pace)
    assert delay(pace, limits).seconds == before


def test_slow_error_pages_lengthen_it() -> None:
    limits = PacingLimits(floor=1)
    pace, _ = after(limits, ok(0.1), *[bad(AnswerKind.ERROR, 4.0)] * 5)
    assert delay(pace, limits).seconds > 10


@pytest.mark.parametrize("usual", [0.1, 0.15])
def test_answers_twice_as_slow_slow_us_down_though_the_floor_is_far_above(usual: float) -> None:
    limits = PacingLimits(floor=3)
    pace, _ = after(limits, *[ok(usual)] * 30)
    assert delay(pace, limits).seconds == 3
    pace, _ = after(limits, *[ok(usual * 2)] * 15, pace=pace)
    assert delay(pace, limits).seconds > 3.5
    assert delay(pace, limits).origin == "answers slower than usual"
    pace, _ = after(limits, *[ok(usual)] * 40, pace=pace)
    assert delay(pace, limits).seconds == 3


def test_slowness_that_slowing_down_does_not_help_becomes_usual() -> None:
    limits = PacingLimits(floor=3)
    pace, _ = after(limits, *[ok(0.05)] * 30, *[ok(0.4)] * 20)
    assert delay(pace, limits).seconds == 12
    pace, _ = after(limits, *[ok(0.4)] * 100, pace=pace)
    assert delay(pace, limits).seconds == 3


def test_retry_after_silences_and_is_told() -> None:
    limits = PacingLimits(floor=1)
    pace, events = after(limits, bad(AnswerKind.THROTTLED, retry_at=T0 + 120))
    assert ready(pace, limits).at == T0 + 120
    assert events == [Silenced(until=T0 + 120, asked=T0 + 120)]
    pace, events = after(limits, bad(AnswerKind.THROTTLED, at=5, retry_at=T0 + 60), ok(at=6), pace=pace)
    assert ready(pace, limits).at == T0 + 120
    assert events == []


@pytest.mark.parametrize("asked", [T0 + 999_999_999, math.inf])
def test_a_silence_of_years_is_cut_to_a_day_and_told(asked: float) -> None:
    pace, events = after(PacingLimits(floor=1), bad(AnswerKind.THROTTLED, retry_at=asked))
    assert events == [Silenced(until=T0 + MAX_SILENCE, asked=asked)]
    assert pace.silent_until == T0 + MAX_SILENCE


@given(limits_any, st.lists(answers_any, max_size=30))
def test_never_below_the_floor_nor_before_the_server_allows(limits: PacingLimits, answers: list[PaceSample]) -> None:
    pace = Pace()
    for answer in answers:
        pace, _ = after_answer(pace, limits, answer)
        asked = (limits.crawl_delay or 0, limits.request_rate_delay or 0) if limits.agreed_delay is None else (0,)
        one = delay(pace, limits).seconds
        assert one >= max(limits.floor, *asked)
        plain = ready(pace, limits).at
        assert plain >= answer.ended + one * answer.cost
        if answer.retry_at is not None:
            assert plain >= min(answer.retry_at, answer.ended + MAX_SILENCE)


@given(limits_any, st.lists(answers_any, max_size=30), answers_any, st.floats(0, 100), st.floats(0, 100))
def test_a_slower_answer_never_makes_a_shorter_delay(
    limits: PacingLimits, answers: list[PaceSample], last: PaceSample, one: float, other: float
) -> None:
    pace, _ = after(limits, *answers)
    quick, slow = sorted((one, other))
    after_quick, _ = after_answer(pace, limits, evolve(last, latency=quick))
    after_slow, _ = after_answer(pace, limits, evolve(last, latency=slow))
    assert delay(after_slow, limits).seconds >= delay(after_quick, limits).seconds * (1 - 1e-9)


@given(limits_any, st.lists(answers_any, max_size=30))
def test_it_comes_back_to_the_floor(limits: PacingLimits, answers: list[PaceSample]) -> None:
    pace, _ = after(limits, *answers)
    usual = delay(after(limits, *[ok(0.0)] * 20)[0], limits).seconds
    pace, _ = after(limits, *[ok(0.0)] * 300, pace=pace)
    assert delay(pace, limits).seconds == pytest.approx(usual, abs=1e-6)


@given(limits_any, st.lists(answers_any, max_size=30))
def test_what_is_stored_comes_back(limits: PacingLimits, answers: list[PaceSample]) -> None:
    pace, _ = after(limits, *answers)
    assert pace_from_row(json.loads(json.dumps(pace_to_row(pace), allow_nan=False))) == pace


def test_rows_of_before_are_read() -> None:
    row = {
        "answer_time": 0.2, "last_time": 0.3, "timed": 12, "trend": -1.0, "baseline": -1.5, "strain": 1.4,
        "back_off": 4.0, "calm": 2, "silent_until": T0 + 5, "last_end": T0, "last_cost": 1.0,
        "recent": [[T0 - 1, True, False], [T0, False, True]], "good": 30, "refused": 1, "blocked_since": None,
        "day": int(T0 // DAY), "sent": 7, "asked_at": T0 - 1,
    }  # fmt: skip
    pace = pace_from_row(row)
    assert (pace.samples, pace.slowdown, pace.good_streak) == (12, 1.4, 2)
    assert (pace.back_off, pace.silent_until, pace.recent[1]) == (4.0, T0 + 5, (T0, False, True))
    assert ready(pace, PacingLimits(floor=1, quotas=(Quota(window=DAYS, most=7),))).why == "max_per_day of 7 is reached"
    assert ready(pace, PacingLimits(floor=1, quotas=(Quota(window=DAYS, most=8),))).at == T0 + 5


def test_rows_of_a_later_version_are_read() -> None:
    assert pace_from_row({**pace_to_row(Pace(good=3)), "new": [1]}) == Pace(good=3)


def test_nothing_stored_is_nothing_known() -> None:
    assert pace_from_row({}) == Pace()


def run_of(pattern: str) -> list[PaceSample]:
    """`o` good, `x` refused by an error page, `t` throttled, `e` error, `-` time-out; one a second."""
    kinds = {
        "o": AnswerKind.OK,
        "x": AnswerKind.ERROR,
        "t": AnswerKind.THROTTLED,
        "e": AnswerKind.ERROR,
        "-": AnswerKind.TIMEOUT,
    }
    return [bad(kinds[sign], at=number, refused=sign in "xt") for number, sign in enumerate(pattern)]


@pytest.mark.parametrize(
    ("pattern", "since"),
    [
        ("o" * 20 + "x" * 8, 20),
        ("o" * 20 + "xoxxxxxoxx", 20),
        ("o" * 5 + "t" * 8, 5),
        ("o" * 50 + "xxxx----xxxx", 50),
        ("o" * 20 + "x" * 7, None),
        ("o" * 20 + "e" * 50, None),
        ("o" * 4 + "x" * 50, None),  # never worked to speak of
        ("x" * 200, None),  # never worked
        ("ox" * 100 + "x" * 10, None),  # half of it was closed from the start
        ("o" * 20 + "xxo" * 20, None),
        ("o" * 20 + "-" * 50, None),
    ],
)
def test_the_ban_circuit(pattern: str, since: int | None) -> None:
    pace, events = after(PacingLimits(floor=0), *run_of(pattern))
    blocked = [event for event in events if isinstance(event, Blocked)]
    assert blocked == ([] if since is None else [Blocked(since=T0 + since)])
    assert math.isinf(ready(pace, PacingLimits(floor=0)).at) == bool(blocked)


def shut(at: float, kind: AnswerKind = AnswerKind.FAILURE) -> PaceSample:
    return PaceSample(ended=T0 + at, kind=kind, shut=True)


def answers(pattern: str) -> list[PaceSample]:
    """As run_of has them, and s: the connection is refused."""
    kept = run_of(pattern.replace("s", "o"))
    return [shut(number) if mark == "s" else kept[number] for number, mark in enumerate(pattern)]


@pytest.mark.parametrize(
    ("pattern", "event"),
    [
        ("o" * 5 + "s" * 7, None),
        ("o" * 5 + "s" * 8, ShutOut(until=T0 + 12 + SHUT_OUT_PAUSE)),
        ("o" * 5 + "s" * 20, ShutOut(until=T0 + 12 + SHUT_OUT_PAUSE)),  # once: it may be down
        ("o" * 4 + "s" * 20, None),  # it never worked
        ("s" * 20, None),
        ("o" * 5 + "s" * 7 + "o" + "s" * 7, None),  # it answers in between
        ("o" * 5 + "x" + "s" * 6, None),
        ("o" * 5 + "x" + "s" * 7, Blocked(since=T0 + 5)),  # a ban that goes on in the firewall
        ("o" * 5 + "xxxx" + "s" * 4, Blocked(since=T0 + 5)),
        ("o" * 5 + "xo" + "s" * 7, None),
    ],
)
def test_a_host_that_worked_and_refuses_connections_may_have_shut_us_out(
    pattern: str, event: ShutOut | Blocked | None
) -> None:
    pace, events = after(PacingLimits(floor=0), *answers(pattern))
    assert events == ([] if event is None else [event])
    if isinstance(event, ShutOut):
        assert ready(pace, PacingLimits(floor=0)).at == event.until
        assert "refuses or drops connections" in ready(pace, PacingLimits(floor=0)).why
        assert needed(pace, PacingLimits(floor=0)).origin == "connections refused"


def test_refused_connections_slow_us_down_from_the_second_on() -> None:
    limits = PacingLimits(floor=1)
    pace, _ = after(limits, *answers("o" * 5 + "s"))
    assert delay(pace, limits).seconds == 1.0, "one is an accident"
    seconds = []
    for number in range(8):
        pace, _ = after(limits, shut(6 + number), pace=pace)
        seconds.append(delay(pace, limits).seconds)
    assert seconds == [2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    dead, _ = after(limits, *(shut(number) for number in range(8)))
    assert delay(dead, limits).seconds == 1.0, "one that never worked is not spared"


def test_a_person_opens_it_again_and_it_can_close_again() -> None:
    pace, _ = after(PacingLimits(floor=1), *run_of("o" * 20 + "x" * 8))
    pace = unblocked(pace)
    assert ready(pace, PacingLimits(floor=1)).at < math.inf
    pace, events = after(PacingLimits(floor=1), *run_of("x" * (BANNED - 1)), pace=pace)
    assert events == []
    _, events = after(PacingLimits(floor=1), *run_of("x"), pace=pace)
    assert [type(event) for event in events] == [Blocked]


TRIED = PacingLimits(floor=1, probation=1000.0)


def test_without_a_probation_nothing_but_a_person_opens_it() -> None:
    pace, _ = after(PacingLimits(floor=1), *run_of("o" * 20 + "x" * 8 + "o" * 50))
    assert ready(pace, PacingLimits(floor=1)).at == math.inf


@pytest.mark.parametrize(
    ("then", "opens", "events"),
    [
        ("", False, []),
        ("x", False, [Blocked]),
        ("xxx", False, [Blocked] * 3),
        ("-", False, []),  # no answer says nothing
        ("o", True, [Reopened]),
        ("xo", True, [Blocked, Reopened]),
        ("ox", False, [Reopened, Blocked]),  # it has not relented after all
        ("oooooooooxx", True, [Reopened]),
    ],
)
def test_probation(then: str, opens: bool, events: list[type]) -> None:
    pace, _ = after(TRIED, *run_of("o" * 20 + "x" * 8))
    assert ready(pace, TRIED).at == (pace.last_end or 0.0) + 1000.0
    assert ready(pace, TRIED).kind is WaitKind.BLOCKED
    later = [evolve(answer, ended=answer.ended + 2000.0) for answer in run_of(then)]
    pace, told = after(TRIED, *later, pace=pace)
    assert [type(event) for event in told] == events
    assert (pace.blocked_since is None) == opens
    wait = ready(pace, TRIED)
    assert wait.at - (pace.last_end or 0.0) == pytest.approx(delay(pace, TRIED).seconds if opens else 1000.0)


@pytest.mark.parametrize(
    ("change", "seconds", "origin"),
    [
        ({}, 1.0, "DOWNLOAD_DELAY"),
        ({"last_cost": 4.0}, 4.0, "DOWNLOAD_DELAY"),
        ({"last_cost": 0.5}, 1.0, "DOWNLOAD_DELAY"),
        ({"back_off": 8.0}, 8.0, "back-off"),
        ({"silent_until": T0 + 900}, 900.0, "Retry-After or RateLimit"),
        ({"silent_until": T0 - 900}, 1.0, "DOWNLOAD_DELAY"),
        ({"counts": {"day": (int(T0 // DAY), 5)}}, DAY - T0 % DAY, "max_per_day of 5"),
        ({"counts": {"day": (int(T0 // DAY), 4)}}, 1.0, "DOWNLOAD_DELAY"),
        ({"blocked_since": T0 - 10}, 1000.0, "probation"),
        ({"last_end": None, "silent_until": T0 + 900}, 1.0, "DOWNLOAD_DELAY"),
    ],
)
def test_what_has_to_lie_before_a_request(change: dict[str, Any], seconds: float, origin: str) -> None:
    pace = evolve(Pace(last_end=T0), **change)
    told = needed(pace, PacingLimits(floor=1.0, quotas=(Quota(window=DAYS, most=5),), probation=1000.0))
    assert (told.seconds, told.origin) == (pytest.approx(seconds), origin)


@given(limits_any, st.lists(answers_any, max_size=20))
def test_what_is_required_is_what_is_waited_for(limits: PacingLimits, answers: list[PaceSample]) -> None:
    pace, _ = after(limits, *answers)
    if pace.last_end is not None and pace.blocked_since is None:
        assert pace.last_end + needed(pace, limits).seconds == pytest.approx(ready(pace, limits).at, abs=1e-3)


def test_a_probation_waits_for_what_the_server_asked_for() -> None:
    pace, _ = after(TRIED, *run_of("o" * 20 + "x" * 8))
    pace, _ = after(
        TRIED, PaceSample(ended=T0 + 28, kind=AnswerKind.THROTTLED, refused=True, retry_at=T0 + 9000), pace=pace
    )
    assert ready(pace, TRIED).at == T0 + 9000


@pytest.mark.parametrize(
    ("base", "capacity", "floor"),
    [(0.1, 10, 0.0), (0.1, 1, 0.0), (0.1, 1, 1.0), (1.7, 0.3, 1.0), (0.5, 0.2, 1.0), (5, 0.03, 1.0), (0.05, 2, 0.1)],
)
def test_a_server_under_our_load_stays_within_three_times_its_ease(base: float, capacity: float, floor: float) -> None:
    """On a virtual clock: answer time = base / (1 - rate / capacity), for servers that could answer at least one
    request in 12 times their base; the bound follows from k = 5."""
    limits = PacingLimits(floor=floor)
    pace, end, rate, start, slowest = Pace(), 0.0, 0.0, 0.0, 0.0
    for number in range(600):
        next_start = max(end, ready(pace, limits).at)
        if number:
            rate = 0.7 * rate + 0.3 / (next_start - start)
        start = next_start
        latency = base / (1 - min(rate, 0.999 * capacity) / capacity)
        end = start + latency
        pace, _ = after_answer(pace, limits, PaceSample(ended=end, kind=AnswerKind.OK, latency=latency))
        slowest = max(slowest, latency) if number > 30 else slowest
    assert slowest <= 3 * base


def test_after_a_slow_answer_k_times_its_own_time_is_waited() -> None:
    limits = PacingLimits(floor=1.0, k=5.0, max_adaptive=60.0)
    pace, _ = after(limits, *[ok(0.01)] * 30, ok(4.0))
    assert delay(pace, limits).seconds >= 20.0
    pace, _ = after(limits, *[ok(0.01)] * 60, pace=pace)
    assert delay(pace, limits).seconds < 2.0
