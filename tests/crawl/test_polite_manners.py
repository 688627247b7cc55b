"""One crawl over hosts that ask for all sorts of manners; the server's log is the judge of each.

A gap is measured at the server from start to start, less what a busy machine reads late: see measures.too_close.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise

import pytest
from attrs import frozen

from linkcrawl.audit.verify import AuditVerifier, read_lines
from tests.crawl.harness import SETTINGS, Crawl, Crawler, Told
from tests.crawl.measures import LATE, ROUNDED, by_host, overlapping, pages, sent, smallest
from tests.site.client import Request, RunningSite, running_site
from tests.site.manners import BASE, CAPACITY, GROUPED, SPREAD, WELL, degraded, grouped, spread, where

POLICIES = """
[[policy]]
name = "museum"
hosts = ["127.62.*"]
delay = 0.25
group = true

[[policy]]
name = "north"
collections = ["north *"]
delay = 0.6
group = true

[[policy]]
name = "as agreed"
hosts = ["{agreed}"]
crawl_delay = 0.5
agreement = "2026-11-02 mail from its administrator"

[[policy]]
name = "not now"
hosts = ["{paused}"]
paused = true

[[policy]]
name = "at night"
hosts = ["{quiet}"]
quiet = ["daily 00:00-24:00 UTC"]

[[policy]]
name = "no images"
hosts = ["{skip}"]
skip = ["*/iiif/*"]

[[policy]]
name = "papers"
hosts = ["{expensive}"]
expensive = {{ "*.pdf" = 5 }}

[[policy]]
name = "small"
hosts = ["{few}"]
max_per_day = 3

[[policy]]
name = "liars"
hosts = ["{get}"]
method = "GET"

[[policy]]
name = "quick"
hosts = ["{fifty}", "{ban}", "{degrading}"]
delay = 0.1
"""

DELAY = float(SETTINGS["DOWNLOAD_DELAY"])
SIGNALS = ["retry-seconds", "retry-date", "retry-redirect", "ratelimit", "ratelimit-left", "retry-malformed"]
SIGNALS += ["retry-past", "overloaded", "status-420", "status-430", "status-509", "status-529"]


def _seeds(site: RunningSite) -> list[dict[str, str]]:
    def links(name: str, *paths: str, collection: str = "c") -> list[dict[str, str]]:
        return [{"url": site.url(where(name), path), "collection": collection} for path in paths]

    def numbered(name: str, count: int) -> list[dict[str, str]]:
        return links(name, *(f"/{number}" for number in range(count)))

    eleven = [link for number in range(11) for link in links("eleven", f"/{number}", collection=f"of {number}")]
    group = [{"url": site.url(grouped(number), "/page"), "collection": "m"} for number in range(GROUPED)]
    north = [
        {"url": site.url(spread(number), f"/{page}"), "collection": f"north {page % 2}"}
        for number in range(SPREAD)
        for page in range(3)
    ]
    return [
        *eleven,
        *group,
        *north,
        *numbered("crawl-delay", 4),
        *numbered("request-rate", 4),
        *numbered("agreed", 5),
        *numbered("paused", 2),
        *numbered("quiet", 2),
        *links("skip", "/a", "/iiif/1", "/b", "/IIIF/2?x=1"),
        *links("expensive", "/a.pdf", "/b.PDF?download=1", "/c.pdf"),
        *numbered("few-a-day", 5),
        *numbered("get", 2),
        *(link for name in SIGNALS for link in numbered(name, 3)),
        *numbered("challenge", 3),
        *numbered("fifty", 50),
        *numbered("ban", 30),
        *numbered("degrading", 25),
        *links("rules-elsewhere", "/a", "/x1"),
        *numbered("rules", 8),
    ]


@frozen(kw_only=True)
class Scene:
    """What is left of the crawl: its records, and the server's log by address."""

    site: RunningSite
    crawler: Crawler
    crawl: Crawl
    requests: list[Request]
    hosts: dict[str, list[Request]]

    def at(self, name: str) -> list[Request]:
        """What a host was asked, robots.txt first."""
        return self.hosts.get(where(name), [])

    def records(self, name: str) -> dict[str, str]:
        """Reasons of a host's links by path."""
        start = self.site.url(where(name), "")
        return {
            record["url"].removeprefix(start): record["reason"]
            for record in self.crawl.records
            if record["url"].startswith(start)
        }

    def due(self, name: str) -> int:
        """Links of a host that are due after the crawl, by `scrapy hosts`."""
        return int(self.shown(name)["due"])  # type: ignore[call-overload]

    def shown(self, name: str) -> dict[str, object]:
        told = command(self.crawler, "hosts", "show", self.site.url(where(name)), "--format", "json")
        shown: dict[str, object] = json.loads(told.stdout)
        return shown


def command(crawler: Crawler, *arguments: str, status: int = 0) -> Told:
    """A command in the folder of the crawl; its exit status must be as said."""
    told = crawler.tell(*arguments)
    assert told.status == status, told.stderr
    return told


