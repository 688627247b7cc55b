"""`scrapy hosts`: what hosts wait for and why, orders that block or unblock one, and a letter to its administrator."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from linkcrawl.audit.log import AuditEntry
from linkcrawl.audit.pace import HostPace, pace_at
from linkcrawl.audit.verify import read_lines
from linkcrawl.cli.errors import print_fault
from linkcrawl.cli.options import OfflineCommand, add_format, host_key, moment
from linkcrawl.cli.terminal import name_list, table
from linkcrawl.config import Config
from linkcrawl.errors import ConfigError, PolicyError
from linkcrawl.items import Act, Order, iso
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.status.hosts import HostStatusReport, cluster_of, forecast_collection, hosts_of_collection
from linkcrawl.status.letter import write_letter
from linkcrawl.status.refusals import refusals_of
from linkcrawl.status.render import (
    HOST_COLUMNS,
    WORKER_COLUMNS,
    forecast_text,
    host_facts,
    host_line,
    worker_lines,
)
from linkcrawl.status.snapshot import StoreSnapshot, policies_of
from linkcrawl.stores.contract import Store
from linkcrawl.stores.opening import open_existing, open_store

if TYPE_CHECKING:
    from linkcrawl.status.cluster import ClusterStatus

#: Characters of the longest reason for a block; it is shown on one line.
LONGEST_REASON = 300


class Command(OfflineCommand):
    """May run beside a crawl, which obeys an order within five seconds. Sends nothing itself."""

    def syntax(self) -> str:
        acts = "[list [--collection C] | show H | block H --reason R [--until T] | unblock H | letter H]"
        return f"{acts} [--format table|json]"

    def short_desc(self) -> str:
        return "Show what hosts wait for and why; block or unblock one; write to one that turns us away"

    def long_desc(self) -> str:
        return "H is a host name, with :port where the port isn't the scheme's default, or a URL at the host."

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--reason", metavar="R", help="with block: why, in a few words")
        parser.add_argument("--until", metavar="T", help="with block: when it ends by itself (ISO 8601, UTC)")
        parser.add_argument("--collection", metavar="C", help="with list: hosts of links of these collections (a glob)")
        add_format(parser)

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        act, host = _parse(args, opts)
        config = self.config()
        policies = _policies(config, act)
        # a host may be blocked before the first crawl
        with closing((open_store if act == "block" else open_existing)(config.store)) as store:
            snapshot = StoreSnapshot.of(store, config, policies, time.time(), robots_of=host)
            call = HostsCall(store=store, snapshot=snapshot, host=host, opts=opts, cluster=_cluster(config))
            print(_ACTS[act](call))


def _parse(args: list[str], opts: argparse.Namespace) -> tuple[str, str]:
    """The act and the host key. Raises ConfigError."""
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
    """The rules in force. An order is urgent and needs none, so an unusable policy file doesn't stop it."""
    try:
        return policies_of(config)
    except PolicyError as fault:
        if act not in ("block", "unblock"):
            raise
        print_fault(f"{fault}; {act} is obeyed all the same")
        return Policies()


def _cluster(config: Config) -> ClusterStatus | None:
    """The cluster, if this crawl has one. If Redis can't be asked, that is reported and stops nothing."""
    try:
        return cluster_of(config)
    except ConfigError as fault:
        print_fault(fault)
        return None


@frozen(kw_only=True)
class HostsCall:
    """One call of the command, with all that it works on."""

    store: Store
    snapshot: StoreSnapshot
    host: str
    opts: argparse.Namespace
    cluster: ClusterStatus | None

    @property
    def as_json(self) -> bool:
        return bool(self.opts.format == "json")

    @property
    def now(self) -> float:
        """Unix seconds."""
        return self.snapshot.now()

    def report(self) -> HostStatusReport:
        """The status of hosts; orders given meanwhile count."""
        others = [self.host] if self.host else []
        return HostStatusReport.read(self.store, self.snapshot, *others, cluster=self.cluster)


