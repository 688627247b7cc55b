"""Rechecks on a virtual clock: when a failure is believed, and when a link is asked again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.check.procedure import Finding
from linkcrawl.check.recheck import Intervals, Planned, plan
from linkcrawl.check.silence import Silence
from linkcrawl.check.verdict import judge
from linkcrawl.items import Category, LinkState
from linkcrawl.units import DAY, HOUR

START = 1_800_000_000.0
STANDARD = Intervals()
STATUS = {"ok": 200, "login_redirect": 200, "bot_challenge": 403, "rate_limited": 429, "redirect_loop": 302}


def found(reason: str, method: str | None = "GET") -> Finding:
    status = int(reason[5:]) if reason.startswith("http_") else STATUS.get(reason)
    return Finding(verdict=judge(reason), status=status, method=method)


def plans(checks: list[tuple[float, Finding]]) -> list[Planned]:
    """A link's history, whatever was planned: (days since the check before, finding) to what the check came to."""
    state, last, now, seen = LinkState(), None, START, []
    for days, finding in checks:
        now += days * DAY
        planned = plan(state, last, finding, now, STANDARD, None)
        seen.append(planned)
        state, last = planned.state, planned.category
    return seen


def live(*reasons: str | Finding) -> list[tuple[float, Planned]]:
    """A link that is checked whenever it is due: (days until the next check, plan) of each check."""
    state, last, now, seen = LinkState(), None, START, []
    for reason in reasons:
        finding = found(reason) if isinstance(reason, str) else reason
        planned = plan(state, last, finding, now, STANDARD, None)
        seen.append(((planned.next_check_at - now) / DAY, planned))
        state, last, now = planned.state, planned.category, planned.next_check_at
    return seen


def intervals(*reasons: str | Finding) -> list[float]:
    return [days for days, _ in live(*reasons)]


HEAD_404 = found("http_404", "HEAD")


@pytest.mark.parametrize(
    ("reasons", "days"),
    [
        (["ok"] * 9, [7, 10.5, 15.75, 23.625, 35.4375, 53.15625, 79.734375, 90, 90]),
        (["http_404"] * 6, [1, 3, 7, 30, 30, 30]),
        (["dns_not_found"] * 5, [1, 3, 7, 30, 30]),
        ([HEAD_404] * 6, [1, 3, 7, 7, 7, 7]),
        (["http_410"] * 3, [1, 30, 30]),
        (["http_500"] * 7, [0.25, 0.5, 1, 2, 4, 7, 7]),
        (["timeout", "http_503", "rate_limited", "robots_unreachable", "tls_expired"], [0.25, 0.5, 1, 2, 4]),
        (["http_403", "login_redirect", "bot_challenge", "robots_disallowed", "skipped_by_policy"], [30] * 5),
        (["invalid_url", "forbidden_address"], [90, 90]),
        (["ok", "ok", "timeout", "ok"], [7, 10.5, 0.25, 7]),
        (["http_403", "timeout", "timeout"], [30, 0.25, 0.5]),
        (["robots_disallowed", "robots_unreachable"], [30, 7]),
    ],
    ids=lambda value: str(value)[:40],
)
def test_intervals(reasons: list[str | Finding], days: list[float]) -> None:
    assert intervals(*reasons) == pytest.approx(days)


@pytest.mark.parametrize(
    ("checks", "confirmed"),
    [
        # three checks over six days
        ([(0, "http_404"), (1, "http_404"), (4.9, "http_404")], [False, False, False]),
        ([(0, "http_404"), (1, "http_404"), (5, "http_404")], [False, False, True]),
        ([(0, "http_404"), (6, "http_404"), (0, "http_404")], [False, False, True]),
        ([(0, "http_404"), (9, "http_404")], [False, False]),
        ([(0, "http_404")] + [(0.1, "http_404")] * 9, [False] * 10),
        # another hard failure is as good
        ([(0, "http_404"), (3, "dns_not_found"), (3, "redirect_loop")], [False, False, True]),
        # two checks a day apart for 410
        ([(0, "http_410"), (1, "http_410")], [False, True]),
        ([(0, "http_410"), (0.5, "http_410")], [False, False]),
        ([(0, "http_404"), (1, "http_410")], [False, True]),
        ([(0, "http_410"), (1, "http_404")], [False, False]),
        # what lies between neither confirms nor clears
        ([(0, "http_404"), (3, "timeout"), (3, "http_404")], [False, True, False]),
        ([(0, "http_404"), (1, "http_500"), (2, "http_404"), (3, "http_404")], [False, True, False, True]),
        ([(0, "http_404"), (3, "robots_unreachable"), (3, "http_404"), (0, "http_404")], [False, True, False, True]),
        # believed stays believed, until a success
        ([(0, "http_404"), (3, "http_404"), (3, "http_404"), (30, "timeout"), (1, "http_404")],
         [False, False, True, True, True]),
        ([(0, "http_404"), (3, "http_404"), (3, "ok"), (9, "http_404")], [False, False, True, False]),
    ],
)  # fmt: skip
def test_confirmation(checks: list[tuple[float, str]], confirmed: list[bool]) -> None:
    assert [planned.confirmed for planned in plans([(days, found(reason)) for days, reason in checks])] == confirmed


@pytest.mark.parametrize(
    ("findings", "confirmed"),
    [
        ([HEAD_404, HEAD_404, HEAD_404], False),
        ([HEAD_404, HEAD_404, found("http_404")], True),
        ([found("http_404"), HEAD_404, HEAD_404], True),
        ([HEAD_404, found("connection_refused", "HEAD"), HEAD_404], True),
        ([found("dns_not_found", None)] * 3, True),
        ([found("http_410", "HEAD")] * 3, False),
    ],
)
def test_one_of_the_checks_is_by_get_or_needs_none(findings: list[Finding], confirmed: bool) -> None:
    assert plans([(3, finding) for finding in findings])[-1].confirmed is confirmed


