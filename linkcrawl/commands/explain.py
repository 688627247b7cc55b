"""`scrapy explain`: what would be done with a URL, and why. Nothing is sent."""

from __future__ import annotations

import argparse
import json
import time
from contextlib import closing

from scrapy.commands import ScrapyCommand

from linkcrawl.cli.errors import one_line
from linkcrawl.cli.terminal import facts, tell
from linkcrawl.errors import ConfigError
from linkcrawl.status.explain import Explanation
from linkcrawl.status.snapshot import StoreSnapshot, config_of, policies_of
from linkcrawl.stores.opening import open_existing


class Command(ScrapyCommand):
    """Answers from the store, the policy file and the settings, also while a crawl runs."""

    requires_project = True
    requires_crawler_process = False

    def syntax(self) -> str:
        return "URL [--format table|json]"

    def short_desc(self) -> str:
        return "Say what would be done with a URL and why: gate, delay, policies, robots.txt, history"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--format", choices=["table", "json"], default="table")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with one_line(self):
            if len(args) != 1:
                raise ConfigError("scrapy explain: one URL is needed; scrapy explain https://example.org/ would work")
            config = config_of(self.settings)
            policies = policies_of(config)
            with closing(open_existing(config.store)) as store:
                outlook = StoreSnapshot.of(store, config, policies, time.time())
                explanation = Explanation(store, outlook, args[0])
                as_json = opts.format == "json"
                tell(json.dumps(explanation.row(), indent=2) if as_json else facts(explanation.facts()))