def gaps(requests: list[Request]) -> list[float]:
    """Seconds from the start of each request to the start of the next."""
    return [second.started - first.started for first, second in pairwise(requests)]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("manners")
    names = {name.partition("-")[0]: where(name) for name in ("agreed", "paused", "quiet", "skip", "expensive")}
    names |= {"few": where("few-a-day"), "get": where("get"), "fifty": where("fifty")}
    names |= {"ban": where("ban"), "degrading": where("degrading")}
    (folder / "policies.toml").write_text(POLICIES.format(**names))
    settings = {"LINKCRAWL_POLICIES": "policies.toml", "AUTOTHROTTLE_MAX_DELAY": "5", "LINKCRAWL_PATIENCE": "10"}
    with running_site(folder, table="manners") as site:
        crawler = Crawler(folder=folder, settings=settings)
        crawl = crawler.run("-a", f"seeds={crawler.seeds(_seeds(site))}")
        requests = site.requests()
        yield Scene(site=site, crawler=crawler, crawl=crawl, requests=requests, hosts=by_host(requests))


def test_the_crawl_ends_by_itself(scene: Scene) -> None:
    assert scene.crawl.status == 0
    assert "Traceback" not in scene.crawl.stderr


def test_no_gap_of_any_host_is_below_its_floor(scene: Scene) -> None:
    quick = {where(name) for name in ("fifty", "ban", "degrading")}
    for address, mine in scene.hosts.items():
        floor = 0.1 if address in quick else 0.25 if address.startswith("127.62.") else DELAY
        assert min(gaps(mine), default=1.0) >= floor - LATE, address
    assert overlapping(scene.requests) == []


def test_forty_hosts_of_a_group_share_one_delay(scene: Scene) -> None:
    mine = [request for request in scene.requests if request.host.startswith("127.62.")]
    assert len(mine) == 2 * GROUPED
    assert min(gaps(mine)) >= 0.25 - LATE


def test_eleven_collections_on_one_host_share_its_delay(scene: Scene) -> None:
    mine = scene.at("eleven")
    assert len(pages(mine)) == 11
    assert min(gaps(mine)) >= DELAY - LATE


def test_a_clock_of_collections_spaces_checks_over_all_their_hosts(scene: Scene) -> None:
    """Two collections under one group rule: one limit, from start to start of two checks, as they were sent. They go
    over connections of their own, so that a busy server may see the earlier one late: it sees half of the delay."""
    mine = [request for request in pages(scene.requests) if request.host.startswith("127.63.")]
    told = sent(scene.crawler, lambda line: bool(line.limits))
    assert len(mine) == len(told) == 3 * SPREAD
    assert smallest(told) >= 0.6 - ROUNDED
    assert all(moment <= request.started + ROUNDED for moment, request in zip(told, mine, strict=True))
    assert min(gaps(mine)) >= 0.6 / 2


@pytest.mark.parametrize(
    ("name", "delay"), [("crawl-delay", 1.5), ("request-rate", 1.0), ("agreed", 0.5), ("expensive", 5 * DELAY)]
)
def test_what_was_asked_for_is_kept(scene: Scene, name: str, delay: float) -> None:
    mine = pages(scene.at(name))
    assert len(mine) >= 3
    assert min(gaps(mine)) >= delay - LATE


def test_an_agreement_stands_in_place_of_crawl_delay(scene: Scene) -> None:
    assert max(gaps(pages(scene.at("agreed")))) < 10, "robots.txt asks for thirty seconds"


@pytest.mark.parametrize(("name", "links"), [("paused", 2), ("quiet", 2)])
def test_what_is_not_to_be_asked_now_stays_due_without_a_record(scene: Scene, name: str, links: int) -> None:
    assert scene.at(name) == []
    assert scene.records(name) == {}
    assert scene.due(name) == links


def test_skipped_urls_are_recorded_and_not_asked(scene: Scene) -> None:
    assert scene.records("skip") == {
        "/a": "ok",
        "/b": "ok",
        "/iiif/1": "skipped_by_policy",
        "/IIIF/2?x=1": "skipped_by_policy",
    }
    assert {request.target for request in pages(scene.at("skip"))} == {"/a", "/b"}


def test_no_more_than_so_many_a_day(scene: Scene) -> None:
    assert len(scene.at("few-a-day")) == 3
    assert len(scene.records("few-a-day")) == 2
    assert scene.due("few-a-day") == 3


def test_the_method_is_the_policys(scene: Scene) -> None:
    assert {request.method for request in pages(scene.at("get"))} == {"GET"}


@pytest.mark.parametrize(
    ("name", "after", "least"),
    [
        ("retry-seconds", 0, 3.0),
        ("retry-date", 0, 3.0),
        ("retry-redirect", 0, 3.0),
        ("ratelimit", 0, 3.0),
        ("overloaded", 0, 1.0),
        ("retry-malformed", 0, 1.0),
        ("retry-past", 0, 1.0),
        ("status-420", 0, 1.0),
        ("status-430", 0, 1.0),
        ("status-509", 0, 1.0),
        ("status-529", 0, 1.0),
    ],
)
def test_a_server_that_asks_for_quiet_gets_it(scene: Scene, name: str, after: int, least: float) -> None:
    """`least`: what it asked for, or a back-off, which is a second at least."""
    mine = pages(scene.at(name))
    assert gaps(mine)[after] >= least - LATE
    assert not {"Broken"} & {r["category"] for r in scene.crawl.records if where(name) in r["url"]}


