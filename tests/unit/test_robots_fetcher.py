"""The robots desk: robots.txt is fetched once however many wait, by the gates of whoever it leads to, and judged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import define, field
from scrapy.http import Request, Response

from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.check.procedure import Denial
from linkcrawl.frontier.ports import context_of
from linkcrawl.frontier.robots_fetcher import PAUSES, RobotsFetcher
from linkcrawl.session import Session
from tests.unit.frontier_kit import Clock, answer, request_to, session, silence


@define
class Office:
    """A desk, what it has had enqueued, and what it has told."""

    session: Session
    clock: Clock
    enqueued: list[Request] = field(factory=list)
    told: list[tuple[str, list[Request]]] = field(factory=list)
    put_off: list[tuple[str, float, list[Request]]] = field(factory=list)
    desk: RobotsFetcher = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.desk = RobotsFetcher(self.session, self)

    def enqueue(self, request: Request) -> bool:
        self.enqueued.append(request)
        return True

    def resume(self, authority: str, waiting: list[Request]) -> None:
        self.told.append((authority, waiting))

    def postpone(self, authority: str, until: float, waiting: list[Request]) -> None:
        self.put_off.append((authority, until, waiting))

    def ask(self, url: str = "http://a.example/page") -> Request | Denial | None:
        return self.desk.check(request_to(url), self.clock())

    def fetch(self, url: str = "http://a.example/page") -> Request:
        """What is to be sent in place of a page's request: the one for robots.txt."""
        asked = self.ask(url)
        assert isinstance(asked, Request)
        assert context_of(asked).robots is not None
        return asked

    def answer(self, request: Request, outcome: Outcome, body: str = "", *, cut: bool = False) -> None:
        context_of(request).outcome = outcome
        if outcome.status is None:
            assert request.errback
            request.errback(SimpleNamespace(request=request))
        else:
            assert request.callback
            flags = ["dataloss"] if cut else None
            response = Response(request.url, status=outcome.status, body=body.encode(), flags=flags, request=request)
            request.callback(response)


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    clock = Clock()
    at = session(tmp_path, clock)
    yield Office(at, clock)
    at.worker.close()


def test_one_fetch_however_many_wait(office: Office) -> None:
    fetch = office.fetch()
    assert [office.ask(f"http://a.example/{number}") for number in range(50)] == [None] * 50
    assert office.desk.waits_for("a.example")
    office.answer(fetch, answer(), "User-agent: *\nDisallow: /private")
    ((authority, waiting),) = office.told
    entry = office.session.robots.get(authority)
    assert entry is not None
    assert (authority, len(waiting), entry.robots is not None) == ("http://a.example", 51, True)
    assert not office.desk.waits_for("a.example")
    assert isinstance(office.ask("http://a.example/page"), Request)
    assert office.ask("http://a.example/private/1") == Denial(reason="robots_disallowed")


@pytest.mark.parametrize("other", ["https://a.example/", "http://a.example:8080/", "http://www.a.example/"])
def test_every_authority_has_its_own(office: Office, other: str) -> None:
    office.answer(office.fetch(), answer(), "User-agent: *\nDisallow: /")
    assert office.fetch(other).url == other + "robots.txt"


def test_a_redirect_goes_to_the_gate_of_its_target(office: Office) -> None:
    office.answer(office.fetch(), answer(301, location="http://b.example:8080/rules"))
    (hop,) = office.enqueued
    target = context_of(hop).target
    assert (hop.url, target.host, target.authority) == (
        "http://b.example:8080/rules",
        "b.example:8080",
        "http://b.example:8080",
    )
    assert context_of(hop).robots is not None
    assert context_of(hop).body_limit == 500 * 1024
    office.answer(hop, answer(), "User-agent: *\nDisallow: /page")
    assert office.ask() == Denial(reason="robots_disallowed")
    assert office.fetch("http://b.example:8080/").url == "http://b.example:8080/robots.txt", "the rules are a's only"


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (answer(404), None),
        (answer(403), None),
        (answer(500), "robots_unreachable"),
        (answer(429), "robots_unreachable"),
        (silence(Failure.TIMEOUT_CONNECT), "robots_unreachable"),
        (silence(Failure.RESET), "robots_unreachable"),
        (silence(Failure.DNS_NOT_FOUND), "dns_not_found"),
        (silence(Failure.REFUSED), "connection_refused"),
        (silence(Failure.TLS_EXPIRED), "tls_expired"),
    ],
)
def test_what_becomes_of_pages(office: Office, outcome: Outcome, reason: str | None) -> None:
    office.answer(office.fetch(), outcome, "User-agent: *\nDisallow: /")
    if office.enqueued:  # an accident: asked once more, through the gate
        office.answer(office.enqueued.pop(), outcome)
    asked = office.ask()
    assert (asked.reason if isinstance(asked, Denial) else None) == reason


def test_a_request_that_came_to_nothing_frees_those_that_wait(office: Office) -> None:
    """A fault of ours: the fetch ended without an outcome."""
    fetch = office.fetch()
    assert fetch.errback
    fetch.errback(SimpleNamespace(request=fetch))
    assert len(office.told) == 1
    assert isinstance(office.ask(), Denial)


