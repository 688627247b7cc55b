"""Hosts that share a gate: a block or pause of one is that host's, the others go on at the gate's pace."""

from __future__ import annotations

import time

from linkcrawl.audit.log import AuditEntry
from tests.crawl.harness import Crawler, until
from tests.crawl.measures import LATE, ROUNDED, sent, smallest
from tests.site.client import RunningSite, running_site
from tests.site.crowds import healthy

ACTS = 5.0


def _order(crawler: Crawler, *words: str) -> None:
    told = crawler.tell("hosts", *words)
    assert told.status == 0, told.stderr


def _pages(site: RunningSite, host: str) -> int:
    return sum(
        request.host == host.partition(":")[0] and request.target != "/robots.txt" for request in site.requests()
    )


def test_a_block_of_one_host_of_a_group(crawler: Crawler) -> None:
    with running_site(crawler.folder, hosts=2) as site:
        keys = [site.url(healthy(number), "").split("/")[2] for number in range(2)]
        rules = crawler.folder / "policies.toml"
        rules.write_text(f'[[policy]]\nname = "g"\nhosts = ["{keys[0]}", "{keys[1]}"]\ndelay = 0.3\ngroup = true\n')
        urls = [site.url(healthy(number), f"/{page}") for page in range(200) for number in range(2)]
        arguments = ("-a", f"seeds={crawler.seeds(urls)}")
        with crawler.running(*arguments, settings={"LINKCRAWL_POLICIES": str(rules)}) as running:
            until(lambda: min(_pages(site, key) for key in keys) >= 2, "both are asked")
            _order(crawler, "block", keys[0], "--reason", "asked by mail")
            time.sleep(ACTS)
            blocked, other = (_pages(site, key) for key in keys)
            until(lambda: _pages(site, keys[1]) >= other + 8, "the other host goes on")
            assert _pages(site, keys[0]) == blocked
            _order(crawler, "unblock", keys[0])
            until(lambda: _pages(site, keys[0]) >= blocked + 3, "it goes on when it is unblocked")
            assert not running.ended
        starts = sorted(request.started for request in site.requests())
    assert smallest(starts) >= 0.3 - LATE


def test_a_pause_of_one_host_of_a_group_leaves_its_links_due(crawler: Crawler) -> None:
    with running_site(crawler.folder, hosts=2) as site:
        keys = [site.url(healthy(number), "").split("/")[2] for number in range(2)]
        rules = crawler.folder / "policies.toml"
        rules.write_text(
            f'[[policy]]\nname = "g"\nhosts = ["{keys[0]}", "{keys[1]}"]\ndelay = 0.1\ngroup = true\n'
            f'[[policy]]\nname = "p"\nhosts = ["{keys[0]}"]\npaused = true\n'
        )
        urls = [site.url(healthy(number), f"/{page}") for page in range(40) for number in range(2)]
        crawl = crawler.run("-a", f"seeds={crawler.seeds(urls)}", settings={"LINKCRAWL_POLICIES": str(rules)})
        assert crawl.status == 0
        assert {record["url"] for record in crawl.records} == set(urls[1::2])
        assert [request for request in site.requests() if request.host == keys[0].partition(":")[0]] == []
    assert crawler.books().due == 40


def _starts(site: RunningSite, *hosts: int) -> list[float]:
    """When requests to these hosts began, robots.txt included."""
    names = {healthy(host) for host in hosts}
    return sorted(request.started for request in site.requests() if request.host in names)


def _is_at(line: AuditEntry, *numbers: int) -> bool:
    return line.host.partition(":")[0] in {healthy(number) for number in numbers}


