"""Answers of Redis that get lost on the way, all the time: each script has run, and its worker can't know."""

from __future__ import annotations

from pathlib import Path

from tests.crawl.cluster_kit import holders, running_cluster
from tests.crawl.harness import until
from tests.crawl.lossy import lossy_way
from tests.crawl.measures import ROUNDED, pages, smallest
from tests.site.client import running_site
from tests.site.crowds import RESOLVER, healthy

HOSTS, PAGES = 12, 30
POLICY = '[[policy]]\nname = "collection"\ncollections = ["slow"]\ndelay = 0.3\n'


def test_answers_that_get_lost(tmp_path: Path) -> None:
    """Gates, checks on their way and limits of collections are handed over all the same, and nobody waits for ever for
    what was handed over unheard."""
    policies = tmp_path / "policies.toml"
    policies.write_text(POLICY)
    with (
        running_site(tmp_path, hosts=HOSTS, after=0.02, pages=PAGES) as site,
        running_cluster(tmp_path, LINKCRAWL_POLICIES=str(policies)) as cluster,
        lossy_way(cluster.redis.port) as way,
    ):
        cluster.way = way.port
        plain = [site.url(healthy(host), f"/{page}") for host in range(HOSTS) for page in range(8)]
        slow = [site.url(healthy(host), f"/slow{page}") for host in range(HOSTS) for page in range(2)]
        redirected = [site.url(RESOLVER, f"/{page}") for page in range(PAGES)]
        cluster.seed([*plain, *redirected, *({"url": url, "collection": "slow"} for url in slow)])
        workers = [cluster.start(), cluster.start(), cluster.start()]
        until(lambda: len(holders(cluster.redis)) == 3, "all lease gates")
        way.each = 20
        cluster.end(*workers)
        requests = site.requests()
        cluster.judge([*plain, *slow, *redirected], requests)
    assert way.lost > 10
    asked = [request for request in pages(requests) if "slow" in request.target]
    # Over connections of their own a busy server may see the earlier one late: it sees half of the delay.
    assert smallest(request.started for request in asked) > 0.3 / 2
    assert smallest(line.sent for line in cluster.audited() if line.limits) >= 0.3 - ROUNDED
    assert max(worker.stderr.count("Redis can't be asked") for worker in workers) <= 2  # a line a minute