def _list(call: HostsCall) -> str:
    hosts, collection = call.report().hosts(), call.opts.collection
    if collection is not None:
        hosts = hosts_of_collection(call.store, hosts, collection, call.now)
    if call.as_json:
        return json.dumps([status.row() for status in hosts], indent=2)
    if not hosts:
        return "No hosts yet: the store has no such links."
    parts = [table(HOST_COLUMNS, [host_line(status, call.now) for status in hosts])]
    if collection is not None:
        parts.append(forecast_text(forecast_collection(collection, hosts), call.now))
    if call.cluster is not None:
        parts.append(_workers(call.cluster))
    return "\n\n".join(parts)


def _workers(cluster: ClusterStatus) -> str:
    if not cluster.workers:
        return "No worker of the cluster is alive."
    unleased = f"\n{cluster.unleased} gates that hops wait for are leased by nobody" if cluster.unleased else ""
    return table(WORKER_COLUMNS, worker_lines(cluster)) + unleased


def _show(call: HostsCall) -> str:
    details = call.report().details(call.host)
    return json.dumps(details.row(), indent=2) if call.as_json else name_list(host_facts(details, call.now))


def _letter(call: HostsCall) -> str:
    """The letter to the host's administrator. Raises ConfigError for a host that turns nothing away."""
    config, host = call.snapshot.config, call.host
    refusals = refusals_of(call.store, host)
    if not refusals:
        known = "turns nothing of ours away" if call.snapshot.knows(host) else "is not known: no link led there"
        raise ConfigError(f"scrapy hosts letter: {host} {known}; scrapy hosts list names those with walls")
    delay = HostStatusReport(call.snapshot, host).host(host).delay
    letter = write_letter(
        config, host, refusals, delay=delay.seconds, origin=delay.origin, pace=_pace(config.audit, host)
    )
    return json.dumps(letter.row(), indent=2) if call.as_json else letter.text()


def _pace(audit: Path | None, host: str) -> HostPace | None:
    """Our pace at a host by the audit log. Raises ConfigError for a file that is none."""
    if audit is None or not audit.exists():
        return None
    try:
        return pace_at(host, (line for line in read_lines([audit]) if isinstance(line, AuditEntry)))
    except (OSError, ValueError) as fault:
        raise ConfigError(f"LINKCRAWL_AUDIT: {str(audit)!r} can't be read: {fault}") from None


def _block(call: HostsCall) -> str:
    reason = " ".join((call.opts.reason or "").split())
    if not reason or not reason.isprintable() or len(reason) > LONGEST_REASON:
        raise ConfigError(
            f"--reason: {call.opts.reason!r} is not a line of text; --reason 'asked by their administrator' would work"
        )
    until = moment("--until", call.opts.until)
    if until is not None and until <= call.now:
        raise ConfigError(f"--until: {call.opts.until!r} is over; a later time would work")
    call.store.give_order(Order(host=call.host, act=Act.BLOCK, at=call.now, reason=reason, until=until))
    end = "until somebody unblocks it" if until is None else f"until {iso(until)}"
    return _done(call, f"{call.host} is blocked {end}: {reason}")


def _unblock(call: HostsCall) -> str:
    details, order = call.report().details(call.host), call.snapshot.orders.get(call.host)
    banned = details.turned_away_since is not None
    # a ban is the gate's, which the next crawl may name after another of its hosts
    for host in details.status.members if banned else (call.host,):
        call.store.give_order(Order(host=host, act=Act.UNBLOCK, at=call.now))
    was_blocked = banned or (order is not None and order.blocks(call.now))
    return _done(call, f"{call.host} is open again" if was_blocked else f"{call.host} was not blocked")


def _done(call: HostsCall, text: str) -> str:
    """The order that was given, and what it means for the host."""
    details = call.report().details(call.host)
    if call.as_json:
        return json.dumps(details.row(), indent=2)
    lines = [f"{text}; a running crawl obeys within 5 seconds", f"{details.status.due} links are due there"]
    if not call.snapshot.knows(call.host):
        lines.append("nothing is due there, and nothing was ever asked: is it spelt right?")
    return "\n".join(lines)


_ACTS: Mapping[str, Callable[[HostsCall], str]] = {
    "list": _list,
    "show": _show,
    "block": _block,
    "unblock": _unblock,
    "letter": _letter,
}
