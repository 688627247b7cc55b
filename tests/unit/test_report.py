"""The report as data: sums that balance, ratios, what is worth updating, who blocks us, and what was never asked."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from linkcrawl.items import Act, Category, HostMemory, Order, Record
from linkcrawl.politeness.pacing.persistence import pace_to_row
from linkcrawl.politeness.pacing.state import Pace
from linkcrawl.reports.make import balanced, lasting_target, make_report
from linkcrawl.reports.model import Report
from linkcrawl.stores.contract import Query, Store
from linkcrawl.stores.opening import open_store
from tests.contract.making import check, entry, link, record
from tests.unit.report_kit import DAY, NOW, fill, moved

FLOOR = 1.0


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(f"sqlite:///{tmp_path}/links.db")
    yield opened
    opened.close()


def checked(store: Store, n: int, host: str = "a.example", **facts: Any) -> None:
    store.add([entry(n, host, **facts.pop("seed", {}))])
    store.finish([check(link(store, n, host), NOW - 100 + n, **facts)])


def made(store: Store, top: int = 100) -> Report:
    return make_report(store, NOW, FLOOR, top)


def test_of_an_empty_store(store: Store) -> None:
    empty = made(store)
    assert empty.balanced
    assert empty.overall.valid_ratio is None
    assert (empty.collections, empty.months, empty.moves, empty.hosts, empty.excluded) == ((), (), (), (), ())
    assert [(line.category, line.links, line.mean_ms) for line in empty.overall.categories] == [
        (category, 0, None) for category in Category
    ]


def test_a_catalogue_adds_up_from_every_side(store: Store) -> None:
    fill(store, 600, random.Random(3))
    whole = made(store)
    latest = list(store.records())
    assert whole.balanced
    assert whole.overall.checked == len(latest) == sum(line.links for line in whole.overall.statuses)
    assert {line.category: line.links for line in whole.overall.categories if line.links} == Counter(
        one.category for one in latest
    )
    assert whole.overall.valid_ratio == pytest.approx(sum(one.category is Category.OK for one in latest) / len(latest))
    assert whole.overall.suspected == sum(one.category is Category.BROKEN and not one.confirmed for one in latest)
    assert whole.overall.mismatches == sum(one.mime_matches is False for one in latest)
    assert whole.overall.moved == sum(lasting_target(one) is not None for one in latest) > 0
    assert whole.overall.moved == sum(move.links for move in whole.moves)
    assert whole.months[-1].checked == len(latest)
    for section in (whole.overall, *whole.collections, *whole.providers):
        assert section.links == section.checked + section.never_checked
        assert section.checked == sum(line.links for line in section.categories)
        assert section.checked == sum(line.links for line in section.statuses)
    assert sum(section.moved or 0 for section in whole.collections) == whole.overall.moved  # one collection a link


@pytest.mark.parametrize("off", ["links", "checked", "never_checked", "due", "later", "proxies"])
def test_books_that_are_off_by_one_are_told(store: Store, off: str) -> None:
    fill(store, 40, random.Random(1))
    summary = store.summary(NOW)
    assert balanced(summary.books, summary.overall)
    wrong = evolve(summary.books, **{off: getattr(summary.books, off) + 1})
    assert not balanced(wrong, summary.overall)


def test_times_are_over_the_checks_that_have_one(store: Store) -> None:
    for n, duration in enumerate([10, 30, None]):
        checked(
            store, n, duration_ms=duration, status=404, category=Category.BROKEN, reason="http_404", confirmed=n > 0
        )
    (line,) = made(store).overall.statuses
    assert (line.links, line.mean_ms, line.max_ms) == (3, 20, 30)


def chain(*hops: tuple[str, int], lead: tuple[tuple[str, int], ...] = ()) -> dict[str, Any]:
    """A record's hops: those of the deciding chain, after others of the same check."""
    every = [moved(url, url, status)["hops"][0] for url, status in (*lead, *hops)]
    return {"hops": tuple(every), "redirects": len(hops) - 1}


