"""Redis gone for a whole minute. A file of its own, so that it runs beside others."""

from __future__ import annotations

import time
from pathlib import Path

from tests.crawl.cluster_kit import holders, running_cluster
from tests.crawl.harness import until
from tests.site.client import running_site
from tests.site.crowds import healthy

#: Seconds that Redis is away; then a second line about it has been due for a second.
AWAY = 61.5
HOSTS, LINKS, LEASE = 12, 12, 3.0


def test_a_minute_without_redis(tmp_path: Path) -> None:
    with (
        running_site(tmp_path, hosts=HOSTS, after=0.02) as site,
        running_cluster(tmp_path, LINKCRAWL_PATIENCE="120", LINKCRAWL_LEASE=str(LEASE)) as cluster,
    ):
        urls = [site.url(healthy(host), f"/{page}") for host in range(HOSTS) for page in range(LINKS)]
        cluster.seed(urls)
        workers = [cluster.start(), cluster.start()]
        until(lambda: len(holders(cluster.redis)) == 2 and site.count() > 2 * HOSTS, "both are at work")
        cluster.redis.stop()
        gone = time.monotonic()
        time.sleep(LEASE + 1.0)  # what was in flight when the leases ended has a second to end
        sent = site.count()
        assert sent < HOSTS + len(urls), "there was nothing left to send"
        time.sleep(max(0.0, gone + AWAY - time.monotonic()))
        assert site.count() == sent
        assert [worker.ended for worker in workers] == [False, False]
        cluster.redis.start()
        cluster.end(*workers)
        assert [worker.stderr.count("Redis can't be asked") for worker in workers] == [2, 2]  # a line a minute
        assert [worker.stderr.count("Redis is back") for worker in workers] == [1, 1]
        cluster.judge(urls, site.requests())
