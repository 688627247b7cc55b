"""The fetch of one robots.txt (RFC 9309, 2.3.1), a request at a time. PURE: the caller requests `Fetching.url` through
the gate of its host, like any other URL, and hands the outcome to `step`.
"""

from __future__ import annotations

import re
import zlib
from enum import StrEnum

from attrs import evolve, frozen

from linkcrawl.check.outcome import ACCIDENTS, Failure, Outcome
from linkcrawl.check.statuses import REDIRECTS, TOO_OFTEN
from linkcrawl.politeness.robots.parser import MAX_BYTES
from linkcrawl.urls import Refused, join

#: Redirects that are followed (RFC 9309, 2.3.1.2).
MAX_REDIRECTS = 5

_ABSENT = frozenset({404, 410})

#: Octets that no text holds.
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")

#: Failures of the first request that the authority's links would meet too: they become the links' reason. Any other
#: failure closes the authority as `robots_unreachable`.
LINKS_OWN = frozenset(
    {
        Failure.DNS_NOT_FOUND,
        Failure.DNS_TROUBLE,
        Failure.REFUSED,
        Failure.UNREACHABLE,
        Failure.FORBIDDEN_ADDRESS,
        Failure.FORBIDDEN_PORT,
        *(failure for failure in Failure if failure.is_tls),
    }
)


class RobotsAvailability(StrEnum):
    """What a fetch has shown of a robots.txt."""

    FOUND = "found"  # its body says what is allowed
    UNAVAILABLE = "unavailable"  # there is none: everything is allowed (2.3.1.3)
    UNREACHABLE = "unreachable"  # it can't be had now: nothing is allowed (2.3.1.4)


@frozen(kw_only=True)
class Fetching:
    """A fetch under way. `url`: to GET next; `asked`: the URLs before it; `retried`: the fresh try after a connection
    that broke is used up; `was_stale`: the last request met a stale connection."""

    authority: str
    url: str
    asked: tuple[str, ...] = ()
    retried: bool = False
    was_stale: bool = False


@frozen(kw_only=True)
class Fetched:
    """The result of a fetch. It holds for the first authority only, wherever redirects led.

    `body`: empty unless the file was found. `failure`: one that the authority's links would meet too (LINKS_OWN).
    `timed_out`: a time limit ended it. `absent`: the server says that there is no such file. `note`: one line that
    gives the cause, for logs, `explain` and records. `max_age`: seconds that Cache-Control lets the file live; None
    without one.
    """

    authority: str
    availability: RobotsAvailability
    note: str
    body: bytes = b""
    failure: Failure | None = None
    timed_out: bool = False
    absent: bool = False
    max_age: float | None = None


def begin(authority: str) -> Fetching:
    """The fetch of an authority's (`scheme://host[:port]`) robots.txt."""
    return Fetching(authority=authority, url=f"{authority}/robots.txt")


def step(state: Fetching, outcome: Outcome, body: bytes = b"", *, cut: bool = False) -> Fetching | Fetched:
    """The next request, or the result, after the outcome of `state.url`. `body`: of 2xx answers, at most MAX_BYTES;
    `cut`: it broke off before its end.

    A file that broke off counts as unreachable, for the missing part may forbid (Google's robots.txt specification:
    interrupted connections and chunking errors are server errors). A broken connection gets one fresh try.
    """
    if outcome.stale:
        return evolve(state, was_stale=True)
    state, was_stale = evolve(state, was_stale=False), state.was_stale
    status = outcome.status
    cut = cut and status is not None and 200 <= status < 300
    if (cut or outcome.failure in ACCIDENTS) and not (state.retried or was_stale):
        return evolve(state, retried=True)
    if status is None:
        return _failed(state, outcome)
    if status in REDIRECTS:
        return _redirected(state, outcome)
    answer = f"{state.url} answered {status}"
    if cut:
        return _ended(state, RobotsAvailability.UNREACHABLE, f"{answer}, but broke off before its end, twice")
    if 200 <= status < 300:
        return _found(state, outcome, body, answer)
    if status in TOO_OFTEN or status >= 500:  # "too often" says nothing of the file (Google's specification, for 429)
        return _ended(state, RobotsAvailability.UNREACHABLE, answer)
    return evolve(_ended(state, RobotsAvailability.UNAVAILABLE, answer, _max_age(outcome)), absent=status in _ABSENT)


