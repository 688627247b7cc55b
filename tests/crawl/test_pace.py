"""Every host at its own pace: hanging hosts hold nobody up, and a redirect waits for the host that it leads to."""

from __future__ import annotations

import pytest

from tests.crawl.harness import Crawler
from tests.crawl.measures import by_host, overlapping, pages, successive, too_close
from tests.site.client import running_site
from tests.site.crowds import RESOLVER, hanging, healthy

HEALTHY, LINKS, HANGING = 100, 5, 20
AFTER = 0.02


@pytest.mark.parametrize("permits", [512, 32])
def test_hanging_hosts_do_not_slow_healthy_ones(crawler: Crawler, permits: int) -> None:
    delay = 0.5
    bound = LINKS * (delay + AFTER)  # robots.txt and five pages: five gaps
    with running_site(crawler.folder, hosts=HEALTHY, silent=HANGING, after=AFTER) as site:
        slow = [site.url(hanging(number), f"/{page}") for number in range(HANGING) for page in range(2)]
        quick = [site.url(healthy(number), f"/{page}") for number in range(HEALTHY) for page in range(LINKS)]
        settings = {"DOWNLOAD_DELAY": str(delay), "CONCURRENT_REQUESTS": str(permits)}
        crawl = crawler.run("-a", f"seeds={crawler.seeds([*slow, *quick])}", settings=settings)
        requests = site.requests()
    hosts = by_host(requests)
    began = min(request.started for request in requests)
    quick_end = max(hosts[healthy(number)][-1].ended for number in range(HEALTHY)) - began
    slow_end = max(hosts[hanging(number)][-1].ended for number in range(HANGING)) - began
    assert crawl.status == 0
    assert quick_end <= 5 * bound
    assert quick_end <= slow_end * 0.75
    assert sum(record["category"] == "Ok" for record in crawl.records) == HEALTHY * LINKS
    assert {crawl.record(url)["reason"] for url in slow} == {"timeout"}
    assert too_close(requests, delay) == []


def test_a_hop_waits_for_its_own_host(crawler: Crawler) -> None:
    """Ten links of a quick resolver lead to one slow host, which also has links of its own."""
    after, delay, pids = 0.3, 0.2, 10
    with running_site(crawler.folder, hosts=1, after=after, pages=pids) as site:
        seeds = [site.url(RESOLVER, f"/{number}") for number in range(pids)]
        seeds += [site.url(healthy(0), f"/own/{number}") for number in range(3)]
        settings = {"DOWNLOAD_DELAY": str(delay), "AUTOTHROTTLE_MAX_DELAY": "0.4"}
        crawl = crawler.run("-a", f"seeds={crawler.seeds(seeds)}", settings=settings)
        requests = site.requests()
    hosts = by_host(requests)
    assert {record["category"] for record in crawl.records} == {"Ok"}
    assert [crawl.record(url)["redirects"] for url in seeds] == [1] * pids + [0] * 3
    assert len(pages(hosts[RESOLVER])) == pids
    assert len(pages(hosts[healthy(0)])) == pids + 3
    assert too_close(pages(hosts[healthy(0)]), delay + after) == []
    assert too_close(hosts[healthy(0)], delay) == []
    assert too_close(hosts[RESOLVER], delay) == []
    assert overlapping(requests) == []
    # The resolver is not held up by where it leads: eleven requests in a third of the slow host's time.
    asked = {name: mine[-1].started - mine[0].started for name, mine in hosts.items()}
    assert asked[RESOLVER] < 0.6 * asked[healthy(0)]


def test_a_slow_host_is_asked_less(crawler: Crawler) -> None:
    """Five times the host's own answer time, from the end of its answer."""
    after = 0.2
    with running_site(crawler.folder, hosts=1, after=after) as site:
        seeds = [site.url(healthy(0), f"/{number}") for number in range(6)]
        crawler.run("-a", f"seeds={crawler.seeds(seeds)}", settings={"DOWNLOAD_DELAY": "0.1"})
        requests = pages(site.requests())
    # robots.txt answers at once, so the smoothed answer time comes near to 0.2 s only after some answers.
    gaps = [second.started - first.started for first, second in successive(requests)]
    assert gaps[-1] >= after + 5 * after * 0.6
    assert max(gaps) <= 20 * after
