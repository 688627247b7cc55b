"""Names that redirects add: without end for a site with wildcard DNS, bounded here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from scrapy.http import Request, Response

from linkcrawl.frontier.ports import context_of
from linkcrawl.items import Category, DueLink, Finished
from linkcrawl.politeness.policy.rules import Applied
from linkcrawl.politeness.redirect_names import MOST, RedirectNames
from linkcrawl.session import Session
from linkcrawl.spiders.resourceproxies import ResourceProxies
from tests.unit.frontier_kit import Clock, answer, session

KNOWN = {"old.wild.example"}


def names(most: int = 3, clock: Clock | None = None) -> RedirectNames:
    return RedirectNames(KNOWN.__contains__, clock or Clock(), most)


def test_names_of_one_registered_domain_are_bounded() -> None:
    counted = names()
    assert [counted.admit(f"n{number}.wild.example") for number in range(5)] == [True, True, True, False, False]
    assert counted.admit("n0.wild.example"), "it counts once"
    assert counted.admit("old.wild.example"), "it was met before"
    assert counted.admit("n4.other.example"), "another domain"


def test_ports_count_and_addresses_are_their_own() -> None:
    counted = names()
    assert [counted.admit(f"wild.example:{8000 + number}") for number in range(4)] == [True, True, True, False]
    assert [counted.admit(f"192.0.2.{number}") for number in range(1, 6)] == [True] * 5
    assert [counted.admit(f"192.0.2.1:{8000 + number}") for number in range(3)] == [True, True, False]


def test_users_of_one_host_are_strangers() -> None:
    assert all(names().admit(f"user{number}.github.io") for number in range(9))


def test_the_next_day_has_names_of_its_own() -> None:
    clock = Clock()
    counted = names(1, clock)
    assert [counted.admit(f"n{number}.wild.example") for number in range(2)] == [True, False]
    clock.at += 86400
    assert counted.admit("n1.wild.example")


@pytest.fixture
def crawl(tmp_path: Path) -> Iterator[Session]:
    opened = session(tmp_path, Clock())
    yield opened
    opened.worker.close()


def redirected(spider: ResourceProxies, number: int, to: str) -> Request | Finished:
    """The step after a link's first answer, which redirects."""
    begun = spider.begin(DueLink(id=number, url=f"http://a.example/{number}", host="a.example"), Applied())
    assert isinstance(begun, Request)
    context_of(begun).outcome = answer(302, location=to)
    (step,) = spider.answered(Response(begun.url, request=begun))
    return step


def test_a_check_is_not_led_to_one_name_too_many(crawl: Session) -> None:
    spider = ResourceProxies(crawl)
    steps = [redirected(spider, number, f"http://n{number}.wild.example/") for number in range(MOST + 1)]
    assert all(isinstance(step, Request) for step in steps[:-1])
    last = steps[-1]
    assert isinstance(last, Finished)
    assert (last.record.category, last.record.reason) == (Category.UNDETERMINED, "too_many_names")
    assert last.record.error == (
        f"redirected to n{MOST}.wild.example, after 1000 other new names of its registered domain today"
    )
    assert last.record.final_url == f"http://n{MOST}.wild.example/"
    assert isinstance(redirected(spider, 0, "/elsewhere"), Request), "the link's own host"
