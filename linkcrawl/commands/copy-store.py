"""`scrapy copy-store`: everything of one store into another, of whatever kind."""  # noqa: N999

from __future__ import annotations

import argparse
from contextlib import ExitStack

from rich.console import Console
from scrapy.exceptions import UsageError

from linkcrawl.cli.options import OfflineCommand
from linkcrawl.errors import ConfigError, StoreError
from linkcrawl.stores.copying import copy
from linkcrawl.stores.opening import display_name, open_existing, open_store


class Command(OfflineCommand):
    """Holds the claims of both stores, so that no crawl changes what is being copied."""

    def syntax(self) -> str:
        return "FROM TO"

    def short_desc(self) -> str:
        return "Copy everything of one store into another"

    def long_desc(self) -> str:
        return (
            "FROM and TO are URLs as in LINKCRAWL_STORE. TO must be empty, or hold an unfinished copy of FROM, which "
            "then goes on."
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 2:
            raise UsageError("two stores are needed, FROM and TO")
        super().run(args, opts)

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        self.config()
        names = [display_name(url) for url in args]
        if names[0] == names[1]:
            raise ConfigError(f"scrapy copy-store: FROM and TO are both {names[0]}; another TO would work")
        with ExitStack() as stack:
            try:
                source = open_existing(args[0])
                stack.callback(source.close)
                source.claim()
                is_clean = source.was_clean()
                if is_clean:
                    stack.callback(source.mark_clean)
                target = open_store(args[1])
                stack.callback(target.close)
                target.claim()
                with Console(stderr=True).status("copying") as status:
                    before, after = copy(
                        source.copyable(),
                        target.copyable(),
                        names[0],
                        lambda links, records: status.update(f"{links} links, {records} records copied"),
                    )
                if is_clean:
                    target.mark_clean()
            except StoreError as fault:
                raise type(fault)(f"scrapy copy-store: {str(fault).removeprefix('LINKCRAWL_STORE: ')}") from fault
        for what, count in before.items():
            print(f"{what}: {count} in {names[0]}, {after[what]} in {names[1]}")
        if before != after:
            raise ConfigError(
                f"scrapy copy-store: {names[0]} was written to meanwhile; once more into an empty TO would work"
            )
