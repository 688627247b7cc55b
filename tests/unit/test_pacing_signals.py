"""Retry-After, RateLimit and statuses, read into what pacing takes note of."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.items import iso
from linkcrawl.politeness.own_network import SILENT_GATES, OwnNetwork, note_end
from linkcrawl.politeness.pacing.hints import retry_at, sample_of
from linkcrawl.politeness.pacing.state import AnswerKind

NOW = 1_800_000_000.25


def date(offset: float) -> str:
    return format_datetime(datetime.fromtimestamp(int(NOW) + offset, UTC), usegmt=True)


def outcome(status: int | None = None, failure: Failure | None = None, **headers: str) -> Outcome:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Outcome(sent_at=NOW - 1, ended_at=NOW, duration_ms=1000, status=status, headers=named, failure=failure)


def wait(status: int = 429, **headers: str) -> float | None:
    until = retry_at(status, {name.replace("_", "-"): value for name, value in headers.items()}, NOW)
    return None if until is None else until - NOW


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("120", 120),
        (" 120 ", 120),
        ("1.5", 1.5),
        ("999999999", 999999999),
        ("1m30s", 90),
        ("3s", 3),
        ("1h", 3600),
        ("2D", 172800),
        ("1h0m5s", 3605),
        ("60, 120", 120),
        (date(60), 59.75),
        (f"{date(60)}, {date(60)}", 59.75),
        (f"{date(60)}, {date(120)}", 119.75),
        (f"90, {date(60)}", 90),
        (f"{date(60)},{90}", 90),
        ("Sunday, 18-Jan-37 08:49:37 GMT, 5", 2115881377 - NOW),
        ("soon, 5", 5),
        ("5, soon", 5),
        (", ,", None),
        ("Sunday, 18-Jan-37 08:49:37 GMT", 2115881377 - NOW),
        ("Sun Jan 18 08:49:37 2037", 2115881377 - NOW),
        (date(-3600), None),
        ("-5", None),
        ("0", None),
        ("", None),
        ("soon", None),
        ("s", None),
        ("1x", None),
        ("٣", None),
        ("Wed, 99 Foo 2030 99:99:99 GMT", None),
        ("nan", None),
    ],
)
def test_retry_after(value: str, expected: float | None) -> None:
    assert wait(retry_after=value) == (None if expected is None else pytest.approx(expected, abs=0.01))


def test_a_number_beyond_all_bounds_is_far_away() -> None:
    assert (wait(retry_after="9" * 5000) or 0) > 1e9


@pytest.mark.parametrize("offset", [-7200, -90, 90, 86400])
def test_a_date_is_corrected_by_the_servers_clock(offset: int) -> None:
    assert wait(retry_after=date(offset + 60), date=date(offset)) == pytest.approx(60, abs=1)


def test_a_date_is_never_taken_early_where_the_clocks_agree() -> None:
    """A Date has no fractions; one that was rounded up doesn't shorten the wait."""
    for offset in (0, 1):
        assert (wait(retry_after=date(60), date=date(offset)) or 0) >= 59.75


def test_a_wrong_date_is_no_date() -> None:
    assert wait(retry_after=date(60), date="yesterday") == pytest.approx(59.75, abs=0.01)