@pytest.mark.parametrize(
    ("reason", "failing_days", "category"),
    [
        ("timeout", 30, Category.BROKEN),
        ("timeout", 29.9, Category.UNDETERMINED),
        ("timeout", None, Category.UNDETERMINED),
        ("tls_expired", 31, Category.BROKEN),
        ("connection_reset", 31, Category.BROKEN),
        ("robots_unreachable", 31, Category.BROKEN),
        ("robots_unreachable", 3, Category.BLOCKED_BY_ROBOTS),
        ("robots_disallowed", 31, Category.BLOCKED_BY_ROBOTS),
        ("host_blocked", 31, Category.UNDETERMINED),
        ("http_500", 31, Category.UNDETERMINED),
        ("invalid_url", 31, Category.INVALID),
        ("ok", 31, Category.OK),
    ],
)
def test_a_host_that_has_long_been_silent(reason: str, failing_days: float | None, category: Category) -> None:
    silence = None if failing_days is None else Silence(since=START - failing_days * DAY, days=5)
    planned = plan(LinkState(attempt=1), Category.UNDETERMINED, found(reason), START, STANDARD, silence)
    assert planned.category is category
    assert planned.confirmed
    if category is Category.BROKEN:
        assert planned.next_check_at == START + STANDARD.broken


@pytest.mark.parametrize(("days", "category"), [(1, "Undetermined"), (4, "Undetermined"), (5, "Broken")])
def test_silence_counts_that_was_seen_on_five_days(days: int, category: str) -> None:
    silence = Silence(since=START - 90 * DAY, days=days)
    assert plan(LinkState(), None, found("timeout"), START, STANDARD, silence).category == category


@pytest.mark.parametrize(("retry_at", "due"), [(None, 6 * HOUR), (HOUR, 6 * HOUR), (DAY, DAY)])
def test_retry_after_only_lengthens_and_is_forgotten(retry_at: float | None, due: float) -> None:
    asked = None if retry_at is None else START + retry_at
    planned = plan(LinkState(), None, found("rate_limited"), START, STANDARD, None, retry_at=asked)
    assert planned.next_check_at == START + due
    assert planned.state.interval == 6 * HOUR


@pytest.mark.parametrize(("reason", "last"), [("ok", Category.OK), ("timeout", Category.UNDETERMINED)])
def test_an_early_recheck_stretches_nothing(reason: str, last: Category) -> None:
    state = LinkState(interval=5 * DAY if reason == "timeout" else 20 * DAY)
    planned = plan(state, last, found(reason), START, STANDARD, None, early=True)
    assert planned.state.interval == state.interval


def test_all_numbers_are_settable() -> None:
    quick = Intervals(suspected=(9.0,), confirm_checks=1, confirm_span=0.0, broken=5.0)
    assert plan(LinkState(), None, found("http_404"), START, quick, None).next_check_at == START + 5
    with pytest.raises(ValueError, match="at least one interval"):
        Intervals(suspected=())


# fmt: off
REASONS = st.sampled_from([
    "ok", "http_404", "http_410", "dns_not_found", "redirect_loop", "http_403", "http_500", "timeout", "rate_limited",
    "bot_challenge", "robots_disallowed", "robots_unreachable", "host_blocked", "invalid_url",
])
# fmt: on
HISTORY = st.lists(
    st.tuples(st.floats(0, 40), st.builds(found, REASONS, st.sampled_from(["HEAD", "GET"]))), max_size=25
)


@given(HISTORY)
def test_no_link_is_condemned_lightly(checks: list[tuple[float, Finding]]) -> None:
    now = START
    hard: list[tuple[float, Finding]] = []
    for (days, finding), planned in zip(checks, plans(checks), strict=True):
        now += days * DAY
        if finding.verdict.category is Category.OK:
            hard = []
            assert (planned.category, planned.confirmed, planned.attempt) == (Category.OK, True, 0)
        elif finding.verdict.hard:
            hard.append((now, finding))
            assert planned.category is Category.BROKEN
        else:
            assert planned.category is finding.verdict.category
        if planned.category is Category.BROKEN and planned.confirmed:
            gone = finding.verdict.reason == "http_410"
            assert len(hard) >= (2 if gone else 3)
            assert now - hard[0][0] >= (1 if gone else 6) * DAY
            assert any(one.method == "GET" or one.status is None for _, one in hard)
        assert (planned.attempt == 0) is (planned.category is Category.OK)
        assert 6 * HOUR <= planned.next_check_at - now <= 90 * DAY + 1


@given(HISTORY)
def test_same_history_same_plan(checks: list[tuple[float, Finding]]) -> None:
    assert plans(checks) == plans(checks)


@given(st.lists(st.sampled_from(["timeout", "http_500", "rate_limited", "tls_expired"]), min_size=1, max_size=40))
def test_repetition_alone_condemns_nobody(reasons: list[str]) -> None:
    assert all(planned.category is Category.UNDETERMINED for _, planned in live(*reasons))


@given(st.lists(REASONS, max_size=5).map(lambda reasons: [one for one in reasons if not judge(one).hard]))
def test_a_link_that_is_gone_is_believed_within_two_weeks(before: list[str]) -> None:
    """Whatever came before, as long as it is asked when it is due."""
    seen = live(*before, *["http_404"] * 4)[-4:]
    assert [planned.confirmed for _, planned in seen] == [False, False, False, True]
    assert sum(days for days, _ in seen[:-1]) <= 14
