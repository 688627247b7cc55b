"""What falls between two workers: checks that are on their way when leases end, a restart that one has not noticed,
names of one server, hosts that nobody may ask."""

from __future__ import annotations

import signal
import time
from pathlib import Path

from tests.crawl.cluster_kit import LEASE, holders, running_cluster
from tests.crawl.harness import until
from tests.crawl.measures import pages, too_close
from tests.site.client import running_site
from tests.site.crowds import RESOLVER, healthy

PAGES = 30


def test_checks_that_wait_for_an_address_when_leases_end(tmp_path: Path) -> None:
    """Where a host's gate is asked of Redis while that is away, the check is begun anew like any other."""
    with running_site(tmp_path, hosts=PAGES, after=0.02, pages=PAGES) as site, running_cluster(tmp_path) as cluster:
        urls = [site.url(RESOLVER, f"/{page}") for page in range(PAGES)]
        cluster.seed(urls)
        workers = [cluster.start(), cluster.start()]
        until(lambda: site.count() > 12, "some are redirected to hosts not met before")
        cluster.redis.stop(keep=True)
        time.sleep(LEASE + 1.0)
        asked = [request.target for request in pages(site.requests()) if request.host == RESOLVER]
        assert len(asked) < PAGES, "nothing was left"
        cluster.redis.start()
        cluster.end(*workers)
        cluster.judge(urls, site.requests())
        records = cluster.records()
    assert all(len(record["hops"]) == 2 for record in records)
    # Begun anew were those that had not come to their end, once each: nobody went on with what was void.
    again = [request.target for request in pages(site.requests()) if request.host != RESOLVER]
    assert len(again) <= PAGES + len(workers)


def test_a_restart_of_redis_that_one_worker_has_not_noticed(tmp_path: Path) -> None:
    """It stands still meanwhile, for less than its lease, and sends before it asks Redis again."""
    with (
        running_site(tmp_path, hosts=12, after=0.02) as site,
        running_cluster(tmp_path, LINKCRAWL_LEASE="8", DOWNLOAD_DELAY="1") as cluster,
    ):
        urls = [site.url(healthy(host), f"/{page}") for host in range(12) for page in range(12)]
        cluster.seed(urls)
        workers = [cluster.start(), cluster.start()]
        until(lambda: len(holders(cluster.redis)) == 2 and site.count() > 24, "both are at work")
        workers[0].signal(signal.SIGSTOP)
        cluster.redis.stop()
        cluster.redis.start()
        time.sleep(4.0)  # the other begins anew, and would send there after one delay
        workers[0].signal(signal.SIGCONT)
        cluster.end(*workers)
        cluster.judge(urls, site.requests(), delay=1.0)


def test_names_of_one_server_have_one_gate_wherever_a_check_comes_from(tmp_path: Path) -> None:
    """The resolver redirects to a second name of servers whose first one others are asking."""
    with (
        running_site(tmp_path, hosts=10, after=0.02, pages=PAGES, doubled=True) as site,
        running_cluster(tmp_path) as cluster,
    ):
        urls = [site.url(healthy(host), f"/p{page}") for host in range(10) for page in range(10)]
        urls += [site.url(RESOLVER, f"/{page}") for page in range(PAGES)]
        cluster.seed(urls)
        workers = [cluster.start(), cluster.start(), cluster.start()]
        cluster.end(*workers)
        requests = site.requests()
        cluster.judge(urls, requests)
    assert {request.port for request in requests} == {site.ports.plain, site.ports.tls}
    assert too_close(requests, 0.4) == []  # by address


def test_checks_that_lead_to_paused_hosts_end_without_a_record_and_hold_nobody_up(tmp_path: Path) -> None:
    policies = tmp_path / "policies.toml"
    policies.write_text(f'[[policy]]\nname = "p"\nhosts = ["{healthy(0)}*", "{healthy(1)}*"]\npaused = true\n')
    with (
        running_site(tmp_path, hosts=6, after=0.02, pages=12) as site,
        running_cluster(tmp_path, LINKCRAWL_POLICIES=str(policies), LINKCRAWL_PATIENCE="5") as cluster,
    ):
        urls = [site.url(healthy(host), f"/p{page}") for host in range(6) for page in range(8)]
        urls += [site.url(RESOLVER, f"/{page}") for page in range(12)]
        cluster.seed(urls)
        workers = [cluster.start(), cluster.start(), cluster.start()]
        cluster.end(*workers)
        recorded, requests = cluster.kept(), site.requests()
    paused = [site.url(healthy(host), f"/p{page}") for host in range(2) for page in range(8)]
    paused += [site.url(RESOLVER, f"/{page}") for page in range(12) if page % 6 < 2]
    assert set(recorded) == set(urls) - set(paused)
    assert set(recorded.values()) == {1}
    assert not [request for request in requests if request.host in (healthy(0), healthy(1))]
    assert len([request for request in requests if request.host == RESOLVER]) <= 1 + 12 + 4  # not again and again
