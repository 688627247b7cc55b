"""Records judged again: the table of today changes nothing of its own, that of before gives way, facts decide."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.check.conclude import conclude
from linkcrawl.check.outcome import UNJUDGED, Failure, Outcome
from linkcrawl.check.procedure import DENIALS, Denial, Next, Rules, answered, begin, denied
from linkcrawl.check.recheck import UNANSWERED, Intervals
from linkcrawl.check.rejudge import reason_again, rejudge
from linkcrawl.check.silence import Silence
from linkcrawl.check.verdict import VERDICT_VERSION, judge, sentence
from linkcrawl.items import Category, DueLink, Finished, Hop, LinkState, Record
from linkcrawl.units import DAY, HOUR
from tests.unit.check_kit import HOST, IDP, START, answer
from tests.unit.test_check_procedure import ANSWERS, FAILURES

#: Redirects to walls, to logins, and to what only looks like one.
WALLS = st.builds(
    answer,
    st.sampled_from([302, 307, 403, 999]),
    st.sampled_from(
        [
            "/.within.website/x/cmd/anubis/?redir=%2Fdoc",
            "/cdn-cgi/challenge-platform/h/g",
            "https://challenges.cloudflare.com/x",
            "/login?next=/doc",
            "/404.html",
            "/",
            None,
        ]
    ),
)

WHY_DENIED: list[str | Failure] = [*sorted(DENIALS), *sorted(set(Failure) - UNJUDGED)]

STATES = st.builds(
    LinkState,
    attempt=st.integers(0, 5),
    interval=st.floats(0, 90 * DAY),
    hard_count=st.just(0),
)
NOW = START + 100 * DAY
LINK = DueLink(id=7, url=f"{HOST}/doc", host="a.example", next_check_at=START)


def moved(link: DueLink, finished: Finished) -> DueLink:
    """The link after its check, as a store gives it out."""
    record = finished.record
    return evolve(
        link,
        state=finished.state,
        next_check_at=record.next_check_at,
        last_category=record.category,
        last_checked_at=record.checked_at,
    )


@given(
    st.sampled_from([f"{HOST}/doc", f"{HOST}/login", "https://a.example/", "http://"]),
    st.integers(0, 4),
    st.sampled_from(["HEAD", "GET"]),
    st.lists(st.one_of(ANSWERS, ANSWERS, WALLS, FAILURES), min_size=12, max_size=12),
    st.one_of(st.none(), st.tuples(st.integers(0, 9), st.sampled_from(WHY_DENIED))),
    STATES,
    st.none() | st.just(Silence(since=START - 40 * DAY, days=5)),
)
def test_the_present_table_has_nothing_to_change(
    url: str,
    limit: int,
    method: str,
    outcomes: list[Outcome],
    denial: tuple[int, str | Failure] | None,
    state: LinkState,
    silence: Silence | None,
) -> None:
    """Whatever came of a check, its record's facts lead to its own judgement again."""
    step, asked = begin(url, Rules(max_redirects=limit), method=method), 0
    while isinstance(step, Next):
        if denial and denial[0] == asked:
            step = denied(step.check, Denial(reason=denial[1]), START)
        else:
            step, asked = answered(step.check, outcomes[asked % len(outcomes)]), asked + 1
    link = evolve(LINK, url=url, state=state)
    finished = conclude(link, step, START, "x", Intervals(), silence)
    again = rejudge(moved(link, finished), finished.record, Intervals(), NOW)
    assert (again.before, again.record, again.state) == (finished.record, finished.record, None)
    assert not again.is_changed


def hop(url: str, status: int | None = 200, method: str = "HEAD") -> Hop:
    return Hop(url=url, method=method, status=status, location=None, duration_ms=1, ip=None, error=None, at=START)


def record(reason: str, category: Category, status: int | None, *places: str, **fields: Any) -> Record:
    """A record of an older table, whose deciding chain went through these places of HOST."""
    chain = [place if "://" in place else f"{HOST}{place}" for place in places or ("/doc",)]
    plain = Record(
        link_id=7, url=chain[0], collections=(), checked_at=START, category=category, reason=reason, confirmed=True,
        status=status, method="GET", redirects=len(chain) - 1, final_url=chain[-1],
        hops=tuple(hop(url, status, "GET") for url in chain), timeout=False, duration_ms=1, expected_mime=None,
        mime=None, mime_matches=None, content_length=None, error=None, attempt=0, next_check_at=START + 7 * DAY,
        crawler="x",
    )  # fmt: skip
    return evolve(plain, **fields)


