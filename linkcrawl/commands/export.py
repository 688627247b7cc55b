"""`scrapy export`: records of the store in a file, in the format that its reader wants."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from attrs import evolve, field, frozen

from linkcrawl.check.verdict import REASONS
from linkcrawl.cli.errors import print_fault
from linkcrawl.cli.options import OfflineCommand, add_output, format_of, moment, refuse_arguments
from linkcrawl.errors import ConfigError
from linkcrawl.exports import FORMATS, SUFFIXES, Format
from linkcrawl.exports.hourly import LATE, SETTLED, HourCounts, hours_to_write
from linkcrawl.exports.output import write
from linkcrawl.exports.rows import Row, link_rows, proxy_rows
from linkcrawl.items import Category
from linkcrawl.stores.contract import Query, Store
from linkcrawl.stores.opening import open_existing
from linkcrawl.stores.rows import glob


@frozen(kw_only=True)
class Export:
    """Records to be written. `proxies`: a row for each resource proxy of their links instead of each record.
    `left_out`: rows that the format's reader would refuse, by reason."""

    store: Store
    format_name: str
    query: Query
    proxies: bool
    left_out: Counter[str] = field(factory=Counter)

    @property
    def format(self) -> Format:
        return FORMATS[self.format_name]

    def write(self, output: str) -> None:
        """Write the rows to a file. Raises ConfigError, StoreLost."""
        write(output, self.format.encode(self._accepted(), self.proxies), self.format.chunk)

    def _accepted(self) -> Iterator[Row]:
        refusal = self.format.refusal
        for row in self._rows():
            why = refusal(row) if refusal else None
            if why is None:
                yield row
            else:
                self.left_out[why] += 1

    def _rows(self) -> Iterator[Row]:
        records = self.store.records(self.query)
        if self.proxies:
            return proxy_rows(records, self.store, self.query.collection, self.query.provider)
        return link_rows(records)


class Command(OfflineCommand):
    """Streams rows in order of time; may run beside a crawl. `--since A --until B` and then `--since B --until C`
    neither overlap nor miss a record."""

    def syntax(self) -> str:
        return "-o FILE [options]"

    def short_desc(self) -> str:
        return "Write check records of the store into a file"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add_output(parser)
        parser.add_argument("--format", choices=list(FORMATS), help="default: by the file's suffix")
        parser.add_argument("--since", metavar="T", help="checked at or after this time (ISO 8601, UTC)")
        parser.add_argument("--until", metavar="T", help="checked before this time")
        parser.add_argument("--collection", metavar="C", help="links of these collections only (a glob)")
        parser.add_argument("--category", choices=[str(category) for category in Category])
        parser.add_argument("--changed", action="store_true", help="only where category, status or final URL changed")
        parser.add_argument("--history", action="store_true", help="every check, not only the latest of each link")
        parser.add_argument("--rows", choices=["link", "proxy"], default="link", help="a row for each link, or mention")
        parser.add_argument("--retired", action="store_true", help="only links that no collection mentions any more")
        parser.add_argument("--reason", metavar="R", help="only with this reason (a glob)")
        parser.add_argument("--status", metavar="N", help="only with this status; none: without an answer")
        parser.add_argument("--provider", metavar="P", help="links of these providers only (a glob)")
        parser.add_argument("--host", metavar="H", help="links at these hosts only (a glob)")
        parser.add_argument("--confirmed", action="store_true", help="no failures that are only suspected")
        parser.add_argument("--suspected", action="store_true", help="only failures that are suspected yet")
        parser.add_argument(
            "--due", metavar="T", nargs="?", const="now", help="only links that are due, now or at this time"
        )
        parser.add_argument("--mismatch", action="store_true", help="only media types other than the claimed ones")
        parser.add_argument("--expected-mime", metavar="M", help="only where the metadata claim this media type")
        parser.add_argument("--mime", metavar="M", help="only where the server sends this media type")
        parser.add_argument("--hourly", metavar="DIR", help="instead of -o: a file for each hour that is over")

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        config = self.config()
        refuse_arguments("export", args)
        if (opts.output is None) == (opts.hourly is None):
            raise ConfigError("-o FILE or --hourly DIR is needed, one of them; -o checks.jsonl would work")
        format_name = opts.format or "jsonl" if opts.hourly else format_of(opts.output, opts.format, SUFFIXES)
        if opts.rows == "proxy" and not FORMATS[format_name].proxies:
            able = ", ".join(name for name, known in FORMATS.items() if known.proxies)
            raise ConfigError(f"--rows proxy: {format_name} has a line for each link only; {able} would work")
        if FORMATS[format_name].compressed and (opts.output or "").endswith(".gz"):
            raise ConfigError(f"-o {opts.output}: {format_name} is compressed already; without .gz it would work")
        query = _query(opts)
        with contextlib.closing(open_existing(config.store)) as store:
            export = Export(store=store, format_name=format_name, query=query, proxies=opts.rows == "proxy")
            if opts.hourly:
                _write_hours(export, Path(opts.hourly), time.time() - SETTLED - config.patience)
            else:
                export.write(opts.output)
        _print_left_out(export)


