"""What workers share besides gates: limits of collections, gates of groups, seeds that are pushed, and what a cluster
refuses."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.contract.mongodb import looking_at
from tests.crawl.cluster_kit import Cluster, holders, running_cluster, running_redis
from tests.crawl.harness import LIMIT, Crawler, environment, until
from tests.crawl.measures import LATE, pages
from tests.site.client import RunningSite, running_site
from tests.site.crowds import RESOLVER, healthy

POLICIES = """
[[policy]]
name = "collection"
collections = ["slow"]
delay = 0.5

[[policy]]
name = "group"
hosts = ["127.31.8.*", "127.31.9.*", "127.31.10.*", "127.31.11.*"]
delay = 0.4
group = true
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[RunningSite]:
    with running_site(tmp_path, hosts=12, after=0.02) as site:
        yield site


def test_limits_and_groups_hold_over_all_workers(tmp_path: Path, site: RunningSite) -> None:
    policies = tmp_path / "policies.toml"
    policies.write_text(POLICIES)
    slow = [
        {"url": site.url(healthy(host), f"/slow{page}"), "collection": "slow"} for host in range(8) for page in (1, 2)
    ]
    grouped = [{"url": site.url(healthy(host), f"/{page}")} for host in range(8, 12) for page in range(6)]
    with running_cluster(tmp_path, LINKCRAWL_POLICIES=str(policies)) as cluster:
        cluster.seed([*slow, *grouped])
        workers = [cluster.start(), cluster.start()]
        cluster.end(*workers)
        requests = site.requests()
        cluster.judge([seed["url"] for seed in [*slow, *grouped]], requests)
    asked = [request for request in pages(requests) if "slow" in request.target]
    # Over connections of their own a busy server may see the earlier one late. As they were sent, the audit judges.
    assert min(later.started - first.started for first, later in pairwise(asked)) > 0.5 / 2
    group = [request for request in requests if request.host.split(".")[2] in ("8", "9", "10", "11")]
    assert min(later.started - first.started for first, later in pairwise(group)) > 0.4 - LATE


MIXED = """
[[policy]]
name = "mixed"
hosts = ["127.31.0.*", "127.31.1.*"]
collections = ["mixed"]
delay = 0.3
group = true
"""


def test_a_group_of_hosts_and_collections_keeps_one_delay_over_all_workers(tmp_path: Path) -> None:
    """Checks of the collection, and every request to the hosts, robots.txt and hops included."""
    policies = tmp_path / "policies.toml"
    policies.write_text(MIXED)
    with (
        running_site(tmp_path, hosts=8, after=0.02, pages=16) as site,
        running_cluster(tmp_path, LINKCRAWL_POLICIES=str(policies), DOWNLOAD_DELAY="0.1") as cluster,
    ):
        its_hosts = [{"url": site.url(healthy(host), f"/own{page}")} for host in (0, 1) for page in range(6)]
        checks = [
            {"url": site.url(healthy(host), f"/{page}"), "collection": "mixed"}
            for host in range(2, 8)
            for page in (100, 101)
        ]
        hops = [{"url": site.url(RESOLVER, f"/{page}")} for page in range(16)]
        seeds = [*its_hosts, *checks, *hops]
        cluster.seed(seeds)
        cluster.end(*[cluster.start() for _ in range(3)])
        requests = site.requests()
        cluster.judge([seed["url"] for seed in seeds], requests, delay=0.1)
    spaced = [line for line in cluster.audited() if line.limits]
    group = {healthy(host) for host in (0, 1)}
    to_hosts = [line for line in spaced if line.host.rpartition(":")[0] in group]
    assert len(to_hosts) == sum(request.host in group for request in requests) > len(its_hosts) + 2
    assert len(spaced) - len(to_hosts) == len(checks)
    starts = sorted(line.sent for line in spaced)
    assert min(later - first for first, later in pairwise(starts)) > 0.299


def test_gates_that_change_hands_with_checks_in_them_keep_all_their_links(tmp_path: Path) -> None:
    """Workers that begin one after the other give each other gates whose first checks wait for robots.txt: these go
    on elsewhere, and who takes the gate for them only knows nothing of its other links."""
    hosts, each = 250, 8
    quick = {"DOWNLOAD_DELAY": "0", "AUTOTHROTTLE_TARGET_CONCURRENCY": "1000", "CONCURRENT_REQUESTS": "32"}
    with (
        running_site(tmp_path, hosts=hosts, after=0.1) as site,
        running_cluster(tmp_path, **quick, LINKCRAWL_LEASE="15") as cluster,
    ):
        urls = [site.url(healthy(host), f"/{page}") for host in range(hosts) for page in range(each)]
        cluster.seed(urls)
        cluster.end(*[cluster.start() for _ in range(3)])
        cluster.judge(urls, site.requests(), delay=0.0)


