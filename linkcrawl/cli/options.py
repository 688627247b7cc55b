"""What the commands share: a base class, and reading the options and arguments that several of them have."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from scrapy.commands import ScrapyCommand

from linkcrawl import urls
from linkcrawl.cli.errors import reporting_faults
from linkcrawl.config import Config, read_config
from linkcrawl.errors import ConfigError


class OfflineCommand(ScrapyCommand):
    """A command that sends nothing. A subclass does its work in `execute`; an operator's fault that it raises becomes
    one line and an exit status (`cli.errors`)."""

    requires_project = True
    requires_crawler_process = False

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with reporting_faults(self):
            self.execute(args, opts)

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        """The work. May raise ConfigError, StoreError and SourceLost."""
        raise NotImplementedError

    def config(self) -> Config:
        """The settings; LINKCRAWL_CONTACT may be missing. Raises ConfigError."""
        return read_config(self.settings or {}, need_contact=False)


def add_format(parser: argparse.ArgumentParser) -> None:
    """`--format table|json`."""
    parser.add_argument("--format", choices=["table", "json"], default="table")


def add_output(parser: argparse.ArgumentParser, *, required: bool = False) -> None:
    """`-o FILE`."""
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=required, help="- for standard output; .gz compresses"
    )


def refuse_arguments(command: str, args: list[str]) -> None:
    """Raise ConfigError for an argument of a command that takes options only."""
    if args:
        raise ConfigError(f"scrapy {command}: {args[0]!r} is not an option; -o FILE names the file")


def format_of(output: str, chosen: str | None, by_suffix: Mapping[str, str]) -> str:
    """The format that was chosen, else the one that the suffix of the file stands for (before `.gz`); JSON lines for
    standard output, where they are known. Raises ConfigError."""
    if chosen is not None:
        return chosen
    suffix = Path(output.removesuffix(".gz")).suffix.lower()
    if output == "-" and ".jsonl" in by_suffix:
        return by_suffix[".jsonl"]
    if suffix not in by_suffix:
        raise ConfigError(
            f"--format: not given, and {output!r} has no suffix that names one; {', '.join(by_suffix)} would work"
        )
    return by_suffix[suffix]


def moment(option: str, text: str | None) -> float | None:
    """The time of an option in Unix seconds: ISO 8601, UTC where it has no zone. Raises ConfigError."""
    if text is None:
        return None
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(f"{option}: {text!r} is not a time; 2026-11-30 or 2026-11-30T12:00:00Z would work") from None
    return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()


def host_key(text: str) -> str:
    """The host key of what a person typed: a name, name:port, or a URL. Raises ConfigError."""
    host = urls.host_key(text)
    if host is None:
        raise ConfigError(f"scrapy hosts: {text!r} is not a host; example.org or example.org:8080 would work")
    return host
