"""`make demo`: one complete crawl of a sample landscape on this machine, and what came of it.

Everything is made anew in demo/out: the seeds, the store, the records, the crawl's log, a report. Takes about half a
minute.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from catalogue import seeds
from landscape import HOSTS
from rich import box
from rich.console import Console
from rich.table import Table

from linkcrawl.stores.opening import open_store

DEMO = Path(__file__).resolve().parent
OUT = DEMO / "out"
SEEDS, RECORDS, DATABASE = OUT / "seeds.jsonl", OUT / "checks.jsonl", OUT / "linkcrawl.db"
CRAWL_LOG, SITE_LOG, REJECTS = OUT / "crawl.log", OUT / "site.jsonl", OUT / "rejects.jsonl"
REPORT = OUT / "report.html"
DELAY = 0.3
SETTINGS = {
    "LINKCRAWL_STORE": f"sqlite:///{DATABASE}",
    "LINKCRAWL_CONTACT": "mailto:demo@example.org",
    "LINKCRAWL_ALLOWED_NETWORKS": "127.0.0.0/8",  # loopback is refused otherwise, as every private address is
    "LINKCRAWL_REJECTS": str(REJECTS),
    "LINKCRAWL_AUDIT": str(OUT / "audit.jsonl"),
    "LINKCRAWL_TIMEOUT": "3",
    "LINKCRAWL_PATIENCE": "20",
    "DOWNLOAD_DELAY": str(DELAY),
    "LOG_FILE": str(CRAWL_LOG),
}


@contextmanager
def landscape() -> Iterator[int]:
    """The sample web site in a process of its own, for as long as the block lasts; the port it listens on."""
    command = [sys.executable, str(DEMO / "landscape.py"), str(SITE_LOG)]
    # A session of its own: Ctrl-C is for the crawl, which may still want answers while it closes.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as site:
        try:
            assert site.stdout is not None
            said = site.stdout.readline()
            if not said:
                sys.exit(site.wait())
            yield json.loads(said)["port"]
        finally:
            site.terminate()


def scrapy(*arguments: str) -> int:
    """A command, as an operator would type it; its exit status."""
    command = [sys.executable, "-m", "scrapy", *arguments]
    for name, value in SETTINGS.items():
        command += ["-s", f"{name}={value}"]
    # What an operator has set for crawls of his own is not for the demo.
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LINKCRAWL_", "SCRAPY_"))}
    process = subprocess.Popen(command, cwd=DEMO.parent, env=environment)
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # the command got it too, and ends in good order
            continue


def table_of(title: str, left: tuple[str, ...], right: tuple[str, ...]) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in left:
        table.add_column(name, no_wrap=True)
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def show_results(console: Console) -> None:
    table = table_of("What came of the links", ("category", "reason", "status"), ("links", "mean ms", "max ms"))
    store = open_store(SETTINGS["LINKCRAWL_STORE"])
    tallies = store.summary(time.time()).overall.tallies
    for tally in sorted(tallies, key=lambda tally: (tally.category, -tally.count, tally.reason)):
        mean = f"{tally.total_ms / tally.timed:.0f}" if tally.timed else ""
        slowest = "" if tally.max_ms is None else str(tally.max_ms)
        table.add_row(tally.category, tally.reason, str(tally.status or ""), str(tally.count), mean, slowest)
    store.close()
    console.print(table)


def show_pauses(console: Console) -> None:
    """How polite the crawl was, by the servers' own log: pauses from the end of an answer to the next request."""
    visits = defaultdict(list)
    for line in SITE_LOG.read_text().splitlines():
        visit = json.loads(line)
        visits[visit["host"]].append((visit["started"], visit["ended"]))
    table = table_of("What the hosts saw", ("host", "what it is like"), ("requests", "shortest pause"))
    for host in HOSTS:
        times = sorted(visits[host.address])
        shortest = min((after[0] - before[1] for before, after in pairwise(times)), default=None)
        table.add_row(host.name, host.about, str(len(times)), "" if shortest is None else f"{shortest:.2f} s")
    console.print(table)


def show_files(console: Console) -> None:
    rejected = len(REJECTS.read_text().splitlines()) if REJECTS.exists() else 0
    files = {
        REPORT: "a report on all links: open it in a browser",
        RECORDS: f"{len(RECORDS.read_text().splitlines())} records, a JSON line for each distinct link",
        DATABASE: "the store: links, every check, what is known of hosts",
        REJECTS: f"the seed lines that hold no link: {rejected}",
        CRAWL_LOG: "the crawl's own log",
    }
    for path, about in files.items():
        console.print(f"{os.path.relpath(path):26} {about}", highlight=False)


def main() -> int:
    console = Console()
    shutil.rmtree(OUT, ignore_errors=True)
    OUT.mkdir()
    with landscape() as port:
        rows = list(seeds(port))
        SEEDS.write_text("".join(json.dumps(row) + "\n" for row in rows))
        console.print(
            f"{len(rows)} links of a sample catalogue, {len(HOSTS)} hosts on this machine,\n"
            f"at least {DELAY} s from the end of an answer to the next request to the same host …",
            highlight=False,
        )
        status = scrapy("crawl", "resourceproxies", "-a", f"seeds={SEEDS}", "-O", str(RECORDS))
    if status != 0:
        console.print(f"The crawl ended with exit status {status}; {os.path.relpath(CRAWL_LOG)} has more.")
        return status
    if not Console(stderr=True).is_terminal:  # there the crawl has shown it itself
        show_results(console)
    show_pauses(console)
    status = scrapy("report", "-o", str(REPORT))
    show_files(console)
    return status


if __name__ == "__main__":
    sys.exit(main())
