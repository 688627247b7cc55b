"""What Prometheus reads of a running crawl, and what a port that can't be had does."""

from __future__ import annotations

import socket
import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.crawl.cluster_kit import running_cluster
from tests.crawl.harness import Crawler, until
from tests.ports import free_port
from tests.site.client import running_site
from tests.site.crowds import healthy

#: Every name that a crawl alone tells.
ALONE = {
    "linkcrawl_checks",
    "linkcrawl_requests",
    "linkcrawl_silences",
    "linkcrawl_bans",
    "linkcrawl_shut_outs",
    "linkcrawl_robots_asked",
    "linkcrawl_checks_by_category",
    "linkcrawl_walls",
    "linkcrawl_gates",
    "linkcrawl_gates_backing_off",
    "linkcrawl_backlog",
    "linkcrawl_store_lost",
    "linkcrawl_lag_seconds",
}
#: And what a worker of a cluster tells besides.
CLUSTER = {
    "linkcrawl_leases",
    "linkcrawl_lease_losses",
    "linkcrawl_workers",
    "linkcrawl_checks_elsewhere",
    "linkcrawl_redis_calls",
    "linkcrawl_redis_seconds",
}


def read(port: int) -> dict[str, dict[str, float]]:
    """Values by metric, then by their label ("" for none)."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        text = answer.read().decode()
    return {
        family.name: {next(iter(sample.labels.values()), ""): sample.value for sample in family.samples}
        for family in text_string_to_metric_families(text)
    }


def test_a_crawl_alone(crawler: Crawler) -> None:
    port = free_port()
    with running_site(crawler.folder, hosts=3) as site:
        urls = [site.url(healthy(host), f"/{page}") for host in range(3) for page in range(12)]
        seeds = crawler.seeds(urls)
        settings = {"LINKCRAWL_METRICS_PORT": str(port)}
        with crawler.running("-a", f"seeds={seeds}", settings=settings) as running:
            until(lambda: site.count() > 12, "the crawl is at work")
            told = read(port)
            running.wait()
    assert set(told) == ALONE
    assert 0 < told["linkcrawl_checks"][""] < len(urls)
    assert told["linkcrawl_requests"][""] >= told["linkcrawl_checks"][""] + 3
    assert told["linkcrawl_checks_by_category"]["Ok"] == told["linkcrawl_checks"][""]
    assert sum(told["linkcrawl_gates"].values()) == 3
    assert 0 < told["linkcrawl_backlog"][""] <= len(urls)


def test_a_worker(tmp_path: Path) -> None:
    port = free_port()
    with (
        running_site(tmp_path, hosts=3) as site,
        running_cluster(tmp_path, LINKCRAWL_METRICS_PORT=str(port)) as cluster,
    ):
        cluster.seed([site.url(healthy(host), f"/{page}") for host in range(3) for page in range(8)])
        worker = cluster.start()
        until(lambda: site.count() > 6, "the worker is at work")
        told = read(port)
        cluster.end(worker)
    assert set(told) == ALONE | CLUSTER
    assert told["linkcrawl_leases"][""] == 3
    assert told["linkcrawl_workers"][""] == 1
    assert told["linkcrawl_redis_calls"][""] > 0


@pytest.mark.parametrize("taken", [True, False])
def test_a_port_that_cannot_be_had_is_told_and_stops_nothing(crawler: Crawler, taken: bool) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port, address = str(holder.getsockname()[1]), "127.0.0.1" if taken else "192.0.2.1"
        settings = {"LINKCRAWL_METRICS_PORT": port, "LINKCRAWL_METRICS_ADDRESS": address}
        ended = crawler.run(settings=settings)
    assert ended.status == 0
    assert ended.stderr.count(f"LINKCRAWL_METRICS_PORT: no metrics at {address}:{port}: ") == 1