OK, BROKEN, OPEN, WALLED = Category.OK, Category.BROKEN, Category.UNDETERMINED, Category.RESTRICTED

#: Reason, status and places of a record; the reason of now.
REASONS: list[tuple[str, int | None, list[str], str]] = [
    ("ok", 200, ["/doc", "/404.html"], "soft_404"),
    ("ok", 200, ["/doc", "/"], "redirected_home"),
    ("soft_404", 200, ["/doc", "/other"], "ok"),
    ("ok", 200, ["/doc", "/login"], "login_redirect"),
    ("http_404", 404, ["/doc", IDP], "login_redirect"),
    ("login_redirect", 200, ["/doc", "/blogin"], "ok"),
    ("login_redirect", 404, ["/doc", "/blogin"], "http_404"),
    ("login_redirect", 302, ["/doc", "/blogin"], "login_redirect"),  # a circle, or a Location that is not kept
    ("redirect_loop", 302, ["/doc", IDP, "/doc"], "login_redirect"),
    ("redirect_loop", 302, ["/doc", "/a"], "redirect_loop"),
    ("redirect_nowhere", 300, ["/doc"], "redirect_nowhere"),
    ("http_429", 429, ["/doc"], "rate_limited"),
    ("rate_limited", 404, ["/doc"], "http_404"),
    ("rate_limited", 503, ["/doc"], "rate_limited"),  # Retry-After isn't kept
    ("http_503", 503, ["/doc"], "http_503"),
    ("bot_challenge", 403, ["/doc"], "bot_challenge"),  # nor are the headers of a wall
    ("http_999", 999, ["/doc"], "bot_challenge"),
    ("host_blocked", 200, ["/doc", "/login"], "host_blocked"),  # withdrawn
    ("robots_disallowed", None, ["/doc", "/login"], "robots_disallowed"),
    ("timeout", None, ["/doc"], "timeout"),
    ("unsupported_scheme", 302, ["/doc"], "unsupported_scheme"),
    ("not_a_word", 200, ["/doc"], "not_a_word"),
]


@pytest.mark.parametrize(("reason", "status", "places", "now"), REASONS)
def test_reasons_follow_from_facts(reason: str, status: int | None, places: list[str], now: str) -> None:
    assert reason_again(record(reason, OPEN, status, *places))[0] == now


@pytest.mark.parametrize(("reason", "now"), [("ok", "ok"), ("http_429", "rate_limited"), ("robots_disallowed",) * 2])
def test_a_record_without_hops_has_its_status_only(reason: str, now: str) -> None:
    status = {"ok": 200, "http_429": 429, "robots_disallowed": 200}[reason]
    assert reason_again(record(reason, OPEN, status, "/doc", "/login", hops=()))[0] == now


ANUBIS = f"{HOST}/.within.website/x/cmd/anubis/?redir=%2Fdoc"


@pytest.mark.parametrize(("location", "wall"), [(ANUBIS, "anubis"), (f"{HOST}/elsewhere", None)])
@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_a_wall_that_was_passed_by_unseen_is_seen(location: str, wall: str | None, method: str) -> None:
    """An older program followed the redirect to the challenge, which said 200."""
    hops = (
        evolve(hop(f"{HOST}/doc", 302, method), location=location),
        hop(location, 200, method),
    )
    old = record("ok", OK, 200, "/doc", hops=hops, final_url=location, method=method)
    again = rejudge(LINK, old, Intervals(), NOW)
    now = again.record
    assert (now.reason, now.wall, now.category) == (("bot_challenge", wall, OPEN) if wall else ("ok", None, OK))
    assert (now.hops, now.final_url, now.status) == (old.hops, old.final_url, old.status)
    assert (now.next_check_at == START + Intervals().restricted) == (wall is not None)


@pytest.mark.parametrize("end", ["/login", "/404.html", "/"])
def test_head_alone_speaks_against_no_link(end: str) -> None:
    old = record("ok", OK, 200, "/doc", end, method="HEAD")
    assert reason_again(old) == ("ok", None)
    assert reason_again(evolve(old, method="GET"))[0] != "ok"


def test_the_product_of_a_wall_stays_with_its_reason() -> None:
    known = record("bot_challenge", OPEN, 403, wall="datadome")
    assert rejudge(LINK, known, Intervals(), NOW).record == evolve(known, verdict_version=VERDICT_VERSION)


