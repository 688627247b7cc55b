"""`scrapy simulate`: how long a crawl takes, what for, and what a change of policy would cost. Sends nothing."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any

from attrs import frozen
from rich.console import Console
from rich.table import Table
from scrapy.commands import ScrapyCommand

from linkcrawl.cli.errors import one_line
from linkcrawl.config import Config, read_config
from linkcrawl.errors import ConfigError
from linkcrawl.items import Order
from linkcrawl.politeness.host_state import HostStateCache
from linkcrawl.politeness.policy.file import load
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.politeness.robots.cache import restored
from linkcrawl.simulation.engine import Chain, SimulationResult, chains, simulate
from linkcrawl.simulation.workload import LoadBuilder, Workload, of_catalogue, of_sources, of_store
from linkcrawl.status.snapshot import StoreSnapshot
from linkcrawl.stores.opening import open_existing
from linkcrawl.units import DAY, HOUR, MINUTE

#: Seconds of an answer from a host that has never been asked: the mean of a whole catalogue's (4 million checks).
UNKNOWN = 0.44
#: Slowest gates that are shown.
SHOWN = 15


@frozen(kw_only=True)
class WhatIf:
    """A crawl under some policies: its course, the time that each gate alone takes, and where delays come from."""

    course: SimulationResult
    chains: list[Chain]
    origins: Mapping[str, str]

    def row(self) -> dict[str, Any]:
        course = self.course
        return {
            "requests": course.requests,
            "left": course.left,
            "makespan_s": course.makespan,
            "bound_s": course.bound,
            "ratio": course.makespan / course.bound if course.bound else None,
            "slowest": [
                {
                    "name": chain.name,
                    "requests": chain.requests,
                    "delay_s": chain.delay,
                    "because": self.origins.get(chain.name, "policy"),
                    "alone_s": chain.seconds,
                    "ends_s": course.ends.get(chain.name),
                }
                for chain in self.chains[:SHOWN]
            ],
        }


class Command(ScrapyCommand):
    """Reads only, and may run beside a crawl."""

    requires_project = True
    requires_crawler_process = False

    def syntax(self) -> str:
        return "[SOURCE...] [--policies FILE] [--catalogue FILE --links N --hosts N] [--format text|json]"

    def short_desc(self) -> str:
        return "Tell how long a crawl takes, and what another policy file would change"

    def long_desc(self) -> str:
        return (
            "Crawls what is due in the store, the links of sources, or an imagined catalogue, on a virtual clock. With "
            "--policies, also under that file, beside the one in force (LINKCRAWL_POLICIES). Answers are taken to come "
            "as quickly as they did, and to be good. Redirects are known of an imagined catalogue only."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--policies", metavar="FILE", help="policy file to compare with the one in force")
        parser.add_argument("--catalogue", metavar="FILE", help="profile (JSON) of an imagined catalogue")
        parser.add_argument("--links", type=int, default=1_000_000, help="links of the imagined catalogue")
        parser.add_argument("--hosts", type=int, default=1_000, help="hosts of the imagined catalogue, 2 or more")
        parser.add_argument("--format", choices=("text", "json"), default="text")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with one_line(self):
            self._simulate(args, opts)

    def _simulate(self, args: list[str], opts: argparse.Namespace) -> None:
        config = read_config(self.settings or {}, need_contact=False)
        if opts.catalogue and (args or opts.links < 1 or opts.hosts < 2):
            raise ConfigError("--catalogue: takes no SOURCE, and wants --links from 1 and --hosts from 2")
        policies = {"now": load(config.policies) if config.policies else Policies()}
        if opts.policies:
            policies[f"with {opts.policies}"] = load(Path(opts.policies))
        outcomes = {name: self._outcome(args, opts, config, rules) for name, rules in policies.items()}
        if opts.format == "json":
            print(json.dumps({name: outcome.row() for name, outcome in outcomes.items()}, ensure_ascii=False, indent=1))
        else:
            show(outcomes)

    def _outcome(self, args: list[str], opts: argparse.Namespace, config: Config, policies: Policies) -> WhatIf:
        now, book, orders = time.time(), HostStateCache(), dict[str, Order]()
        seconds: Mapping[str, float] = {}
        if opts.catalogue:
            work, seconds = of_catalogue(Path(opts.catalogue), opts.links, opts.hosts)
        elif args:
            work = of_sources(args)
        else:
            with closing(open_existing(config.store)) as store:
                work, book, orders = (
                    of_store(store, policies, now),
                    HostStateCache(store.hosts(), now=lambda: now),
                    store.orders(),
                )
        return outcome(work, config, policies, book, now, orders=orders, seconds=seconds)


def outcome(
    work: Workload,
    config: Config,
    policies: Policies,
    book: HostStateCache,
    now: float,
    *,
    orders: Mapping[str, Order] = MappingProxyType({}),
    seconds: Mapping[str, float] = MappingProxyType({}),
) -> WhatIf:
    """Crawl a workload on the virtual clock. `book`: what is remembered of hosts; `seconds`: answer times known
    better, by host."""
    outlook = StoreSnapshot(
        config=config,
        policies=policies,
        hosts=book,
        robots=restored(book, token=config.product, ttl=config.robots_ttl),
        orders=orders,
        due={},
        started_at=now,
        now=lambda: now,
    )
    loading = LoadBuilder(outlook, seconds)
    loads = loading.loads(work, UNKNOWN)
    course = simulate(loads, loading.limits, config.concurrent_requests or sys.maxsize, began=now)
    return WhatIf(course=course, chains=chains(loads, loading.limits), origins=loading.origins)


def show(outcomes: Mapping[str, WhatIf]) -> None:
    """A paragraph and a table for each; last, what the second changes."""
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else 160)  # a pipe has no width to keep to
    for name, made in outcomes.items():
        course = made.course
        ratio = course.makespan / course.bound if course.bound else 1.0
        console.print(
            f"{name}: {course.requests:,} requests in {span(course.makespan)}, {ratio:.3f} times the least that "
            f"politeness allows ({span(course.bound)})" + (f"; {course.left:,} links stay due" if course.left else ""),
            highlight=False,
        )
        console.print(_slowest(made))
    if len(outcomes) == 2:
        before, after = outcomes.values()
        console.print(
            f"The change: {span(before.course.makespan)} become {span(after.course.makespan)}.", highlight=False
        )


def _slowest(made: WhatIf) -> Table:
    table = Table("slowest", "requests", "delay", "because", "alone takes", "ends after", box=None)
    for chain in made.chains[:SHOWN]:
        end = made.course.ends.get(chain.name)
        table.add_row(
            chain.name,
            f"{chain.requests:,}",
            f"{chain.delay:.3g} s",
            made.origins.get(chain.name, "policy"),
            span(chain.seconds),
            "" if end is None else span(end),
        )
    return table


def span(seconds: float) -> str:
    """Seconds for people: the largest unit of which there are two or more."""
    for unit, name in ((DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes")):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.1f} {name}"
    return f"{seconds:.1f} seconds"
