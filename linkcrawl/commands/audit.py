"""`scrapy audit`: proves from the log of all requests that every gap was kept, or shows where not."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from scrapy.commands import ScrapyCommand

from linkcrawl.audit.verify import AuditVerifier, HostRules, ScopeResult, Unreadable, read_lines
from linkcrawl.cli.errors import one_line
from linkcrawl.cli.terminal import columns, tell
from linkcrawl.config import Config
from linkcrawl.errors import ConfigError
from linkcrawl.status.snapshot import config_of, policies_of

#: Exit status of this command only (docs).
VIOLATED = 1

#: Lines that can't be read of which each is shown.
SHOWN = 5

HEAD = ("KIND", "REQUESTS", "GAP", "REQUIRED", "VIOLATIONS", "NAME", "ORIGIN")


class Command(ScrapyCommand):
    """Reads logs only; may run beside a crawl."""

    requires_project = True
    requires_crawler_process = False

    def syntax(self) -> str:
        return "[FILE...] [--rules] [--format table|json]"

    def short_desc(self) -> str:
        return "Prove from the audit log that every gap between requests and every quota was kept"

    def long_desc(self) -> str:
        return "FILE is an audit log, LINKCRAWL_AUDIT by default; those of several workers are judged as one."

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--rules",
            action="store_true",
            help="hold hosts' gaps and requests against the settings and policies of now, too",
        )
        parser.add_argument("--format", choices=["table", "json"], default="table")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        with one_line(self):
            config = config_of(self.settings)
            scopes = _proof(config, _files(args, config), opts.rules).scopes()
            tell(json.dumps([scope.row() for scope in scopes], indent=2) if opts.format == "json" else _table(scopes))
            self.exitcode = VIOLATED if any(scope.violations for scope in scopes) else 0


def _proof(config: Config, files: list[Path], rules: bool) -> AuditVerifier:
    """Raises ConfigError for a file that can't be read, or is no audit log."""
    proof = AuditVerifier(_rules(config)) if rules else AuditVerifier()
    unreadable = 0
    try:
        for line in read_lines(files):
            if not isinstance(line, Unreadable):
                proof.add(line)
                continue
            unreadable += 1
            if unreadable <= SHOWN:
                print(f"linkcrawl: {line}", file=sys.stderr)
    except OSError as fault:
        raise ConfigError(f"{fault.filename}: {fault.strerror}") from None
    except ValueError as fault:
        raise ConfigError(str(fault)) from None
    if unreadable:
        print(f"linkcrawl: requests of {unreadable} lines are missing from this proof", file=sys.stderr)
    return proof


def _files(args: list[str], config: Config) -> list[Path]:
    if args:
        return [Path(name) for name in args]
    if config.audit is None:
        raise ConfigError("LINKCRAWL_AUDIT: is empty, so no log is kept; scrapy audit audit.jsonl would read that one")
    return [config.audit]


def _rules(config: Config) -> Callable[[str], HostRules]:
    """What a host has to keep at least, by DOWNLOAD_DELAY and the policy file."""
    policies = policies_of(config)

    def rules(host: str) -> HostRules:
        applied = policies.of_host(host)
        quotas = tuple(quota.row for quota in applied.quotas)
        if applied.floor is None:
            return HostRules(gap=config.delay, origin="DOWNLOAD_DELAY", quotas=quotas)
        return HostRules(gap=applied.floor, origin=f"policy {applied.floor_from}", quotas=quotas)

    return rules


def _table(scopes: list[ScopeResult]) -> str:
    requests = sum(scope.requests for scope in scopes if scope.kind == "host")
    violations = sum(scope.violations for scope in scopes)
    rows = [
        (
            scope.kind,
            str(scope.requests),
            "" if scope.gap is None else f"{scope.gap:.3f} s",
            "" if scope.required is None else f"{scope.required:.3f} s",
            str(scope.violations),
            scope.name,
            scope.origin or "",
        )
        for scope in scopes
    ]
    return "\n".join([columns(HEAD, rows), f"{requests} requests, {violations} violations"])
