"""A failed step as data, and its error text, one line."""

from __future__ import annotations

import errno
import re
import socket

from attrs import frozen

from linkcrawl.check.outcome import Failure
from linkcrawl.urls import Target

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")

#: Phases before a request is sent, for `of_os_error`.
CONNECTING, HANDSHAKE = "connecting", "in the TLS handshake"

_RESETTING = {"ECONNRESET", "EPIPE", "ECONNABORTED", "ENOTCONN"}
#: What this process or machine has run out of: descriptors, buffers, memory, and local ports (connect(2)).
_SHORTAGE = {"EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "EAGAIN"}
_NO_PORT = {"EADDRNOTAVAIL"}


@frozen(kw_only=True)
class Fault:
    """A step that failed: its class, and what more there is to say ("" where the class says it all). `stale`: it failed
    because a kept connection was used again (check.outcome.Outcome)."""

    failure: Failure
    detail: str = ""
    stale: bool = False


_SENTENCES = {
    Failure.DNS_NOT_FOUND: "name not found in DNS: {host}",
    Failure.DNS_TROUBLE: "DNS lookup of {host} failed",
    Failure.REFUSED: "connection refused by {server}",
    Failure.UNREACHABLE: "no way to reach {server}",
    Failure.RESET: "connection broken off by {server}",
    Failure.EMPTY_REPLY: "connection closed without an answer by {server}",
    Failure.TIMEOUT_CONNECT: "timed out after {seconds:g} s connecting to {server}",
    Failure.TIMEOUT_TLS: "timed out after {seconds:g} s in the TLS handshake with {server}",
    Failure.TIMEOUT_ANSWER: "timed out after {seconds:g} s waiting for the answer of {server}",
    Failure.TLS_EXPIRED: "certificate of {server} is expired or not valid yet",
    Failure.TLS_SELF_SIGNED: "certificate of {server} is self-signed",
    Failure.TLS_UNTRUSTED: "certificate of {server} is not trusted",
    Failure.TLS_HOSTNAME: "certificate of {server} is for another name",
    Failure.TLS_VERSION: "no TLS version or cipher in common with {server}",
    Failure.TLS_OTHER: "TLS trouble with {server}",
    Failure.PROTOCOL: "no HTTP between us and {server}",
    Failure.TOO_LARGE: "head of the answer of {server} is too large",
    Failure.FORBIDDEN_ADDRESS: "forbidden address of {host}",
    Failure.FORBIDDEN_PORT: "forbidden port {server}",
    Failure.LOCAL_SHORTAGE: "this machine has no resources left to ask {server}",
    Failure.WITHHELD: "{server} was not asked: this crawl may not send just now",
}


def replace_controls(text: str) -> str:
    """The text with U+FFFD for every control character and line separator, so that it can't forge a log line. Unlike
    `text.one_line` it keeps the text's length: a field's value is judged by what it holds."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\t", " "))


def describe(fault: Fault, target: Target, seconds: float) -> str:
    """One line with class, host and phase. `seconds`: how long the request had taken when it failed."""
    host, port = target.hostname, target.port
    server = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    sentence = _SENTENCES[fault.failure].format(host=host, server=server, seconds=round(seconds, 1))
    return replace_controls(f"{sentence}: {fault.detail}" if fault.detail else sentence)


def of_os_error(error: OSError, where: str) -> Fault:
    """A connection that the system or the other side ended. `where`: the phase, such as "connecting".

    Where this machine has run out of something before the request was sent, that says nothing of the server; after it
    was sent, the connection counts as broken off. Anything else that is not about the server (no permission) counts as
    unreachable, which condemns no link.
    """
    names = _error_names(error)
    detail = error.strerror or str(error)
    # Without IPv6 on this machine an IPv6 address gives EADDRNOTAVAIL too: `open_socket` tells which it was.
    if names & _SHORTAGE or names == _NO_PORT:
        if where in (CONNECTING, HANDSHAKE):
            return Fault(failure=Failure.LOCAL_SHORTAGE, detail=detail)
        return Fault(failure=Failure.RESET, detail=detail)
    if "ECONNREFUSED" in names:
        return Fault(failure=Failure.REFUSED)
    if names & _RESETTING or isinstance(error, ConnectionError):
        return Fault(failure=Failure.RESET, detail=where)
    if "ETIMEDOUT" in names:
        phase = Failure.TIMEOUT_CONNECT if where == CONNECTING else Failure.TIMEOUT_ANSWER
        return Fault(failure=phase, detail=detail)
    return Fault(failure=Failure.UNREACHABLE, detail=detail)


def _error_names(error: OSError) -> set[str]:
    """The symbolic errno names in it. aiohappyeyeballs joins the texts of several failed addresses and drops their
    numbers where they differ, so they are read back from "[Errno 111] …"."""
    numbers = {error.errno} if error.errno else {int(n) for n in re.findall(r"\[Errno (-?\d+)\]", str(error))}
    return {errno.errorcode[number] for number in numbers if number in errno.errorcode}


def of_lookup_error(error: OSError) -> Fault:
    """getaddrinfo's errors: only "there is no such name" and "it has no address" speak of the name."""
    if _error_names(error) & _SHORTAGE and not isinstance(error, socket.gaierror):
        return Fault(failure=Failure.LOCAL_SHORTAGE, detail=error.strerror or str(error))
    nothing = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME), socket.EAI_ADDRFAMILY}
    if isinstance(error, socket.gaierror) and error.errno in nothing:
        return Fault(failure=Failure.DNS_NOT_FOUND)
    return Fault(failure=Failure.DNS_TROUBLE, detail=error.strerror or str(error))
