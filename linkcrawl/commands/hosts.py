"""`scrapy hosts`: what every host is waiting for and why; and the orders of people that block or re-open one."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import evolve, frozen
from scrapy.commands import ScrapyCommand

from linkcrawl import urls
from linkcrawl.audit.log import AuditEntry
from linkcrawl.audit.pace import HostPace, pace_at
from linkcrawl.audit.verify import read_lines
from linkcrawl.cli.errors import one_line
from linkcrawl.cli.terminal import columns, facts, tell
from linkcrawl.commands.export import moment
from linkcrawl.config import LOCAL, Config
from linkcrawl.errors import ConfigError, PolicyError
from linkcrawl.items import Act, Order, iso
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.status.hosts import HostStatus, HostStatusReport
from linkcrawl.status.letter import write_letter
from linkcrawl.status.refusals import refusals_of, walls_by_host
from linkcrawl.status.render import HEAD, NAMED, host_facts, host_row, line, walls_text
from linkcrawl.status.snapshot import StoreSnapshot, config_of, policies_of
from linkcrawl.stores.contract import LinkFilter, Store
from linkcrawl.stores.opening import open_existing, open_store
from linkcrawl.text import span

if TYPE_CHECKING:
    from linkcrawl.status.cluster import ClusterStatus

#: Characters of a reason, which is shown on one line.
LONGEST_REASON = 300


class Command(ScrapyCommand):
    """Works beside a running crawl, which takes orders up within five seconds; sends nothing itself."""

    requires_project = True
    requires_crawler_process = False

    def syntax(self) -> str:
        acts = "[list [--collection C] | show H | block H --reason R [--until T] | unblock H | letter H]"
        return f"{acts} [--format table|json]"

    def short_desc(self) -> str:
        return "Show what hosts wait for and why; block or unblock one; write to one that turns us away"

    def long_desc(self) -> str:
        return "H is a host name, with :port where the port isn't the scheme's own; a URL of the host does as well."

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--reason", metavar="R", help="why the host is blocked, in a few words")
        parser.add_argument("--until", metavar="T", help="when the block ends by itself (ISO 8601, UTC)")
        parser.add_argument("--collection", metavar="C", help="with list: hosts of links of these collections (a glob)")
        parser.add_argument("--format", choices=["table", "json"], default="table")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with one_line(self):
            act, host = _asked(args, opts)
            config = config_of(self.settings)
            policies = _policies(config, act)
            # a host may be blocked before its first crawl
            with closing((open_store if act == "block" else open_existing)(config.store)) as store:
                outlook = StoreSnapshot.of(store, config, policies, time.time())
                tell(_ACTS[act](Asked(store=store, outlook=outlook, host=host, opts=opts, cluster=_cluster(config))))


def _cluster(config: Config) -> ClusterStatus | None:
    """The workers that share the store's links. A Redis that is away is told, and stops nothing."""
    if config.frontier == LOCAL:
        return None
    from linkcrawl.status.cluster import cluster_status  # it needs the extra `redis`

    try:
        return cluster_status(config.frontier)
    except ConfigError as error:
        print(f"linkcrawl: {error}", file=sys.stderr)
        return None


def _asked(args: list[str], opts: argparse.Namespace) -> tuple[str, str]:
    """What is to be done, and the host key. Raises ConfigError."""
    act, *rest = args or ["list"]
    if act not in _ACTS:
        raise ConfigError(f"scrapy hosts: {act!r} is not known; {', '.join(_ACTS)} would work")
    if len(rest) != (0 if act == "list" else 1):
        wanted = "takes no host" if act == "list" else "needs one host"
        raise ConfigError(f"scrapy hosts {act}: {wanted}; scrapy hosts show example.org would work")
    if act != "block" and (opts.reason is not None or opts.until is not None):
        raise ConfigError(f"scrapy hosts {act}: --reason and --until are for block")
    if act != "list" and opts.collection is not None:
        raise ConfigError(f"scrapy hosts {act}: --collection is for list")
    return act, host_key(rest[0]) if rest else ""


