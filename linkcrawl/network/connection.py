"""One connection to one server: made to an address that the guard allows, one request at a time, closed when its state
is in doubt."""

from __future__ import annotations

import asyncio
import errno
import select
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any

import aiohappyeyeballs

from linkcrawl.check.outcome import Failure
from linkcrawl.network.answer import AnswerReader, ReceivedAnswer
from linkcrawl.network.fault import CONNECTING, HANDSHAKE, Fault, of_os_error
from linkcrawl.network.guard import Address
from linkcrawl.network.tls import of_tls_error
from linkcrawl.units import DAY

#: Seconds until the next address is tried beside a silent one (RFC 8305, 8: Connection Attempt Delay).
ATTEMPT_DELAY = 0.25

#: asyncio's own limit of a handshake, in seconds: so long that ours counts, which knows of standstills.
NO_LIMIT = DAY

BEFORE_HEAD = "before the answer"
WITHIN_HEAD = "within the head of the answer"


class Connection(asyncio.Protocol):
    """An established connection; `ip` is the address that it goes to. `when_lost` is called once, if set."""

    def __init__(self, ip: str) -> None:
        self.ip = ip
        self.lost = False
        self.when_lost: Callable[[], object] | None = None
        self._transport: Any = None
        self._reader: AnswerReader | None = None
        self._waiter: asyncio.Future[ReceivedAnswer | Fault] | None = None

    async def ask(self, request: bytes, reader: AnswerReader) -> ReceivedAnswer | Fault:
        """Send the request and return what `reader` makes of the answer. One call at a time.

        The connection is aborted unless the answer is reusable, and when the caller is cancelled.
        """
        if self.lost:
            return Fault(failure=Failure.RESET, detail=BEFORE_HEAD)
        self._reader = reader
        self._waiter = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            return await self._waiter
        except asyncio.CancelledError:
            self._reader = None
            self.abort()
            raise

    def abort(self) -> None:
        """Close at once. Harmless on a closed connection."""
        self._transport.abort()

    def quiet(self) -> bool:
        """False if the server has sent bytes or closed, also where the event loop has not seen that yet."""
        if self.lost or self._transport.is_closing():
            return False
        poll = select.poll()
        poll.register(self._transport.get_extra_info("socket").fileno(), select.POLLIN)
        return not poll.poll(0)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self._reader is None:  # unasked: the body of a HEAD's answer, or worse
            self.abort()
        else:
            self._settle(self._reader.feed(data))

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True
        if self.when_lost is not None:
            self.when_lost()
        if self._reader is not None:
            self._settle(self._reader.end(orderly=exc is None) or _broken_off(exc, self._reader.began))

    def _settle(self, result: ReceivedAnswer | Fault | None) -> None:
        if result is None:
            return
        self._reader = None
        if isinstance(result, Fault) or not result.reusable:
            self.abort()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(result)


def _broken_off(exc: Exception | None, began: bool) -> Fault:
    if isinstance(exc, ssl.SSLError):
        return of_tls_error(exc)
    where = WITHIN_HEAD if began else BEFORE_HEAD
    if isinstance(exc, OSError):
        return of_os_error(exc, where)
    return Fault(failure=Failure.RESET, detail=where) if began else Fault(failure=Failure.EMPTY_REPLY)


async def open_socket(addresses: Sequence[Address], port: int) -> tuple[socket.socket, str] | Fault:
    """A TCP connection to one of these addresses, and that address. Where one is silent for ATTEMPT_DELAY seconds, the
    next is tried beside it (RFC 8305)."""
    infos = [_addr_info(address, port) for address in addresses]
    try:
        sock = await aiohappyeyeballs.start_connection(infos, happy_eyeballs_delay=ATTEMPT_DELAY)
    except OSError as error:
        fault = of_os_error(error, CONNECTING)
        if fault.failure is Failure.LOCAL_SHORTAGE and _lacks_ipv6(error, addresses):
            return Fault(failure=Failure.UNREACHABLE, detail=fault.detail)
        return fault
    try:
        return sock, sock.getpeername()[0]
    except OSError as error:  # gone again already
        sock.close()
        return of_os_error(error, BEFORE_HEAD)


def _lacks_ipv6(error: OSError, addresses: Sequence[Address]) -> bool:
    """True if EADDRNOTAVAIL means that this machine has no IPv6 (tried alone), not that its ports are used up."""
    return error.errno == errno.EADDRNOTAVAIL and all(address.version == 6 for address in addresses)


def _addr_info(address: Address, port: int) -> tuple[int, int, int, str, tuple[Any, ...]]:
    if address.version == 4:
        return socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (str(address), port)
    return socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (str(address), port, 0, 0)


async def start(
    sock: socket.socket, ip: str, context: ssl.SSLContext | None = None, *, host: str = ""
) -> Connection | Fault:
    """A connection of a connected socket; with a context after the TLS handshake.

    `host`: the name or address (`urls.Target.hostname`) that the certificate must be for; a name is sent as SNI.
    The time limit is the caller's.
    """
    tls: dict[str, Any] = {}
    if context is not None:
        tls = {"ssl": context, "server_hostname": host, "ssl_handshake_timeout": NO_LIMIT}
    try:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(lambda: Connection(ip), sock=sock, **tls)
    except ssl.SSLError as error:
        return of_tls_error(error)
    except OSError as error:
        return of_os_error(error, HANDSHAKE)
    return connection
