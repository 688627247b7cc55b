"""`scrapy seed`: adds seeds to the store. Sends nothing."""

from __future__ import annotations

import argparse
from contextlib import closing

from rich.console import Console
from scrapy.exceptions import UsageError

from linkcrawl.cli.options import OfflineCommand
from linkcrawl.config import Config
from linkcrawl.errors import StoreLost
from linkcrawl.ingest.ingest import IngestCounts, ingest
from linkcrawl.sources.files import SUFFIXES
from linkcrawl.stores.opening import open_store
from linkcrawl.stores.retry import BlockingRetry


class Command(OfflineCommand):
    """May run beside a crawl. The counts so far are printed however it ends."""

    def __init__(self) -> None:
        super().__init__()
        self._counts = IngestCounts()

    def syntax(self) -> str:
        return "SOURCE..."

    def short_desc(self) -> str:
        return "Add seeds to the store without checking them"

    def long_desc(self) -> str:
        return (
            f"SOURCE is a file ({' '.join(SUFFIXES)}, gzipped or not), a folder of such files, "
            "or - for JSON lines on standard input. Rejected lines are appended to LINKCRAWL_REJECTS."
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if not args or any(arg.startswith("-") and arg != "-" for arg in args):
            raise UsageError("one SOURCE or several are needed")
        super().run(args, opts)

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        config = self.config()
        try:
            self._ingest(args, config)
        except (KeyboardInterrupt, StoreLost):
            self._print_counts(config)
            raise
        self._print_counts(config)

    def _ingest(self, args: list[str], config: Config) -> None:
        with closing(open_store(config.store)) as store, Console(stderr=True).status("reading") as status:
            retry = BlockingRetry(config.patience)

            def on_progress(counts: IngestCounts) -> None:
                self._counts = counts
                retry.answered()
                status.update(f"{counts.read} read")

            ingest(args, store, config.rejects, on_progress, retry.wait)

    def _print_counts(self, config: Config) -> None:
        counts = self._counts
        print(f"{counts.read} read, {counts.new} new, {counts.known} known, {counts.rejected} rejected")
        if counts.rejected:
            print(f"rejected lines are in {config.rejects}, with file, line number and reason")
