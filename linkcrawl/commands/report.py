"""`scrapy report`: what is known of all links, as JSON for programs or as one HTML page for people."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from scrapy.commands import ScrapyCommand

from linkcrawl.cli.errors import one_line
from linkcrawl.config import read_config
from linkcrawl.errors import ConfigError
from linkcrawl.exports.output import written
from linkcrawl.reports.make import report
from linkcrawl.reports.model import Report
from linkcrawl.stores.opening import open_existing

FORMATS = ("html", "json")


def format_of(output: str, chosen: str | None) -> str:
    """The format that was asked for, or that of the file's suffix. Raises ConfigError."""
    if chosen is not None:
        return chosen
    suffix = Path(output.removesuffix(".gz")).suffix.lower()
    found = {".html": "html", ".htm": "html", ".json": "json"}.get(suffix)
    if found is None:
        raise ConfigError(f"--format: not given, and {output!r} has no suffix that tells; .html and .json do")
    return found


def encoded(made: Report, name: str) -> bytes:
    """The report as a file of this format. Raises ConfigError where a package is missing."""
    if name == "json":
        return json.dumps(made.row(), ensure_ascii=False, indent=1, allow_nan=False).encode() + b"\n"
    try:
        from linkcrawl.reports.page import page

        return page(made)
    except ModuleNotFoundError as fault:
        raise ConfigError(
            f"--format html: needs the package {fault.name}; pip install 'linkcrawl[report]' or --format json would do"
        ) from fault


class Command(ScrapyCommand):
    """Reads the store only, and may run beside a crawl."""

    requires_project = True
    requires_crawler_process = False

    def syntax(self) -> str:
        return "-o FILE [--format html|json]"

    def short_desc(self) -> str:
        return "Report on all links of the store: an HTML page, or JSON"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "-o", "--output", metavar="FILE", required=True, help="- for standard output; .gz compresses"
        )
        parser.add_argument("--format", choices=FORMATS, help="default: by the file's suffix")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with one_line(self):
            self._report(args, opts)

    def _report(self, args: list[str], opts: argparse.Namespace) -> None:
        if args:
            raise ConfigError(f"scrapy report: {args[0]!r} is not an option; -o FILE names the file")
        config = read_config(self.settings or {}, need_contact=False)
        name = format_of(opts.output, opts.format)
        store = open_existing(config.store)
        try:
            made = report(store, time.time(), config.delay)
        finally:
            store.close()
        pieces = encoded(made, name)
        with written(opts.output) as file:
            file.write(pieces)
