"""Requests of other components take Scrapy's whole way, callback and all, through the same gates as those of checks."""

from __future__ import annotations

import json
import subprocess

from tests.crawl.harness import Crawler, environment
from tests.crawl.measures import overlapping, too_close
from tests.site.client import ROOT, running_site
from tests.site.crowds import healthy

DELAY = 0.3
SETTINGS = """
from linkcrawl.settings import *

EXTENSIONS = {**EXTENSIONS, "foreign.Foreign": 0}
"""
#: Asks pages of its own beside the checks, and writes down what came.
EXTENSION = """
import json

from scrapy import Request, signals


class Foreign:
    @classmethod
    def from_crawler(cls, crawler):
        made = cls()
        made.crawler, made.came = crawler, []
        crawler.signals.connect(made.opened, signal=signals.spider_opened)
        return made

    def opened(self):
        for url in self.crawler.settings.getlist("FOREIGN_URLS"):
            self.crawler.engine.crawl(Request(url, callback=self.answered, dont_filter=True))

    def answered(self, response):
        self.came.append([response.url, response.status])
        with open("foreign.json", "w") as file:
            json.dump(self.came, file)
"""


def test_other_components_requests_keep_the_gates_and_have_their_callbacks(crawler: Crawler) -> None:
    (crawler.folder / "foreign.py").write_text(EXTENSION)
    (crawler.folder / "foreign_settings.py").write_text(SETTINGS)
    with running_site(crawler.folder, hosts=1, after=0.02) as site:
        seeds = crawler.seeds([site.url(healthy(0), f"/{page}") for page in range(3)])
        foreign = [site.url(healthy(0), f"/foreign/{page}") for page in range(3)]
        settings = {"DOWNLOAD_DELAY": str(DELAY), "FOREIGN_URLS": ",".join(foreign)}
        command = crawler.command("crawl", "resourceproxies", "-a", f"seeds={seeds}", settings=settings)
        told = environment() | {
            "SCRAPY_SETTINGS_MODULE": "foreign_settings",
            "PYTHONPATH": f"{ROOT}:{crawler.folder}",
        }
        done = subprocess.run(command, cwd=crawler.folder, env=told, capture_output=True, text=True, timeout=60)
        requests = site.requests()
    assert done.returncode == 0, done.stderr
    assert sorted(json.loads((crawler.folder / "foreign.json").read_text())) == [[url, 200] for url in foreign]
    assert len(crawler.kept()) == 3
    assert len(requests) == 1 + 3 + 3  # robots.txt is read once for all
    assert too_close(requests, DELAY) == []
    assert overlapping(requests) == []
    assert all("linkcrawl" in (request.header("User-Agent") or "") for request in requests)
