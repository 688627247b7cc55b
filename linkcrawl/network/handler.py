"""Scrapy's download handler for http and https: asks, reads the head of the answer, and says exactly what happened.

Why not one of Scrapy's: a link checker needs the failure's class and phase, the address in every case, a guard between
resolution and connection, one deadline over everything, and patience with broken servers (docs/architecture.md).
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Sequence
from functools import cached_property, lru_cache
from ssl import SSLContext
from typing import TYPE_CHECKING, Self

from attrs import define, evolve
from scrapy.exceptions import DownloadFailedError
from scrapy.http import Response

from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.clock import boot_time
from linkcrawl.config import read_config
from linkcrawl.errors import ConfigError
from linkcrawl.network import descriptors
from linkcrawl.network.answer import AnswerReader, ReceivedAnswer
from linkcrawl.network.connection import Connection, open_socket, start
from linkcrawl.network.deadline import Deadline, StandstillMonitor
from linkcrawl.network.fault import Fault, describe
from linkcrawl.network.guard import Address
from linkcrawl.network.headers import scrapy_headers
from linkcrawl.network.outcomes import answered
from linkcrawl.network.pool import Pool
from linkcrawl.network.request import read_target, request_bytes
from linkcrawl.network.resolver import resolver_of
from linkcrawl.network.tls import client_context
from linkcrawl.network.transport import Transport, transport_of
from linkcrawl.urls import Target

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler

# A host answers from the same address again and again.
_ip_address = lru_cache(maxsize=10_000)(ipaddress.ip_address)

#: Seconds until a connection is tried once more that this machine lacked the resources for.
AGAIN = 0.2


class RequestFailed(DownloadFailedError):
    """No answer came. `failure` is its class, `error` one line for people, `ip` the address that was tried."""

    def __init__(self, failure: Failure, error: str, ip: str | None) -> None:
        super().__init__(error)
        self.failure, self.error, self.ip = failure, error, ip


class NameMoved(DownloadFailedError):
    """Nothing was sent: the name leads to other `addresses` than the one that the request's gate was chosen by."""

    def __init__(self, host: str, addresses: tuple[str, ...]) -> None:
        super().__init__(f"{host} is at {', '.join(addresses)} by now")
        self.addresses = addresses


@define
class _RequestTrace:
    """How far a request has got. `phase`: what a time limit would cut short. `since`: steady seconds when it began to
    connect, or to send on a kept connection; None before. `head_at`: steady seconds when the head of its answer was in;
    None before. `ip`: the address that was tried last. `stood_still`: seconds that our own process stood still
    meanwhile."""

    target: Target | None = None
    phase: Failure = Failure.TIMEOUT_CONNECT
    since: float | None = None
    head_at: float | None = None
    ip: str | None = None
    stood_still: float = 0.0

    def note_head(self) -> None:
        """The head of the answer is in."""
        self.head_at = time.monotonic()


