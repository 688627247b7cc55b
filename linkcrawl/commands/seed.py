"""`scrapy seed`: seeds taken up into the store, nothing checked."""

from __future__ import annotations

import argparse
import sys

from rich.console import Console
from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from linkcrawl.config import Config, ConfigError, read_config
from linkcrawl.stores import StoreError, StoreLost, open_store
from linkcrawl.takeup import Counts, take_up

# Exit statuses, those of every command (docs).
STORE_LOST = 1
UNUSABLE = 2
INTERRUPTED = 130


class Command(ScrapyCommand):
    requires_project = True
    requires_crawler_process = False

    def __init__(self) -> None:
        super().__init__()
        self.counts = Counts()

    def syntax(self) -> str:
        return "SOURCE..."

    def short_desc(self) -> str:
        return "Take seeds up into the store without checking them"

    def long_desc(self) -> str:
        return (
            "SOURCE is a file (.jsonl .ndjson .csv .tsv .txt .xml .cmdi, gzipped or not), a folder of such files, "
            "or - for JSON lines on standard input. Rejected lines are added to LINKCRAWL_REJECTS."
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if not args or any(arg.startswith("-") and arg != "-" for arg in args):
            raise UsageError("one SOURCE or several are needed")
        try:
            config = read_config(self.settings or {}, need_contact=False)
            self._take_up(args, config)
        except (ConfigError, StoreError) as error:
            print(error, file=sys.stderr)
            self.exitcode = STORE_LOST if isinstance(error, StoreLost) else UNUSABLE
            return
        except KeyboardInterrupt:
            self.exitcode = INTERRUPTED
        self._report(config)

    def _take_up(self, args: list[str], config: Config) -> None:
        store = open_store(config.store)
        try:
            with Console(stderr=True).status("reading") as status:

                def progress(counts: Counts) -> None:
                    self.counts = counts
                    status.update(f"{counts.read} read")

                take_up(args, store, config.rejects, progress)
        finally:
            store.close()

    def _report(self, config: Config) -> None:
        counts = self.counts
        print(f"{counts.read} read, {counts.new} new, {counts.known} known, {counts.rejected} rejected")
        if counts.rejected:
            print(f"rejected lines are in {config.rejects}, with file, line number and reason")