def test_pushed_seeds_are_taken_up_while_workers_run(tmp_path: Path, site: RunningSite) -> None:
    urls = [site.url(healthy(host), f"/{page}") for host in range(4) for page in range(2)]
    with running_cluster(tmp_path) as cluster:
        workers = [cluster.start("-a", "continuous=1"), cluster.start("-a", "continuous=1")]
        client = cluster.redis.client
        until(lambda: cluster.redis.client.exists("{linkcrawl}:generation"), "they have joined")
        pushed = [json.dumps({"url": url, "collection": "pushed"}) if n % 2 else url for n, url in enumerate(urls)]
        client.lpush("resourceproxies:start_urls", *pushed, "no address at all", '{"url": 7}')
        until(lambda: len(cluster.kept()) == len(urls), "all of them are checked")
        assert client.llen("resourceproxies:start_urls") == 0
        until(lambda: client.llen("resourceproxies:rejects") == 2, "the rejects are told")
        assert {json.loads(row)["text"] for row in client.lrange("resourceproxies:rejects", 0, -1)} == {
            "no address at all",
            '{"url": 7}',
        }
        for worker in workers:
            worker.signal(signal.SIGINT)
        assert [worker.wait().status for worker in workers] == [130, 130]
        cluster.judge(urls, site.requests())
        assert holders(cluster.redis) == {}


def hosts(cluster: Cluster, *arguments: str) -> str:
    told = cluster.crawler("seeding").tell("hosts", *arguments)
    assert told.status == 0, told.stderr
    return told.stdout


def test_hosts_shows_workers_and_who_leases_what(tmp_path: Path, site: RunningSite) -> None:
    urls = [site.url(healthy(host), f"/{page}") for host in range(12) for page in range(200)]
    with running_cluster(tmp_path) as cluster:
        cluster.seed(urls)
        workers = [cluster.start(), cluster.start()]
        until(lambda: len(holders(cluster.redis)) == 2, "both lease gates")
        names = {f"{socket.gethostname()}:{worker.process.pid}" for worker in workers}
        rows = json.loads(hosts(cluster, "list", "--format", "json"))
        told = hosts(cluster, "list")
        shown = hosts(cluster, "show", rows[0]["host"])
    assert {row["leased_by"] for row in rows} - {None} <= names
    assert sum(row["leased_by"] is not None for row in rows) >= 6  # some may be changing hands
    assert all(name in told for name in names)
    assert "leased by" in shown


def crawl(folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    command = Crawler(folder=folder).command("crawl", "resourceproxies", settings=settings)
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=LIMIT)


def test_sqlite_is_refused(tmp_path: Path) -> None:
    ended = crawl(tmp_path, LINKCRAWL_FRONTIER="redis://127.0.0.1:1/0")
    assert ended.returncode == 2
    assert "LINKCRAWL_STORE" in ended.stderr
    assert "mongodb://HOST:PORT/DB would work" in ended.stderr


@pytest.mark.parametrize("url", ["redis://127.0.0.1:1/0", "http://127.0.0.1/", "redis", "redis://127.0.0.1:1/x"])
def test_a_redis_that_is_none_is_refused(tmp_path: Path, url: str) -> None:
    store = os.environ.get("TEST_MONGODB_URL", "mongodb://127.0.0.1:1") + "/linkcrawl_test_refused"
    ended = crawl(tmp_path, LINKCRAWL_FRONTIER=url, LINKCRAWL_STORE=store)
    assert ended.returncode == 2
    assert ended.stderr.startswith("linkcrawl: LINKCRAWL_FRONTIER: ")
    assert ended.stderr.count("\n") == 1


def test_a_crawl_alone_and_a_cluster_exclude_each_other(tmp_path: Path, site: RunningSite) -> None:
    with running_cluster(tmp_path) as cluster:
        cluster.start("-a", "continuous=1")
        with looking_at(cluster.store) as seen:
            until(lambda: seen["meta"].find_one({"_id": "claim"}), "it has claimed the store")
        alone = crawl(tmp_path, LINKCRAWL_STORE=cluster.store)
        assert alone.returncode == 2
        assert "another crawl" in alone.stderr


def test_the_redis_of_a_test_comes_back_with_its_data(tmp_path: Path) -> None:
    with running_redis(tmp_path) as server:
        server.client.set("kept", "1")
        server.stop(keep=True)
        server.start()
        assert server.client.get("kept") == "1"
        server.stop()
        server.start()
        assert server.client.get("kept") is None
