"""`scrapy migrate-legacy`: the database of CLARIN's older link checker, taken over into the store.

The dash in the file's name is the command's: Scrapy names commands after their modules.
"""
# ruff: noqa: N999

from __future__ import annotations

import argparse
import json
import sys

from attrs import asdict
from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from linkcrawl.cli.errors import UNUSABLE, one_line
from linkcrawl.config import Config, read_config
from linkcrawl.errors import ConfigError
from linkcrawl.items import Reject
from linkcrawl.stores.contract import Store, Totals
from linkcrawl.stores.opening import open_store


class Command(ScrapyCommand):
    requires_project = True
    requires_crawler_process = False

    def syntax(self) -> str:
        return "mongodb://HOST:PORT/DB [options]"

    def short_desc(self) -> str:
        return "Take over the database of CLARIN's older link checker"

    def long_desc(self) -> str:
        return (
            "Links of linksToBeChecked, results of linksChecked and linksCheckedHistory go into the store; nothing of "
            "the old database is changed, and running it again changes nothing more."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--dry-run", action="store_true", help="only read and count")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError("one URL mongodb://HOST:PORT/DB is needed")
        with one_line(self):
            self._migrate(args[0], opts.dry_run)

    def _migrate(self, source: str, dry_run: bool) -> None:
        config = read_config(self.settings or {}, need_contact=False)
        if dry_run:
            self._move(source, None, config)
            return
        store = open_store(config.store)
        try:
            store.claim()  # no crawl beside it: the sums before and after are to differ by what was taken over
            before = store.books(0)
            self._move(source, store, config)
            self._report(before, store.books(0))
            if store.was_clean():
                store.mark_clean()
        finally:
            store.close()

    def _move(self, source: str, store: Store | None, config: Config) -> None:
        try:
            from linkcrawl.ingest.clarin_legacy import migrate
        except ModuleNotFoundError as fault:
            raise ConfigError(
                f"migrate-legacy: needs the package {fault.name}; pip install 'linkcrawl[mongo]' would work"
            ) from fault

        def rejected(row: Reject) -> None:
            with config.rejects.open("a", encoding="ascii") as file:
                file.write(json.dumps(asdict(row)) + "\n")

        try:
            moved = migrate(source, store, rejected)
        except OSError as fault:
            raise ConfigError(f"LINKCRAWL_REJECTS: {str(config.rejects)!r} can't be written: {fault}") from fault
        for one in moved:
            print(one.line())
            if not one.balances:
                print(f"linkcrawl: {one.name} was written to meanwhile: run it again", file=sys.stderr)
                self.exitcode = UNUSABLE
        if any(one.rejected for one in moved):
            print(f"rejected documents are in {config.rejects}")

    def _report(self, before: Totals, after: Totals) -> None:
        for name in ("links", "proxies", "records"):
            there, now = getattr(before, name), getattr(after, name)
            print(f"{name} in the store: {there} before, {now} after, {now - there} new")
