"""`scrapy crawl` with linkcrawl's exit statuses. Unusable settings or input are one line, before anything is sent."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
from pathlib import Path
from urllib.parse import urlsplit

from scrapy import Spider
from scrapy.commands.crawl import Command as CrawlCommand
from scrapy.crawler import Crawler
from scrapy.settings import BaseSettings
from scrapy.spiderloader import get_spider_loader
from w3lib.url import file_uri_to_path

from linkcrawl.assembly import open_session
from linkcrawl.cli.errors import NETWORK_LOST, STORE_LOST, UNUSABLE, print_fault
from linkcrawl.cli.log_file import install_log_file
from linkcrawl.errors import ConfigError, StoreError
from linkcrawl.extensions.feeds import feed_failed
from linkcrawl.frontier.network_watch import NOTHING_ANSWERED
from linkcrawl.spiders.resourceproxies import HARVEST_REFUSED, ResourceProxies
from linkcrawl.startup import INTERRUPTED
from linkcrawl.wiring import check_wiring

#: Exit status by the finish reason of a crawl; any other reason is a fault of ours. A second interruption stops it
#: without a reason.
EXIT = {
    "finished": 0,
    "store_lost": STORE_LOST,
    "network_lost": NETWORK_LOST,
    "unusable_input": UNUSABLE,
    "shutdown": INTERRUPTED,
    None: INTERRUPTED,
}


class Command(CrawlCommand):
    """Replaces Scrapy's own command of this name."""

    def process_options(self, args: list[str], opts: argparse.Namespace) -> None:
        super().process_options(args, opts)
        assert self.settings is not None
        try:
            _check_spider(self.settings, args)
            if args[:1] != [ResourceProxies.name]:
                return
            check_wiring(self.settings)
            _check_log(self.settings)
            _check_feeds(self.settings)
            opts.spargs["session"] = open_session(self.settings, opts.spargs)
            if self.settings["LOG_FILE"]:
                install_log_file(self.settings)
        except (ConfigError, StoreError) as fault:
            print_fault(fault)
            if log := self.settings.get("LOG_FILE"):  # scrapyd drops standard error, its users read the log
                with contextlib.suppress(OSError), Path(log).open("a", encoding="utf-8") as file:
                    file.write(f"linkcrawl: {fault}\n")
            sys.exit(UNUSABLE)

    def _create_crawler(self, spidercls: type[Spider] | str) -> Crawler:
        self._crawler = super()._create_crawler(spidercls)
        return self._crawler

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        super().run(args, opts)
        assert self.crawler_process is not None
        if self.exitcode == 0 and args[:1] == [ResourceProxies.name]:
            stats = self._crawler.stats
            failed = feed_failed(stats) or bool(stats.get_value(NOTHING_ANSWERED))
            refused = UNUSABLE if stats.get_value(HARVEST_REFUSED) else 0
            self.exitcode = EXIT.get(stats.get_value("finish_reason"), 1) or int(failed) or refused


def _check_spider(settings: BaseSettings, args: list[str]) -> None:
    if args and args[0] not in get_spider_loader(settings).list():
        raise ConfigError(f"no spider is named {args[0]!r}; {ResourceProxies.name} would work")


def _check_log(settings: BaseSettings) -> None:
    """Raise ConfigError for a log that Scrapy could not open; it would find out after the store was claimed."""
    level = settings["LOG_LEVEL"]
    if isinstance(level, str) and level not in logging.getLevelNamesMapping():
        raise ConfigError(f"LOG_LEVEL: {level!r} is no level; DEBUG, INFO, WARNING, ERROR or CRITICAL would work")
    if settings["LOG_FILE"]:
        _check_writable("LOG_FILE", Path(settings["LOG_FILE"]))


def _check_feeds(settings: BaseSettings) -> None:
    """Raise ConfigError for a feed that can't be written. Scrapy opens a feed with the first record only, and goes on
    without one that can't be opened."""
    for uri in map(str, settings.getdict("FEEDS")):
        if urlsplit(uri).scheme not in ("", "file") or "%(" in uri:  # another storage, or a name that is made later
            continue
        path = Path(file_uri_to_path(uri) if uri.startswith("file:") else uri)
        with contextlib.suppress(OSError):  # opening the file reports it better
            path.parent.mkdir(parents=True, exist_ok=True)  # as Scrapy does
        _check_writable("feed", path)


def _check_writable(name: str, path: Path) -> None:
    existed = path.exists()
    if existed and not path.is_file() and not path.is_dir():
        return  # a pipe or a terminal: opening it could block, or look like its end to the reader
    try:
        path.open("ab").close()
    except OSError as fault:
        raise ConfigError(
            f"{name}: {str(path)!r} can't be written: {fault.strerror}; "
            "the path of a file in a folder that can be written would work"
        ) from None
    if not existed:
        path.unlink()