def test_a_group_of_hosts_and_a_collection_keeps_one_delay(crawler: Crawler) -> None:
    """Requests to its hosts and checks of its collection elsewhere: the robots.txt of the hosts counts as well."""
    with running_site(crawler.folder, hosts=4) as site:
        rules = crawler.folder / "policies.toml"
        rules.write_text(
            f'[[policy]]\nname = "g"\nhosts = ["{healthy(0)}", "{healthy(1)}"]\ncollections = ["c"]\n'
            "delay = 0.4\ngroup = true\n"
        )
        seeds = [
            {"url": site.url(healthy(host), f"/{page}"), "collection": "c" if host > 1 else "d"}
            for page in range(4)
            for host in range(4)
        ]
        crawl = crawler.run("-a", f"seeds={crawler.seeds(seeds)}", settings={"LINKCRAWL_POLICIES": str(rules)})
        assert (crawl.status, len(crawl.records)) == (0, 16)
        checks = [request.started for request in site.requests() if request.target != "/robots.txt"]
        both = sorted({*_starts(site, 0, 1), *checks})
    told = sent(crawler, lambda line: bool(line.limits) or _is_at(line, 0, 1))
    assert len(both) == len(told) == 2 + 16
    assert smallest(told) >= 0.4 - ROUNDED
    assert smallest(both) >= 0.4 / 2


def test_a_host_of_two_groups_keeps_the_delay_of_both(crawler: Crawler) -> None:
    with running_site(crawler.folder, hosts=3) as site:
        rules = crawler.folder / "policies.toml"
        rules.write_text(
            f'[[policy]]\nname = "a"\nhosts = ["{healthy(0)}", "{healthy(1)}"]\ndelay = 0.3\ngroup = true\n'
            f'[[policy]]\nname = "b"\nhosts = ["{healthy(1)}", "{healthy(2)}"]\ndelay = 0.5\ngroup = true\n'
        )
        urls = [site.url(healthy(host), f"/{page}") for page in range(5) for host in range(3)]
        crawl = crawler.run("-a", f"seeds={crawler.seeds(urls)}", settings={"LINKCRAWL_POLICIES": str(rules)})
        assert (crawl.status, len(crawl.records)) == (0, 15)
        one, other = _starts(site, 0, 1), _starts(site, 1, 2)
    assert smallest(sent(crawler, lambda line: _is_at(line, 0, 1))) >= 0.3 - ROUNDED
    assert smallest(sent(crawler, lambda line: _is_at(line, 1, 2))) >= 0.5 - ROUNDED
    assert smallest(one) >= 0.3 / 2
    assert smallest(other) >= 0.5 / 2


def test_checks_a_day_of_a_collection_are_counted_over_all_its_hosts(crawler: Crawler) -> None:
    """Also where all of them could go at once."""
    with running_site(crawler.folder, hosts=6) as site:
        rules = crawler.folder / "policies.toml"
        rules.write_text('[[policy]]\nname = "few"\ncollections = ["c"]\nmax_per_day = 4\n')
        seeds = [
            {"url": site.url(healthy(host), f"/{page}"), "collection": "c" if host < 5 else "d"}
            for host in range(6)
            for page in range(3)
        ]
        crawl = crawler.run("-a", f"seeds={crawler.seeds(seeds)}", settings={"LINKCRAWL_POLICIES": str(rules)})
        checked = [record["collections"] for record in crawl.records]
    assert crawl.status == 0
    assert (checked.count(["c"]), checked.count(["d"])) == (4, 3)
    assert crawler.books().due == 11


def test_every_link_of_every_host_of_a_group_is_asked(crawler: Crawler) -> None:
    """However many one host has: what is ready of another's must not keep its next links in the store."""
    with running_site(crawler.folder, hosts=3) as site:
        rules = crawler.folder / "policies.toml"
        rules.write_text('[[policy]]\nname = "g"\nhosts = ["127.*"]\ndelay = 0.0\ngroup = true\n')
        sizes = (150, 80, 5)
        urls = [site.url(healthy(host), f"/{page}") for host, links in enumerate(sizes) for page in range(links)]
        settings = {"LINKCRAWL_POLICIES": str(rules), "AUTOTHROTTLE_MAX_DELAY": "0"}
        crawl = crawler.run("-a", f"seeds={crawler.seeds(urls)}", settings=settings)
    assert crawl.status == 0
    assert {record["url"] for record in crawl.records} == set(urls)
    assert crawler.books().due == 0