class CheckDownloadHandler:
    """Sends GET and HEAD requests byte for byte and leaves every answer after its head.

    What it is told of a request, and what it leaves, is a network.transport.Transport; `outcome` is always left.
    `request.meta["download_timeout"]` (seconds) stands in place of LINKCRAWL_TIMEOUT: it counts from connecting, a DNS
    lookup has its own limit, and a standstill of our own process is added to it. Over such a standstill nobody can say
    how long an answer took: `duration_ms` is None. Raises RequestFailed where no answer came, and NameMoved, without
    an outcome, where the request belongs to another gate.
    """

    lazy = False

    def __init__(self, crawler: Crawler) -> None:
        config = read_config(crawler.settings, need_contact=False)
        self._timeout = config.timeout
        self._resolver = resolver_of(crawler, config.allowed_networks)
        self._ca_bundle = config.ca_bundle
        self._pool = Pool(limit=descriptors.shares_now(config.concurrent_requests).idle)
        self._standstills = StandstillMonitor()
        # One reading of the machine's clock: one that is set back must not make an answer older than its request.
        self._epoch = time.time() - boot_time()

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        return cls(crawler)

    @cached_property
    def _tls(self) -> SSLContext:
        """Made when it is first needed: reading the system's authorities takes 50 ms, and Scrapy makes one handler
        for http and one for https."""
        return client_context(self._ca_bundle)

    async def download_request(self, request: Request) -> Response:
        trace, context = _RequestTrace(), transport_of(request)
        context.unsent = True
        began = time.monotonic()
        try:
            result = await self._ask(request, context, trace)
        except MemoryError:
            result = Fault(failure=Failure.LOCAL_SHORTAGE, detail="out of memory")
        sent = trace.since or began
        ended = time.monotonic() if trace.head_at is None or context.page_limit is None else trace.head_at
        seconds = ended - sent
        request.meta["download_latency"] = seconds
        ended_at = self._epoch + boot_time()
        if isinstance(result, Fault):
            raise self._failed(context, trace, result, ended_at, seconds)
        context.outcome = answered(
            result.head.headers,
            status=result.head.status,
            ip=trace.ip,
            sent_at=ended_at - seconds,
            seconds=seconds,
            timed=not trace.stood_still,
            page=b"" if context.page_limit is None else result.body,
        )
        return Response(
            request.url,
            status=result.head.status,
            headers=scrapy_headers(result.head.headers),
            body=b"" if context.body_limit is None else result.body,
            flags=["dataloss"] if result.broken else None,
            request=request,
            ip_address=_ip_address(trace.ip) if trace.ip else None,
            protocol=f"HTTP/{result.head.version}",
        )

    async def close(self) -> None:
        """Close all idle connections; those in use end with their requests."""
        self._pool.close()
        self._resolver.close()
        await asyncio.sleep(0)  # the loop closes aborted sockets in its next round

    async def _ask(self, request: Request, context: Transport, trace: _RequestTrace) -> ReceivedAnswer | Fault:
        target = context.target or read_target(request.url)
        if isinstance(target, Fault):
            return target
        trace.target = target
        payload = request_bytes(request.method, target, request.headers)
        if isinstance(payload, Fault):
            return payload
        reader = AnswerReader(request.method, context.body_limit, context.page_limit, on_head=trace.note_head)
        seconds = request.meta.get("download_timeout", self._timeout)
        return await self._exchange(context, target, payload, reader, seconds, trace)

    async def _exchange(
        self,
        context: Transport,
        target: Target,
        payload: bytes,
        reader: AnswerReader,
        seconds: float,
        trace: _RequestTrace,
    ) -> ReceivedAnswer | Fault:
        server = (target.scheme, target.hostname, target.port)
        kept = self._pool.take(server)
        if kept is not None and context.address not in (None, kept.ip):
            kept.abort()
            kept = None
        addresses = () if kept else await self._resolver.resolve(target.hostname)
        if isinstance(addresses, Fault):
            return addresses
        if not kept and context.address is not None:
            addresses = _asked_first(context.address, addresses)
            if str(addresses[0]) != context.address:
                raise NameMoved(target.host, tuple(map(str, addresses)))
        trace.since = time.monotonic()
        context.unsent = False
        context.on_sent()
        limit = Deadline(self._standstills, seconds)
        try:
            async with limit as context.deadline:
                connection = kept or await self._connect_with_room(target, addresses, trace)
                if isinstance(connection, Fault):
                    return connection
                trace.phase, trace.ip = Failure.TIMEOUT_ANSWER, connection.ip
                if not context.may_send():
                    connection.abort()
                    context.unsent = True  # a connection was opened and closed again; no request was made
                    return Fault(failure=Failure.WITHHELD)
                result = await connection.ask(payload, reader)
        except TimeoutError:
            return reader.cut_short() or Fault(failure=trace.phase)
        finally:
            trace.stood_still = limit.stood_still
        if kept and (stale := _stale(result, reader)) is not None:
            connection.abort()
            self._pool.distrust(server)
            return stale
        # After a 408 the server closes the connection, said or not; kept, it would hide the next one (_stale).
        if isinstance(result, ReceivedAnswer) and result.reusable and result.head.status != 408:
            self._pool.put(server, connection)
        return result

    async def _connect_with_room(
        self, target: Target, addresses: Sequence[Address], trace: _RequestTrace
    ) -> Connection | Fault:
        """Where this machine lacks descriptors idle connections give theirs, and it is tried once more."""
        connection = await self._connect(target, addresses, trace)
        if isinstance(connection, Fault) and connection.failure is Failure.LOCAL_SHORTAGE:
            self._pool.close()
            await asyncio.sleep(AGAIN)
            connection = await self._connect(target, addresses, trace)
        return connection

    async def _connect(self, target: Target, addresses: Sequence[Address], trace: _RequestTrace) -> Connection | Fault:
        trace.ip = str(addresses[0])
        opened = await open_socket(addresses, target.port)
        if isinstance(opened, Fault):
            return opened
        sock, trace.ip = opened
        if target.scheme == "http":
            return await start(sock, trace.ip)
        trace.phase = Failure.TIMEOUT_TLS
        try:
            tls = self._tls
        except ConfigError as error:  # it could be read when the crawl began
            sock.close()
            return Fault(failure=Failure.LOCAL_SHORTAGE, detail=str(error))
        started = await start(sock, trace.ip, tls, host=target.hostname)
        # OpenSSL reads the system's authorities when it needs them, and doesn't trust those that it can't read.
        if isinstance(started, Fault) and started.failure is Failure.TLS_UNTRUSTED and descriptors.are_short():
            return Fault(failure=Failure.LOCAL_SHORTAGE, detail=started.detail)
        return started

    def _failed(
        self, context: Transport, trace: _RequestTrace, fault: Fault, ended_at: float, seconds: float
    ) -> RequestFailed:
        waited = max(seconds - trace.stood_still, 0.0)
        error = describe(fault, trace.target, waited) if trace.target else fault.detail
        context.outcome = Outcome(
            sent_at=ended_at - seconds,
            ended_at=ended_at,
            duration_ms=None if trace.since is None or trace.stood_still else round(seconds * 1000),
            ip=trace.ip,
            failure=fault.failure,
            stale=fault.stale,
            error=error,
        )
        return RequestFailed(fault.failure, error, trace.ip)


def _asked_first(address: str, addresses: Sequence[Address]) -> tuple[Address, ...]:
    """The addresses of a name, beginning with this one where it is among them."""
    return tuple(sorted(addresses, key=lambda one: str(one) != address))


def _stale(result: ReceivedAnswer | Fault, reader: AnswerReader) -> Fault | None:
    """The fault of a kept connection, where what came on it says nothing of this request; None where it does.

    The server had closed or reset the connection (RFC 9112, 9.3.1), bytes of an earlier answer crossed the request, or
    the server gave notice that the connection had been idle for too long (408: RFC 9110, 15.5.9).
    """
    if isinstance(result, Fault) and not reader.began:
        return evolve(result, detail="a kept connection had gone stale", stale=True)
    crossed = result.failure is Failure.PROTOCOL if isinstance(result, Fault) else result.head.status == 408
    return Fault(failure=Failure.RESET, detail="out of step with an earlier answer", stale=True) if crossed else None
