"""The procedure: what it learns, what it keeps, what bars it, and that any server is survived."""

from __future__ import annotations

import pytest
from attrs import evolve
from check_kit import GOOD, HOST, IDP, LATE, OK, RESET, START, Case, answer, assert_finding, failed, play
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.check.outcome import UNJUDGED, Failure, Outcome
from linkcrawl.check.procedure import DENIALS, Denial, Done, Next, Rules, answered, begin, denied
from linkcrawl.items import Category


@pytest.mark.parametrize(
    ("steps", "learned"),
    [
        ([("HEAD /doc", answer(405)), ("GET /doc", GOOD)], True),
        ([("HEAD /doc", LATE), ("GET /doc", GOOD)], True),
        ([("HEAD /doc", GOOD)], None),
        ([("HEAD /doc", answer(404)), ("GET /doc", answer(404))], None),
        ([("HEAD /doc", RESET), ("HEAD /doc", GOOD)], None),
    ],
)
def test_head_useless(steps: list[tuple[str, Outcome]], learned: bool | None) -> None:
    assert play(Case("", steps, {})).head_useless is learned


def test_head_that_failed_at_another_host_teaches_nothing_of_the_links_own() -> None:
    there = "http://b.example/x"
    steps = [(f"{method} {step}", outcome) for method, end in (("HEAD", answer(405)), ("GET", GOOD))
             for step, outcome in (("/doc", answer(302, there)), (there, end))]  # fmt: skip
    assert play(Case("", steps, {})).head_useless is None


def test_hop_holds_what_happened() -> None:
    done = play(
        Case("", [("HEAD /doc", answer(302, "/a\tb\x9b")), ("HEAD /ab%C2%9B", failed(Failure.REFUSED, None))], {})
    )
    first, second = done.check.hops
    assert first.row() == {
        "url": f"{HOST}/doc", "method": "HEAD", "status": 302, "location": "/a\\tb\\x9b", "duration_ms": 20,
        "ip": "192.0.2.1", "error": None, "at": "2027-01-15T08:00:00.000Z",
    }  # fmt: skip
    assert (second.status, second.location, second.error) == (None, None, "Nothing listens at the host's port.")


def waiting(*outcomes: Outcome) -> Next:
    step = begin(f"{HOST}/doc", Rules())
    for outcome in outcomes:
        assert isinstance(step, Next)
        step = answered(step.check, outcome)
    assert isinstance(step, Next)
    return step


@pytest.mark.parametrize(
    ("reason", "category", "word"),
    [
        ("robots_disallowed", "Blocked_By_Robots_txt", "robots_disallowed"),
        ("robots_unreachable", "Blocked_By_Robots_txt", "robots_unreachable"),
        ("host_blocked", "Undetermined", "host_blocked"),
        ("skipped_by_policy", "Undetermined", "skipped_by_policy"),
        (Failure.DNS_NOT_FOUND, "Broken", "dns_not_found"),
        (Failure.REFUSED, "Broken", "connection_refused"),
        (Failure.TLS_EXPIRED, "Undetermined", "tls_expired"),
        (Failure.TIMEOUT_CONNECT, "Undetermined", "timeout"),
    ],
)
@pytest.mark.parametrize(
    ("before", "redirects", "final_url", "duration"),
    [
        ([], 0, f"{HOST}/doc", None),
        ([answer(302, "http://b.example/")], 0, "http://b.example/", 20),
        ([answer(302, "/1"), answer(302, "http://b.example/")], 1, "http://b.example/", 40),
        ([answer(302, "/1"), RESET], 1, f"{HOST}/1", 40),
        ([answer(404)], 0, f"{HOST}/doc", None),
    ],
    ids=["first", "second host", "third", "fresh try", "second chain"],
)  # fmt: skip
def test_barred(
    before: list[Outcome], redirects: int, final_url: str, duration: int | None,
    reason: str | Failure, category: str, word: str,
) -> None:  # fmt: skip
    done = denied(waiting(*before).check, Denial(reason=reason), START + 9)
    finding = done.finding
    assert (finding.verdict.category, finding.verdict.reason) == (category, word)
    assert (finding.status, finding.method, finding.redirects, finding.final_url) == (None, None, redirects, final_url)
    assert (finding.duration_ms, finding.at) == (duration, START + 9)
    assert finding.timeout is (word == "timeout")
    assert finding.error
    assert len(done.check.hops) == len(before)


