"""The innermost downloader middleware: whatever download handler is configured, every request ends with an Outcome.

Our own handler (network/handler.py) leaves `request.meta["outcome"]` itself. For any other one it is made here of the
response or the exception, as exactly as those allow. Nothing is decided here.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

from scrapy import exceptions as scrapy_errors
from scrapy.utils.httpobj import urlparse_cached
from twisted.internet import error as twisted_errors

from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.network.fault import CONNECTING, Fault, describe, of_lookup_error, of_os_error
from linkcrawl.network.head import field_text
from linkcrawl.network.outcomes import answered
from linkcrawl.network.tls import of_tls_error

if TYPE_CHECKING:
    from scrapy import Request
    from scrapy.crawler import Crawler
    from scrapy.http import Response

#: Leaves the outcome itself.
OUR_HANDLER = "linkcrawl.network.handler.CheckDownloadHandler"

#: What an exception says of the server. The first row that fits any exception of the chain counts, so the exact ones
#: stand before those that only wrap them.
_ROWS: tuple[tuple[type[BaseException], Failure], ...] = (
    (twisted_errors.TCPTimedOutError, Failure.TIMEOUT_CONNECT),
    (twisted_errors.ConnectionRefusedError, Failure.REFUSED),
    (twisted_errors.NoRouteError, Failure.UNREACHABLE),
    (twisted_errors.ConnectionDone, Failure.EMPTY_REPLY),
    (twisted_errors.ConnectionLost, Failure.RESET),
    (twisted_errors.ConnectionAborted, Failure.RESET),
    (twisted_errors.SSLError, Failure.TLS_OTHER),
    (scrapy_errors.CannotResolveHostError, Failure.DNS_TROUBLE),  # wraps "no such name" and "no resolver" alike
    (scrapy_errors.DownloadConnectionRefusedError, Failure.REFUSED),
    (scrapy_errors.DownloadTimeoutError, Failure.TIMEOUT_ANSWER),
    (scrapy_errors.DownloadCancelledError, Failure.TOO_LARGE),  # raised for sizes over a limit
    (scrapy_errors.ResponseDataLossError, Failure.RESET),
)

#: Those that Twisted and its TLS libraries keep private, by the names of their classes.
_NAMES = {
    "ParseError": Failure.PROTOCOL,
    "VerificationError": Failure.TLS_HOSTNAME,  # service_identity
    "Error": Failure.TLS_OTHER,  # OpenSSL.SSL
}


class HopMiddleware:
    """Guarantees `request.meta["outcome"]` on the way back (check.outcome.Outcome)."""

    @classmethod
    def from_crawler(cls, crawler: Crawler) -> Self:
        """Not there where all handlers are ours: it would cost every request for nothing."""
        handlers = crawler.settings.getdict("DOWNLOAD_HANDLERS")
        if all(handlers.get(scheme) == OUR_HANDLER for scheme in ("http", "https")):
            raise scrapy_errors.NotConfigured
        return cls()

    def process_request(self, request: Request) -> None:
        # A request that is sent a second time must not keep what came of it the first time.
        request.meta.pop("outcome", None)
        request.meta["handed_over"] = time.time()

    def process_response(self, request: Request, response: Response) -> Response:
        if "outcome" not in request.meta:
            sent_at, seconds = _times(request)
            fields = [
                (name.decode("latin-1").lower(), field_text(name, value))
                for name, values in response.headers.items()
                for value in values
            ]
            ip = str(response.ip_address) if response.ip_address else None
            request.meta["outcome"] = answered(fields, status=response.status, ip=ip, sent_at=sent_at, seconds=seconds)
        return response

    def process_exception(self, request: Request, exception: Exception) -> None:
        # A request that a middleware dropped was never sent: nothing came of it.
        if "outcome" in request.meta or isinstance(exception, scrapy_errors.IgnoreRequest):
            return
        sent_at, seconds = _times(request)
        fault = of_exception(exception)
        parts = urlparse_cached(request)
        request.meta["outcome"] = Outcome(
            sent_at=sent_at,
            ended_at=sent_at + seconds,
            duration_ms=round(seconds * 1000),
            failure=fault.failure,
            error=describe(
                fault, parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80), seconds
            ),
        )


def of_exception(exception: BaseException) -> Fault:
    """What a foreign handler's exception says of the server. Its text is left out: it may hold the whole URL."""
    chain = list(_chain(exception))
    for error in chain:
        if isinstance(error, ssl.SSLError):
            return of_tls_error(error)
        if isinstance(error, socket.gaierror):
            return of_lookup_error(error)
    for error in chain:
        kind = type(error)
        if kind.__name__ in _NAMES and kind.__module__.startswith(("twisted.", "service_identity", "OpenSSL")):
            unverified = "certificate verify failed" in str(error)
            return Fault(failure=Failure.TLS_UNTRUSTED if unverified else _NAMES[kind.__name__])
    for fitting, failure in _ROWS:
        if any(isinstance(error, fitting) for error in chain):
            return Fault(failure=failure)
    for error in chain:
        if isinstance(error, OSError):
            return of_os_error(error, CONNECTING)
    return Fault(failure=Failure.PROTOCOL, detail=type(exception).__name__)


def _chain(error: BaseException, depth: int = 8) -> Iterator[BaseException]:
    """The exception, what it stands for and what caused it; Twisted lists the latter as `reasons`."""
    yield error
    if depth:
        causes = [getattr(reason, "value", None) for reason in getattr(error, "reasons", None) or ()]
        for cause in [*causes, error.__cause__ or error.__context__]:
            if isinstance(cause, BaseException):
                yield from _chain(cause, depth - 1)


def _times(request: Request) -> tuple[float, float]:
    """When it was sent and how many seconds it took. Handlers tell the latency of answers; else the time since it was
    handed over counts, waiting in the downloader included."""
    now = time.time()
    latency = request.meta.get("download_latency")
    seconds = max(now - request.meta.get("handed_over", now), 0.0) if latency is None else latency
    return now - seconds, seconds
