"""`scrapy export`: records of the store into a file, in the format of whoever reads it."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from attrs import evolve, field, frozen
from scrapy.commands import ScrapyCommand

from linkcrawl.cli.errors import one_line
from linkcrawl.config import read_config
from linkcrawl.errors import ConfigError
from linkcrawl.exports import FORMATS, SUFFIXES, Format
from linkcrawl.exports.hourly import LATE, SETTLED, HourCounts, hours_to_write
from linkcrawl.exports.output import write
from linkcrawl.exports.rows import Row, link_rows, proxy_rows
from linkcrawl.items import Category
from linkcrawl.stores.contract import Query, Store
from linkcrawl.stores.opening import open_existing


def moment(name: str, text: str | None) -> float | None:
    """A `--since` or `--until`: ISO 8601, UTC where it names no zone. Raises ConfigError."""
    if text is None:
        return None
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{name}: {text!r} is not a time; 2026-11-30 or 2026-11-30T12:00:00Z would work") from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def format_of(output: str, chosen: str | None) -> str:
    """The name of the format that was asked for, or of that of the file's suffix. Raises ConfigError."""
    if chosen is not None:
        return chosen
    suffix = Path(output.removesuffix(".gz")).suffix.lower()
    if output == "-":
        return "jsonl"
    if suffix not in SUFFIXES:
        raise ConfigError(f"--format: not given, and {output!r} has no suffix that tells; {', '.join(FORMATS)} do")
    return SUFFIXES[suffix]


@frozen(kw_only=True)
class Export:
    """One run of the command: which rows, in which format, and how many were left out of it by reason."""

    store: Store
    name: str
    query: Query
    proxies: bool
    left_out: Counter[str] = field(factory=Counter)

    @property
    def format(self) -> Format:
        return FORMATS[self.name]

    def to(self, output: str) -> None:
        """Write what the query asks for. Raises ConfigError, StoreLost."""
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
            return proxy_rows(records, self.store, self.query.collection)
        return link_rows(records)


class Command(ScrapyCommand):
    """Streams, in order of time; consecutive `--since A --until B`, `--since B --until C` neither overlap nor miss."""

    requires_project = True
    requires_crawler_process = False

    def syntax(self) -> str:
        return "-o FILE [options]"

    def short_desc(self) -> str:
        return "Write check records of the store into a file"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument("-o", "--output", metavar="FILE", help="- for standard output; .gz compresses")
        parser.add_argument("--format", choices=list(FORMATS), help="default: by the file's suffix")
        parser.add_argument("--since", metavar="T", help="checked at or after this time (ISO 8601, UTC)")
        parser.add_argument("--until", metavar="T", help="checked before this time")
        parser.add_argument("--collection", metavar="C", help="links of these collections only (a glob)")
        parser.add_argument("--category", choices=[str(category) for category in Category])
        parser.add_argument("--changed", action="store_true", help="only where category, status or final URL changed")
        parser.add_argument("--history", action="store_true", help="every check, not only the latest of each link")
        parser.add_argument("--rows", choices=["link", "proxy"], default="link", help="a row for each link, or mention")
        parser.add_argument("--hourly", metavar="DIR", help="instead of -o: a file for each hour that is over")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with one_line(self):
            self._export(args, opts)

    def _export(self, args: list[str], opts: argparse.Namespace) -> None:
        config = read_config(self.settings or {}, need_contact=False)
        _refuse(args, opts)
        name = opts.format or "jsonl" if opts.hourly else format_of(opts.output, opts.format)
        if opts.rows == "proxy" and not FORMATS[name].proxies:
            able = ", ".join(known for known, format in FORMATS.items() if format.proxies)
            raise ConfigError(f"--rows proxy: {name} has a line for each link only; {able} would work")
        if FORMATS[name].compressed and (opts.output or "").endswith(".gz"):
            raise ConfigError(f"-o {opts.output}: {name} is compressed already; without .gz it would work")
        query = _query(opts)
        store = open_existing(config.store)
        try:
            export = Export(store=store, name=name, query=query, proxies=opts.rows == "proxy")
            if opts.hourly:
                _hourly(export, Path(opts.hourly), time.time() - SETTLED - config.patience)
            else:
                export.to(opts.output)
        finally:
            store.close()
        _tell_left_out(export)


def _refuse(args: list[str], opts: argparse.Namespace) -> None:
    """Raises ConfigError for options that don't fit together."""
    if args:
        raise ConfigError(f"scrapy export: {args[0]!r} is not an option; -o FILE names the file")
    if (opts.output is None) == (opts.hourly is None):
        raise ConfigError("-o FILE or --hourly DIR is needed, one of them; -o checks.jsonl would work")


def _query(opts: argparse.Namespace) -> Query:
    since, until = moment("--since", opts.since), moment("--until", opts.until)
    if since is not None and until is not None and until < since:
        raise ConfigError(f"--until: {opts.until!r} is before --since {opts.since!r}; a later time would work")
    return Query(
        since=since,
        until=until,
        collection=opts.collection,
        category=Category(opts.category) if opts.category else None,
        changed=opts.changed,
        history=opts.history,
    )


def _tell_left_out(export: Export) -> None:
    if export.left_out:
        reasons = ", ".join(f"{count} for their {why}" for why, count in sorted(export.left_out.items()))
        number = export.left_out.total()
        print(f"linkcrawl: {number} records left out, as {export.name} would refuse them: {reasons}", file=sys.stderr)


def _hourly(export: Export, folder: Path, settled: float) -> None:
    """Write the hours that have no file yet, and those of which checks have come late. Every check of an hour is in its
    file, whatever came after it."""
    suffix = f".{export.name}" + ("" if export.format.compressed else ".gz")
    query, number, counts = export.query, 0, HourCounts(folder)
    for hour in hours_to_write(export.store, folder, suffix, query.since, query.until, settled, counts):
        try:
            hour.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as fault:
            raise ConfigError(f"--hourly {folder}: {fault.strerror}; a folder that can be written would work") from None
        evolve(export, query=evolve(query, since=hour.start, until=hour.end, history=True)).to(str(hour.path))
        counts.written(hour)
        number += 1
    with contextlib.suppress(OSError):  # a folder that can't be written had no hour to write
        counts.save(settled - LATE)
    print(f"{number} hours written to {folder}", file=sys.stderr)
