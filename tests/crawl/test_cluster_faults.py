"""Several workers as one polite crawler, whatever befalls them: every link recorded once, no gap undercut over all of
them together. The judges are the server's log, the store, and the audit of all workers' own logs."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.crawl.cluster_kit import LEASE, Cluster, holders, running_cluster
from tests.crawl.harness import until
from tests.crawl.measures import pages
from tests.site.client import RunningSite, running_site
from tests.site.crowds import RESOLVER, healthy

HOSTS, LINKS = 12, 18


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with running_cluster(tmp_path) as cluster:
        yield cluster


@pytest.fixture
def site(tmp_path: Path) -> Iterator[RunningSite]:
    with running_site(tmp_path, hosts=HOSTS, after=0.02) as site:
        yield site


def links(site: RunningSite, hosts: int = HOSTS, each: int = LINKS) -> list[str]:
    return [site.url(healthy(host), f"/{page}") for host in range(hosts) for page in range(each)]


def at_work(cluster: Cluster, site: RunningSite, urls: list[str], workers: int = 2, **faults: float) -> None:
    """Workers that share these links, and have begun."""
    cluster.seed(urls)
    for number in range(workers):
        cluster.start(**(faults if number == 0 else {}))
        until(lambda: len(holders(cluster.redis)) > 0, "the first, which may start late, leases gates")
    until(lambda: site.count() > 2 * HOSTS, "the workers ask")
    until(lambda: len(holders(cluster.redis)) == workers, "all of them lease gates")


def kill_one(cluster: Cluster) -> None:
    cluster.workers[0].kill()


def stop_one(cluster: Cluster) -> None:
    """For longer than its lease; then it goes on, and must notice."""
    cluster.workers[0].signal(signal.SIGSTOP)
    time.sleep(LEASE + 2.5)
    cluster.workers[0].signal(signal.SIGCONT)


def redis_loses_all(cluster: Cluster) -> None:
    cluster.redis.stop()
    cluster.redis.start()


def redis_comes_back(cluster: Cluster) -> None:
    """With the data that it had a while ago: others' leases, wake times of before."""
    cluster.redis.client.save()
    time.sleep(1.0)
    assert cluster.redis.process is not None
    cluster.redis.process.kill()
    cluster.redis.process.wait()
    cluster.redis.start()


def redis_is_away(cluster: Cluster) -> None:
    """For longer than the lease: nobody may send. What was in flight when it ended has half a second to end."""
    cluster.redis.stop()
    time.sleep(LEASE * 1.5)
    cluster.redis.start()


@pytest.mark.parametrize("fault", [kill_one, stop_one, redis_loses_all, redis_comes_back, redis_is_away])
def test_a_fault_loses_nothing_and_hurries_nobody(
    cluster: Cluster, site: RunningSite, fault: Callable[[Cluster], None]
) -> None:
    urls = links(site)
    at_work(cluster, site, urls)
    fault(cluster)
    cluster.end(*cluster.workers[1 if fault is kill_one else 0 :])
    requests = site.requests()
    cluster.judge(urls, requests)
    # Asked twice is only what was in flight, or not stored yet, when everything was dropped.
    assert len(pages(requests)) - len(urls) <= 2 * HOSTS


def test_nothing_is_sent_while_redis_is_away(cluster: Cluster, site: RunningSite) -> None:
    at_work(cluster, site, links(site))
    cluster.redis.stop()
    time.sleep(LEASE + 0.5)
    over = time.time()
    time.sleep(2.0)
    assert [request for request in site.requests() if request.started > over] == []
    for worker in cluster.workers:
        assert worker.stderr.count("Redis can't be asked") == 1
        assert not worker.ended


def test_a_clock_that_is_an_hour_off_hurries_nobody(cluster: Cluster, site: RunningSite) -> None:
    urls = links(site, each=25)
    at_work(cluster, site, urls, clock_off=3600.0)
    kill_one(cluster)
    cluster.start(clock_off=-3600.0)
    cluster.end(*cluster.workers[1:])
    cluster.judge(urls, site.requests())
    now = time.time()
    assert all(
        abs(datetime.fromisoformat(record["checked_at"]).timestamp() - now) < 300 for record in cluster.records()
    )


def test_a_link_that_kills_its_workers_is_a_poison_link(cluster: Cluster, site: RunningSite) -> None:
    deadly = site.url(healthy(0), "/deadly")
    urls = [deadly, *links(site, hosts=4, each=3)]
    cluster.seed([{"url": deadly, "priority": 9}, *urls[1:]])
    for _ in range(3):
        victim = cluster.start(poison=True)
        until(lambda victim=victim: victim.ended, "the link kills its worker")
        assert victim.process.returncode == -signal.SIGKILL
    last = cluster.start(poison=True)
    cluster.end(last)
    cluster.judge(urls, site.requests())
    (record,) = [record for record in cluster.records() if record["url"] == deadly]
    assert (record["category"], record["reason"], record["status"]) == ("Undetermined", "poison_link", None)


def test_a_check_goes_on_where_its_next_host_is_leased(cluster: Cluster, tmp_path: Path) -> None:
    with running_site(tmp_path, hosts=HOSTS, after=0.02, pages=40) as site:
        urls = links(site, each=28) + [site.url(RESOLVER, f"/{page}") for page in range(40)]
        at_work(cluster, site, urls, workers=3)
        cluster.end(*cluster.workers)
        requests = site.requests()
        cluster.judge(urls, requests)
    assert len(pages(requests)) == len(urls) + 40
    assert {record["category"] for record in cluster.records()} == {"Ok"}
    redirected = [record for record in cluster.records() if record["redirects"]]
    assert len(redirected) == 40
    assert all(len(record["hops"]) == 2 for record in redirected)
