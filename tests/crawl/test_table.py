"""One crawl over every misbehaviour; each is judged by its record and by what the server saw."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from attrs import frozen

from linkcrawl.items import RECORD_FIELDS, Category
from tests.crawl.expected import EXPECTED
from tests.crawl.harness import SETTINGS, Crawl, Crawler
from tests.crawl.measures import LATE, overlapping, successive, too_close
from tests.docs.pages import read, rows, section, word
from tests.site.client import Request, RunningSite, running_site
from tests.site.misbehaviour import Place
from tests.site.table import MISBEHAVIOURS

#: Bytes that a crawl of the table may hold at its peak, floods and all. An idle one holds some 90 MB.
MEMORY = 250 * 2**20


@frozen(kw_only=True)
class Scene:
    """What is left of the crawl: its records, and the server's log by address."""

    site: RunningSite
    crawl: Crawl
    requests: list[Request]
    links: dict[str, str]

    def place(self, name: str) -> Place:
        return self.site.place(name)

    def seen(self, address: str) -> list[Request]:
        """Requests for pages at this address."""
        return [request for request in self.requests if request.host == address and not is_robots(request)]


def is_robots(request: Request) -> bool:
    return request.target in {"/robots.txt", "/rules.txt"}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("table")
    with running_site(folder) as site:
        links = {row.name: row.link(site.place(row.name)) for row in MISBEHAVIOURS}
        # Time enough for the floods, which a busy machine takes seconds for; the slow ones are slower yet.
        settings = {"LINKCRAWL_CA_BUNDLE": str(site.trusted), "LINKCRAWL_TIMEOUT": "5"}
        crawler = Crawler(folder=folder, settings=settings)
        seeds = crawler.seeds([{"url": url, "collection": "table", "record": name} for name, url in links.items()])
        crawl = crawler.run("-a", f"seeds={seeds}")
        assert crawl.records, f"no record at all:\n{crawl.stderr[-3000:]}"
        yield Scene(site=site, crawl=crawl, requests=site.requests(), links=links)


def test_every_misbehaviour_has_an_expectation() -> None:
    assert set(EXPECTED) == {row.name for row in MISBEHAVIOURS}


@pytest.mark.parametrize("name", [row.name for row in MISBEHAVIOURS])
def test_misbehaviour(scene: Scene, name: str) -> None:
    record, expected, place = scene.crawl.record(scene.links[name]), EXPECTED[name], scene.place(name)
    told = {field: record[field] for field in expected.record}
    assert told == dict(expected.record), record
    assert [request.line for request in scene.seen(place.here)] == list(expected.asks)
    assert [request.line for request in scene.seen(place.other)] == list(expected.other)
    assert max((request.sent for request in scene.seen(place.here)), default=0) <= expected.most_sent


def test_the_crawl_ends_well(scene: Scene) -> None:
    assert scene.crawl.status == 0
    assert "Traceback" not in scene.crawl.stderr
    assert scene.crawl.stderr.isascii() or "\x1b" not in scene.crawl.stderr


def test_one_record_for_each_link(scene: Scene) -> None:
    assert Counter(record["url"] for record in scene.crawl.records) == Counter(scene.links.values())


#: The types of docs/reference/record.md, as JSON has them.
_JSON: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "time": (str,),
    "list of text": (list,),
    "list of objects": (list,),
}


def _documented(table: str) -> dict[str, tuple[type, ...]]:
    """Fields by name, in their order, with the types that they may have."""
    return {
        word(name): (*_JSON[kind.removesuffix(" or null")], *([type(None)] * kind.endswith(" or null")))
        for name, kind, _ in rows(table)
    }


_PAGE = read("docs/reference/record.md")
TYPES, HOP_TYPES = _documented(_PAGE.partition("\n## ")[0]), _documented(section(_PAGE, "Hops"))


def _moment(text: str) -> datetime:
    assert len(text) == len("2026-11-30T09:05:00.123Z"), text
    assert text.endswith("Z")
    return datetime.fromisoformat(text)


def _untyped(row: dict[str, Any], types: dict[str, tuple[type, ...]]) -> list[str]:
    wrong = [name for name, kinds in types.items() if name not in row or type(row[name]) not in kinds]
    return wrong + sorted(set(row) - set(types))