def _policies(config: Config, act: str) -> Policies:
    """The rules of now. An order is urgent and needs none: a file that can't be used is told, and doesn't stop it."""
    try:
        return policies_of(config)
    except PolicyError as error:
        if act not in ("block", "unblock"):
            raise
        print(f"linkcrawl: {error}; {act} is obeyed all the same", file=sys.stderr)
        return Policies()


def host_key(text: str) -> str:
    """The host key of what a person typed: a name, name:port, or a URL. Raises ConfigError."""
    scheme = "https" if text.endswith(":443") else "http"
    target = urls.read(text if "://" in text else f"{scheme}://{text}/")
    if isinstance(target, urls.Refused) or ("://" not in text and any(mark in text for mark in "/?#@ ")):
        raise ConfigError(f"scrapy hosts: {text!r} is not a host; example.org or example.org:8080 would work")
    return target.host


@frozen(kw_only=True)
class Asked:
    """A command with all that it works on."""

    store: Store
    outlook: StoreSnapshot
    host: str
    opts: argparse.Namespace
    cluster: ClusterStatus | None

    def leased_by(self, gate: str) -> dict[str, str | None]:
        """Which worker leases a gate, where there is a cluster."""
        return {} if self.cluster is None else {"leased_by": self.cluster.holders.get(gate)}

    @property
    def as_json(self) -> bool:
        return bool(self.opts.format == "json")


def _list(asked: Asked) -> str:
    walls = walls_by_host(asked.store)
    views = _of_collection(asked, list(HostStatusReport(asked.outlook, *filter(None, walls)).hosts()))
    if asked.as_json:
        rows = [view.row() | {"walls": dict(walls.get(view.host, {}))} | asked.leased_by(view.gate) for view in views]
        return json.dumps(rows, indent=2)
    if not views:
        return "No hosts yet: the store has no such links."
    listed = columns(HEAD, [line(view, asked.outlook.now(), walls.get(view.host, {})) for view in views])
    if asked.opts.collection is not None:
        listed += f"\n\n{_outlook_of(views, asked)}"
    return listed if asked.cluster is None else f"{listed}\n\n{_workers(asked.cluster)}"


def _of_collection(asked: Asked, views: list[HostStatus]) -> list[HostStatus]:
    """The hosts of a collection's due links, each with how many of those it has; all where none was asked for."""
    if asked.opts.collection is None:
        return views
    narrow = LinkFilter(collection=asked.opts.collection)
    due = {each.host: each.due for each in asked.store.backlog(asked.outlook.now(), narrow)}
    return [evolve(view, due=due[view.host]) for view in views if view.host in due]


def _outlook_of(views: list[HostStatus], asked: Asked) -> str:
    """When a collection's links can all have been asked: when the last of its hosts is through with all of its own."""
    due, ends = sum(view.due for view in views), [view.eta for view in views if view.eta is not None]
    shut = sum(view.due for view in views if view.eta is None)
    when = f"not before {span(max(ends) - asked.outlook.now())} from now" if ends else "not foreseeable"
    waiting = f"; {shut} of them wait at blocked hosts" if shut else ""
    return f"{due} links of {asked.opts.collection} are due; the last is asked {when}{waiting}"


def _workers(cluster: ClusterStatus) -> str:
    """The workers alive, and what each leases."""
    if not cluster.workers:
        return "No worker of the cluster is alive."
    rows = [
        (
            worker.name,
            iso(worker.since),
            str(len(worker.gates)),
            str(worker.gates_with_work),
            ", ".join(worker.gates[:NAMED]) + (" …" if len(worker.gates) > NAMED else ""),
        )
        for worker in cluster.workers
    ]
    waiting = f"\n{cluster.unleased} gates that hops wait for are leased by nobody" if cluster.unleased else ""
    return columns(("WORKER", "SINCE", "GATES", "WITH WORK", "LEASES"), rows) + waiting


