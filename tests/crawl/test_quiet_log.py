"""A crawl with nothing to tell warns of nothing: whoever reads the log of a night looks for WARNING and ERROR."""

from __future__ import annotations

import re

from tests.crawl.harness import Crawler
from tests.site.client import running_site
from tests.site.crowds import healthy


def test_a_crawl_without_trouble_warns_of_nothing(crawler: Crawler) -> None:
    with running_site(crawler.folder, hosts=2) as site:
        seeds = crawler.seeds([site.url(healthy(host), "/1") for host in range(2)])
        crawl = crawler.run("-a", f"seeds={seeds}")
    assert [record["category"] for record in crawl.records] == ["Ok", "Ok"]
    assert "INFO: Spider opened" in crawl.stderr
    assert re.findall(r".* (?:WARNING|ERROR|CRITICAL): .*", crawl.stderr) == []
