"""Runs `scrapy crawl resourceproxies` as an operator does: a process of its own, in a folder of its own."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import chdir, closing, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any
from unittest import mock

from attrs import field, frozen
from scrapy.cmdline import execute
from scrapy.settings import Settings

from linkcrawl.stores.contract import Query, Totals
from linkcrawl.stores.opening import open_store
from tests.crawl.starting import ForkedProcess
from tests.site.client import ROOT

#: Seconds after which a crawl that still runs is ended, and its test fails: many times what it takes anywhere.
LIMIT = 240.0
#: Seconds in which something happens that must happen soon, on a machine that has much else to do.
SOON = 120.0

#: How a crawl begins that is a start of Python.
SCRAPY = [sys.executable, "-m", "scrapy"]

#: What every crawl of a test is told: a known contact, loopback allowed, and limits short enough for tests. The
#: adaptive part is bounded, so that a back-off of one host can't hold up the whole crawl.
SETTINGS: Mapping[str, str] = {
    "LINKCRAWL_CONTACT": "mailto:ops@example.org",
    "LINKCRAWL_ALLOWED_NETWORKS": "127.0.0.0/8",
    "LINKCRAWL_TIMEOUT": "2",
    "LINKCRAWL_PATIENCE": "20",
    "DOWNLOAD_DELAY": "0.2",
    "AUTOTHROTTLE_MAX_DELAY": "1",
}


@frozen(kw_only=True)
class Crawl:
    """A crawl that has ended. `status` as a shell tells it; `peak` is its largest resident memory in bytes."""

    status: int
    stdout: str
    stderr: str
    seconds: float
    peak: int
    records: list[dict[str, Any]]

    def record(self, url: str) -> dict[str, Any]:
        """The record of this URL; there must be exactly one."""
        found = [record for record in self.records if record["url"] == url]
        assert len(found) == 1, f"{len(found)} records of {url}"
        return found[0]


@frozen(kw_only=True)
class Told:
    """A command that has ended."""

    status: int
    stdout: str
    stderr: str


class Running:
    """A crawl under way. Where nothing else is asked for it starts as quickly as can be (starting.py)."""

    def __init__(
        self, command: list[str], environment: Mapping[str, str], folder: Path, feed: Path, *, fresh: bool = False
    ) -> None:
        """`fresh`: by a start of Python, for what changes what modules import."""
        self._folder, self._feed = folder, feed
        self.started = time.monotonic()
        self._out, self._err = (folder / f"{feed.stem}.{part}" for part in ("out", "err"))
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process: ForkedProcess | subprocess.Popen[bytes]
            if command[: len(SCRAPY)] == SCRAPY and not fresh:
                self.process = ForkedProcess(command[len(SCRAPY) :], folder, environment, self._out, self._err)
            else:
                streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": err}
                self.process = subprocess.Popen(command, cwd=folder, env=environment, **streams)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    @property
    def stderr(self) -> str:
        return self._err.read_text(errors="replace")

    def wait(self, limit: float = LIMIT) -> Crawl:
        """Until it ends; after `limit` seconds it is killed and the test fails."""
        deadline = time.monotonic() + limit
        peak = 0
        while not self.ended:
            peak = max(peak, _peak(self.process.pid))
            if time.monotonic() > deadline:
                self.kill()
                raise AssertionError(f"the crawl did not end within {limit:g} s:\n{self.stderr[-3000:]}")
            time.sleep(0.02)
        return Crawl(
            status=self.process.returncode,
            stdout=self._out.read_text(errors="replace"),
            stderr=self.stderr,
            seconds=time.monotonic() - self.started,
            peak=peak,
            records=_lines(self._feed),
        )

    def kill(self) -> None:
        """kill -9."""
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()


def _peak(pid: int) -> int:
    """Largest resident memory of a process up to now, in bytes. (What wait4 tells counts in the memory that the caller,
    a pytest of any size, had when it forked.)"""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def _written(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()


def _lines(feed: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in feed.read_text().splitlines()] if feed.exists() else []


@frozen(kw_only=True)
class Crawler:
    """An operator's folder: one store, one feed a run, the same settings every time."""

    folder: Path
    settings: Mapping[str, str] = field(factory=dict)

    @property
    def store_path(self) -> Path:
        return self.folder / "links.db"

    @property
    def store_url(self) -> str:
        return f"sqlite:///{self.store_path}"

    def seeds(self, seeds: Iterable[str | Mapping[str, Any]], name: str = "seeds.jsonl") -> Path:
        """A file of seeds; a text is a URL."""
        path = self.folder / name
        rows = ({"url": seed} if isinstance(seed, str) else seed for seed in seeds)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def command(self, *arguments: str, settings: Mapping[str, str | None] | None = None) -> list[str]:
        """Scrapy's command line; a setting that is None is left out."""
        told = {"LINKCRAWL_STORE": self.store_url, **SETTINGS, **self.settings, **(settings or {})}
        options = [part for name, value in told.items() if value is not None for part in ("-s", f"{name}={value}")]
        return [*SCRAPY, *arguments, *options]

    def tell(self, *arguments: str) -> Told:
        """Run a command that sends nothing, such as `scrapy hosts list`, in this process: a start of Python costs a
        second. How a process of its own ends is for other tests."""
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
        project = Settings()
        project.setmodule("linkcrawl.settings")
        status: str | int | None = 0
        with (
            chdir(self.folder),
            mock.patch.dict(os.environ, environment(), clear=True),
            redirect_stdout(out),
            redirect_stderr(err),
        ):
            try:
                execute(self.command(*arguments)[2:], project)
            except SystemExit as end:
                status = end.code
        assert status is None or isinstance(status, int)
        return Told(status=status or 0, stdout=_written(out), stderr=_written(err))

    def start(self, *arguments: str, settings: Mapping[str, str | None] | None = None) -> Running:
        """Begin `scrapy crawl resourceproxies` with these arguments."""
        feed = self.folder / f"feed-{time.monotonic_ns()}.jsonl"
        command = self.command("crawl", "resourceproxies", "-O", feed.name, *arguments, settings=settings)
        return Running(command, environment(), self.folder, feed)

    def run(self, *arguments: str, settings: Mapping[str, str | None] | None = None, limit: float = LIMIT) -> Crawl:
        with self.running(*arguments, settings=settings) as running:
            return running.wait(limit)

    @contextmanager
    def running(self, *arguments: str, settings: Mapping[str, str | None] | None = None) -> Iterator[Running]:
        """A crawl that is over, one way or the other, at the end of the block."""
        running = self.start(*arguments, settings=settings)
        try:
            yield running
        finally:
            running.kill()

    def kept(self, *, history: bool = True) -> list[dict[str, Any]]:
        """The records in the store."""
        with closing(open_store(self.store_url)) as store:
            return [record.row() for record in store.records(Query(history=history))]

    def books(self) -> Totals:
        with closing(open_store(self.store_url)) as store:
            return store.books(time.time())


def environment() -> dict[str, str]:
    """The environment of a crawl: this checkout, none of the caller's own settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LINKCRAWL_", "SCRAPY_"))}
    return kept | {"PYTHONPATH": str(ROOT), "SCRAPY_SETTINGS_MODULE": "linkcrawl.settings", "PYTHONUNBUFFERED": "1"}


def until(true: Callable[[], object], what: str, limit: float = SOON) -> None:
    """Wait for something that must happen soon."""
    deadline = time.monotonic() + limit
    while not true():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {limit:g} s: {what}")
        time.sleep(0.02)
