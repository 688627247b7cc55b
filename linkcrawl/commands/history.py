"""`scrapy history`: every check of one link that is kept, its mentions, and when it is due. Sends nothing."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import closing

from linkcrawl.cli.options import OfflineCommand
from linkcrawl.cli.terminal import name_list, table
from linkcrawl.errors import ConfigError
from linkcrawl.exports import jsonl
from linkcrawl.ingest.ingest import link_entry
from linkcrawl.items import DueLink, Record, Seed, iso
from linkcrawl.stores.contract import NEVER, Proxy
from linkcrawl.stores.opening import open_existing
from linkcrawl.urls.userinfo import without_userinfo

_HEAD = ("checked at", "category", "reason", "status", "method", "ms", "final URL")


class Command(OfflineCommand):
    """May run beside a crawl."""

    def syntax(self) -> str:
        return "URL [--format table|jsonl]"

    def short_desc(self) -> str:
        return "Show every check of one link that is kept, its mentions, and when it is due"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--format", choices=["table", "jsonl"], default="table")

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise ConfigError("scrapy history: one URL is needed; scrapy history https://example.org/ would work")
        given = without_userinfo(args[0])
        key = link_entry(Seed(url=given)).key
        with closing(open_existing(self.config().store)) as store:
            link = store.link(key)
            if link is None:
                raise ConfigError(f"scrapy history: the store has no link {given!r}; a URL that was seeded would work")
            if opts.format == "jsonl":
                for record in store.history(key):
                    sys.stdout.buffer.write(jsonl.line(record.row()))
                return
            mentions = store.proxies([link.id])[link.id]
            print(name_list(_facts(link, mentions, time.time())))
            rows = [_row(record) for record in store.history(key)]
        print()
        print(table(_HEAD, rows) if rows else "never checked")


def _facts(link: DueLink, mentions: list[Proxy], now: float) -> list[tuple[str, str]]:
    """The link, and who mentions it."""
    facts = [("url", link.url), ("due", _due_text(link, now))]
    for number, mention in enumerate(mentions):
        fields = ("collection", "provider", "record", "resource_type", "expected_mime")
        given = ", ".join(f"{name} {value}" for name in fields if (value := getattr(mention, name)))
        facts.append(("" if number else "mentioned", given or "without a collection or record"))
    return facts


def _due_text(link: DueLink, now: float) -> str:
    if link.is_retired:
        return "never: it is retired, no collection mentions it any more"
    if link.last_checked_at is None:
        return "yes, it was never checked"
    if link.next_check_at <= NEVER:
        return "yes, as soon as it is its turn"
    return f"{'yes, since' if link.next_check_at <= now else 'no, again at'} {iso(link.next_check_at)}"


def _row(record: Record) -> tuple[str, ...]:
    confirmed = "" if record.confirmed else " (suspected)"
    return (
        iso(record.checked_at),
        f"{record.category}{confirmed}",
        record.reason,
        "" if record.status is None else str(record.status),
        record.method or "",
        "" if record.duration_ms is None else str(record.duration_ms),
        record.final_url or record.error or "",
    )
