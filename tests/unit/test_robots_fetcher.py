"""The robots desk: robots.txt is fetched once however many wait, by the gates of whoever it leads to, and judged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from attrs import define, field
from scrapy.http import Request, Response

from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.check.procedure import Denial
from linkcrawl.frontier.ports import context_of
from linkcrawl.frontier.robots_fetcher import PAUSES, RobotsFetcher
from linkcrawl.items import HostMemory
from linkcrawl.politeness.redirect_names import RedirectNames
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
    down_since: float | None = None
    desk: RobotsFetcher = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.desk = RobotsFetcher(self.session, self, self)

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
    if isinstance(asked, Denial):
        assert asked.timed_out is (outcome.failure is Failure.TIMEOUT_CONNECT)


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


def in_loop(office: Office, *urls: str) -> list[object]:
    """Ask for these URLs, and wait for what the store says."""

    async def run() -> list[object]:
        asked = [office.ask(url) for url in urls]
        await asyncio.gather(*office.desk._lookups)
        return asked

    return asyncio.run(run())


def restarted(office: Office, tmp_path: Path) -> Office:
    """The next crawl, which remembers what this one has stored."""
    crawl = office.session
    memories = [*crawl.hosts.take_changed(), HostMemory(host="a.example", last_end=office.clock())]
    crawl.store.remember_robots(crawl.robots.take_changed())
    crawl.worker.close()
    return Office(session(tmp_path, office.clock, memories=memories), office.clock)


def test_robots_txt_is_remembered(office: Office, tmp_path: Path) -> None:
    office.answer(office.fetch(), answer(), "User-agent: *\nCrawl-delay: 9\nDisallow: /x")
    again = restarted(office, tmp_path)
    assert len(again.session.robots) == 0  # read when it is needed
    assert in_loop(again, "http://a.example/x", "http://a.example/y") == [None, None]
    ((authority, waiting),) = again.told
    assert (authority, [request.url for request in waiting]) == (
        "http://a.example",
        ["http://a.example/x", "http://a.example/y"],
    )
    assert again.enqueued == []
    assert isinstance(again.ask("http://a.example/x"), Denial)
    assert isinstance(again.ask("http://a.example/y"), Request)
    again.session.worker.close()


def test_pace_is_remembered_before_the_file_is_read(office: Office, tmp_path: Path) -> None:
    office.answer(office.fetch(), answer(), "User-agent: *\nCrawl-delay: 9")
    (memory,) = office.session.hosts.take_changed()
    again = session(tmp_path, office.clock, memories=[memory])
    assert [pace.crawl_delay for pace in again.hosts.robots_paces("a.example")] == [9.0]
    again.worker.close()


def test_pace_holds_until_a_file_says_otherwise(office: Office) -> None:
    office.answer(office.fetch(), answer(), "User-agent: *\nCrawl-delay: 9")
    office.clock.at += 4000
    office.answer(office.fetch(), answer(503))
    assert [pace.crawl_delay for pace in office.session.hosts.robots_paces("a.example")] == [9.0]
    for _ in PAUSES:
        office.answer(office.fetch(), answer(503))
    assert [pace.crawl_delay for pace in office.session.hosts.robots_paces("a.example")] == [9.0]
    office.clock.at += 4000
    office.answer(office.fetch(), answer(), "User-agent: *")
    assert office.session.hosts.robots_paces("a.example") == []


def test_a_file_that_is_old_is_fetched_and_its_last_good_copy_is_there(office: Office, tmp_path: Path) -> None:
    office.answer(office.fetch(), answer(), "User-agent: *\nDisallow: /x")
    office.clock.at += 4000
    again = restarted(office, tmp_path)
    assert in_loop(again, "http://a.example/y") == [None]
    (fetch,) = again.enqueued
    assert fetch.url == "http://a.example/robots.txt"
    again.answer(fetch, silence())
    assert again.put_off, "it was there before"
    again.session.worker.close()


def test_a_file_that_the_store_does_not_have_is_fetched(office: Office, tmp_path: Path) -> None:
    again = restarted(office, tmp_path)
    assert in_loop(again, "http://a.example/y", "http://a.example/z") == [None, None]
    (fetch,) = again.enqueued
    again.answer(fetch, answer(404))
    ((_, waiting),) = again.told
    assert len(waiting) == 2
    again.session.worker.close()


def test_a_store_that_can_not_read_a_file_stops_nothing(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    again = restarted(office, tmp_path)

    def broken(authorities: list[str]) -> None:
        raise MemoryError

    monkeypatch.setattr(again.session.store, "robots", broken)
    assert in_loop(again, "http://a.example/y") == [None]
    assert [request.url for request in again.enqueued] == ["http://a.example/robots.txt"]
    assert "can't be read from the store: it is fetched" in caplog.text
    again.session.worker.close()


def test_the_store_is_not_asked_about_hosts_that_were_never_met(office: Office) -> None:
    assert isinstance(office.ask(), Request)  # no loop runs here: a look-up would fail


def test_redirects_of_robots_txt_do_not_lead_to_names_without_end(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(office.desk, "_names", RedirectNames(office.session.hosts.is_known, office.clock, most=2))
    for number in range(3):
        fetch = office.fetch(f"http://h{number}.example/page")
        office.answer(fetch, answer(301, location=f"http://n{number}.wild.example/robots.txt"))
    assert [request.url for request in office.enqueued] == [
        "http://n0.wild.example/robots.txt",
        "http://n1.wild.example/robots.txt",
    ]
    ((authority, _),) = office.told
    assert authority == "http://h2.example"
    assert isinstance(office.ask("http://h2.example/page"), Denial)


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
    told = [text for record in caplog.records if "requested again" not in (text := record.getMessage())]
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


def test_our_own_networks_failure_says_nothing_of_a_file(office: Office) -> None:
    """Those that wait have their turn again, by which the file is fetched anew."""
    fetch = office.fetch()
    assert office.ask("http://a.example/other") is None
    office.down_since = office.clock()
    office.answer(fetch, silence())
    ((authority, waiting),) = office.told
    assert (authority, len(waiting)) == ("http://a.example", 2)
    assert office.session.robots.get(authority) is None
    office.down_since = None
    office.answer(office.fetch(), answer(), "User-agent: *\nDisallow: /")
    assert isinstance(office.ask(), Denial)
