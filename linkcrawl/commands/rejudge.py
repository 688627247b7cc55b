"""`scrapy rejudge`: the latest records judged by the present verdict table, without a request."""

from __future__ import annotations

import argparse
import time
from collections import Counter
from contextlib import closing
from typing import Any

from attrs import evolve
from scrapy.exceptions import UsageError

from linkcrawl.check.recheck import Intervals
from linkcrawl.check.rejudge import rejudge
from linkcrawl.check.verdict import VERDICT_VERSION
from linkcrawl.cli.options import OfflineCommand
from linkcrawl.cli.terminal import table
from linkcrawl.items import DueLink, Record, Rejudged
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.status.snapshot import policies_of
from linkcrawl.stores.contract import Store
from linkcrawl.stores.opening import open_existing, open_store
from linkcrawl.stores.retry import BlockingRetry

#: Links that are judged and stored together.
BATCH = 1000

COLUMNS = ("LINKS", "BEFORE", "NOW")


class Command(OfflineCommand):
    """May run beside a crawl, and be stopped at any moment: what was judged stays, the rest is judged next time."""

    def __init__(self) -> None:
        super().__init__()
        self._changes = Counter[tuple[str, str]]()
        self._kept = self._overtaken = 0

    def syntax(self) -> str:
        return "[--dry-run]"

    def short_desc(self) -> str:
        return "Judge the latest records by the present verdict table, without a request"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--dry-run", action="store_true", help="only count; nothing is changed")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if args:
            raise UsageError("it takes no arguments")
        super().run(args, opts)

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        config = self.config()
        policies, retry = policies_of(config), BlockingRetry(config.patience)
        open_existing(config.store).close()  # a store that isn't there is a mistake, not a new store
        with closing(open_existing(config.store) if opts.dry_run else open_store(config.store)) as store:
            try:
                self._rejudge(store, policies, retry, opts.dry_run)
            finally:
                print(self._report(opts.dry_run))

    def _rejudge(self, store: Store, policies: Policies, retry: BlockingRetry, dry_run: bool) -> None:
        after = None
        while found := retry.call(store.judged_before, VERDICT_VERSION, BATCH, after):
            after = found[-1][0].id
            rejudged = [_judged(link, record, policies) for link, record in found]
            overtaken = frozenset() if dry_run else retry.call(store.rejudge, rejudged)
            self._count(rejudged, overtaken)

    def _count(self, rejudged: list[Rejudged], overtaken: frozenset[int | str]) -> None:
        self._overtaken += len(overtaken)
        for result in rejudged:
            if result.record.link_id in overtaken:
                continue
            if result.is_changed:
                self._changes[_words(result.before), _words(result.record)] += 1
            else:
                self._kept += 1

    def _report(self, dry_run: bool) -> str:
        changed = self._changes.total()
        lines = [(f"{count}", before, now) for (before, now), count in sorted(self._changes.items(), key=_place)]
        would = "would be judged otherwise" if dry_run else "judged otherwise"
        sums = f"{changed + self._kept} latest records of older tables: {changed} {would}, {self._kept} as before"
        if self._overtaken:
            sums += f"; {self._overtaken} were changed by a crawl meanwhile and left alone"
        return "\n".join([*([table(COLUMNS, lines)] if lines else []), sums])


def _judged(link: DueLink, record: Record, policies: Policies) -> Rejudged:
    applied = policies.of_link(link.host, link.collections, link.providers)
    changes: dict[str, Any] = dict(applied.recheck)
    return rejudge(link, record, evolve(Intervals(), **changes), time.time())


def _words(record: Record) -> str:
    suspected = "" if record.confirmed else " (suspected)"
    return f"{record.category} {record.reason}{suspected}"


def _place(line: tuple[tuple[str, str], int]) -> tuple[int, tuple[str, str]]:
    """The most first."""
    words, count = line
    return -count, words
