"""Records: facts from the check, judgement from the plan, and no record that contradicts itself."""

from __future__ import annotations

from datetime import datetime

import pytest
from check_kit import HOST, START, Case, answer, failed, play
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.check.conclude import conclude
from linkcrawl.check.fields import mime_matches
from linkcrawl.check.outcome import UNJUDGED, Failure, Outcome
from linkcrawl.check.procedure import Denial, Done, Next, Rules, answered, begin, denied
from linkcrawl.check.recheck import Intervals
from linkcrawl.check.silence import Silence
from linkcrawl.check.verdict import VERDICT_VERSION
from linkcrawl.items import RECORD_FIELDS, Category, DueLink, Finished, LinkState, iso
from linkcrawl.units import DAY, HOUR

CRAWLER = "linkcrawl/0.1.0 12345678"
NOW = START + 100


def link(url: str = f"{HOST}/doc", **more: object) -> DueLink:
    return DueLink(id=7, url=url, host="a.example", **more)  # type: ignore[arg-type]


def finish(of: DueLink, done: Done, silence: Silence | None = None, retry_at: float | None = None) -> Finished:
    return conclude(of, done, NOW, CRAWLER, Intervals(), silence, retry_at=retry_at)


def test_a_good_page_in_full() -> None:
    good = answer(200, content_type="Text/HTML; charset=utf-8", content_length="5")
    due = link(collections=("b", "a", "b"), expected_mime="text/html", state=LinkState(attempt=3, hard_count=2))
    finished = finish(due, play(Case("", [("HEAD /doc", good)], {})))
    assert finished.state == LinkState(interval=7 * DAY)
    assert finished.record.link_id == 7
    row = finished.record.row()
    facts = {
        "url": f"{HOST}/doc", "collections": ["a", "b"], "checked_at": "2027-01-15T08:00:00.020Z", "category": "Ok",
        "reason": "ok", "confirmed": True, "status": 200, "method": "HEAD", "redirects": 0, "final_url": f"{HOST}/doc",
        "hops": [{"url": f"{HOST}/doc", "method": "HEAD", "status": 200, "location": None, "duration_ms": 20,
                  "ip": "192.0.2.1", "error": None, "at": "2027-01-15T08:00:00.000Z"}],
        "timeout": False, "duration_ms": 20, "expected_mime": "text/html", "mime": "text/html", "mime_matches": True,
        "content_length": 5, "error": None, "attempt": 0, "next_check_at": "2027-01-22T08:00:00.020Z",
        "crawler": CRAWLER, "verdict_version": VERDICT_VERSION,
    }  # fmt: skip
    assert {name: row[name] for name in facts} == facts
    assert list(row) == list(RECORD_FIELDS)


def test_the_wall_is_in_the_record() -> None:
    done = play(Case("", [("HEAD /doc", answer(200, cf_mitigated="challenge"))], {}))
    row = finish(link(), done).record.row()
    assert (row["category"], row["reason"], row["wall"]) == ("Undetermined", "bot_challenge", "cloudflare")


def test_a_url_that_cannot_be_requested() -> None:
    row = finish(link("http://"), play(Case("", [], {}, url="http://"))).record.row()
    facts = ("status", "method", "final_url", "duration_ms", "mime", "mime_matches", "content_length")
    assert [row[name] for name in facts] == [None] * len(facts)
    assert (row["category"], row["reason"], row["hops"], row["redirects"]) == ("Invalid_URL", "invalid_url", [], 0)
    assert (row["checked_at"], row["attempt"], row["timeout"]) == ("2027-01-15T08:01:40.000Z", 1, False)
    assert row["error"]


def test_a_suspected_link_keeps_its_history() -> None:
    gone = play(Case("", [("HEAD /doc", answer(404)), ("GET /doc", answer(404))], {}))
    first = finish(link(), gone)
    assert (first.record.category, first.record.confirmed, first.record.attempt) == (Category.BROKEN, False, 1)
    state = LinkState(attempt=5, hard_since=START - 9 * DAY, hard_count=2)
    later = finish(link(state=state, last_category=Category.BROKEN), gone)
    assert (later.record.confirmed, later.record.attempt, later.state.hard_count) == (True, 6, 3)
    assert later.state.hard_since == START - 9 * DAY


def test_a_silent_host_and_a_retry_after_reach_the_record() -> None:
    late = play(Case("", [("HEAD /doc", failed(Failure.TIMEOUT_CONNECT))], {}))
    record = finish(link(), late, silence=Silence(since=START - 31 * DAY, days=5)).record
    assert (record.category, record.confirmed, record.reason, record.timeout) == (
        Category.BROKEN,
        True,
        "timeout",
        True,
    )
    limited = play(Case("", [("HEAD /doc", answer(429))], {}))
    assert finish(link(), limited, retry_at=START + 9 * HOUR).record.next_check_at == START + 9 * HOUR