def test_names_and_types(scene: Scene) -> None:
    assert tuple(TYPES) == RECORD_FIELDS
    for record in scene.crawl.records:
        assert _untyped(record, TYPES) == [], record
        assert list(record) == list(TYPES), "the contract's order"
        assert [wrong for hop in record["hops"] for wrong in _untyped(hop, HOP_TYPES)] == [], record
        assert record["collections"] == ["table"]
        assert record["category"] in set(Category)
        assert _moment(record["checked_at"]) < _moment(record["next_check_at"])
        assert all(_moment(hop["at"]) <= _moment(record["checked_at"]) for hop in record["hops"])
        assert record["crawler"].startswith("linkcrawl/")


def test_records_agree_with_themselves(scene: Scene) -> None:
    for record in scene.crawl.records:
        assert (record["category"] == "Ok") == (record["attempt"] == 0 and record["error"] is None), record
        assert "\n" not in (record["error"] or ""), record
        for hop in record["hops"]:
            assert (hop["status"] is None) == (hop["error"] is not None), hop
            assert hop["ip"] or hop["status"] is None, hop
        if record["status"] is not None:
            last = record["hops"][-1]
            assert (last["status"], last["method"]) == (record["status"], record["method"]), record
            assert last["url"] == record["final_url"], record


def test_hops_agree_with_the_log(scene: Scene) -> None:
    """Every request is a hop, and every hop that was answered is a request: same method, address, target, order."""
    for name, url in scene.links.items():
        place = scene.place(name)
        here = {place.here, place.other}
        logged = [(r.method, r.url) for r in scene.requests if r.host in here and not is_robots(r)]
        hops = scene.crawl.record(url)["hops"]
        told = [(hop["method"], hop["url"].partition("://")[2]) for hop in hops]
        sent = [row for row, hop in zip(told, hops, strict=True) if hop["status"] is not None or row in logged]
        assert sent == logged, name


def test_robots_txt_comes_first(scene: Scene) -> None:
    asked: set[tuple[str, int]] = set()
    for request in scene.requests:
        if request.target == "/robots.txt":
            asked.add((request.host, request.port))
        elif request.target != "/rules.txt":
            assert (request.host, request.port) in asked, request
    assert len(asked) > 150


def test_robots_txt_is_read_once(scene: Scene) -> None:
    times = Counter((r.host, r.port) for r in scene.requests if r.target == "/robots.txt")
    loop, *broken_off = (
        (scene.place(f"robots-{name}").here, scene.site.ports.plain) for name in ("redirect-loop", "reset", "cut")
    )
    often = {where: count for where, count in times.items() if count > 1 and where != loop}
    assert often == dict.fromkeys(broken_off, 2)
    assert times[loop] <= 6


def test_every_request_says_who_asks(scene: Scene) -> None:
    for request in scene.requests:
        agent = request.header("user-agent") or ""
        assert agent.startswith("linkcrawl/"), request
        assert SETTINGS["LINKCRAWL_CONTACT"] in agent, request
        assert request.header("from") == "ops@example.org", request
        accepted = (request.header("accept") or "").split(",")
        assert (accepted[0], accepted[-1]) == ("text/html", "*/*;q=0.8"), "as browsers say it"
        assert len([name for name, _ in request.headers if name.lower() in {"user-agent", "from", "host"}]) == 3


def test_nothing_secret_is_sent(scene: Scene) -> None:
    everything = json.dumps([(request.target, request.headers) for request in scene.requests])
    assert "secret=1" not in everything, "a cookie of one host came to another"
    assert "u:secret" not in everything
    assert "Authorization" not in everything
    assert "Referer" not in everything


def test_the_delay_is_kept(scene: Scene) -> None:
    """From the start of one request to the start of the next."""
    assert too_close(scene.requests, float(SETTINGS["DOWNLOAD_DELAY"])) == []
    assert len(successive(scene.requests)) > 200


def test_crawl_delay_is_kept(scene: Scene) -> None:
    times = [r.started for r in scene.requests if r.host == scene.place("robots-delay").here]
    assert len(times) == 2
    assert times[1] - times[0] >= 1.0 - LATE


def test_one_request_at_a_time(scene: Scene) -> None:
    assert overlapping(scene.requests) == []


def test_memory_is_bounded(scene: Scene) -> None:
    assert scene.crawl.peak < MEMORY


def test_time_is_bounded(scene: Scene) -> None:
    """No link takes longer than its requests may: two chains of eleven, each with its delay and time limit."""
    assert scene.crawl.seconds < 60
