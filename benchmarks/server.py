"""A fast web server on loopback that counts and logs, as a process of its own.

`python -m benchmarks.server [--latency S] [--log FILE] [--tls PEM] [--close]` prints its port and serves until its
standard input ends. Every 127.a.b.c is a host. `/to/HOST/x` redirects to `/x` at HOST; robots.txt is 404; anything else
is 200. A line of the log: start, end, slack (seconds), host, path. The request came between start - slack and start: so
long it may have waited for this process to have time for it.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import selectors
import ssl
import sys
import time
from functools import partial
from typing import Any, TextIO


class Watch(selectors.DefaultSelector):
    """A selector that knows since when what it reports may have been ready."""

    since = 0.0
    _returned = 0.0

    def select(self, timeout: float | None = None) -> Any:
        before = time.monotonic()
        events = super().select(timeout)
        after = time.monotonic()
        waited = after - before > 0.0003  # then what ended the wait has come just now
        self.since = after if waited else self._returned
        self._returned = after
        return events


class Served(asyncio.Protocol):
    """One connection: requests without bodies, one after the other."""

    def __init__(self, site: Site) -> None:
        self._site, self._buffer = site, b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head, self._buffer = self._buffer[:end], self._buffer[end + 4 :]
            began = time.monotonic()
            slack = began - self._site.watch.since
            if self._site.latency:
                loop = asyncio.get_running_loop()
                loop.call_later(self._site.latency, self._answer, head, began, slack)
            else:
                self._answer(head, began, slack)

    def _answer(self, head: bytes, began: float, slack: float) -> None:
        if self._transport.is_closing():
            return
        line, _, fields = head.partition(b"\r\n")
        path = line.split(b" ")[1]
        self._transport.write(self._site.answer(path))
        if self._site.close:
            self._transport.close()
        if self._site.log is not None:
            host = next(field for field in fields.split(b"\r\n") if field[:5].lower() == b"host:")
            name = host[5:].strip().partition(b":")[0].decode()
            ended = time.monotonic()
            self._site.log.write(f"{began:.6f} {ended:.6f} {slack:.6f} {name} {path.decode()}\n")


class Site:
    """What is served, and the log."""

    def __init__(self, *, latency: float, log: TextIO | None, scheme: str, close: bool, watch: Watch) -> None:
        self.latency, self.log, self.close, self.watch = latency, log, close, watch
        self.port = 0
        self._scheme = scheme
        connection = b"Connection: close\r\n" if close else b""
        self._common = b"Server: bench\r\nContent-Type: text/html\r\n" + connection
        self._ok = b"HTTP/1.1 200 OK\r\n" + self._common + b"Content-Length: 0\r\n\r\n"
        self._missing = b"HTTP/1.1 404 Not Found\r\n" + self._common + b"Content-Length: 0\r\n\r\n"

    def answer(self, path: bytes) -> bytes:
        if path.startswith(b"/to/"):
            host, _, rest = path[4:].partition(b"/")
            location = b"%s://%s:%d/%s" % (self._scheme.encode(), host, self.port, rest)
            return b"HTTP/1.1 302 Found\r\n%sLocation: %s\r\nContent-Length: 0\r\n\r\n" % (self._common, location)
        return self._missing if path == b"/robots.txt" else self._ok


async def serve(site: Site, context: ssl.SSLContext | None) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Served(site), "0.0.0.0", 0, ssl=context, backlog=4096)
    site.port = server.sockets[0].getsockname()[1]
    print(site.port, flush=True)
    gc.freeze()
    ended = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ended.set)  # nobody writes there: it becomes readable when it ends
    await ended.wait()
    server.close()
    if site.log is not None:
        site.log.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--log", type=partial(open, mode="w"))
    parser.add_argument("--tls", help="file with key and certificate")
    parser.add_argument("--close", action="store_true", help="a new connection for every request")
    given = parser.parse_args()
    context = None
    if given.tls:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(given.tls)
    watch = Watch()
    scheme = "https" if context else "http"
    site = Site(latency=given.latency, log=given.log, scheme=scheme, close=given.close, watch=watch)
    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(watch)) as runner:
        runner.run(serve(site, context))


if __name__ == "__main__":
    main()
