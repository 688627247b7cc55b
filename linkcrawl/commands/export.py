"""`scrapy export`: records of the store into a file."""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import os
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from scrapy.commands import ScrapyCommand

from linkcrawl.config import ConfigError, read_config
from linkcrawl.exports import jsonl
from linkcrawl.items import Category
from linkcrawl.stores import Query, StoreError, StoreLost, open_store

FORMATS = {"jsonl": jsonl.lines}
SUFFIXES = {".jsonl": "jsonl", ".ndjson": "jsonl"}


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
    """The format that was asked for, or that of the file's suffix."""
    if chosen is not None:
        return chosen
    suffix = Path(output.removesuffix(".gz")).suffix
    if output == "-":
        return "jsonl"
    if suffix not in SUFFIXES:
        raise ConfigError(
            f"--format: not given, and {output!r} has no suffix that tells; {', '.join(FORMATS)} would work"
        )
    return SUFFIXES[suffix]


@contextlib.contextmanager
def written(output: str) -> Iterator[TextIO]:
    """The file to write to; it gets its name only once it is whole. `-` is standard output, `.gz` compresses."""
    if output == "-":
        yield sys.stdout
        return
    path = Path(output)
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as fault:
        raise ConfigError(f"-o {output}: {fault.strerror}; a path in a folder that can be written would work") from None
    try:
        with (
            os.fdopen(handle, "wb") as raw,
            gzip.open(raw, "wb") if path.suffix == ".gz" else raw as binary,
            io.TextIOWrapper(binary, encoding="utf-8", errors="surrogatepass") as text,
        ):
            yield text
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


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
        parser.add_argument(
            "-o", "--output", metavar="FILE", required=True, help="- for standard output; .gz compresses"
        )
        parser.add_argument("--format", choices=sorted(FORMATS), help="default: by the file's suffix")
        parser.add_argument("--since", metavar="T", help="checked at or after this time (ISO 8601, UTC)")
        parser.add_argument("--until", metavar="T", help="checked before this time")
        parser.add_argument("--collection", metavar="C", help="links of these collections only (a glob)")
        parser.add_argument("--category", choices=[str(category) for category in Category])
        parser.add_argument("--changed", action="store_true", help="only where category, status or final URL changed")
        parser.add_argument("--history", action="store_true", help="every check, not only the latest of each link")

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        assert self.settings is not None
        try:
            self._export(opts)
        except (ConfigError, StoreError, StoreLost) as fault:
            print(f"linkcrawl: {fault}", file=sys.stderr)
            self.exitcode = 2

    def _export(self, opts: argparse.Namespace) -> None:
        assert self.settings is not None
        config = read_config(self.settings, need_contact=False)
        query = Query(
            since=moment("--since", opts.since),
            until=moment("--until", opts.until),
            collection=opts.collection,
            category=Category(opts.category) if opts.category else None,
            changed=opts.changed,
            history=opts.history,
        )
        lines = FORMATS[format_of(opts.output, opts.format)]
        store = open_store(config.store)
        try:
            with written(opts.output) as file:
                for line in lines(store.records(query)):
                    file.write(line + "\n")
        finally:
            store.close()
