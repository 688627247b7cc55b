"""`scrapy audit`: proves from the log of all requests that every gap was kept, or shows where it wasn't."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from linkcrawl.audit.verify import AuditVerifier, HostRules, ScopeResult, Unreadable, read_lines
from linkcrawl.cli.errors import print_fault
from linkcrawl.cli.options import OfflineCommand, add_format
from linkcrawl.cli.terminal import table
from linkcrawl.config import Config
from linkcrawl.errors import ConfigError
from linkcrawl.status.snapshot import policies_of

#: Exit status of this command: there are violations.
VIOLATED = 1

#: Unreadable lines that are shown one by one.
SHOWN = 5

COLUMNS = ("KIND", "REQUESTS", "GAP", "REQUIRED", "VIOLATIONS", "NAME", "ORIGIN")


class Command(OfflineCommand):
    """Reads logs only; may run beside a crawl."""

    def syntax(self) -> str:
        return "[FILE...] [--rules] [--format table|json]"

    def short_desc(self) -> str:
        return "Prove from the audit log that every gap between requests and every quota was kept"

    def long_desc(self) -> str:
        return "FILE is an audit log, by default LINKCRAWL_AUDIT; the logs of several workers are judged together."

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        super().add_options(parser)
        parser.add_argument(
            "--rules",
            action="store_true",
            help="also judge the gaps and quotas of hosts by the present settings and policies",
        )
        add_format(parser)

    def execute(self, args: list[str], opts: argparse.Namespace) -> None:
        config = self.config()
        scopes = _verify(config, _files(args, config), opts.rules).scopes()
        self.exitcode = VIOLATED if any(scope.violations for scope in scopes) else 0
        print(json.dumps([scope.row() for scope in scopes], indent=2) if opts.format == "json" else _text(scopes))


def _verify(config: Config, files: list[Path], rules: bool) -> AuditVerifier:
    """Raises ConfigError for a file that can't be read, or is no audit log."""
    verifier = AuditVerifier(_rules(config)) if rules else AuditVerifier()
    unreadable = 0
    try:
        for line in read_lines(files):
            if not isinstance(line, Unreadable):
                verifier.add(line)
                continue
            unreadable += 1
            if unreadable <= SHOWN:
                print_fault(line)
    except OSError as fault:
        raise ConfigError(f"{fault.filename}: {fault.strerror}") from None
    except ValueError as fault:
        raise ConfigError(str(fault)) from None
    if unreadable:
        print_fault(f"requests of {unreadable} lines are missing from this proof")
    return verifier


def _files(args: list[str], config: Config) -> list[Path]:
    if args:
        return [Path(name) for name in args]
    if config.audit is None:
        raise ConfigError("LINKCRAWL_AUDIT: is empty, so no log is kept; scrapy audit audit.jsonl would read that one")
    return [config.audit]


def _rules(config: Config) -> Callable[[str], HostRules]:
    """What each host has to keep by DOWNLOAD_DELAY and the policy file."""
    policies = policies_of(config)

    def rules(host: str) -> HostRules:
        applied = policies.of_host(host)
        quotas = tuple(quota.row for quota in applied.quotas)
        if applied.floor is None:
            return HostRules(gap=config.delay, origin="DOWNLOAD_DELAY", quotas=quotas)
        return HostRules(gap=applied.floor, origin=f"policy {applied.floor_from}", quotas=quotas)

    return rules


def _text(scopes: list[ScopeResult]) -> str:
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
    return "\n".join([table(COLUMNS, rows), f"{requests} requests, {violations} violations"])
