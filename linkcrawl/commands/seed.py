"""`scrapy seed`: seeds taken up into the store, nothing checked."""

from __future__ import annotations

import argparse

from rich.console import Console
from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from linkcrawl.cli.errors import one_line
from linkcrawl.config import Config, read_config
from linkcrawl.errors import StoreLost
from linkcrawl.ingest.ingest import IngestCounts, ingest
from linkcrawl.stores.opening import open_store
from linkcrawl.stores.retry import BlockingRetry


class Command(ScrapyCommand):
    requires_project = True
    requires_crawler_process = False

    def __init__(self) -> None:
        super().__init__()
        self.counts = IngestCounts()

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
        with one_line(self):
            config = read_config(self.settings or {}, need_contact=False)
            try:
                self._ingest(args, config)
            except (KeyboardInterrupt, StoreLost):
                self._report(config)
                raise
            self._report(config)

    def _ingest(self, args: list[str], config: Config) -> None:
        store = open_store(config.store)
        try:
            with Console(stderr=True).status("reading") as status:
                retry = BlockingRetry(config.patience)

                def progress(counts: IngestCounts) -> None:
                    self.counts = counts
                    retry.answered()
                    status.update(f"{counts.read} read")

                ingest(args, store, config.rejects, progress, retry.wait)
        finally:
            store.close()

    def _report(self, config: Config) -> None:
        counts = self.counts
        print(f"{counts.read} read, {counts.new} new, {counts.known} known, {counts.rejected} rejected")
        if counts.rejected:
            print(f"rejected lines are in {config.rejects}, with file, line number and reason")