@pytest.mark.parametrize(
    ("bar", "word"),
    [
        ("robots_disallowed", "login_redirect"),
        ("robots_unreachable", "login_redirect"),
        (Failure.DNS_NOT_FOUND, "login_redirect"),
        (Failure.FORBIDDEN_ADDRESS, "forbidden_address"),
        ("host_blocked", "host_blocked"),
        ("skipped_by_policy", "skipped_by_policy"),
    ],
)
def test_barred_at_a_login(bar: str | Failure, word: str) -> None:
    """What an identity provider's robots.txt says does not hide that the link leads there, once GET has been there."""
    step = denied(waiting(answer(302, IDP)).check, Denial(reason=bar), START)
    assert isinstance(step, Next) is (word == "login_redirect")
    if isinstance(step, Next):
        assert (step.request.method, step.request.target.url) == ("GET", f"{HOST}/doc")
        again = answered(step.check, answer(302, IDP))
        assert isinstance(again, Next)
        step = denied(again.check, Denial(reason=bar), START)
    assert isinstance(step, Done)
    assert step.finding.verdict.reason == word


def test_a_login_behind_robots_txt_that_only_head_is_sent_to_says_nothing() -> None:
    step = denied(waiting(answer(302, IDP)).check, Denial(reason="robots_disallowed"), START)
    assert isinstance(step, Next)
    done = answered(step.check, answer(200))
    assert isinstance(done, Done)
    assert (done.finding.verdict.reason, done.finding.method, done.finding.redirects) == ("ok", "GET", 0)


@pytest.mark.parametrize("before", [[], [answer(302, "http://b.example/")], [answer(404)]])
@pytest.mark.parametrize("timed_out", [True, False])
def test_a_time_limit_on_robots_txt_ended_the_check(before: list[Outcome], timed_out: bool) -> None:
    done = denied(waiting(*before).check, Denial(reason="robots_unreachable", timed_out=timed_out), START)
    assert isinstance(done, Done)
    assert done.finding.timeout is timed_out


def test_a_stale_connection_says_nothing_however_often() -> None:
    """The request goes again, and the fresh try of the check is still there."""
    stale = evolve(RESET, stale=True)
    assert_finding(Case("", [*[("HEAD /doc", stale)] * 5, ("HEAD /doc", GOOD)], OK))
    hop = answer(302, "/b")
    steps = [("HEAD /doc", stale), ("HEAD /doc", hop), ("HEAD /b", stale), ("HEAD /b", GOOD)]
    assert_finding(Case("", steps, OK | {"redirects": 1}))
    steps = [("HEAD /doc", stale), ("HEAD /doc", hop), ("HEAD /b", RESET), ("HEAD /b", GOOD)]
    assert_finding(Case("", steps, OK | {"redirects": 1}))


def test_a_request_that_fails_on_a_stale_and_on_a_new_connection_has_had_its_fresh_try() -> None:
    """A server that resets every HEAD gets two of them, also where the first came on a kept connection."""
    stale = evolve(RESET, stale=True)
    assert_finding(Case("", [("HEAD /doc", stale), ("HEAD /doc", RESET), ("GET /doc", GOOD)], OK))
    steps = [("HEAD /doc", stale), ("HEAD /doc", RESET), ("GET /doc", RESET)]
    assert_finding(Case("", steps, {"reason": "connection_reset"}))


