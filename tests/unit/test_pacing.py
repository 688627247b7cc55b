"""The arithmetic of pace: what it must never do, and what it does in time."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.politeness.pacing.delay import BANNED, LEAST_BACK_OFF, MAX_SILENCE, delay, note, ready_at, required
from linkcrawl.politeness.pacing.persistence import assume_just_requested, pace_from_row, unblocked
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

T0 = 1_800_000_000.0
seconds = st.floats(0, 5000)
maybe = st.none() | seconds
terms_any = st.builds(
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


def after(terms: PacingLimits, *answers: PaceSample, pace: Pace = Pace()) -> tuple[Pace, list[Event]]:
    events: list[Event] = []
    for answer in answers:
        pace, happened = note(pace, terms, answer)
        events.extend(happened)
    return pace, events


def ready(pace: Pace, terms: PacingLimits) -> Wait:
    return ready_at(pace, terms, delay(pace, terms))


def needed(pace: Pace, terms: PacingLimits) -> Delay:
    return required(pace, terms, delay(pace, terms))


def ok(latency: float = 0.05, at: float = 0.0) -> PaceSample:
    return PaceSample(ended=T0 + at, kind=AnswerKind.OK, latency=latency)


def bad(kind: AnswerKind, latency: float = 0.01, at: float = 0.0, **more: float | bool) -> PaceSample:
    return PaceSample(ended=T0 + at, kind=kind, latency=latency, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("terms", "latency", "expected", "origin"),
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
def test_the_largest_counts(terms: PacingLimits, latency: float, expected: float, origin: str) -> None:
    pace, _ = after(terms, ok(latency))
    assert (delay(pace, terms).seconds, delay(pace, terms).origin) == (pytest.approx(expected), origin)


def test_it_is_counted_from_the_end_of_the_answer() -> None:
    terms = PacingLimits(floor=1, k=0)
    pace, _ = after(terms, ok(20.0, at=20))
    assert ready(pace, terms).at == T0 + 21


def test_nothing_is_waited_for_before_the_first_request_but_after_a_crash_a_full_delay() -> None:
    terms = PacingLimits(floor=1, crawl_delay=7)
    assert ready(Pace(), terms).at == 0
    assert ready(assume_just_requested(Pace(), T0), terms).at == T0 + 7


def test_an_expensive_request_costs_several_delays() -> None:
    terms = PacingLimits(floor=2)
    pace, _ = after(terms, evolve(ok(), cost=4.0))
    assert ready(pace, terms).at == T0 + 8


@pytest.mark.parametrize("kind", [AnswerKind.THROTTLED, AnswerKind.TIMEOUT])
@pytest.mark.parametrize(
    "terms",
    [PacingLimits(floor=1), PacingLimits(floor=0.1), PacingLimits(floor=1, crawl_delay=100), PacingLimits(floor=0)],
)
def test_throttling_and_time_outs_double_the_delay_in_force(kind: AnswerKind, terms: PacingLimits) -> None:
    pace, _ = after(terms, ok())
    before = delay(pace, terms).seconds
    pace, _ = after(terms, bad(kind), pace=pace)
    doubled = delay(pace, terms)
    assert doubled.seconds == max(2 * before, LEAST_BACK_OFF)
    assert doubled.origin == "back-off"


def test_back_off_grows_to_the_adaptive_cap_and_comes_down_in_small_steps_to_the_floor() -> None:
    terms = PacingLimits(floor=1)
    pace, _ = after(terms, ok(), *[bad(AnswerKind.THROTTLED)] * 20)
    assert delay(pace, terms).seconds == 60
    seen = [60.0]
    while seen[-1] > 1:
        pace, _ = after(terms, ok(), pace=pace)
        seen.append(delay(pace, terms).seconds)
        assert seen[-2] * 0.85 <= seen[-1] <= seen[-2] or seen[-1] == 1
        assert len(seen) < 100
    assert seen[:4] == [60.0] * 4  # quiet comes first
    assert len(seen) > 20


@pytest.mark.parametrize("kind", [AnswerKind.ERROR, AnswerKind.FAILURE])
def test_quick_errors_and_failures_never_shorten_a_delay(kind: AnswerKind) -> None:
    terms = PacingLimits(floor=1)
    pace, _ = after(terms, ok(2.0), bad(AnswerKind.THROTTLED))
    before = delay(pace, terms).seconds
    pace, _ = after(terms, *[bad(kind, 0.001)] * 50, pace=pace)
    assert delay(pace, terms).seconds == before


def test_slow_error_pages_lengthen_it() -> None:
    terms = PacingLimits(floor=1)
    pace, _ = after(terms, ok(0.1), *[bad(AnswerKind.ERROR, 4.0)] * 5)
    assert delay(pace, terms).seconds > 10


@pytest.mark.parametrize("usual", [0.1, 0.15])
def test_answers_twice_as_slow_slow_us_down_though_the_floor_is_far_above(usual: float) -> None:
    terms = PacingLimits(floor=3)
    pace, _ = after(terms, *[ok(usual)] * 30)
    assert delay(pace, terms).seconds == 3
    pace, _ = after(terms, *[ok(usual * 2)] * 15, pace=pace)
    assert delay(pace, terms).seconds > 3.5
    assert delay(pace, terms).origin == "answers slower than usual"
    pace, _ = after(terms, *[ok(usual)] * 40, pace=pace)
    assert delay(pace, terms).seconds == 3


def test_slowness_that_slowing_down_does_not_help_becomes_usual() -> None:
    terms = PacingLimits(floor=3)
    pace, _ = after(terms, *[ok(0.05)] * 30, *[ok(0.4)] * 20)
    assert delay(pace, terms).seconds == 12
    pace, _ = after(terms, *[ok(0.4)] * 100, pace=pace)
    assert delay(pace, terms).seconds == 3


def test_retry_after_silences_and_is_told() -> None:
    terms = PacingLimits(floor=1)
    pace, events = after(terms, bad(AnswerKind.THROTTLED, retry_at=T0 + 120))
    assert ready(pace, terms).at == T0 + 120
    assert events == [Silenced(until=T0 + 120, asked=T0 + 120)]
    pace, events = after(terms, bad(AnswerKind.THROTTLED, at=5, retry_at=T0 + 60), ok(at=6), pace=pace)
    assert ready(pace, terms).at == T0 + 120
    assert events == []


@pytest.mark.parametrize("asked", [T0 + 999_999_999, math.inf])
def test_a_silence_of_years_is_cut_to_a_day_and_told(asked: float) -> None:
    pace, events = after(PacingLimits(floor=1), bad(AnswerKind.THROTTLED, retry_at=asked))
    assert events == [Silenced(until=T0 + MAX_SILENCE, asked=asked)]
    assert pace.silent_until == T0 + MAX_SILENCE


@given(terms_any, st.lists(answers_any, max_size=30))
def test_never_below_the_floor_nor_before_the_server_allows(terms: PacingLimits, answers: list[PaceSample]) -> None:
    pace = Pace()
    for answer in answers:
        pace, _ = note(pace, terms, answer)
        asked = (terms.crawl_delay or 0, terms.request_rate_delay or 0) if terms.agreed_delay is None else (0,)
        one = delay(pace, terms).seconds
        assert one >= max(terms.floor, *asked)
        plain = ready(pace, terms).at
        assert plain >= answer.ended + one * answer.cost
        if answer.retry_at is not None:
            assert plain >= min(answer.retry_at, answer.ended + MAX_SILENCE)


@given(terms_any, st.lists(answers_any, max_size=30), answers_any, st.floats(0, 100), st.floats(0, 100))
def test_a_slower_answer_never_makes_a_shorter_delay(
    terms: PacingLimits, answers: list[PaceSample], last: PaceSample, one: float, other: float
) -> None:
    pace, _ = after(terms, *answers)
    quick, slow = sorted((one, other))
    after_quick, _ = note(pace, terms, evolve(last, latency=quick))
    after_slow, _ = note(pace, terms, evolve(last, latency=slow))
    assert delay(after_slow, terms).seconds >= delay(after_quick, terms).seconds * (1 - 1e-9)


@given(terms_any, st.lists(answers_any, max_size=30))
def test_it_comes_back_to_the_floor(terms: PacingLimits, answers: list[PaceSample]) -> None:
    pace, _ = after(terms, *answers)
    usual = delay(after(terms, *[ok(0.0)] * 20)[0], terms).seconds
    pace, _ = after(terms, *[ok(0.0)] * 300, pace=pace)
    assert delay(pace, terms).seconds == pytest.approx(usual, abs=1e-6)


@given(terms_any, st.lists(answers_any, max_size=30))
def test_what_is_stored_comes_back(terms: PacingLimits, answers: list[PaceSample]) -> None:
    pace, _ = after(terms, *answers)
    assert pace_from_row(json.loads(json.dumps(pace.to_row(), allow_nan=False))) == pace


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
    assert ready(pace, TRIED).standing is WaitKind.BLOCKED
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
        ({"sent": 5, "day": int(T0 // 86400)}, 86400 - T0 % 86400, "max_per_day of 5"),
        ({"sent": 4, "day": int(T0 // 86400)}, 1.0, "DOWNLOAD_DELAY"),
        ({"blocked_since": T0 - 10}, 1000.0, "probation"),
        ({"last_end": None, "silent_until": T0 + 900}, 1.0, "DOWNLOAD_DELAY"),
    ],
)
def test_what_has_to_lie_before_a_request(change: dict[str, Any], seconds: float, origin: str) -> None:
    pace = evolve(Pace(last_end=T0), **change)
    told = needed(pace, PacingLimits(floor=1.0, max_per_day=5, probation=1000.0))
    assert (told.seconds, told.origin) == (pytest.approx(seconds), origin)


@given(terms_any, st.lists(answers_any, max_size=20))
def test_what_is_required_is_what_is_waited_for(terms: PacingLimits, answers: list[PaceSample]) -> None:
    pace, _ = after(terms, *answers)
    if pace.last_end is not None and pace.blocked_since is None:
        assert pace.last_end + needed(pace, terms).seconds == pytest.approx(ready(pace, terms).at, abs=1e-3)


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
    terms = PacingLimits(floor=floor)
    pace, end, rate, start, slowest = Pace(), 0.0, 0.0, 0.0, 0.0
    for number in range(600):
        next_start = max(end, ready(pace, terms).at)
        if number:
            rate = 0.7 * rate + 0.3 / (next_start - start)
        start = next_start
        latency = base / (1 - min(rate, 0.999 * capacity) / capacity)
        end = start + latency
        pace, _ = note(pace, terms, PaceSample(ended=end, kind=AnswerKind.OK, latency=latency))
        slowest = max(slowest, latency) if number > 30 else slowest
    assert slowest <= 3 * base


def test_after_a_slow_answer_k_times_its_own_time_is_waited() -> None:
    terms = PacingLimits(floor=1.0, k=5.0, max_adaptive=60.0)
    pace, _ = after(terms, *[ok(0.01)] * 30, ok(4.0))
    assert delay(pace, terms).seconds >= 20.0
    pace, _ = after(terms, *[ok(0.01)] * 60, pace=pace)
    assert delay(pace, terms).seconds < 2.0
