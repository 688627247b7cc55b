"""`scrapy migrate-legacy`: copies the database of CLARIN's older link checker into the store. Sends nothing.

The dash in the file's name is the command's: Scrapy names commands after their modules.
"""
# ruff: noqa: N999

from __future__ import annotations

import argparse
import json
from contextlib import closing

from attrs import asdict
from scrapy.exceptions import UsageError

from linkcrawl.cli.errors import UNUSABLE, print_fault
from linkcrawl.cli.options import OfflineCommand
from linkcrawl.config import Config
from linkcrawl.errors import ConfigError
from linkcrawl.items import Reject
from linkcrawl.stores.contract import Store, Totals
from linkcrawl.stores.opening import open_store


class Command(OfflineCommand):
    """Takes the store as a crawl does: nothing else may add to it meanwhile, so that the sums can be compared."""

    def syntax(self) -> str:
        return "mongodb://HOST:PORT/DB [options]"

    def short_desc(self) -> str:
        return "Copy the database of CLARIN's older link checker into the store"

    def long_desc(self) -> str:
        return (
            "Adds the links of linksToBeChecked and the results of linksChecked and linksCheckedHistory to the store. "
            "The old database is only read. Running it again adds nothing twice."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--dry-run", action="store_true", help="only read and count")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise UsageError("one URL mongodb://HOST:PORT/DB is needed")
        super().run(args, opts)

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        config = self.config()
        if opts.dry_run:
            self._migrate(args[0], None, config)
            return
        with closing(open_store(config.store)) as store:
            store.claim()
            before = store.books(0)
            self._migrate(args[0], store, config)
            _print_sums(before, store.books(0))
            if store.was_clean():
                store.mark_clean()

    def _migrate(self, source: str, store: Store | None, config: Config) -> None:
        try:
            from linkcrawl.ingest.clarin_legacy import migrate
        except ModuleNotFoundError as fault:
            raise ConfigError(
                f"migrate-legacy: needs the package {fault.name}; pip install 'linkcrawl[mongo]' would work"
            ) from fault

        def on_reject(row: Reject) -> None:
            with config.rejects.open("a", encoding="ascii") as file:
                file.write(json.dumps(asdict(row)) + "\n")

        try:
            collections = migrate(source, store, on_reject)
        except OSError as fault:
            raise ConfigError(f"LINKCRAWL_REJECTS: {str(config.rejects)!r} can't be written: {fault}") from fault
        for counts in collections:
            print(counts.line())
            if not counts.balances:
                print_fault(f"{counts.name} was written to meanwhile: run it again")
                self.exitcode = UNUSABLE
        if any(counts.rejected for counts in collections):
            print(f"rejected documents are in {config.rejects}")


def _print_sums(before: Totals, after: Totals) -> None:
    for name in ("links", "proxies", "records"):
        old, new = getattr(before, name), getattr(after, name)
        print(f"{name} in the store: {old} before, {new} after, {new - old} new")
