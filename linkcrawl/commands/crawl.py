"""`scrapy crawl`, with linkcrawl's exit statuses: what is unusable is said in one line before anything is sent."""

from __future__ import annotations

import argparse
import sys

from scrapy import Spider
from scrapy.commands.crawl import Command as CrawlCommand
from scrapy.crawler import Crawler

from linkcrawl.config import ConfigError
from linkcrawl.session import Session
from linkcrawl.spiders.resourceproxies import ResourceProxies
from linkcrawl.stores import StoreError

#: Exit status by the reason that a crawl gave for its end; any other reason is a fault of ours. A second interruption
#: stops it before it can give one.
EXIT = {"finished": 0, "store_lost": 1, "shutdown": 130, None: 130}


class Command(CrawlCommand):
    """Takes the place of Scrapy's own command of this name."""

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        if args[:1] != [ResourceProxies.name]:
            return
        assert self.settings is not None
        try:
            opts.spargs["session"] = Session.open(self.settings, opts.spargs)
        except (ConfigError, StoreError) as fault:
            print(f"linkcrawl: {fault}", file=sys.stderr)
            sys.exit(2)

    def _create_crawler(self, spidercls: type[Spider] | str) -> Crawler:
        self._crawler = super()._create_crawler(spidercls)
        return self._crawler

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        super().run(args, opts)
        assert self.crawler_process is not None
        if self.exitcode == 0 and args[:1] == [ResourceProxies.name]:
            self.exitcode = EXIT.get(self._crawler.stats.get_value("finish_reason"), 1)
