"""`scrapy recheck`: asks for a check of links now. A running crawl takes the request up, else the next one does."""

from __future__ import annotations

import argparse
import getpass
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing

from linkcrawl.cli.errors import UNUSABLE, print_fault
from linkcrawl.cli.options import OfflineCommand
from linkcrawl.config import Config
from linkcrawl.errors import ConfigError, PolicyError
from linkcrawl.exports.jsonl import line
from linkcrawl.items import iso
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.status.asking import (
    HostOutlook,
    Selection,
    earliest_done,
    find_matching,
    find_urls,
    outlook,
    request_checks,
)
from linkcrawl.status.snapshot import policies_of
from linkcrawl.stores.contract import CheckRequest, Store
from linkcrawl.stores.opening import open_existing, open_store
from linkcrawl.stores.retry import BlockingRetry

#: Seconds between two looks for records, and so many times what a look takes.
LOOK, LOOK_COST = 0.5, 10.0
#: Hosts that are named one by one.
NAMED = 20


class Command(OfflineCommand):
    """Writes the request into the store; sends nothing itself."""

    def syntax(self) -> str:
        return "URL... | --collection G | --host G | --from FILE [--wait] [--reason R]"

    def short_desc(self) -> str:
        return "Ask for a check of links now, by the running crawl or the next"

    def long_desc(self) -> str:
        return (
            "The links go first at their hosts, by the delays that hold there. With --wait, each record is printed as "
            "a JSON line as it comes. URLs that the store doesn't have are named on standard error (status 2), the "
            "rest is asked for; retired links aren't."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("--collection", metavar="G", help="all links of these collections (a glob)")
        parser.add_argument("--host", metavar="G", help="all links of these hosts (a glob)")
        parser.add_argument("--from", dest="source", metavar="FILE", help="URLs, one a line; - for standard input")
        parser.add_argument("--wait", action="store_true", help="print each record as it comes, until all are there")
        parser.add_argument("--reason", metavar="R", default="", help="kept with the request")
        parser.add_argument("--by", metavar="NAME", help="who asks; the login name unless given")

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        chosen = (bool(args), opts.collection is not None or opts.host is not None, opts.source is not None)
        if sum(chosen) != 1:
            raise ConfigError(
                "scrapy recheck: either URLs, --collection or --host, or --from FILE is needed; scrapy recheck "
                "https://example.org/ would work"
            )
        config = self.config()
        texts = list(_lines(opts.source)) if opts.source is not None else args
        open_existing(config.store).close()
        with closing(open_store(config.store)) as store:
            if opts.collection is not None or opts.host is not None:
                selection = find_matching(store, collection=opts.collection, host=opts.host)
            else:
                selection = find_urls(store, texts)
            for text in selection.unknown:
                print_fault(f"scrapy recheck: the store has no link {text}")
            for text in selection.retired:
                print_fault(f"scrapy recheck: {text} is retired: it is not asked")
            if selection.unknown:
                self.exitcode = UNUSABLE
            if not selection.links:
                if not selection.unknown and not selection.retired:
                    raise ConfigError("scrapy recheck: no link matches; scrapy report names collections and hosts")
                self.exitcode = UNUSABLE
                return
            self._ask(store, config, selection, opts)

    def _ask(self, store: Store, config: Config, selection: Selection, opts: argparse.Namespace) -> None:
        out = sys.stderr if opts.wait else sys.stdout
        by = getpass.getuser() if opts.by is None else opts.by
        request = request_checks(store, selection.links, time.time(), by=by, reason=opts.reason)
        is_running = store.is_claimed()
        hosts = outlook(store, config, _policies(config), selection.links, now := time.time())
        for said in _outlook_lines(hosts):
            print(said, file=out, flush=True)
        done_at = earliest_done(hosts, now)
        when = "when a person opens its hosts" if done_at is None else f"at {iso(done_at)} at the earliest"
        print(f"{len(selection.links)} links are asked for (request {request.id}): done {when}", file=out, flush=True)
        if not is_running:
            print_fault("no crawl runs: the next one does it")
        if opts.wait:
            _wait(store, request, len(selection.links), BlockingRetry(config.patience))


def _outlook_lines(hosts: Sequence[HostOutlook]) -> Iterator[str]:
    """What stands in the way, a line for each host; then how many more there are."""
    told = [each for each in hosts if each.why or each.disallowed]
    for each in told[:NAMED]:
        if each.why:
            until = "no time opens it" if each.opens_at is None else f"until {iso(each.opens_at)} at least"
            yield f"{each.host}: {each.links} links wait, {until}: {each.why}"
        if each.disallowed:
            yield f"{each.host}: robots.txt forbids {each.disallowed} of {each.links} links: they are not asked"
    if len(told) > NAMED:
        yield f"{len(told) - NAMED} more hosts wait, or forbid links; scrapy hosts names them"


def _wait(store: Store, request: CheckRequest, links: int, retry: BlockingRetry) -> None:
    """Print records until none of the links waits any more. Raises StoreLost."""
    printed: set[int | str] = set()
    seen = None
    while True:
        began = time.monotonic()
        progress = retry.call(store.progress, request.id)
        if progress != seen:
            seen = progress
            for record in retry.call(lambda: list(store.answers(request.id))):
                if record.link_id not in printed:
                    printed.add(record.link_id)
                    sys.stdout.buffer.write(line(record.row()))
            sys.stdout.buffer.flush()
        if progress.done == progress.asked:
            break
        time.sleep(max(LOOK, LOOK_COST * (time.monotonic() - began)))
    if len(printed) < links:
        print_fault(f"{links - len(printed)} links have left the catalogue meanwhile: they have no new record")


def _policies(config: Config) -> Policies:
    """The rules in force. What a request waits for is only shown, so an unusable policy file doesn't stop it."""
    try:
        return policies_of(config)
    except PolicyError as fault:
        print_fault(fault)
        return Policies()


def _lines(source: str) -> Iterator[str]:
    """The URLs of a text file. Raises ConfigError."""
    try:
        with sys.stdin if source == "-" else open(source, encoding="utf-8-sig", errors="replace") as file:
            for text in file:
                if (stripped := text.strip()) and not stripped.startswith("#"):
                    yield stripped
    except OSError as fault:
        raise ConfigError(f"--from: {source!r} can't be read: {fault.strerror}; a file of URLs would work") from fault