A, B, C, D = (f"https://{name}.example/1" for name in "abcd")


@pytest.mark.parametrize(
    ("hops", "target"),
    [
        (chain((A, 200)), None),
        (chain((A, 301), (B, 200)), B),
        (chain((A, 308), (B, 200)), B),
        (chain((A, 302), (B, 200)), None),
        (chain((A, 307), (B, 200)), None),
        (chain((A, 301), (B, 308), (C, 200)), C),
        (chain((A, 301), (B, 302), (C, 200)), B),
        (chain((A, 302), (B, 301), (C, 200)), None),
        (chain((A, 301), (A, 200)), None),
        (chain((A, 301), (B, 200), lead=((A, 302), (C, 405))), B),
        (chain((A, 302), (B, 200), lead=((A, 301), (C, 405))), None),
    ],
)
def test_a_permanent_redirect_leads_to(hops: dict[str, Any], target: str | None, store: Store) -> None:
    store.add([entry(1)])
    given: Record = record(link(store, 1), NOW, NOW + DAY, url=A, **hops)
    assert lasting_target(given) == target


@pytest.mark.parametrize(
    ("host", "facts", "worth"),
    [
        ("a.example", {}, True),
        ("a.example", {"category": Category.BROKEN, "reason": "http_404", "status": 404}, False),
        ("hdl.handle.net", {}, False),
        ("doi.org", {}, False),
    ],
)
def test_redirects_are_worth_updating_where_they_end_well(
    store: Store, host: str, facts: dict[str, Any], worth: bool
) -> None:
    url = f"https://{host}/1"
    checked(store, 1, host, seed={"collection": "C"}, **(moved(url, "https://new.example/1", 301) | facts))
    whole = made(store)
    assert [(move.from_site, move.to_site, move.links) for move in whole.moves] == (
        [(f"https://{host}", "https://new.example", 1)] if worth else []
    )
    assert whole.overall.moved == whole.collections[0].moved == int(worth)


def test_moves_are_gathered_by_site_and_bounded(store: Store) -> None:
    for n in range(6):
        host = "a.example" if n < 4 else f"h{n}.example"
        checked(store, n, host, **moved(f"https://{host}/{n}", f"https://b.example/{n}", 301))
    assert [move.links for move in made(store).moves] == [4, 1, 1]
    assert [move.links for move in made(store, top=2).moves] == [4, 1]
    assert made(store, top=2).overall.moved == 6


ORDERED = Order(host="a.example", act=Act.BLOCK, at=NOW - DAY, reason="they asked by mail")
ENDED = evolve(ORDERED, until=NOW - 1)
REOPENED = Order(host="a.example", act=Act.UNBLOCK, at=NOW - DAY)


@pytest.mark.parametrize(
    ("pace", "order", "said"),
    [
        (Pace(), None, None),
        (Pace(back_off=20.0), None, {"back_off": 20.0}),
        (Pace(silent_until=NOW + 5), None, {"silent_until": NOW + 5}),
        (Pace(silent_until=NOW - 5), None, None),
        (Pace(blocked_since=NOW - 2 * DAY), None, {"blocked_since": NOW - 2 * DAY}),
        (Pace(blocked_since=NOW - 2 * DAY), REOPENED, None),
        (Pace(), ORDERED, {"ordered": "they asked by mail"}),
        (Pace(), ENDED, None),
    ],
)
def test_hosts_that_block_or_slow_us_down(
    store: Store, pace: Pace, order: Order | None, said: dict[str, Any] | None
) -> None:
    checked(store, 1)
    store.remember([HostMemory(host="a.example", pace=pace_to_row(pace))])
    if order is not None:
        store.give_order(order)
    hosts = made(store).hosts
    assert len(hosts) == (said is not None)
    for name, value in (said or {}).items():
        assert getattr(hosts[0], name) == value
        assert (hosts[0].host, hosts[0].links, hosts[0].due) == ("a.example", 1, 0)