@pytest.mark.parametrize(
    ("worked", "silence", "category", "reason"),
    [
        (True, None, "Undetermined", "stopped_answering"),
        (True, Silence(since=NOW - DAY + 1, days=2), "Undetermined", "stopped_answering"),
        (True, Silence(since=NOW - DAY, days=2), "Broken", "connection_refused"),
        (False, None, "Broken", "connection_refused"),
        (False, Silence(since=NOW, days=1), "Broken", "connection_refused"),
    ],
)
def test_a_host_that_worked_and_refuses_connections_condemns_no_link_for_a_day(
    worked: bool, silence: Silence | None, category: str, reason: str
) -> None:
    done = play(Case("", [("HEAD /doc", failed(Failure.REFUSED))], {}))
    finished = conclude(link(), done, NOW, CRAWLER, Intervals(), silence, host_worked=worked)
    assert (finished.record.category, finished.record.reason) == (category, reason)
    assert finished.state.hard_count == (category == "Broken")


def test_only_a_refused_connection_is_doubted_where_the_host_worked() -> None:
    done = play(Case("", [("HEAD /doc", failed(Failure.DNS_NOT_FOUND))], {}))
    assert conclude(link(), done, NOW, CRAWLER, Intervals(), None, host_worked=True).record.reason == "dns_not_found"


@pytest.mark.parametrize(("due_at", "days"), [(START - DAY, 30), (START + DAY, 20)])
def test_only_a_link_that_was_due_earns_a_longer_interval(due_at: float, days: float) -> None:
    due = link(state=LinkState(interval=20 * DAY), last_category=Category.OK, next_check_at=due_at)
    assert finish(due, play(Case("", [("HEAD /doc", answer(200))], {}))).state.interval == days * DAY


def test_a_barred_check_is_dated_by_its_bar() -> None:
    step = begin(f"{HOST}/doc", Rules())
    assert isinstance(step, Next)
    record = finish(link(), denied(step.check, Denial(reason="robots_disallowed"), START + 5)).record
    assert (record.checked_at, record.category, record.hops) == (START + 5, Category.BLOCKED_BY_ROBOTS, ())


@pytest.mark.parametrize(
    ("expected", "actual", "matches"),
    [
        ("text/html", "text/html", True),
        (" Text/HTML; charset=x", "text/html", True),
        ("text/html", "application/pdf", False),
        ("text/xml", "application/xml", True),
        ("application/xml", "text/xml", True),
        ("application/xml", "application/rdf+xml", False),
        ("PDF", "application/pdf", False),
        ("", "text/html", False),
        (None, "text/html", None),
        ("text/html", None, None),
        (None, None, None),
    ],
)
def test_mime_matches(expected: str | None, actual: str | None, matches: bool | None) -> None:
    assert mime_matches(expected, actual) is matches


OUTCOMES = st.one_of(
    st.builds(
        lambda status, mime, location: answer(status, location, content_type=mime),
        st.sampled_from([200, 202, 301, 302, 304, 403, 404, 405, 429, 500, 503, 999]),
        st.sampled_from(["text/html", "nonsense", ""]),
        st.sampled_from(["/a", "/b", "ftp://x", "/login", None]),
    ),
    st.sampled_from(sorted(set(Failure) - UNJUDGED)).map(failed),
)


@given(
    st.sampled_from([f"{HOST}/doc", "ftp://a.example/", "http://"]),
    st.lists(OUTCOMES, min_size=26, max_size=26),
    st.sampled_from([None, "text/html", "", "application/pdf"]),
    st.integers(0, 9),
)
def test_no_record_contradicts_itself(url: str, outcomes: list[Outcome], expected: str | None, bar_after: int) -> None:
    step = begin(url, Rules(max_redirects=3))
    for number, outcome in enumerate(outcomes):
        if isinstance(step, Done):
            break
        step = (
            denied(step.check, Denial(reason="host_blocked"), START)
            if number == bar_after
            else answered(step.check, outcome)
        )
    assert isinstance(step, Done)
    record = finish(link(url, expected_mime=expected), step).record
    if record.status is not None:
        assert record.final_url is not None
        assert (record.status, record.method) in {(hop.status, hop.method) for hop in record.hops}
    assert (record.attempt == 0) is (record.category is Category.OK)
    assert record.confirmed or record.category is Category.BROKEN
    assert record.next_check_at >= record.checked_at
    assert (record.mime_matches is None) is (expected is None or record.mime is None)
    assert all(hop.ip for hop in record.hops if hop.status is not None)
    assert record.error is None or (record.error and "\n" not in record.error)


@given(st.floats(0, 4e9))
def test_a_record_is_dated_by_the_time_that_it_tells(at: float) -> None:
    refused = play(Case("", [], {}, url="http://"))
    told = conclude(link("http://"), refused, at, CRAWLER, Intervals(), None).record
    assert datetime.fromisoformat(iso(told.checked_at)).timestamp() == told.checked_at
