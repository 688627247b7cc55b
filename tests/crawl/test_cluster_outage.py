"""Redis gone for longer than the time between two lines about it."""

from __future__ import annotations

import time
from pathlib import Path

from tests.crawl.cluster_kit import holders, running_cluster
from tests.crawl.harness import Running, until
from tests.site.client import running_site
from tests.site.crowds import healthy

#: Seconds between two lines of these workers, in place of the minute.
REPEAT = 10.0
HOSTS, LINKS, LEASE = 12, 12, 3.0


def complaints(worker: Running) -> int:
    return worker.stderr.count("Redis can't be asked")


def test_a_long_time_without_redis(tmp_path: Path) -> None:
    with (
        running_site(tmp_path, hosts=HOSTS, after=0.02) as site,
        running_cluster(tmp_path, LINKCRAWL_PATIENCE="120", LINKCRAWL_LEASE=str(LEASE)) as cluster,
    ):
        urls = [site.url(healthy(host), f"/{page}") for host in range(HOSTS) for page in range(LINKS)]
        cluster.seed(urls)
        workers = [cluster.start(repeat=REPEAT), cluster.start(repeat=REPEAT)]
        until(lambda: len(holders(cluster.redis)) == 2 and site.count() > 2 * HOSTS, "both are at work")
        cluster.redis.stop()
        time.sleep(LEASE + 0.5)
        over = time.time()
        assert site.count() < HOSTS + len(urls), "there was nothing left to send"
        until(lambda: min(map(complaints, workers)) == 2, "both tell of it a second time")
        assert [request for request in site.requests() if request.started > over] == []
        assert [worker.ended for worker in workers] == [False, False]
        cluster.redis.start()
        cluster.end(*workers)
        assert max(map(complaints, workers)) <= 3  # where it takes long to come back
        assert [worker.stderr.count("Redis is back") for worker in workers] == [1, 1]
        cluster.judge(urls, site.requests())