def test_a_quota_that_is_not_spent_asks_for_nothing(scene: Scene) -> None:
    """It would be three seconds."""
    assert max(gaps(pages(scene.at("ratelimit-left")))) < 3.0


def test_a_challenge_is_not_broken_and_not_tried_again(scene: Scene) -> None:
    assert set(scene.records("challenge").values()) == {"bot_challenge"}


def test_robots_txt_is_fetched_once_however_many_wait(scene: Scene) -> None:
    assert [request.target for request in scene.at("fifty")].count("/robots.txt") == 1
    assert len(pages(scene.at("fifty"))) == 50


def test_a_robots_redirect_is_paced_at_its_target_and_holds_for_its_origin(scene: Scene) -> None:
    assert "/rules.txt" in [request.target for request in scene.at("rules")]
    assert min(gaps(scene.at("rules"))) >= DELAY - LATE
    assert scene.records("rules-elsewhere") == {"/a": "ok", "/x1": "robots_disallowed"}


def test_robots_requests_say_who_asks_too(scene: Scene) -> None:
    asked = [request for request in scene.requests if request.target in {"/robots.txt", "/rules.txt"}]
    assert len(asked) > GROUPED
    for request in scene.requests:
        agent = request.header("user-agent") or ""
        assert agent.startswith("linkcrawl/"), request
        assert SETTINGS["LINKCRAWL_CONTACT"] in agent, request
        assert request.header("from") == "ops@example.org", request


def test_a_server_that_bends_under_load_is_kept_near_its_best(scene: Scene) -> None:
    """Asked at the floor of 0.1 s it would take seconds for an answer. What it takes is reckoned from when it was
    asked: a busy machine adds to that."""
    asked = [request.started for request in pages(scene.at("degrading"))]
    took = list(degraded(asked, BASE, CAPACITY))
    assert len(took) == 25
    assert sorted(took)[len(took) // 2] <= 2 * BASE
    assert max(took) <= 3 * BASE


def test_a_ban_condemns_no_link(scene: Scene) -> None:
    assert "Broken" not in {record["category"] for record in scene.crawl.records}
    kept = [record for record in scene.crawler.kept() if where("ban") in record["url"]]
    reasons = {record["reason"] for record in kept}
    assert reasons == {"ok", "host_blocked"}
    assert {record["category"] for record in kept if record["reason"] == "host_blocked"} == {"Undetermined"}
    assert sum(record["reason"] == "ok" for record in kept) == WELL
    assert scene.due("ban") == 30 - WELL
    asked = len(pages(scene.at("ban")))
    assert asked <= WELL + 10, "eight of ten refusals are enough"


def test_hosts_tells_of_the_ban(scene: Scene) -> None:
    shown = scene.shown("ban")
    assert shown["state"] == "blocked"
    assert "turned us away" in str(shown["why"])
    listed = command(scene.crawler, "hosts", "list").stdout.splitlines()
    (line,) = [line for line in listed if line.startswith(f"{where('ban')}:")]
    assert "blocked" in line.split()


def test_after_unblock_the_banned_links_are_checked(scene: Scene) -> None:
    """The server has relented meanwhile. Runs last: it crawls again."""
    host = f"{where('ban')}:{scene.site.ports.plain}"
    stays = scene.crawler.run("-a", f"host={host}")
    assert stays.records == []
    assert scene.due("ban") == 30 - WELL
    told = command(scene.crawler, "hosts", "unblock", host)
    assert "is open again" in told.stdout
    again = scene.crawler.run("-a", f"host={host}")
    assert "Broken" not in {record["category"] for record in again.records}
    assert {record["reason"] for record in again.records} <= {"ok", "http_403"}


def test_the_audit_proves_it(scene: Scene) -> None:
    told = command(scene.crawler, "audit", "--rules", "--format", "json")
    scopes = json.loads(told.stdout)
    assert {scope["kind"] for scope in scopes} == {"host", "gate", "limit", "host quota", "gate quota"}
    assert sum(scope["violations"] for scope in scopes) == 0
    proof = AuditVerifier()
    lines = list(read_lines([scene.crawler.folder / "audit.jsonl"]))
    for line in lines:
        proof.add(line)
    assert {scope.name: scope.requests for scope in proof.scopes() if scope.kind == "gate"} == {
        "policy museum": 2 * GROUPED
    }
    assert len(lines) >= len(scene.requests)
    # What servers ask for by themselves is held against the times as delays are.
    for name, seconds in (("retry-seconds", 3), ("retry-date", 3), ("ratelimit", 3)):
        assert max(line.required for line in lines if line.host.startswith(f"{where(name)}:")) >= seconds - 0.01, name
    assert "Retry-After or RateLimit" in {line.origin for line in lines}  # of some the back-off may be longer
