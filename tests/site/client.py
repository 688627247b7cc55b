"""Starts a site in a process of its own, and reads its log."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from tests.site.misbehaviour import Place, Ports, place_of
from tests.site.table import MISBEHAVIOURS

ROOT = Path(__file__).parents[2]
_NUMBERS = {row.name: number for number, row in enumerate(MISBEHAVIOURS)}


@frozen(kw_only=True)
class Request:
    """A request as the server saw it. Times are Unix seconds; `closed_by` is None where the connection went on."""

    connection: int
    host: str
    port: int
    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    started: float
    ended: float
    sent: int
    closed_by: str | None

    @property
    def line(self) -> str:
        return f"{self.method} {self.target}"

    @property
    def url(self) -> str:
        return f"{self.host}:{self.port}{self.target}"

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


@define
class Counted:
    """How far a log has been read, in bytes, and the requests up to there: tests count every few milliseconds."""

    end: int = 0
    requests: int = 0


@frozen(kw_only=True)
class RunningSite:
    """A site that listens."""

    ports: Ports
    trusted: str | None
    log: Path
    _counted: Counted = field(factory=Counted, init=False)

    def place(self, name: str) -> Place:
        """Where the misbehaviour with this name lives."""
        return place_of(_NUMBERS[name], self.ports)

    def url(self, address: str, path: str = "/") -> str:
        return f"http://{address}:{self.ports.plain}{path}"

    def requests(self) -> list[Request]:
        """What has ended so far, in the order in which it started."""
        rows = [row for row in self._rows() if row.pop("kind") == "request"]
        made = (Request(**row | {"headers": tuple(map(tuple, row["headers"]))}) for row in rows)
        return sorted(made, key=lambda request: request.started)

    def count(self) -> int:
        """How many requests have ended so far."""
        with self.log.open("rb") as log:
            log.seek(self._counted.end)
            lines, newline, _ = log.read().rpartition(b"\n")
        self._counted.end += len(lines) + len(newline)
        self._counted.requests += lines.count(b'{"kind": "request"')
        return self._counted.requests

    def connections(self) -> list[Mapping[str, Any]]:
        """Connections that have ended so far."""
        return [row for row in self._rows() if row["kind"] == "connection"]

    def _rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]


@contextmanager
def running_site(
    folder: Path, seconds: float = 600.0, table: str = "misbehaviours", **crowd: float
) -> Iterator[RunningSite]:
    """The hosts of a table, or a crowd (crowds.py) where arguments for one are given."""
    log = folder / f"site-{time.monotonic_ns()}.jsonl"
    log.touch()
    command = [sys.executable, "-m", "tests.site", "--log", str(log), "--folder", str(folder / f"tls-{log.stem}")]
    command += ["--seconds", str(seconds), "--table", table, *(["--crowd", json.dumps(crowd)] if crowd else [])]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        try:
            told = json.loads(process.stdout.readline() or "null")
            if told is None:
                raise RuntimeError("the site did not start; its reason stands above")
            ports = Ports(plain=told["port"], tls=told["tls_port"])
            yield RunningSite(ports=ports, trusted=told["trusted"], log=log)
        finally:
            process.stdin.close()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
