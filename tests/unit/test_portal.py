"""Captive portals: one answer in the place of many hosts, and what only looks like it."""

from __future__ import annotations

import pytest
from attrs import evolve

from linkcrawl import urls
from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.politeness.portal import ALIKE, MOST_LINKS, Run, note_answer, page_of
from tests.unit.frontier_kit import T0, answer, silence

LOGIN = "http://login.portal.example/start?url="


def target(url: str) -> urls.Target:
    found = urls.read(url)
    assert isinstance(found, urls.Target)
    return found


def redirect(number: int = 0, to: str = LOGIN) -> Outcome:
    return answer(302, location=f"{to}http%3A%2F%2Fh{number}.example" if to == LOGIN else to)


def page(size: int = 1234, **headers: str) -> Outcome:
    return answer(200, content_length=str(size), content_type="text/html", **headers)


def run_of(outcomes: list[Outcome], host: str = "http://h{}.example/x", ip: str = "192.0.2.{}") -> Run:
    """The run after these answers, each of a host of its own at an address of its own."""
    run = Run()
    for number, outcome in enumerate(outcomes):
        at = evolve(outcome, ip=ip.format(number))
        run = note_answer(run, target(host.format(number)), at, number)
    return run


@pytest.mark.parametrize(
    "same", [redirect(), page(), page(etag='"1"'), answer(511), answer(511, content_length="0")], ids=str
)
def test_one_answer_for_all_may_be_a_portals(same: Outcome) -> None:
    assert not run_of([same] * (ALIKE - 1)).is_suspect
    run = run_of([same] * ALIKE)
    assert run.is_suspect
    assert run.since == T0 - 0.1
    assert run.links == set(range(ALIKE))


def test_a_portal_names_the_url_that_was_asked_in_its_query() -> None:
    assert run_of([redirect(number) for number in range(ALIKE)]).is_suspect


@pytest.mark.parametrize(
    ("host", "ip", "what"),
    [
        ("http://h{}.archive.example/x", "192.0.2.{}", "an archive with 300 names, wildcard hosting"),
        ("http://archive.example/{}", "192.0.2.1", "a repository whose links lead to one home page"),
        (
            "http://h{}.example/x",
            "192.0.2.1",
            "a hosting company's parking page; a resolver that lies",
        ),
        ("http://192.0.2.{}/x", "192.0.2.{}", "a laboratory"),
        ("https://h{}.example/x", "192.0.2.{}", "a good certificate is the host's own"),
    ],
)
@pytest.mark.parametrize("same", [redirect(), page()], ids=["redirect", "page"])
def test_what_is_honest_is_no_portal(host: str, ip: str, what: str, same: Outcome) -> None:
    assert not run_of([same] * 5 * ALIKE, host, ip).is_suspect, what


@pytest.mark.parametrize(
    "own",
    [
        answer(404, content_length="1234"),
        answer(403, content_length="16"),
        answer(200),
        page(0),
        page(size=99),
        redirect(to="http://elsewhere.example/"),
    ],
    ids=str,
)
def test_any_other_answer_breaks_the_run(own: Outcome) -> None:
    half = [page()] * (ALIKE - 1)
    assert not run_of([*half, own, *half]).is_suspect


@pytest.mark.parametrize("own", [answer(404), answer(403, content_length="16"), answer(200), page(0)], ids=str)
def test_answers_that_many_servers_give_show_no_portal(own: Outcome) -> None:
    assert not run_of([own] * 5 * ALIKE).is_suspect


def test_redirects_to_https_or_www_are_the_hosts_own() -> None:
    for location in ("https://a.example/x", "http://www.a.example/x", "/y"):
        assert page_of(target("http://a.example/x"), answer(301, location=location)) is None


def test_failures_and_the_portals_own_pages_say_nothing() -> None:
    run = run_of([redirect()] * 3)
    assert note_answer(run, target("http://h9.example/x"), silence(Failure.TLS_HOSTNAME), 9) == run
    assert note_answer(run, target(f"{LOGIN}x"), page(), 9) == run


def test_what_is_remembered_of_a_run_is_bounded() -> None:
    run = run_of([page()] * 3 * MOST_LINKS, "http://archive.example/{}", "192.0.2.1")
    assert len(run.links) == MOST_LINKS
    assert len(run_of([page()] * 5 * ALIKE).domains) == ALIKE