@pytest.mark.parametrize(("status", "seen"), [(200, False), (204, False), (301, True), (429, True), (503, True)])
def test_where_retry_after_means_something(status: int, seen: bool) -> None:
    assert (wait(status, retry_after="30") is not None) is seen


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"ratelimit": '"default";r=0;t=30'}, 30),
        ({"ratelimit": "r=0;t=30"}, 30),
        ({"ratelimit": "default;r=0;t=30"}, 30),
        ({"ratelimit": '"burst";r=0;t=5, "daily";r=0;t=3600'}, 3600),
        ({"ratelimit": '"burst";r=0;t=5, "daily";r=99;t=3600'}, 5),
        ({"ratelimit": '"default";r=5;t=30'}, None),
        ({"ratelimit": '"default";r=0'}, None),
        ({"ratelimit": '"default";r=0;t=-30'}, None),
        ({"ratelimit": '"default";r=0;t=3.5'}, 3.5),
        ({"ratelimit": '"default";r=0.0;t=30.25'}, 30.25),
        ({"ratelimit": '"default";r=1.0;t=30'}, None),
        ({"ratelimit": '"default";r=0;t=' + str(int((NOW + 30) * 1000))}, 30),
        ({"ratelimit": '"default";r=0;t=' + str(int(NOW + 30))}, 29.75),
        ({"ratelimit": '"default;r=0;t=30'}, None),
        ({"ratelimit": '"default";r=0;t=30, ;;'}, None),
        ({"ratelimit": '"default";r=0;t=' + "9" * 16}, None),
        ({"ratelimit": "limit=100, remaining=0, reset=30"}, 30),
        ({"ratelimit": "limit=100, remaining=7, reset=30"}, None),
        ({"ratelimit": "whatever"}, None),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "30"}, 30),
        ({"ratelimit-remaining": "1", "ratelimit-reset": "30"}, None),
        ({"ratelimit-remaining": "0", "ratelimit-reset": "soon"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "30"}, 30),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW) + 30)}, 29.75),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW) - 30)}, None),
        ({"x-rate-limit-remaining": "0", "x-rate-limit-reset": "30"}, 30),
        # decimals: Reddit, Discord
        ({"x-ratelimit-remaining": "0.0", "x-ratelimit-reset": "30"}, 30),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "30.5"}, 30.5),
        ({"x-ratelimit-remaining": "0.4", "x-ratelimit-reset": "30"}, 30),
        ({"x-ratelimit-remaining": "1.0", "x-ratelimit-reset": "30"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{NOW + 30:.3f}"}, 30),
        # milliseconds, and smaller units by mistake
        *(
            ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int((NOW + 30) * unit))}, 30)
            for unit in (1000, 10**6, 10**9)
        ),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int((NOW - 30) * 1000))}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "120000"}, 120),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "86400"}, 86400),
        # senseless
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "99000000"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "9999999999"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "9" * 30}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "9" * 400}, None),
        ({"x-ratelimit-remaining": "-1", "x-ratelimit-reset": "30"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "-30"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "NaN"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1e3"}, None),
        # joined: sent twice, or several quotas
        ({"x-ratelimit-remaining": "0, 0", "x-ratelimit-reset": "30, 30"}, 30),
        ({"x-ratelimit-remaining": "0, 7", "x-ratelimit-reset": "5, 3600"}, 5),
        ({"x-ratelimit-remaining": "7, 0", "x-ratelimit-reset": "5, 3600"}, 3600),
        ({"x-ratelimit-remaining": "7, 7", "x-ratelimit-reset": "5, 3600"}, None),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "30, 60"}, 60),
        ({"x-ratelimit-remaining": "0;w=60, 9;w=3600", "x-ratelimit-reset": "30"}, 30),
        ({"x-ratelimit-remaining": "0, 0", "x-ratelimit-reset": "soon, 30"}, 30),
        # spans and dates
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "6m0s"}, 360),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": date(60)}, 59.75),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": iso(NOW + 30)}, 30),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": iso(NOW + 30).replace("Z", "+00:00")}, 30),
        ({"x-ratelimit-remaining": "0", "x-ratelimit-reset": "2999-01-01T00:00:00Z"}, None),
        ({"ratelimit": "r=0;t=30", "age": "5"}, None),
        ({"ratelimit": "r=0;t=30", "age": "0"}, 30),
        ({"ratelimit": "r=0;t=30", "age": "old"}, 30),
        ({"ratelimit": "r=0;t=30", "retry-after": "7"}, 7),
        ({"ratelimit": "r=0;t=5", "retry-after": "70", "age": "9"}, 70),
        ({"ratelimit": "r=0;t=30", "retry-after": "soon"}, 30),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
def test_rate_limit(headers: dict[str, str], expected: float | None, status: int) -> None:
    until = retry_at(status, headers, NOW)
    assert until == (None if expected is None else pytest.approx(NOW + expected, abs=0.01))


def test_rate_limit_counts_with_success_too() -> None:
    assert wait(200, ratelimit='"default";r=0;t=30') == 30


@given(st.sampled_from(["retry-after", "ratelimit", "ratelimit-reset", "date", "age"]), st.text(max_size=60))
def test_any_text_is_read(name: str, value: str) -> None:
    headers = {"ratelimit-remaining": "0", "retry-after": "soon", name: value}
    until = retry_at(429, headers, NOW)
    assert until is None or until > NOW


