"""A proxy before MongoDB that loses the answer to one command: it was carried out, and nobody was told."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_OP_MSG = 2013
#: Commands of drivers themselves.
_UNCOUNTED = {"hello", "isMaster", "ismaster", "ping", "endSessions"}


class Cutter:
    """Cuts the connection in place of the nth answer from now on, once. `commands`: names of those seen, in order."""

    def __init__(self, server: tuple[str, int]):
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.commands: list[str] = []
        self._left = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_answer(self, nth: int) -> None:
        """0: none any more."""
        self.commands.clear()
        self._left = nth

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                _Connection(self, client, socket.create_connection(self._server))

    def counts(self, message: bytes) -> bool:
        """Whether the answer to this command is the one to be lost."""
        name = _command(message)
        if name in _UNCOUNTED:
            return False
        self.commands.append(name)
        self._left -= 1
        return self._left == 0


class _Connection:
    def __init__(self, cutter: Cutter, client: socket.socket, server: socket.socket):
        self._cutter = cutter
        self._client, self._server = client, server
        self._cut = threading.Event()
        threading.Thread(target=self._requests, daemon=True).start()
        threading.Thread(target=self._answers, daemon=True).start()

    def _requests(self) -> None:
        for message in _messages(self._client):
            if self._cutter.counts(message):
                self._cut.set()
            with suppress(OSError):
                self._server.sendall(message)
        self._close()

    def _answers(self) -> None:
        for message in _messages(self._server):
            if self._cut.is_set():
                break
            with suppress(OSError):
                self._client.sendall(message)
        self._close()

    def _close(self) -> None:
        for end in (self._client, self._server):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


def _messages(end: socket.socket) -> Iterator[bytes]:
    """Whole messages of the wire protocol until the end closes."""
    with end, suppress(OSError), end.makefile("rb") as stream:
        while len(head := stream.read(16)) == 16:
            yield head + stream.read(struct.unpack("<i", head[:4])[0] - 16)


def _command(message: bytes) -> str:
    """The first field name of an OP_MSG, which is the command's; drivers greet by other messages."""
    if struct.unpack("<i", message[12:16])[0] != _OP_MSG:
        return "hello"
    return message[26 : message.index(b"\0", 26)].decode()


@contextmanager
def cutter(url: str) -> Iterator[tuple[Cutter, str]]:
    """A proxy before the server of a store's URL, and the URL that leads through it."""
    address, _, name = url.removeprefix("mongodb://").partition("/")
    host, _, port = address.partition(":")
    running = Cutter((host, int(port)))
    try:
        yield running, f"mongodb://127.0.0.1:{running.port}/{name}?directConnection=true"
    finally:
        running.close()
