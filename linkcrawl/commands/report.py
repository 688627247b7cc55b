"""`scrapy report`: a report on every link of the store, as JSON for programs or as one HTML page for people."""

from __future__ import annotations

import argparse
import json
import time
from contextlib import closing

from linkcrawl.cli.options import OfflineCommand, add_output, format_of, refuse_arguments
from linkcrawl.errors import ConfigError
from linkcrawl.exports.output import written
from linkcrawl.reports.make import make_report
from linkcrawl.reports.model import Report
from linkcrawl.stores.opening import open_existing

FORMATS = ("html", "json")
SUFFIXES = {".html": "html", ".htm": "html", ".json": "json"}


def encode(report: Report, format_name: str) -> bytes:
    """The report as a file of this format. Raises ConfigError where a package is missing."""
    if format_name == "json":
        return json.dumps(report.row(), ensure_ascii=False, indent=1, allow_nan=False).encode() + b"\n"
    try:
        from linkcrawl.reports.page import page

        return page(report)
    except ModuleNotFoundError as fault:
        raise ConfigError(
            f"--format html: needs the package {fault.name}; pip install 'linkcrawl[report]' or --format json would do"
        ) from fault


class Command(OfflineCommand):
    """Reads the store only; may run beside a crawl."""

    def syntax(self) -> str:
        return "-o FILE [--format html|json]"

    def short_desc(self) -> str:
        return "Report on every link of the store: an HTML page, or JSON"

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        add_output(parser, required=True)
        parser.add_argument("--format", choices=FORMATS, help="default: by the file's suffix")

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        refuse_arguments("report", args)
        config = self.config()
        format_name = format_of(opts.output, opts.format, SUFFIXES)
        with closing(open_existing(config.store)) as store:
            report = make_report(store, time.time(), config.delay)
        content = encode(report, format_name)
        with written(opts.output) as file:
            file.write(content)
