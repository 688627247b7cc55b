"""`scrapy simulate`: how long a crawl takes, which gates take longest, and what another policy file would change. Sends
nothing."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from rich.console import Console
from rich.table import Table

from linkcrawl.cli.options import OfflineCommand
from linkcrawl.config import Config
from linkcrawl.errors import ConfigError
from linkcrawl.politeness.host_state import HostStateCache
from linkcrawl.politeness.policy.file import load
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.simulation.scenario import SLOWEST, Scenario, run_scenario
from linkcrawl.simulation.workload import of_catalogue, of_sources, of_store
from linkcrawl.status.snapshot import policies_of
from linkcrawl.stores.opening import open_existing
from linkcrawl.text import seconds_text, span


class Command(OfflineCommand):
    """Reads only; may run beside a crawl."""

    def syntax(self) -> str:
        return "[SOURCE...] [--policies FILE] [--catalogue FILE --links N --hosts N] [--format text|json]"

    def short_desc(self) -> str:
        return "Tell how long a crawl takes, and what another policy file would change"

    def long_desc(self) -> str:
        return (
            "Crawls the store's due links, the links of sources, or an imagined catalogue on a virtual clock. With "
            "--policies, crawls them also under that file, to compare it with the one in force (LINKCRAWL_POLICIES). "
            "Every answer is assumed to be good and to take as long as it did before. Redirects are known only of an "
            "imagined catalogue."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--policies", metavar="FILE", help="policy file to compare with the one in force")
        parser.add_argument("--catalogue", metavar="FILE", help="profile (JSON) of a made-up catalogue")
        parser.add_argument("--links", type=int, default=1_000_000, help="links of the made-up catalogue")
        parser.add_argument("--hosts", type=int, default=1_000, help="hosts of the made-up catalogue, 2 or more")
        parser.add_argument("--format", choices=("text", "json"), default="text")

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        config = self.config()
        if opts.catalogue and (args or opts.links < 1 or opts.hosts < 2):
            raise ConfigError("--catalogue: takes no SOURCE, and needs --links 1 and --hosts 2, or more")
        policies = {"now": policies_of(config)}
        if opts.policies:
            policies[f"with {opts.policies}"] = load(Path(opts.policies))
        scenarios = {name: _run(args, opts, config, rules) for name, rules in policies.items()}
        if opts.format == "json":
            rows = {name: scenario.row() for name, scenario in scenarios.items()}
            print(json.dumps(rows, ensure_ascii=False, indent=1))
        else:
            _show(scenarios)


def _run(args: list[str], opts: argparse.Namespace, config: Config, policies: Policies) -> Scenario:
    now = time.time()
    if opts.catalogue:
        work, answer_times = of_catalogue(Path(opts.catalogue), opts.links, opts.hosts)
        return run_scenario(work, config, policies, HostStateCache(), now, answer_times=answer_times)
    if args:
        return run_scenario(of_sources(args), config, policies, HostStateCache(), now)
    with closing(open_existing(config.store)) as store:
        work, orders = of_store(store, policies, now), store.orders()
        hosts = HostStateCache(store.hosts(), now=lambda: now)
    return run_scenario(work, config, policies, hosts, now, orders=orders)


def _show(scenarios: Mapping[str, Scenario]) -> None:
    """A sentence and a table for each scenario; then the difference, where there are two."""
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else 160)  # a pipe has no width to keep to
    for name, scenario in scenarios.items():
        result = scenario.result
        ratio = result.makespan / result.bound if result.bound else 1.0
        console.print(
            f"{name}: {result.requests:,} requests in {span(result.makespan)}, {ratio:.3f} times the least that "
            f"politeness allows ({span(result.bound)})" + (f"; {result.left:,} links stay due" if result.left else ""),
            highlight=False,
        )
        console.print(_slowest(scenario))
    if len(scenarios) == 2:
        before, after = (span(scenario.result.makespan) for scenario in scenarios.values())
        console.print(f"The change: {before} become {after}.", highlight=False)


def _slowest(scenario: Scenario) -> Table:
    table = Table("slowest", "requests", "delay", "because", "alone takes", "ends after", box=None)
    for minimum in scenario.times[:SLOWEST]:
        end = scenario.result.ends.get(minimum.name)
        table.add_row(
            minimum.name,
            f"{minimum.requests:,}",
            seconds_text(minimum.delay),
            scenario.origin(minimum),
            span(minimum.seconds),
            "" if end is None else span(end),
        )
    return table
