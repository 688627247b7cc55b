"""A way to Redis on which answers get lost: what was asked has been done, and whoever asked can't know."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class LossyWay:
    """Connections to `port` go to Redis at `target`. Every so many answers (`each`; None: never) one is swallowed, and
    its connection broken off."""

    def __init__(self, target: int) -> None:
        self._target = target
        self.each: int | None = None
        self._answers = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads: list[threading.Thread] = []
        self._clients: list[socket.socket] = []
        #: Answers that were swallowed.
        self.lost = 0

    def serve(self) -> None:
        """Until it is closed."""
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._clients.append(client)
                self._threads.append(threading.Thread(target=self._carry, args=(client,)))
                self._threads[-1].start()

    def close(self) -> None:
        """End all connections, and take no more."""
        for each in (self._listener, *self._clients):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    def _carry(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", self._target)) as server:
            while True:
                for source in select.select([client, server], [], [])[0]:
                    data = source.recv(65536)
                    if not data or (source is server and self._swallows()):
                        return
                    (client if source is server else server).sendall(data)

    def _swallows(self) -> bool:
        self._answers += 1
        swallows = self.each is not None and self._answers % self.each == 0
        self.lost += swallows
        return swallows


@contextmanager
def lossy_way(target: int) -> Iterator[LossyWay]:
    way = LossyWay(target)
    thread = threading.Thread(target=way.serve)
    thread.start()
    try:
        yield way
    finally:
        way.close()
        thread.join(10)