def _show(asked: Asked) -> str:
    overview = HostStatusReport(asked.outlook, asked.host)
    walls: Mapping[str, int] = walls_by_host(asked.store).get(asked.host, {})
    leased_by = asked.leased_by(overview.host(asked.host).gate)
    if asked.as_json:
        return json.dumps(host_row(overview, asked.host) | {"walls": dict(walls)} | leased_by, indent=2)
    told = [("walls", walls_text(walls))] if walls else []
    leased = [("leased by", name or "nobody") for name in leased_by.values()]
    return facts([*host_facts(overview, asked.host), *told, *leased])


def _letter(asked: Asked) -> str:
    """The letter to the host's administrator. Raises ConfigError for a host that turns nothing away."""
    config, host = asked.outlook.config, asked.host
    refusals = refusals_of(asked.store, host)
    if not refusals:
        known = "turns nothing of ours away" if asked.outlook.knows(host) else "is not known: no link led there"
        raise ConfigError(f"scrapy hosts letter: {host} {known}; scrapy hosts list names those with walls")
    overview = HostStatusReport(asked.outlook, host)
    delay = overview.host(host).delay
    letter = write_letter(
        config, host, refusals, delay=delay.seconds, origin=delay.origin, pace=_pace(config.audit, host)
    )
    return json.dumps(letter.row(), indent=2) if asked.as_json else letter.text()


def _pace(audit: Path | None, host: str) -> HostPace | None:
    """Our pace at a host by the audit log. Raises ConfigError for a file that is none."""
    if audit is None or not audit.exists():
        return None
    try:
        return pace_at(host, (line for line in read_lines([audit]) if isinstance(line, AuditEntry)))
    except (OSError, ValueError) as fault:
        raise ConfigError(f"LINKCRAWL_AUDIT: {str(audit)!r} can't be read: {fault}") from None


def _block(asked: Asked) -> str:
    opts, now = asked.opts, asked.outlook.now()
    reason = " ".join((opts.reason or "").split())
    if not reason or not reason.isprintable() or len(reason) > LONGEST_REASON:
        raise ConfigError(
            f"--reason: {opts.reason!r} is not a line of text; --reason 'asked by their administrator' would work"
        )
    until = moment("--until", opts.until)
    if until is not None and until <= now:
        raise ConfigError(f"--until: {opts.until!r} is over; a later time would work")
    asked.store.give_order(Order(host=asked.host, act=Act.BLOCK, at=now, reason=reason, until=until))
    ends = "until somebody unblocks it" if until is None else f"until {iso(until)}"
    return _told(asked, f"{asked.host} is blocked {ends}: {reason}")


def _unblock(asked: Asked) -> str:
    overview, now = HostStatusReport(asked.outlook, asked.host), asked.outlook.now()
    view, order = overview.host(asked.host), asked.outlook.orders.get(asked.host)
    turned = overview.pace(view).blocked_since is not None
    # a ban is that of the gate, which the next crawl may call by another of its hosts
    for host in view.members if turned else (asked.host,):
        asked.store.give_order(Order(host=host, act=Act.UNBLOCK, at=now))
    was = turned or (order is not None and order.blocks(now))
    return _told(asked, f"{asked.host} is open again" if was else f"{asked.host} was not blocked")


def _told(asked: Asked, text: str) -> str:
    """What has been done, and how the host stands by it."""
    overview = HostStatusReport(evolve(asked.outlook, orders=asked.store.orders()), asked.host)
    if asked.as_json:
        return json.dumps(host_row(overview, asked.host), indent=2)
    due, known = overview.host(asked.host).due, asked.outlook.knows(asked.host)
    lines = [f"{text}; a running crawl obeys within 5 seconds", f"{due} links are due there"]
    if not known:
        lines.append("nothing is due there, and nothing was ever asked: is it spelt right?")
    return "\n".join(lines)


_ACTS: Mapping[str, Callable[[Asked], str]] = {
    "list": _list,
    "show": _show,
    "block": _block,
    "unblock": _unblock,
    "letter": _letter,
}
