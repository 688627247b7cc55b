"""A server on loopback that says exactly what a test wants, and a handler to ask it with."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from socket import SO_LINGER, SOL_SOCKET
from typing import Any

from scrapy import Request
from scrapy.http import Response
from scrapy.settings import Settings

from linkcrawl.check.outcome import Outcome
from linkcrawl.network.handler import CheckDownloadHandler, RequestFailed
from linkcrawl.network.transport import CONTEXT, Transport
from linkcrawl.urls import Target


def everywhere(*addresses: str) -> Callable[[str], list[str]]:
    """A DNS in which every name that can exist has these addresses."""

    def lookup(host: str) -> list[str]:
        if host.endswith(".invalid"):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return list(addresses)

    return lookup


class Peer:
    """The server's side: what came in, and a way to say things."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.requests: list[bytes] = []
        self.gone = asyncio.Event()  # the client has closed a connection
        self.sent = 0


class Line:
    """One connection, as a script sees it."""

    def __init__(self, peer: Peer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.peer, self._reader, self._writer = peer, reader, writer

    async def request(self) -> bytes:
        """The next request's head; b"" when the client has gone."""
        try:
            head = await self._reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            self.peer.gone.set()
            return b""
        self.peer.requests.append(head)
        return head

    async def say(self, data: bytes) -> None:
        self._writer.write(data)
        self.peer.sent += len(data)
        await self._writer.drain()

    async def hold(self) -> None:
        """Nothing more, until the client goes."""
        while await self.request():
            pass

    def reset(self) -> None:
        """RST instead of FIN."""
        self._writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    def close(self) -> None:
        self._writer.close()


Script = Callable[[Line], Awaitable[None]]


def answers(*pieces: bytes, then: str = "hold") -> Script:
    """A script: one request, these bytes, and then `hold`, `close` or `reset`."""

    async def script(line: Line) -> None:
        if not await line.request():
            return
        for piece in pieces:
            await line.say(piece)
            await asyncio.sleep(0)
        if then == "reset":
            line.reset()
        elif then == "hold":
            await line.hold()

    return script


def always(answer: bytes) -> Script:
    """A script: the same answer for every request of the connection."""

    async def script(line: Line) -> None:
        while await line.request():
            await line.say(answer)

    return script


@asynccontextmanager
async def serve(script: Script, *, tls: ssl.SSLContext | None = None, host: str = "127.0.0.1") -> AsyncIterator[Peer]:
    """A server that runs the script on every connection."""
    peer = Peer()
    running: set[asyncio.Task[Any]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        task.add_done_callback(running.discard)
        peer.connections += 1
        try:
            await script(Line(peer, reader, writer))
        except (ConnectionError, asyncio.CancelledError):
            peer.gone.set()
        finally:
            writer.close()

    server = await asyncio.start_server(connected, host, 0, ssl=tls, limit=2**20)
    peer.port = server.sockets[0].getsockname()[1]
    try:
        yield peer
    finally:
        server.close()
        for task in list(running):
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await server.wait_closed()
        await asyncio.sleep(0.01)  # the loop closes transports in its next rounds


class _Crawler:
    """All that a handler asks of Scrapy's crawler."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings


def crawler(**changed: object) -> Any:
    settings = Settings()
    settings.setmodule("linkcrawl.settings")
    settings.set("LINKCRAWL_ALLOWED_NETWORKS", "127.0.0.0/8,::1/128")
    settings.set("LINKCRAWL_TIMEOUT", 60)  # a test that waits for its end says how short it is
    for name, value in changed.items():
        settings.set(name, value)
    return _Crawler(settings)


@asynccontextmanager
async def handler(**changed: object) -> AsyncIterator[CheckDownloadHandler]:
    made = CheckDownloadHandler.from_crawler(crawler(**changed))
    try:
        yield made
    finally:
        await made.close()


async def ask(
    made: CheckDownloadHandler,
    url: str,
    method: str = "HEAD",
    headers: dict[str, str] | None = None,
    body_limit: int | None = None,
    page_limit: int | None = None,
    target: Target | None = None,
    **meta: object,
) -> tuple[Response | RequestFailed, Outcome]:
    """What came of one request, and the outcome that it left."""
    context = Transport(body_limit=body_limit, page_limit=page_limit, target=target)
    request = Request(url, method=method, headers=headers, meta={"verbatim_url": True, CONTEXT: context, **meta})
    result: Response | RequestFailed
    try:
        result = await made.download_request(request)
    except RequestFailed as failed:
        result = failed
    assert context.outcome is not None
    return result, context.outcome


def one(
    script: Script,
    method: str = "HEAD",
    *,
    path: str = "/",
    headers: dict[str, str] | None = None,
    settings: dict[str, object] | None = None,
    **meta: object,
) -> tuple[Response | RequestFailed, Outcome, Peer]:
    """What came of one request to a server with this script; and the server."""

    async def run() -> tuple[Response | RequestFailed, Outcome, Peer]:
        async with serve(script) as peer, handler(**settings or {}) as made:
            result, outcome = await ask(made, f"http://127.0.0.1:{peer.port}{path}", method, headers, **meta)
            return result, outcome, peer

    return asyncio.run(run())
