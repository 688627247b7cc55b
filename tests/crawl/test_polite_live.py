"""What people do to a running crawl: an edited policy, a block, a look; each acts within five seconds."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from itertools import pairwise

import pytest
from attrs import frozen

from tests.crawl.harness import Crawl, Crawler, until
from tests.crawl.measures import LATE, by_host, overlapping, pages
from tests.crawl.test_polite_manners import command
from tests.site.client import Request, RunningSite, running_site
from tests.site.crowds import healthy
from tests.site.manners import where

#: Seconds within which an edit or an order acts (the contract's), and seconds that are looked at after that.
ACTS, LOOKED = 5.0, 5.0

#: A collection is paused at first.
BEFORE = '[[policy]]\nname = "later"\ncollections = ["later"]\npaused = true\n'
#: Then it may go, one host is slowed down, and another comes to a group while a request to it hangs.
EDITED = """
[[policy]]
name = "slower"
hosts = ["{edited}"]
delay = 2.0

[[policy]]
name = "grouped"
hosts = ["{hanging}"]
group = true
"""


@frozen(kw_only=True)
class Scene:
    """A crawl during which things were done, and when: Unix seconds."""

    crawl: Crawl
    hosts: dict[str, list[Request]]
    seen_in_flight: list[dict[str, object]]
    seen_blocked: dict[str, object]
    told: str
    edited_at: float
    changed_at: float
    undoing_at: float
    undone_at: float
    ended_at: float

    def between(self, name: str, start: float, end: float) -> list[Request]:
        return [request for request in pages(self.hosts[where(name)]) if start <= request.started < end]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("live")
    policies = folder / "policies.toml"
    policies.write_text(BEFORE)
    settings = {"LINKCRAWL_POLICIES": "policies.toml", "LINKCRAWL_TIMEOUT": "60"}
    crawler = Crawler(folder=folder, settings=settings)
    with running_site(folder, table="manners") as site:
        names = ["edited"] * 200 + ["ordered"] * 200 + ["hanging"] * 3
        links = [{"url": site.url(where(name), f"/{number}")} for number, name in enumerate(names)]
        links += [{"url": site.url(where("eleven"), f"/{number}"), "collection": "later"} for number in range(3)]
        with crawler.running("-a", f"seeds={crawler.seeds(links)}") as running:
            until(lambda: asked(site, "edited") and asked(site, "ordered"), "both are asked")
            until(lambda: shown(crawler, site, "hanging")["state"] == "in flight", "what hangs is seen")
            in_flight = json.loads(command(crawler, "hosts", "list", "--format", "json").stdout)
            ordered = f"{where('ordered')}:{site.ports.plain}"
            edited_at = time.time()
            policies.write_text(EDITED.format(edited=where("edited"), hanging=where("hanging")))
            told = command(crawler, "hosts", "block", ordered, "--reason", "asked by mail").stdout
            changed_at = time.time()
            time.sleep(ACTS + LOOKED)
            blocked = shown(crawler, site, "ordered")
            policies.write_text("[[policy]]\nname = 'half of a ru")
            undoing_at = time.time()  # the order acts from some moment within the command on
            assert "obeyed all the same" in command(crawler, "hosts", "unblock", ordered).stderr
            undone_at = time.time()
            time.sleep(ACTS + LOOKED)
            ended_at = time.time()
            running.signal(signal.SIGTERM)
            time.sleep(0.5)
            running.signal(signal.SIGTERM)  # the hanging request would be waited for
            crawl = running.wait()
        yield Scene(
            crawl=crawl,
            hosts=by_host(site.requests()),
            seen_in_flight=in_flight,
            seen_blocked=blocked,
            told=told,
            edited_at=edited_at,
            changed_at=changed_at,
            undoing_at=undoing_at,
            undone_at=undone_at,
            ended_at=ended_at,
        )


def asked(site: RunningSite, name: str) -> bool:
    return len([request for request in pages(site.requests()) if request.host == where(name)]) > 5


def shown(crawler: Crawler, site: RunningSite, name: str) -> dict[str, object]:
    told = command(crawler, "hosts", "show", site.url(where(name)), "--format", "json")
    host: dict[str, object] = json.loads(told.stdout)
    return host


def test_an_edited_policy_acts(scene: Scene) -> None:
    mine = scene.between("edited", scene.changed_at + ACTS, scene.ended_at)
    assert len(mine) >= 4
    assert min(second.started - first.started for first, second in pairwise(mine)) >= 2.0 - LATE
    assert len(scene.between("edited", 0, scene.changed_at)) > 5, "it went quicker before"


def test_what_a_policy_paused_goes_when_it_is_edited(scene: Scene) -> None:
    assert scene.between("eleven", 0, scene.edited_at) == []
    assert len(scene.between("eleven", scene.edited_at, scene.changed_at + ACTS)) == 3


def test_a_broken_policy_file_changes_nothing_and_is_told(scene: Scene) -> None:
    assert len(scene.between("edited", scene.undone_at + ACTS, scene.ended_at)) <= LOOKED / 2.0 + 1
    assert "The old policies stay in force: policies.toml: not TOML" in scene.crawl.stderr


def test_a_block_acts_and_an_unblock_too(scene: Scene) -> None:
    assert "within 5 seconds" in scene.told
    assert scene.between("ordered", scene.changed_at + ACTS, scene.undoing_at) == []
    assert len(scene.between("ordered", scene.undone_at, scene.ended_at)) >= LOOKED / 0.3 / 2


def test_hosts_shows_what_is_in_flight_and_what_is_blocked(scene: Scene) -> None:
    by_name = {str(host["host"]).partition(":")[0]: host for host in scene.seen_in_flight}
    assert by_name[where("hanging")]["state"] == "in flight"
    assert by_name[where("hanging")]["due"] == 3
    assert by_name[where("edited")]["state"] in {"ready", "waiting", "in flight"}
    assert scene.seen_blocked["state"] == "blocked"
    assert scene.seen_blocked["why"] == "blocked: asked by mail"
    assert scene.seen_blocked["wake"] is None


def test_a_host_that_comes_to_a_group_still_has_one_request_in_flight(scene: Scene) -> None:
    mine = pages(scene.hosts[where("hanging")])
    assert mine[0].ended > scene.changed_at + ACTS
    assert overlapping(mine) == []


def test_the_crawl_was_not_disturbed(scene: Scene) -> None:
    assert scene.crawl.status == 130
    assert "Traceback" not in scene.crawl.stderr


def test_what_a_host_asked_for_outlives_kill_9(crawler: Crawler) -> None:
    """Crawl-delay, a long Retry-After and robots.txt are remembered; every gate first waits one full delay."""
    with running_site(crawler.folder, table="manners") as site:
        names = ["crawl-delay"] * 9 + ["retry-long"] * 4
        seeds = crawler.seeds(site.url(where(name), f"/{number}") for number, name in enumerate(names))
        with crawler.running("-a", f"seeds={seeds}") as running:
            until(lambda: len([r for r in site.requests() if r.host == where("crawl-delay")]) >= 4, "it is asked")
            time.sleep(3.0)  # what is remembered of hosts is stored every four seconds
            running.kill()
        again_at = time.time()
        crawl = crawler.run()
        hosts = by_host(site.requests())
    assert crawl.status == 0
    slow, silenced = hosts[where("crawl-delay")], hosts[where("retry-long")]
    first_again = next(request for request in slow if request.started > again_at)
    assert first_again.started >= again_at + 1.5
    assert first_again.target != "/robots.txt"
    spaced = [request.started for request in pages(slow)]
    assert min(second - first for first, second in pairwise(spaced)) >= 1.5 - LATE
    refused, *later = pages(silenced)
    assert later[0].started >= refused.started + 14.0 - LATE
    assert crawler.books().never_checked == 0


def test_a_robots_ttl_shorter_than_every_delay_does_not_loop(crawler: Crawler) -> None:
    (crawler.folder / "policies.toml").write_text('[[policy]]\nname = "c"\ncollections = ["c"]\ndelay = 1.4\n')
    settings = {"LINKCRAWL_POLICIES": "policies.toml", "LINKCRAWL_ROBOTS_TTL": "1", "DOWNLOAD_DELAY": "1.2"}
    with running_site(crawler.folder, table="manners") as site:
        links = [{"url": site.url(where("fifty"), f"/{number}"), "collection": "c"} for number in range(3)]
        links += [{"url": site.url(where("edited"), f"/{number}"), "collection": "d"} for number in range(2)]
        crawl = crawler.run("-a", f"seeds={crawler.seeds(links)}", settings=settings)
        asked = [request.target for request in by_host(site.requests())[where("fifty")]]
    assert {record["reason"] for record in crawl.records} == {"ok"}
    assert len(crawl.records) == 5
    assert asked == ["/robots.txt", "/0"] * 1 + ["/robots.txt", "/1", "/robots.txt", "/2"]


def test_a_robots_txt_that_was_there_is_waited_for(crawler: Crawler) -> None:
    """A server that is started anew costs its links nothing but time; one that stays away gets them their reason."""
    settings = {"LINKCRAWL_ROBOTS_TTL": "1", "DOWNLOAD_DELAY": "0.3", "LINKCRAWL_PATIENCE": "4"}
    back, gone = where("rules-come-back"), where("rules-go-away")
    with running_site(crawler.folder, table="manners") as site:
        seeds = crawler.seeds(site.url(host, f"/{page}") for host in (back, gone) for page in range(6))
        crawl = crawler.run("-a", f"seeds={seeds}", settings=settings)
        hosts = by_host(site.requests())
        reasons = {
            host: [crawl.record(site.url(host, f"/{page}"))["reason"] for page in range(6)] for host in (back, gone)
        }
    assert crawl.status == 0
    assert reasons[back] == ["ok"] * 5 + ["robots_disallowed"]
    for host in (back, gone):
        asked = [request.target for request in hosts[host]]
        away = asked.index("/robots.txt", 1)
        tries = 5 if host == back else 4  # the first file, and what came after it until it was there or given up
        assert asked[away : away + tries - 1] == ["/robots.txt"] * (tries - 1)
        pauses = [later.started - one.started for one, later in pairwise(hosts[host][away : away + tries - 1])]
        assert max(pauses) >= 2.0 - LATE, "half of LINKCRAWL_PATIENCE"
    assert set(reasons[gone]) == {"ok", "robots_unreachable"}


@pytest.mark.parametrize("grouped", [False, True])
def test_a_robots_txt_that_is_kept_elsewhere_holds_up_its_own_host_only(crawler: Crawler, grouped: bool) -> None:
    """However many links its host has, and however long the other host takes: others are asked meanwhile."""
    away, keeper, other = where("rules-elsewhere"), where("rules"), where("eleven")
    group = f'[[policy]]\nname = "g"\nhosts = ["{away}", "{other}"]\ngroup = true\n' if grouped else ""
    (crawler.folder / "policies.toml").write_text(f'[[policy]]\nname = "k"\nhosts = ["{keeper}"]\ndelay = 8\n{group}')
    settings = {"LINKCRAWL_POLICIES": "policies.toml", "LINKCRAWL_MAX_WAITING": "10", "DOWNLOAD_DELAY": "0.05"}
    with running_site(crawler.folder, table="manners") as site:
        links = [site.url(keeper, "/0"), *(site.url(away, f"/{page}") for page in range(60))]
        links += [site.url(other, f"/{page}") for page in range(30)]
        crawl = crawler.run("-a", f"seeds={crawler.seeds(links)}", settings=settings)
        hosts = by_host(site.requests())
    assert crawl.status == 0
    assert {record["url"] for record in crawl.records} == set(links)
    rules_at = next(request.started for request in hosts[keeper] if request.target == "/rules.txt")
    assert max(request.started for request in hosts[other]) < rules_at
    assert min(request.started for request in pages(hosts[away])) > rules_at


def test_hops_that_wait_for_a_silent_host_hold_up_no_other(crawler: Crawler) -> None:
    """More of them than may be held in memory; and the crawl does not end for them while others have links."""
    resolver, other = where("resolver"), where("eleven")
    settings = {"LINKCRAWL_MAX_WAITING": "10", "DOWNLOAD_DELAY": "0.05", "LINKCRAWL_PATIENCE": "5"}
    with running_site(crawler.folder, table="manners") as site:
        links = [site.url(resolver, f"/{page}") for page in range(60)]
        links += [site.url(other, f"/{page}") for page in range(100)]
        crawl = crawler.run("-a", f"seeds={crawler.seeds(links)}", settings=settings)
        hosts = by_host(site.requests())
    assert crawl.status == 0
    assert {record["url"] for record in crawl.records} >= set(links[60:])
    assert len(pages(hosts[where("silent")])) == 1
    assert crawler.books().due == 160 - len(crawl.records)


def test_hosts_that_keep_each_others_robots_txt(crawler: Crawler) -> None:
    with running_site(crawler.folder, hosts=2, after=0.01, crossed=True) as site:
        links = [site.url(healthy(host), f"/{page}") for host in range(2) for page in range(5)]
        crawl = crawler.run("-a", f"seeds={crawler.seeds(links)}", settings={"LINKCRAWL_ROBOTS_TTL": "1"})
    assert crawl.status == 0
    assert {record["url"]: record["reason"] for record in crawl.records} == dict.fromkeys(links, "ok")