@pytest.mark.parametrize(("asked", "told"), [(5, 5.0), (1, None), (0.5, None)])
def test_a_crawl_delay_counts_where_it_is_more_than_the_floor(store: Store, asked: float, told: float | None) -> None:
    row = {
        "rules": f"crawl-delay: {asked}\n",
        "asked_at": NOW,
        "expires_at": NOW + 60,
        "note": "",
        "failing_since": None,
        "failure": None,
        "tries": 0,
    }
    store.remember([HostMemory(host="a.example", robots={"https://a.example": row})])
    assert [host.crawl_delay for host in made(store).hosts] == ([] if told is None else [told])


def test_blocked_hosts_come_first_then_the_silent_then_by_links_turned_away(store: Store) -> None:
    refused = {"category": Category.UNDETERMINED, "reason": "rate_limited", "status": 429}
    for n, host in enumerate(["few.example", "many.example", "many.example"]):
        checked(store, n, host, **refused)
    paces = {"blocked.example": Pace(blocked_since=NOW - 5), "silent.example": Pace(silent_until=NOW + 5)}
    store.remember([HostMemory(host=host, pace=pace_to_row(pace)) for host, pace in paces.items()])
    hosts = made(store).hosts
    assert [(host.host, host.refused) for host in hosts] == [
        ("blocked.example", 0),
        ("silent.example", 0),
        ("many.example", 2),
        ("few.example", 1),
    ]
    assert hosts[2].reasons == ("rate_limited",)


def test_what_was_not_asked_and_why(store: Store) -> None:
    robots = {"category": Category.BLOCKED_BY_ROBOTS, "reason": "robots_disallowed", "status": None}
    skipped = {"category": Category.UNDETERMINED, "reason": "skipped_by_policy", "status": None}
    invalid = {"category": Category.INVALID, "reason": "invalid_url", "status": None}
    late = {"category": Category.UNDETERMINED, "reason": "timeout", "status": None}
    for n in range(9):
        checked(store, n, f"h{n % 7}.example", **robots)
    checked(store, 9, **skipped)
    checked(store, 10, **skipped)
    checked(store, 11, "", **invalid)
    checked(store, 12, **late)
    lines = made(store).excluded
    assert [(line.reason, line.links, line.host_count) for line in lines] == [
        ("robots_disallowed", 9, 7),
        ("skipped_by_policy", 2, 1),
        ("invalid_url", 1, 0),
    ]
    assert lines[0].hosts[:2] == ("h0.example", "h1.example")
    assert len(lines[0].hosts) == 5


def test_as_json_it_is_plain_and_times_are_iso(store: Store) -> None:
    fill(store, 200, random.Random(2))
    row = json.loads(json.dumps(made(store).row(), allow_nan=False))
    assert row["made_at"] == "2026-11-30T12:00:00.000Z"
    assert row["slowest"][0]["checked_at"].endswith("Z")
    assert row["hosts"][0]["blocked_since"] == "2026-11-27T12:00:00.000Z"
    assert row["overall"]["categories"][0]["category"] == "Ok"
    assert row["books"]["links"] == 200
    slowest = max(store.records(Query()), key=lambda one: one.duration_ms or 0)
    assert row["slowest"][0]["url"] == slowest.url


def test_links_count_in_the_collections_that_they_are_in_by_now(store: Store) -> None:
    """Also where they came into one after their check, or are mentioned without one as well."""
    target = "https://b.example/1"
    checked(store, 1, seed={"collection": "first"}, **moved("https://a.example/1", target, 301))
    store.add([entry(1, collection="later"), entry(1)])
    whole = made(store)
    assert {section.name: section.moved for section in whole.collections} == {"first": 1, "later": 1, None: 1}
    assert [slow.collections for slow in whole.slowest] == [("first", "later")]
