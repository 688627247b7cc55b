"""What has to be agreed on while gates move between workers: policies that are edited, a robots.txt of elsewhere, a
worker that stands still on its way to the store."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest

from linkcrawl.audit.log import AuditEntry
from tests.crawl.cluster_kit import LEASE, holders, running_cluster, stands_still
from tests.crawl.harness import until
from tests.crawl.measures import LATE
from tests.site.client import Request, running_site
from tests.site.crowds import healthy

#: An edited policy acts within so many seconds.
ACTS = 5.0


def rule(name: str, hosts: Iterable[int], **terms: object) -> str:
    told = {"name": f'"{name}"', "hosts": str([f"{healthy(host)}*" for host in hosts]).replace("'", '"'), **terms}
    return "[[policy]]\n" + "".join(f"{key} = {value}\n" for key, value in told.items())


def of(requests: list[Request], hosts: Iterable[int]) -> list[Request]:
    return [request for request in requests if request.host in {healthy(host) for host in hosts}]


def gaps(requests: list[Request], since: float) -> list[float]:
    """From start to start, of those that started since, and of the first of them to the one before."""
    return [later.started - first.started for first, later in pairwise(requests) if later.started >= since]


def began(lines: list[AuditEntry], gate: str) -> float:
    """When the first request left through a gate."""
    return min(line.sent for line in lines if line.gate == gate)


def test_policies_edited_while_workers_run(tmp_path: Path) -> None:
    """Hosts that come together in one group, a delay that rises, a pause and quiet hours that end: nobody is hurried
    from the first request by the new rules on, nothing is lost, and nothing waits for what held before."""
    together, slower, paused, quiet, others = range(4), range(4, 7), [7], [8], range(9, 16)
    policies = tmp_path / "policies.toml"
    before = rule("paused", paused, paused="true") + rule("quiet", quiet, quiet='["daily 00:00-24:00 UTC"]')
    policies.write_text(before)
    with (
        running_site(tmp_path, hosts=16, after=0.02) as site,
        running_cluster(tmp_path, LINKCRAWL_POLICIES=str(policies), LINKCRAWL_PATIENCE="60") as cluster,
    ):
        each = {**dict.fromkeys(together, 12), **dict.fromkeys(slower, 20), **dict.fromkeys(others, 25), 7: 2, 8: 2}
        urls = [site.url(healthy(host), f"/{page}") for host, links in each.items() for page in range(links)]
        cluster.seed(urls)
        workers = [cluster.start("-a", "continuous=1"), cluster.start("-a", "continuous=1")]
        until(lambda: len(holders(cluster.redis)) == 2, "both lease gates")
        until(lambda: all(len(of(site.requests(), [host])) >= 3 for host in [*together, *slower]), "all are asked")
        policies.write_text(rule("group", together, delay=0.7, group="true") + rule("slower", slower, delay=1.0))
        edited = time.time()
        until(lambda: len(of(site.requests(), [*paused, *quiet])) >= 4, "what was shut is asked")
        opened = min(request.started for request in of(site.requests(), [*paused, *quiet]))
        until(lambda: len(cluster.kept()) == len(urls), "all links are checked")
        for worker in workers:
            worker.signal(signal.SIGINT)
        assert [worker.wait().status for worker in workers] == [130, 130]
        requests, lines = site.requests(), cluster.audited()
        cluster.judge(urls, requests)
    assert opened - edited < 2 * ACTS  # its first request waits for a delay besides
    assert min(gaps(of(requests, together), edited + ACTS)) > 0.7 - LATE
    assert min(gaps(of(requests, together), began(lines, "policy group"))) > 0.7 - LATE
    for host in slower:
        assert min(gaps(of(requests, [host]), edited + ACTS)) > 1.0 - LATE


def test_robots_txt_that_another_workers_host_keeps(tmp_path: Path) -> None:
    """Pairs of hosts keep each other's robots.txt, so that each worker may need a gate of the other before it goes on
    with its own."""
    with running_site(tmp_path, hosts=12, after=0.02, crossed=True) as site, running_cluster(tmp_path) as cluster:
        paths = [*(f"/{page}" for page in range(8)), "/secret/of/a/host"]
        urls = [site.url(healthy(host), path) for host in range(12) for path in paths]
        cluster.seed(urls)
        workers = [cluster.start(), cluster.start(), cluster.start()]
        cluster.end(*workers)
        requests = site.requests()
        cluster.judge(urls, requests)
        verdicts = {record["url"]: record["category"] for record in cluster.records()}
    assert {url for url, verdict in verdicts.items() if verdict != "Ok"} == {url for url in urls if "secret" in url}
    assert not [request for request in requests if "secret" in request.target]
    asked = Counter(request.host for request in requests if request.target == "/robots.txt")
    assert max(asked.values()) <= 2 * len(workers)  # who gives way asks again, and nobody for ever


@pytest.mark.parametrize("write", [1, 4])
def test_a_worker_that_stands_still_on_its_way_to_the_store(tmp_path: Path, write: int) -> None:
    """It has looked at its lease, and stores its records when others have stored theirs."""
    with running_site(tmp_path, hosts=12, after=0.02) as site, running_cluster(tmp_path) as cluster:
        urls = [site.url(healthy(host), f"/{page}") for host in range(12) for page in range(10)]
        cluster.seed(urls)
        late = cluster.start(stop_write=write)
        other = cluster.start()
        until(lambda: stands_still(late), "it stands still")
        until(lambda: other.ended or len(cluster.kept()) == len(urls), "the other has stored all")
        time.sleep(LEASE)
        late.signal(signal.SIGCONT)
        cluster.end(late, other)
        cluster.judge(urls, site.requests())
