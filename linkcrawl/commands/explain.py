"""`scrapy explain`: what a crawl would do with a URL, and why. Sends nothing."""

from __future__ import annotations

import argparse
import json
import time
from contextlib import closing

from linkcrawl import urls
from linkcrawl.cli.options import OfflineCommand, add_format
from linkcrawl.cli.terminal import name_list
from linkcrawl.errors import ConfigError
from linkcrawl.status.explain import explain
from linkcrawl.status.render import explanation_facts
from linkcrawl.status.snapshot import StoreSnapshot, policies_of
from linkcrawl.stores.opening import open_existing


class Command(OfflineCommand):
    """Reads the store, the policy file and the settings; may run beside a crawl."""

    def syntax(self) -> str:
        return "URL [--format table|json]"

    def short_desc(self) -> str:
        return "Say what would be done with a URL and why: gate, delay, policies, robots.txt, history"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add_format(parser)

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        if len(args) != 1:
            raise ConfigError("scrapy explain: one URL is needed; scrapy explain https://example.org/ would work")
        config = self.config()
        policies = policies_of(config)
        with closing(open_existing(config.store)) as store:
            target = urls.read(args[0])
            host = target.host if isinstance(target, urls.Target) else None
            snapshot = StoreSnapshot.of(store, config, policies, time.time(), robots_of=host)
            explanation = explain(store, snapshot, args[0])
        if opts.format == "json":
            print(json.dumps(explanation.row(), indent=2))
        else:
            print(name_list(explanation_facts(explanation)))