def test_where_cookies_are_withheld_the_verdict_is_not_hard() -> None:
    """A server that wants more of them than we send: a browser would have sent all."""
    many = [f"n{number}={'v' * 3000}; Path=/" for number in range(4)]
    hop = answer(302, "/b", cookies=many)
    step = begin(f"{HOST}/doc", Rules(), method="GET")
    assert isinstance(step, Next)
    step = answered(step.check, hop)
    assert isinstance(step, Next)
    finding = answered(step.check, answer(400)).finding  # type: ignore[union-attr]
    assert (finding.verdict.reason, finding.verdict.hard, finding.status) == ("cookies_withheld", False, 400)
    assert finding.error is not None
    assert answered(step.check, failed(Failure.DNS_NOT_FOUND)).finding.verdict.hard  # type: ignore[union-attr]
    assert answered(step.check, GOOD).finding.verdict.reason == "ok"  # type: ignore[union-attr]


def test_programmer_faults() -> None:
    done = play(Case("", [("HEAD /doc", GOOD)], {}))
    with pytest.raises(ValueError, match="waits for no request"):
        answered(done.check, GOOD)
    with pytest.raises(ValueError, match="denies no request"):
        denied(waiting().check, Denial(reason="weather"), START)
    with pytest.raises(ValueError, match="neither a status nor a failure"):
        answered(waiting().check, Outcome(sent_at=0, ended_at=0, duration_ms=0))


LOCATIONS = st.one_of(
    st.sampled_from(["/doc", "/a", "/b", "/c", "http://b.example/", "//c.example", "ftp://x", "", IDP, "/login"]),
    st.text(max_size=30),
)
COOKIE_LINES = st.one_of(
    st.sampled_from(["a=1", "b=2; Path=/a", "a=; Max-Age=0", "c=3; Secure"]),
    st.text(alphabet='ab=;,", \x00é', max_size=12).map(lambda text: text + "; Expires=Thu, 99"),
)
HEADERS = st.fixed_dictionaries(
    {},
    optional={
        "location": LOCATIONS,
        "content-type": st.text(max_size=12),
        "content-length": st.text(alphabet="0123456789, -x", max_size=9),
        "retry-after": st.text(max_size=3),
        "cf-mitigated": st.sampled_from(["challenge", "other"]),
    },
)
ANSWERS = st.builds(
    lambda status, headers, cookies: Outcome(
        sent_at=START, ended_at=START, duration_ms=1, ip="192.0.2.1", status=status, headers=headers, set_cookie=cookies
    ),
    st.one_of(st.sampled_from([301, 302, 302, 303, 307, 308]), st.integers(100, 999)),
    HEADERS,
    st.lists(COOKIE_LINES, max_size=2).map(tuple),
)
JUDGED = sorted(set(Failure) - UNJUDGED)
FAILURES = st.builds(failed, st.sampled_from(JUDGED), st.one_of(st.none(), st.text(max_size=9)))


@given(
    st.sampled_from([f"{HOST}/doc", f"{HOST}/login", "https://a.example/", "http://", "nothing"]),
    st.integers(0, 4),
    st.sampled_from(["HEAD", "GET"]),
    st.lists(st.one_of(ANSWERS, ANSWERS, FAILURES), min_size=20, max_size=20),
    st.one_of(st.none(), st.tuples(st.integers(0, 9), st.sampled_from([*sorted(DENIALS), *JUDGED]))),
)
def test_any_server_is_survived(
    url: str, limit: int, method: str, outcomes: list[Outcome], bar: tuple[int, str | Failure] | None
) -> None:
    step, asked = begin(url, Rules(max_redirects=limit), method=method), 0
    while isinstance(step, Next):
        assert step.request == step.check.request
        if bar and bar[0] == asked:
            step = denied(step.check, Denial(reason=bar[1], error="x\n"), START)
        else:
            step, asked = answered(step.check, outcomes[asked % len(outcomes)]), asked + 1
        assert asked <= 2 * (limit + 1) + 1
    assert isinstance(step, Done)
    finding, hops = step.finding, step.check.hops
    assert len(hops) == asked
    assert finding.redirects <= limit
    assert (finding.error is None) == (finding.verdict.category is Category.OK)
    assert finding.error is None or (finding.error.isprintable() and finding.error.strip())
    if finding.status is not None:
        assert finding.final_url is not None
        assert (hops[-1].status, hops[-1].method, hops[-1].url) == (finding.status, finding.method, finding.final_url)
    assert all(hop.location is None or hop.location.isprintable() for hop in hops)
