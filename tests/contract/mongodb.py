"""MongoDB for tests: the server that `make test` starts, databases of a test's own on it, and servers to ill-treat."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pymongo
from pymongo.errors import PyMongoError

from scripts import servers
from tests.contract.test_servers import server
from tests.ports import free_port

Client = pymongo.MongoClient[dict[str, Any]]


def server_url() -> str:
    """The URL of the test server; skips, or fails on CI, where there is none."""
    return server("TEST_MONGODB_URL")


@contextmanager
def database(server: str) -> Iterator[str]:
    """The URL of a database that isn't there yet; dropped afterwards."""
    name = f"linkcrawl_test_{uuid4().hex}"
    try:
        yield f"{server.rstrip('/')}/{name}"
    finally:
        with Client(server) as client:
            client.drop_database(name)


@contextmanager
def looking_at(url: str) -> Iterator[pymongo.database.Database[dict[str, Any]]]:
    """The database of a store's URL, seen by another program."""
    with Client(url, datetime_conversion="DATETIME_AUTO") as client:
        yield client.get_default_database()


class Mongod:
    """A server of a test's own, at one port and with one data folder through all its lives. It obeys fail points."""

    def __init__(self, data: Path, log: Path, *options: str):
        server_url()  # no server at all: skip
        known = next(known for known in servers.ALL if known.program == "mongod")
        self.port = free_port()
        self.url = f"mongodb://127.0.0.1:{self.port}"
        self._command = [servers.find(known), *known.arguments(self.port, data), *options]
        self._command += ["--setParameter", "enableTestCommands=1"]
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log, start_new_session=True)
        deadline = time.monotonic() + 60
        with Client(self.url, serverSelectionTimeoutMS=500, directConnection=True) as client:
            while True:
                try:
                    client.admin.command("ping")
                except PyMongoError:
                    assert time.monotonic() < deadline, self._log.read_text()[-2000:]
                else:
                    return

    def kill(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def pause(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def fail(self, commands: list[str], times: int, **data: Any) -> None:
        """Have so many of these commands fail, as `failCommand` knows to."""
        with Client(self.url, directConnection=True) as client:
            client.admin.command(
                {
                    "configureFailPoint": "failCommand",
                    "mode": {"times": times},
                    "data": {"failCommands": commands, **data},
                }
            )


@contextmanager
def mongod(folder: Path, *options: str) -> Iterator[Mongod]:
    """A server that runs until the block ends, with its log in this folder."""
    with servers.data_folder() as data:
        running = Mongod(Path(data), folder / "log", *options)
        running.start()
        try:
            yield running
        finally:
            with suppress(ProcessLookupError):
                running.go_on()
            running.kill()
