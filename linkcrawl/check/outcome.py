"""What came of one request, as data. The network room makes it, the check room judges it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from attrs import field, frozen


class Failure(StrEnum):
    """Why a request got no answer: one word for each cause that a reader would react to differently."""

    DNS_NOT_FOUND = "dns_not_found"  # the name does not exist, or has no address
    DNS_TROUBLE = "dns_trouble"  # SERVFAIL, no resolver, resolver too slow: says nothing of the name
    REFUSED = "connection_refused"
    UNREACHABLE = "host_unreachable"  # no route, network or host unreachable
    RESET = "connection_reset"  # broken off before or within the answer's head
    EMPTY_REPLY = "empty_reply"  # closed in good order without a byte of answer
    TIMEOUT_CONNECT = "timeout_connect"
    TIMEOUT_TLS = "timeout_tls"
    TIMEOUT_ANSWER = "timeout_answer"  # connected, but no whole head in time (drip-fed ones included)
    TLS_EXPIRED = "tls_expired"
    TLS_SELF_SIGNED = "tls_self_signed"
    TLS_UNTRUSTED = "tls_untrusted"  # issuer not known, chain incomplete
    TLS_HOSTNAME = "tls_hostname"  # certificate is for another name
    TLS_VERSION = "tls_version"  # no protocol version or cipher in common
    TLS_OTHER = "tls_error"
    PROTOCOL = "protocol_error"  # the answer is not HTTP
    TOO_LARGE = "headers_too_large"  # the answer's head is over our bounds
    FORBIDDEN_ADDRESS = "forbidden_address"  # private, loopback, … : not connected
    FORBIDDEN_PORT = "forbidden_port"  # WHATWG bad port: not connected
    LOCAL_SHORTAGE = "local_shortage"  # this machine lacked a descriptor, port or memory: asked again, never judged
    WITHHELD = "withheld"  # leases or claim were over when it should have left: not sent, asked again

    @property
    def is_timeout(self) -> bool:
        return self in TIMEOUTS

    @property
    def is_tls(self) -> bool:
        return self.value.startswith("tls_")


#: Failures of this machine: the request is sent again, and the check goes on as if the first had not been sent.
UNJUDGED = frozenset({Failure.LOCAL_SHORTAGE, Failure.WITHHELD})

#: Failures of requests that never left.
UNSENT = UNJUDGED | {Failure.FORBIDDEN_ADDRESS, Failure.FORBIDDEN_PORT}

#: Failures that may not happen again on another connection: worth one fresh try.
ACCIDENTS = frozenset({Failure.RESET, Failure.EMPTY_REPLY})
#: Nothing came back over the network at all, as when our own network, resolver or route is gone.
SILENT = frozenset({Failure.DNS_NOT_FOUND, Failure.DNS_TROUBLE, Failure.UNREACHABLE, Failure.TIMEOUT_CONNECT})
TIMEOUTS = frozenset({Failure.TIMEOUT_CONNECT, Failure.TIMEOUT_TLS, Failure.TIMEOUT_ANSWER})


@frozen(kw_only=True)
class Outcome:
    """What came of one request: an answer (`status`, `headers`) or a `failure`, never both.

    `headers`: lower-case names; where a name came several times the values are joined by ", ", except that
    `set_cookie` holds each Set-Cookie line apart. Values are text; bytes that are not UTF-8 are read as Latin-1, in
    `set_cookie` as surrogate escapes; control characters are replaced. `error`: one line for people, with host and
    phase; None for an answer.
    `stale`: the failure is that of a kept connection, which the server had left or reset before a byte of this answer:
    it says nothing of the server, and the same request may go again on a new connection.
    `sent_at`, `ended_at`: Unix seconds; `duration_ms` is measured on a steady clock, without politeness' waiting.
    `page`: the first bytes of an HTML page, where NextRequest.page_limit asked for them; it is looked at and forgotten.
    """

    sent_at: float
    ended_at: float
    duration_ms: int | None
    ip: str | None = None
    status: int | None = None
    headers: Mapping[str, str] = field(factory=dict)
    set_cookie: tuple[str, ...] = ()
    failure: Failure | None = None
    stale: bool = False
    error: str | None = None
    page: bytes = b""

    @property
    def is_silence(self) -> bool:
        """True where the server was asked and didn't answer."""
        return self.status is None and not self.stale and self.failure not in UNSENT
