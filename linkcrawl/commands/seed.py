"""`scrapy seed`: adds seeds to the store, and retires what a complete harvest lacks. Sends nothing."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial

from rich.console import Console
from scrapy.exceptions import UsageError

from linkcrawl.cli.errors import UNUSABLE, print_fault
from linkcrawl.cli.options import OfflineCommand
from linkcrawl.config import Config
from linkcrawl.errors import ConfigError, StoreLost
from linkcrawl.ingest.harvest import HarvestNotes, Reconciliation, RetireRules, Scope, SeenLinks, reconcile
from linkcrawl.ingest.ingest import IngestCounts, add_entries, ingest, repeated
from linkcrawl.sources.files import SUFFIXES
from linkcrawl.stores.contract import AddCounts, LinkEntry, Store
from linkcrawl.stores.opening import open_existing, open_store
from linkcrawl.stores.retry import BlockingRetry


class Command(OfflineCommand):
    """May run beside a crawl. The counts so far are printed however it ends."""

    def __init__(self) -> None:
        super().__init__()
        self._counts = IngestCounts()

    def syntax(self) -> str:
        return "SOURCE... [--complete [all]] [--dry-run] [--force]"

    def short_desc(self) -> str:
        return "Add seeds to the store without checking them"

    def long_desc(self) -> str:
        return (
            "With --complete, mentions that a whole harvest lacks are retired: their links are asked no more, unless "
            "another mention is left. Where more of a collection is missing than LINKCRAWL_RETIRE_LIMIT allows, more "
            "than a tenth of the lines were rejected, or a source was empty or not read to its end, nothing is retired "
            f"(status 2). SOURCE is a file ({' '.join(SUFFIXES)}, gzipped or not), a folder of such files, "
            "or - for JSON lines on standard input. Rejected lines are appended to LINKCRAWL_REJECTS."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--complete",
            nargs="?",
            const=Scope.COLLECTIONS,
            metavar="all",
            help="the sources are the whole harvest of every collection in them: retire mentions that they lack; "
            "`--complete all`: the whole harvest of the catalogue",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="with --complete: say how many links would be retired"
        )
        parser.add_argument("--force", action="store_true", help="with --complete: retire however many are missing")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if opts.complete not in (None, *Scope):  # a source that stands behind the option
            args, opts.complete = [opts.complete, *args], Scope.COLLECTIONS
        if not args or any(arg.startswith("-") and arg != "-" for arg in args):
            raise UsageError("one SOURCE or several are needed")
        super().run(args, opts)

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        config = self.config()
        for name in ("dry_run", "force"):
            if getattr(opts, name) and opts.complete is None:
                raise ConfigError(f"scrapy seed: --{name.replace('_', '-')} goes with --complete only")
        try:
            if opts.complete is None:
                with closing(open_store(config.store)) as store:
                    self._ingest(args, store, config, add_entries)
            else:
                scope = Scope(opts.complete)
                limit = config.retire_limit
                self._harvest(
                    args, config, RetireRules(scope=scope, limit=limit, force=opts.force, dry_run=opts.dry_run)
                )
        except (KeyboardInterrupt, StoreLost):
            self._print_counts(config)
            raise
        if opts.complete is None:
            self._print_counts(config)

    def _ingest(
        self,
        args: list[str],
        store: Store,
        config: Config,
        add: Callable[[Store, Sequence[LinkEntry]], AddCounts],
        notes: HarvestNotes | None = None,
        *,
        dry_run: bool = False,
    ) -> None:
        with Console(stderr=True).status("reading") as status:
            retry = BlockingRetry(config.patience)

            def on_progress(counts: IngestCounts) -> None:
                self._counts = counts
                retry.answered()
                status.update(f"{counts.read} read")

            ingest(args, store, config.rejects, on_progress, retry.wait, notes, add, dry_run=dry_run)

    def _harvest(self, args: list[str], config: Config, rules: RetireRules) -> None:
        notes, seen = HarvestNotes(), SeenLinks() if rules.dry_run else None
        wait = BlockingRetry(config.patience).wait
        opened = open_existing if rules.dry_run else open_store
        with closing(opened(config.store)) as store:
            harvest = repeated(store.begin_harvest, wait, time.time())
            self._ingest(
                args, store, config, partial(_take_up, harvest=harvest, seen=seen), notes, dry_run=rules.dry_run
            )
            done = repeated(reconcile, wait, store, harvest, notes, rules, time.time(), seen)
            repeated(store.end_harvest, wait, harvest, time.time())
        self._print_counts(config)
        _print_retired(done, dry_run=rules.dry_run)
        for reason in done.refused:
            print_fault(reason)
        if done.refused:
            self.exitcode = UNUSABLE

    def _print_counts(self, config: Config) -> None:
        counts = self._counts
        print(f"{counts.read} read, {counts.new} new, {counts.known} known, {counts.rejected} rejected")
        if counts.retracted:
            print(f"{counts.retracted} mentions taken back")
        if counts.rejected:
            print(f"rejected lines are in {config.rejects}, with file, line number and reason")


def _take_up(store: Store, entries: Sequence[LinkEntry], *, harvest: int, seen: SeenLinks | None) -> AddCounts:
    """Add a batch of a harvest; in a dry run only note which links and mentions it has."""
    if seen is None:
        return add_entries(store, entries, harvest)
    seen.add(entries)
    store.mark(entries, harvest)
    known = store.known({entry.key for entry in entries})
    return AddCounts(
        new=len({entry.key for entry in entries} - known), known=sum(entry.key in known for entry in entries)
    )


def _print_retired(done: Reconciliation, *, dry_run: bool) -> None:
    what = "links that would be retired" if dry_run else "links retired"
    for name, one in done.retired.items():
        print(f"{what}, collection {repr(name) if name else 'none'}: {one.links}")
    print(f"{what}: {done.total.links}")
