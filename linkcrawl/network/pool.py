"""Keeps idle connections: a new TLS handshake costs more than the rest of a request."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from functools import partial

from linkcrawl.network.connection import Connection

#: Scheme, host, port.
Server = tuple[str, str, int]

#: Seconds that an idle connection is kept: longer than most delays, shorter than most servers wait.
IDLE_SECONDS = 30.0

#: Servers that are remembered for breaking kept connections; the oldest make room.
DISTRUSTED = 10_000


class Pool:
    """One idle connection for each server, `limit` in all: the longest idle one makes room. `idle`: seconds that one is
    kept."""

    def __init__(self, *, limit: int, idle: float = IDLE_SECONDS) -> None:
        self._limit, self._idle = limit, idle
        self._kept: OrderedDict[Server, tuple[Connection, asyncio.TimerHandle]] = OrderedDict()
        self._distrusted: OrderedDict[Server, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def take(self, server: Server) -> Connection | None:
        """The server's idle connection, which leaves the pool; None where there is none that is still quiet."""
        connection = self._remove(server)
        if connection is None or connection.quiet():
            return connection
        connection.abort()
        return None

    def put(self, server: Server, connection: Connection) -> None:
        """Keep the connection until the server closes it or sends something unasked, or `idle` seconds are over."""
        if connection.lost:
            return
        if server in self._distrusted:
            connection.abort()
            return
        self._drop(server)
        while len(self._kept) >= self._limit:
            self._drop(next(iter(self._kept)))
        timer = asyncio.get_running_loop().call_later(self._idle, connection.abort)
        self._kept[server] = connection, timer
        connection.when_lost = partial(self._remove, server)

    def distrust(self, server: Server) -> None:
        """Keep no more connections to this server: one has failed when it was used again. The next request would fail
        as well, and be sent twice."""
        self._distrusted[server] = None
        if len(self._distrusted) > DISTRUSTED:
            self._distrusted.popitem(last=False)

    def close(self) -> None:
        for server in list(self._kept):
            self._drop(server)

    def _drop(self, server: Server) -> None:
        connection = self._remove(server)
        if connection is not None:
            connection.abort()

    def _remove(self, server: Server) -> Connection | None:
        connection, timer = self._kept.pop(server, (None, None))
        if connection is None or timer is None:
            return None
        timer.cancel()
        connection.when_lost = None
        return connection