@pytest.mark.parametrize(
    ("end", "kind", "refused"),
    [
        *((outcome(status), AnswerKind.OK, False) for status in (200, 204, 206, 301, 302, 304)),
        *((outcome(status), AnswerKind.ERROR, False) for status in (400, 401, 404, 410, 451, 500, 502, 504, 600)),
        *((outcome(status), AnswerKind.THROTTLED, True) for status in (420, 429, 430)),
        *((outcome(status), AnswerKind.THROTTLED, False) for status in (503, 509, 529)),
        (outcome(403), AnswerKind.ERROR, True),
        (outcome(999), AnswerKind.ERROR, True),
        (outcome(200, cf_mitigated="challenge"), AnswerKind.ERROR, True),
        (outcome(403, cf_mitigated="challenge"), AnswerKind.ERROR, True),
        (outcome(503, cf_mitigated="challenge"), AnswerKind.THROTTLED, True),
        (outcome(202, x_amzn_waf_action="challenge"), AnswerKind.ERROR, True),
        (outcome(200, cf_ray="8a1"), AnswerKind.OK, False),
        (evolve(outcome(200), set_cookie=("techaro.lol-anubis=; Max-Age=0",)), AnswerKind.ERROR, True),
        (outcome(302, location="https://validate.perfdrive.com/x"), AnswerKind.ERROR, True),
        (outcome(200, location="https://validate.perfdrive.com/x"), AnswerKind.OK, False),
        (evolve(outcome(200), page=b"<title>Vercel Security Checkpoint</title>"), AnswerKind.ERROR, True),
        *((outcome(failure=failure), AnswerKind.TIMEOUT, False) for failure in Failure if failure.is_timeout),
        *((outcome(failure=failure), AnswerKind.FAILURE, False) for failure in Failure if not failure.is_timeout),
    ],
)
def test_what_an_outcome_means(end: Outcome, kind: AnswerKind, refused: bool) -> None:
    answer = sample_of(end, end.ended_at, cost=2.0)
    assert (answer.kind, answer.refused, answer.latency, answer.cost) == (kind, refused, 1.0, 2.0)
    assert (answer.ended, answer.retry_at) == (NOW, None)


def fallen(gates: int, failure: Failure = Failure.DNS_TROUBLE, worked: bool = True) -> OwnNetwork:
    state = OwnNetwork()
    for number in range(gates):
        state = note_end(state, f"host{number}", worked, outcome(failure=failure))
        state = note_end(state, f"host{number}", worked, outcome(failure=failure))
    return state


@pytest.mark.parametrize("failure", [Failure.DNS_TROUBLE, Failure.DNS_NOT_FOUND, Failure.UNREACHABLE])
def test_all_that_worked_fall_silent_at_once(failure: Failure) -> None:
    assert not fallen(SILENT_GATES - 1, failure).is_suspect
    assert fallen(SILENT_GATES, failure).is_suspect
    assert fallen(SILENT_GATES, failure).since == NOW


@pytest.mark.parametrize(
    "sign",
    [outcome(200), outcome(503), *(outcome(failure=f) for f in (Failure.REFUSED, Failure.RESET, Failure.TLS_OTHER))],
)
def test_any_sign_of_life_clears_us(sign: Outcome) -> None:
    sign = evolve(sign, sent_at=NOW + 0.1, ended_at=NOW + 0.2)
    assert note_end(fallen(SILENT_GATES), "other", False, sign) == OwnNetwork()


@pytest.mark.parametrize(
    ("sent", "ended", "clears"), [(-0.1, 0.1, False), (-20.0, 1.5, True), (0.1, 0.2, True)], ids=str
)
def test_an_answer_that_was_on_its_way_clears_nobody(sent: float, ended: float, clears: bool) -> None:
    on_its_way = evolve(outcome(200), sent_at=NOW + sent, ended_at=NOW + ended)
    assert note_end(fallen(3), "other", False, on_its_way) == (OwnNetwork() if clears else fallen(3))


def test_dead_hosts_one_after_the_other_are_not_us() -> None:
    assert not fallen(100, worked=False).is_suspect


def test_what_was_never_sent_says_nothing() -> None:
    down = fallen(SILENT_GATES)
    assert note_end(down, "other", True, outcome(failure=Failure.FORBIDDEN_ADDRESS)) == down


@pytest.mark.parametrize("failure", sorted(set(Failure)))
def test_which_failures_look_as_if_we_were_shut_out(failure: Failure) -> None:
    named = {Failure.REFUSED, Failure.RESET, Failure.UNREACHABLE, Failure.TIMEOUT_CONNECT}
    assert sample_of(outcome(failure=failure), NOW, 1.0).shut is (failure in named)
    stale = evolve(outcome(failure=failure), stale=True)
    assert not sample_of(stale, NOW, 1.0).shut