def _ended(state: Fetching, availability: RobotsAvailability, note: str, max_age: float | None = None) -> Fetched:
    return Fetched(authority=state.authority, availability=availability, note=note, max_age=max_age)


def _failed(state: Fetching, outcome: Outcome) -> Fetched:
    failure = outcome.failure
    note = outcome.error or f"{state.url}: {failure}"
    if state.asked and failure in (Failure.FORBIDDEN_ADDRESS, Failure.FORBIDDEN_PORT):
        return _ended(state, RobotsAvailability.UNAVAILABLE, note)  # like a redirect to nowhere: will never be had
    own = failure if failure in LINKS_OWN and not state.asked else None
    timed_out = failure is not None and failure.is_timeout
    return evolve(_ended(state, RobotsAvailability.UNREACHABLE, note), failure=own, timed_out=timed_out)


def _redirected(state: Fetching, outcome: Outcome) -> Fetching | Fetched:
    """The request for the redirect's target. A redirect that leads nowhere means that the file is unavailable, as the
    RFC has it for the sixth redirect."""
    asked = (*state.asked, state.url)
    target = join(state.url, outcome.headers.get("location", ""))
    if isinstance(target, Refused):
        return _ended(state, RobotsAvailability.UNAVAILABLE, f"{state.url} redirects to nowhere: {target.error}")
    if target.url in asked:
        return _ended(state, RobotsAvailability.UNAVAILABLE, f"{state.url} redirects in a loop")
    if len(asked) > MAX_REDIRECTS:
        return _ended(state, RobotsAvailability.UNAVAILABLE, f"{asked[0]} redirects more than {MAX_REDIRECTS} times")
    return evolve(state, url=target.url, asked=asked)


def _found(state: Fetching, outcome: Outcome, body: bytes, answer: str) -> Fetched:
    codings = [coding.strip().lower() for coding in outcome.headers.get("content-encoding", "").split(",")]
    plain: bytes | None = body
    for coding in reversed(codings):  # the last was applied last (RFC 9110, 8.4)
        if coding not in ("", "identity") and plain is not None:
            plain = _unpacked(plain)
    if plain is None:
        shown = ", ".join(codings)[:40]
        note = f"{answer}, but its Content-Encoding {shown!r} can't be read"
        return _ended(state, RobotsAvailability.UNREACHABLE, note)
    return evolve(_ended(state, RobotsAvailability.FOUND, answer, _max_age(outcome)), body=plain)


def _is_text(body: bytes) -> bool:
    """True for plain text, whatever coding is claimed: browsers show it. It is UTF-8, or in another charset mostly
    ASCII, and has no control characters, which packed data has within its first bytes."""
    if _BINARY.search(body):
        return False
    try:
        body.decode()
    except UnicodeDecodeError:
        return sum(byte > 0x7F for byte in body) * 5 <= len(body)
    return True


def _unpacked(body: bytes) -> bytes | None:
    """A body that claims to be packed, at most MAX_BYTES of it: unpacked from gzip, zlib or raw deflate (which browsers
    read as "deflate" too), or as it is where it is plain text after all; None where it is neither."""
    for window in (zlib.MAX_WBITS | 32, -zlib.MAX_WBITS):
        unpacker = zlib.decompressobj(window)
        try:
            plain = unpacker.decompress(body, MAX_BYTES)
        except zlib.error:
            continue
        # Raw deflate has no mark of its own: only a whole stream is proof of it.
        if unpacker.eof or len(plain) == MAX_BYTES or (window > 0 and not _is_text(body)):
            return plain
    return body if _is_text(body) else None


def _max_age(outcome: Outcome) -> float | None:
    """RFC 9111, 5.2.2: seconds by Cache-Control; 0 where nothing may be kept."""
    directives = outcome.headers.get("cache-control", "").lower()
    if re.search(r"(^|[\s,])no-(store|cache)\s*(,|$)", directives):
        return 0.0
    found = re.search(r'(^|[\s,])max-age="?([0-9]{1,12})', directives)
    return float(found[2]) if found else None
