"""Runs a site until its standard input closes: prints a JSON line with its ports once it listens, and ends by itself
when the process that started it is gone, or after its time."""

from __future__ import annotations

import argparse
import asyncio
import errno
import functools
import itertools
import json
import signal
import socket
import ssl
import sys
from collections.abc import Callable
from pathlib import Path

from tests.site.certificates import Certificates
from tests.site.crowds import crowd
from tests.site.manners import manners
from tests.site.misbehaviour import Ports, place_of
from tests.site.table import MISBEHAVIOURS
from tests.site.wire import Connection, Host, Log

#: Two ports that are free at every address are looked for so often.
TRIES = 50


def _table(ports: Ports) -> list[Host]:
    rows = enumerate(MISBEHAVIOURS)
    return [host for number, row in rows for host in row.hosts(place_of(number, ports))]


#: The hosts of a site by the name of their table.
TABLES: dict[str, Callable[[Ports], list[Host]]] = {"misbehaviours": _table, "manners": manners}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.site", description=__doc__)
    parser.add_argument("--log", type=Path, required=True, help="file that the log is added to")
    parser.add_argument("--folder", type=Path, required=True, help="folder for certificates")
    parser.add_argument("--seconds", type=float, default=600.0, help="ends after so long")
    parser.add_argument("--table", choices=sorted(TABLES), default="misbehaviours", help="which hosts there are")
    parser.add_argument("--crowd", type=json.loads, metavar="JSON", help="arguments of a crowd, instead of the table")
    return parser.parse_args()


class Site:
    """The listening sockets of all hosts, and the connections that are open."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._numbers = itertools.count(1)
        self._connections: set[Connection] = set()
        self._servers: list[asyncio.Server] = []

    async def listen(self, host: Host, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Accept connections for this host; port 0 means any. The port that it is."""
        listener = socket.create_server((host.address, port), backlog=512)
        # What is sent is counted, so little of it may lie about unread; connections inherit it.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2**17)
        port = int(listener.getsockname()[1])
        loop = asyncio.get_running_loop()
        self._servers.append(await loop.create_server(lambda: self._connection(host, port), sock=listener, ssl=tls))
        return port

    def _connection(self, host: Host, port: int) -> Connection:
        return Connection(host, port, self._log, self._connections, next(self._numbers))

    def close(self) -> None:
        for server in self._servers:
            server.close()
        for connection in list(self._connections):
            connection.write_log()


async def _free_ports(site: Site, address: str = "127.20.0.1") -> Ports:
    """Two ports that were free a moment ago; one that is taken at some address shows itself on listening there."""
    probe = Host(address=address)
    return Ports(plain=await site.listen(probe, 0), tls=await site.listen(probe, 0))


async def _open(options: argparse.Namespace, log: Log) -> tuple[Site, Ports, Path | None]:
    build: Callable[[Ports], list[Host]] = (
        functools.partial(crowd, **options.crowd) if options.crowd else TABLES[options.table]
    )
    certificates = None if options.crowd else Certificates(options.folder)
    for _ in range(TRIES):
        site = Site(log)
        ports = await _free_ports(site)
        try:
            for host in build(ports):
                await _listen(site, host, ports, certificates)
        except OSError as fault:
            if fault.errno != errno.EADDRINUSE:
                raise
            site.close()
            continue
        return site, ports, certificates.trusted if certificates else None
    raise SystemExit(f"tests.site: no free ports in {TRIES} tries")


async def _listen(site: Site, host: Host, ports: Ports, certificates: Certificates | None) -> None:
    if host.listening:
        await site.listen(host, ports.plain)
    if host.plain_on_tls:
        await site.listen(host, ports.tls)
    elif host.tls and certificates:
        await site.listen(host, ports.tls, certificates.context(host.tls, host.address))


async def _run(options: argparse.Namespace) -> None:
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    loop.call_later(options.seconds, over.set)
    parent = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(parent), sys.stdin)
    log = Log(options.log)
    site, ports, trusted = await _open(options, log)
    told = {"port": ports.plain, "tls_port": ports.tls, "trusted": str(trusted) if trusted else None}
    print(json.dumps(told), flush=True)
    gone = asyncio.create_task(parent.read())
    waits = [gone, asyncio.create_task(over.wait())]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    site.close()
    log.close()


if __name__ == "__main__":
    asyncio.run(_run(_options()))