def test_a_failure_that_was_broken_is_undetermined_and_clears_what_it_counted() -> None:
    state = LinkState(attempt=1, interval=DAY, hard_since=START, hard_count=1, hard_by_get=True)
    old = record("tls_expired", BROKEN, None, confirmed=False, attempt=1, error="expired on Monday")
    again = rejudge(evolve(LINK, state=state), old, Intervals(), NOW)
    assert again.is_changed
    now = again.record
    assert (now.category, now.reason, now.confirmed, now.attempt) == (OPEN, "tls_expired", True, 1)
    assert (now.error, now.verdict_version) == ("expired on Monday", VERDICT_VERSION)
    assert now.next_check_at == START + 6 * HOUR
    assert again.state == LinkState(attempt=1, interval=6 * HOUR)


def test_earlier_failures_still_count() -> None:
    state = LinkState(attempt=3, interval=7 * DAY, hard_since=START - 4 * DAY, hard_count=3, hard_by_get=True)
    old = record("http_405", BROKEN, 405, confirmed=False, attempt=3)
    after = rejudge(evolve(LINK, state=state), old, Intervals(), NOW).state
    assert after == LinkState(attempt=3, interval=6 * HOUR, hard_since=START - 4 * DAY, hard_count=2, hard_by_get=True)


def test_what_was_undetermined_is_suspected() -> None:
    state = LinkState(attempt=2, interval=12 * HOUR)
    again = rejudge(evolve(LINK, state=state), record("http_404", OPEN, 404, attempt=2), Intervals(), NOW)
    now = again.record
    assert (now.category, now.confirmed, now.attempt, now.error) == (BROKEN, False, 2, sentence("http_404"))
    assert now.next_check_at == START + DAY
    assert again.state == LinkState(attempt=2, interval=DAY, hard_since=START, hard_count=1, hard_by_get=True)


def test_a_record_of_the_future_counts_as_made_now() -> None:
    again = rejudge(LINK, record("ok", BROKEN, 200, checked_at=NOW + 999 * DAY), Intervals(), NOW)
    assert again.record.next_check_at == NOW + 7 * DAY


def test_a_status_may_be_a_wall_by_itself() -> None:
    assert reason_again(record("http_999", OPEN, 999, hops=()))[0] == "bot_challenge"


def test_what_was_broken_is_ok() -> None:
    state = LinkState(attempt=4, interval=30 * DAY, hard_since=START - 20 * DAY, hard_count=4, hard_by_get=True)
    again = rejudge(
        evolve(LINK, state=state), record("ok", BROKEN, 200, attempt=4, error="was no good"), Intervals(), NOW
    )
    now = again.record
    assert (now.category, now.confirmed, now.attempt, now.error) == (OK, True, 0, None)
    assert (now.next_check_at, again.state) == (START + 7 * DAY, LinkState(interval=7 * DAY))


def test_another_doubt_about_a_success_moves_nothing() -> None:
    again = rejudge(LINK, record("ok", OK, 200, "/doc", "/"), Intervals(), NOW)
    assert (again.record.reason, again.record.error, again.state) == ("redirected_home", None, None)
    assert again.record.next_check_at == START + 7 * DAY
    assert again.is_changed


@pytest.mark.parametrize("reason", sorted(UNANSWERED))
def test_what_a_hosts_silence_has_broken_stays_broken(reason: str) -> None:
    state = LinkState(attempt=9, interval=30 * DAY)
    again = rejudge(evolve(LINK, state=state), record(reason, BROKEN, None, attempt=9), Intervals(), NOW)
    assert (again.record.category, again.state, again.is_changed) == (BROKEN, None, False)


def test_a_word_that_no_table_has_stays() -> None:
    again = rejudge(LINK, record("not_a_word", BROKEN, 200), Intervals(), NOW)
    assert (again.record.category, again.record.reason, again.state) == (BROKEN, "not_a_word", None)
    assert again.record.verdict_version == VERDICT_VERSION


@pytest.mark.parametrize("category", list(Category))
@pytest.mark.parametrize(("reason", "status", "places", "_"), REASONS)
def test_judged_twice_it_is_as_judged_once(
    category: Category, reason: str, status: int | None, places: list[str], _: str
) -> None:
    link = evolve(LINK, state=LinkState(attempt=2, interval=DAY, hard_since=START - DAY, hard_count=1))
    once = rejudge(link, record(reason, category, status, *places), Intervals(), NOW)
    after = link if once.state is None else moved(link, Finished(record=once.record, state=once.state))
    again = rejudge(after, once.record, Intervals(), NOW)
    assert (again.record, again.state) == (once.record, None)
    if reason != "not_a_word":
        assert once.record.category is judge(once.record.reason).category
