"""`scrapy seed`: seeds taken up into the store, nothing checked."""

from __future__ import annotations

import argparse
import sys
import time

from rich.console import Console
from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

from linkcrawl.cli.errors import one_line
from linkcrawl.config import Config, read_config
from linkcrawl.errors import StoreLost
from linkcrawl.ingest.ingest import Counts, ingest
from linkcrawl.stores.opening import open_store
from linkcrawl.stores.retry import REPEAT, RETRY


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
        with one_line(self):
            config = read_config(self.settings or {}, need_contact=False)
            try:
                self._take_up(args, config)
            except (KeyboardInterrupt, StoreLost):
                self._report(config)
                raise
            self._report(config)

    def _take_up(self, args: list[str], config: Config) -> None:
        store = open_store(config.store)
        try:
            with Console(stderr=True).status("reading") as status:
                waiting = _Waiting(config.patience)

                def progress(counts: Counts) -> None:
                    self.counts = counts
                    waiting.is_over()
                    status.update(f"{counts.read} read")

                ingest(args, store, config.rejects, progress, waiting.after)
        finally:
            store.close()

    def _report(self, config: Config) -> None:
        counts = self.counts
        print(f"{counts.read} read, {counts.new} new, {counts.known} known, {counts.rejected} rejected")
        if counts.rejected:
            print(f"rejected lines are in {config.rejects}, with file, line number and reason")


class _Waiting:
    """For a store that was lost, as a crawl waits for it: a try a second, a line a minute, LINKCRAWL_PATIENCE long."""

    def __init__(self, patience: float):
        self._patience = patience
        self._since: float | None = None
        self._told = 0.0

    def is_over(self) -> None:
        """The store has answered."""
        self._since = None

    def after(self, fault: StoreLost) -> None:
        """Return when it is time to try again; raises the fault when it was waited for long enough."""
        now = time.monotonic()
        if self._since is None or now - self._told >= REPEAT:
            self._told = now
            print(f"linkcrawl: the store is lost, waiting for it: {fault}", file=sys.stderr)
        self._since = now if self._since is None else self._since
        if now - self._since >= self._patience:
            raise fault
        time.sleep(RETRY)