def _query(opts: argparse.Namespace) -> Query:
    since, until = moment("--since", opts.since), moment("--until", opts.until)
    if since is not None and until is not None and until < since:
        raise ConfigError(f"--until: {opts.until!r} is before --since {opts.since!r}; a later time would work")
    if opts.confirmed and opts.suspected:
        raise ConfigError("--confirmed and --suspected: no record is both; one of them would work")
    if opts.due is not None and opts.retired:
        raise ConfigError("--due and --retired: a retired link is never due; either would work")
    return Query(
        since=since,
        until=until,
        collection=opts.collection,
        category=Category(opts.category) if opts.category else None,
        changed=opts.changed,
        history=opts.history,
        retired=opts.retired,
        reasons=_reasons(opts.reason),
        statuses=_statuses(opts.status),
        provider=opts.provider,
        host=opts.host,
        confirmed=opts.confirmed or (False if opts.suspected else None),
        due_at=time.time() if opts.due == "now" else moment("--due", opts.due),
        mismatched=opts.mismatch,
        expected_mime=opts.expected_mime,
        mime=opts.mime,
    )


def _reasons(pattern: str | None) -> tuple[str, ...]:
    """The reasons that a glob matches; () for none given. Raises ConfigError where it matches none."""
    if pattern is None:
        return ()
    found = tuple(filter(glob(pattern).fullmatch, (*REASONS, *(f"http_{status}" for status in range(100, 1000)))))
    if not found:
        raise ConfigError(f"--reason: {pattern!r} is no reason; http_404, timeout or http_5?? would work")
    return found


def _statuses(text: str | None) -> tuple[int | None, ...]:
    if text is None or text == "none":
        return () if text is None else (None,)
    if not (text.isascii() and text.isdecimal() and len(text) <= 3):
        raise ConfigError(f"--status: {text!r} is no status; 404, or none for links without an answer, would work")
    return (int(text),)


def _print_left_out(export: Export) -> None:
    if export.left_out:
        reasons = ", ".join(f"{count} for their {why}" for why, count in sorted(export.left_out.items()))
        number = export.left_out.total()
        print_fault(f"{number} records left out, as {export.format_name} would refuse them: {reasons}")


def _write_hours(export: Export, folder: Path, settled: float) -> None:
    """Write a file for each hour that is over at `settled` (Unix seconds) and has none yet, or whose checks came late.
    It has every check of the hour, also where a later check of the link came."""
    suffix = f".{export.format_name}" + ("" if export.format.compressed else ".gz")
    query, number, counts = export.query, 0, HourCounts(folder)
    for hour in hours_to_write(export.store, folder, suffix, query.since, query.until, settled, counts):
        try:
            hour.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            raise ConfigError(f"--hourly {folder}: {fault.strerror}; a folder that can be written would work") from None
        evolve(export, query=evolve(query, since=hour.start, until=hour.end, history=True)).write(str(hour.path))
        counts.written(hour)
        number += 1
    with contextlib.suppress(OSError):  # a folder that can't be written had no hour to write
        counts.save(settled - LATE)
    print(f"{number} hours written to {folder}", file=sys.stderr)