def test_it_is_read_again_when_its_time_is_over(office: Office) -> None:
    office.answer(office.fetch(), answer(), "")
    office.clock.at += 3599
    assert isinstance(office.ask(), Request)
    office.clock.at += 2
    assert context_of(office.fetch()).robots is not None


def test_those_that_waited_go_by_what_came_even_if_its_time_was_short(office: Office) -> None:
    fetch = office.fetch()
    office.answer(fetch, answer(), "")
    ((_, (waited,)),) = office.told
    office.clock.at += 299
    assert office.desk.check(waited, office.clock()) is waited


def test_robots_txt_is_remembered(office: Office, tmp_path: Path) -> None:
    office.answer(office.fetch(), answer(), "User-agent: *\nCrawl-delay: 9")
    (memory,) = office.session.hosts.take_changed()
    again: Any = session(tmp_path, office.clock, memories=[memory])
    entry = again.robots.get("http://a.example")
    assert entry.robots.crawl_delay == 9
    again.worker.close()


def test_what_waits_can_be_let_go_of(office: Office) -> None:
    office.fetch()
    office.desk.clear()
    assert not office.desk.waits_for("a.example")


def test_a_file_that_breaks_off_is_fetched_once_more_and_then_closes(office: Office) -> None:
    office.answer(office.fetch(), answer(), "User-agent: *\n", cut=True)
    (again,) = office.enqueued
    assert (again.url, office.told, office.ask()) == ("http://a.example/robots.txt", [], None)
    office.answer(again, answer(), "User-agent: *\n", cut=True)
    assert isinstance(asked := office.ask(), Denial)
    assert asked.reason == "robots_unreachable"
    assert "broke off" in (asked.error or "")


@pytest.mark.parametrize(
    ("outcome", "body", "told"),
    [
        (answer(403), "", "answered 403: taken as having none"),
        (answer(401), "", "answered 401: taken as having none"),
        (answer(302, location="mailto:a@b.example"), "", "taken as having none"),
        (answer(), "User-agent: *\nCrawl-delay: 5s\nVisit-time: x", "crawl-delay: 5s; visit-time: x"),
        (answer(), "User-agent: *\nCrawl-delay: \x1b[31m9", r"crawl-delay: \x1b[31m9"),
        (answer(404), "User-agent: *\nCrawl-delay: 5s", None),
        (answer(), "User-agent: *\nCrawl-delay: 5", None),
        (answer(), "User-agent: other\nCrawl-delay: 5s", None),
    ],
)
def test_what_its_owner_may_not_have_meant_is_told(
    office: Office, caplog: pytest.LogCaptureFixture, outcome: Outcome, body: str, told: str | None
) -> None:
    caplog.set_level("INFO", "linkcrawl.frontier.robots_fetcher")
    office.answer(office.fetch(), outcome, body)
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == (0 if told is None else 1)
    assert all(line.startswith("robots.txt of http://a.example: ") and (told or "") in line for line in lines)


def test_a_last_good_copy_that_is_applied_is_told(office: Office, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "linkcrawl.frontier.robots_fetcher")
    office.answer(office.fetch(), answer(), "User-agent: *\nDisallow: /private")
    for hours in (2, 13):
        office.clock.at += hours * 3600
        for _ in range(len(PAUSES) + 1 if hours == 2 else 1):
            office.answer(office.fetch(), answer(500))
    told = [text for record in caplog.records if "asked for again" not in (text := record.getMessage())]
    assert [text.partition(" (")[0] for text in told] == [
        "robots.txt of http://a.example: robots.txt unreachable for 13 hours, last good copy applied"
    ]


@pytest.mark.parametrize(
    "trouble",
    [
        answer(503),
        answer(429),
        silence(Failure.TIMEOUT_CONNECT),
        silence(Failure.REFUSED),
        silence(Failure.TLS_EXPIRED),
    ],
    ids=str,
)
@pytest.mark.parametrize("back", [1, 2, None])
def test_a_file_that_was_there_is_asked_for_again(office: Office, trouble: Outcome, back: int | None) -> None:
    """`back`: the fetch that finds it again."""
    office.answer(office.fetch(), answer(), "User-agent: *\nDisallow: /private")
    office.told.clear()
    office.clock.at += 7200
    for number, pause in enumerate(PAUSES):
        if number == back:
            break
        page = office.fetch()
        office.ask("http://a.example/more")
        office.answer(page, trouble)
        ((authority, until, waiting),) = office.put_off
        assert (authority, until, len(waiting)) == ("http://a.example", office.clock.at + pause, 2)
        assert office.told == []
        assert not office.desk.waits_for("a.example")
        office.put_off.clear()
        office.clock.at = until
    office.answer(office.fetch(), trouble if back is None else answer(), "User-agent: *\nDisallow: /page")
    assert (len(office.told), office.put_off) == (1, [])
    assert isinstance(asked := office.ask(), Denial)
    assert (asked.reason == "robots_disallowed") is (back is not None)


def test_a_file_that_was_never_there_is_not_waited_for(office: Office) -> None:
    office.answer(office.fetch(), answer(500))
    assert (len(office.told), office.put_off) == (1, [])
    office.clock.at += 7200
    office.answer(office.fetch(), answer(500))
    assert (len(office.told), office.put_off) == (2, [])
