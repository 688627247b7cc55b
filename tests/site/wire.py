"""One connection of the misbehaving server, byte for byte, and the log of what happened on it."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

#: Seconds that anything goes on at most, whoever is listening.
LONGEST = 30.0


@frozen(kw_only=True)
class Host:
    """An address of the site. `routes`: request target, or "*" for any other, to what happens there.

    `on_connect` happens as soon as a connection is accepted, before any byte of a request. `tls` names a certificate
    (certificates.py); `plain_on_tls` serves plain HTTP on the TLS port. Without `listening` the port is closed.
    """

    address: str
    routes: Mapping[str, Behaviour] = field(factory=dict)
    on_connect: Behaviour | None = None
    tls: str | None = None
    plain_on_tls: bool = False
    listening: bool = True


class Log:
    """The server's log: a JSON line for each request and each connection, written when it has ended."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")

    def write(self, kind: str, **fields: Any) -> None:
        self._file.write(json.dumps({"kind": kind, **fields}) + "\n")
        self._file.flush()

    def close(self) -> None:
        self._file.close()


@define(eq=False)
class Exchange:
    """One request, and the means to answer it, well or badly."""

    connection: Connection
    method: str = ""
    target: str = ""
    version: str = ""
    headers: list[tuple[str, str]] = field(factory=list)
    started: float = field(factory=time.time)
    sent: int = 0
    keep: bool = False

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    @property
    def wants_close(self) -> bool:
        return (self.header("connection") or "").lower() == "close"

    async def send(self, data: bytes) -> None:
        """Write, and wait until the client has taken most of it; nothing happens once the client has gone."""
        if not self.connection.lost.is_set():
            self.sent += len(data)
            await self.connection.write(data)

    async def gone(self, seconds: float) -> bool:
        """Wait for so long; True as soon as the client has closed the connection."""
        try:
            await asyncio.wait_for(self.connection.lost.wait(), seconds)
        except TimeoutError:
            return False
        return True

    async def hold(self) -> None:
        """Say nothing more until the client goes."""
        await self.gone(LONGEST)

    def reset(self) -> None:
        """Close with RST instead of FIN."""
        self.connection.reset()


Behaviour = Callable[[Exchange], Awaitable[None]]


class Connection(asyncio.Protocol):
    """Reads requests one after the other and lets the host's behaviour answer each."""

    def __init__(self, host: Host, port: int, log: Log, everyone: set[Connection], number: int) -> None:
        self.host, self.port, self.number = host, port, number
        self.lost = asyncio.Event()
        self._log, self._everyone = log, everyone
        self._buffer = b""
        self._writable = asyncio.Event()
        self._writable.set()
        self._task: asyncio.Task[None] | None = None
        self._closed_by: str | None = None
        self._requests = 0
        self._opened = time.time()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._everyone.add(self)
        if self.host.on_connect:
            self._begin(Exchange(self), self.host.on_connect)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._next()

    def eof_received(self) -> None:
        self._closed_by = self._closed_by or "client"

    def connection_lost(self, exc: Exception | None) -> None:
        self._closed_by = self._closed_by or "client"
        self._everyone.discard(self)
        self.lost.set()
        self._writable.set()
        self.write_log()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def write(self, data: bytes) -> None:
        self._transport.write(data)
        await self._writable.wait()

    def reset(self) -> None:
        self._closed_by = self._closed_by or "server"
        plain = self._transport.get_extra_info("socket")
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def write_log(self) -> None:
        where = {"host": self.host.address, "port": self.port, "opened": self._opened, "closed": time.time()}
        counts = {"requests": self._requests, "closed_by": self._closed_by}
        self._log.write("connection", connection=self.number, **where, **counts)

    def _next(self) -> None:
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if self._task is not None:
            return
        if self._buffer[:1] and not self._buffer[:1].isalpha():
            self._begin(Exchange(self), _not_http)
            return
        if not found:
            return
        self._buffer = rest
        line, *lines = head.decode("latin-1").split("\r\n")
        method, _, tail = line.partition(" ")
        target, _, version = tail.rpartition(" ")
        headers = [(name, value.strip()) for name, _, value in (text.partition(":") for text in lines)]
        exchange = Exchange(self, method, target, version, headers)
        routes = self.host.routes
        self._requests += 1
        self._begin(exchange, routes.get(target) or routes.get("*") or _not_there)

    def _begin(self, exchange: Exchange, behaviour: Behaviour) -> None:
        self._task = asyncio.get_running_loop().create_task(self._serve(exchange, behaviour))

    async def _serve(self, exchange: Exchange, behaviour: Behaviour) -> None:
        await behaviour(exchange)
        if not exchange.keep and not self.lost.is_set():
            self._closed_by = self._closed_by or "server"
        if exchange.method:
            self._log_request(exchange)
        self._task = None
        if exchange.keep:
            self._next()
        else:
            self._transport.close()

    def _log_request(self, exchange: Exchange) -> None:
        self._log.write(
            "request",
            connection=self.number,
            host=self.host.address,
            port=self.port,
            method=exchange.method,
            target=exchange.target,
            headers=exchange.headers,
            started=exchange.started,
            ended=time.time(),
            sent=exchange.sent,
            closed_by=self._closed_by,
        )


async def _not_there(exchange: Exchange) -> None:
    exchange.keep = not exchange.wants_close
    await exchange.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")


async def _not_http(exchange: Exchange) -> None:
    await exchange.send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
