"""The fetching of one robots.txt (RFC 9309, 2.3.1), a request at a time. Pure: the caller sends what `Fetching.url`
names through the gate of its host, like any request, and tells what came of it.
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

#: What no text holds.
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f\x7f]")

#: Failures of the first request that the links of that authority would meet themselves: they get these as their own
#: reason. Any other failure closes the authority as `robots_unreachable`.
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
    """How a robots.txt stands after its fetch."""

    FOUND = "found"  # its body says what is allowed
    UNAVAILABLE = "unavailable"  # there is none: everything is allowed (2.3.1.3)
    UNREACHABLE = "unreachable"  # it can't be had now: nothing is allowed (2.3.1.4)


@frozen(kw_only=True)
class Fetching:
    """A fetch under way: `url` is what to ask next, by GET. `asked`: the URLs before it. `retried`: an answer
    was broken off, and asked for again. `was_stale`: the last outcome was that of a stale connection."""

    authority: str
    url: str
    asked: tuple[str, ...] = ()
    retried: bool = False
    was_stale: bool = False


@frozen(kw_only=True)
class Fetched:
    """What came of a fetch, for the first authority only, however far redirects led.

    `body` is empty unless the file was found. `failure`: set where the links of the authority would meet the same
    (see LINKS_OWN). `absent`: the server says that there is no such file. `note`: one line on why it stands so, for
    logs, `explain` and records. `max_age`: seconds that Cache-Control lets it live, None where it doesn't say.
    """

    authority: str
    standing: RobotsAvailability
    note: str
    body: bytes = b""
    failure: Failure | None = None
    absent: bool = False
    max_age: float | None = None


def begin(authority: str) -> Fetching:
    """The fetch of an authority's (`scheme://host[:port]`) robots.txt."""
    return Fetching(authority=authority, url=f"{authority}/robots.txt")


def step(state: Fetching, outcome: Outcome, body: bytes = b"", *, cut: bool = False) -> Fetching | Fetched:
    """What follows from the outcome of the request for `state.url`; `body` is needed of 2xx answers only, and no more
    of it than MAX_BYTES. `cut`: the body broke off before its end.

    A file that broke off is as one that could not be had, for what is missing may forbid (Google's robots.txt
    specification: interrupted connections and chunking errors are server errors). An accident gets one fresh try.
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


def _ended(state: Fetching, standing: RobotsAvailability, note: str, max_age: float | None = None) -> Fetched:
    return Fetched(authority=state.authority, standing=standing, note=note, max_age=max_age)


def _failed(state: Fetching, outcome: Outcome) -> Fetched:
    failure = outcome.failure
    note = outcome.error or f"{state.url}: {failure}"
    if state.asked and failure in (Failure.FORBIDDEN_ADDRESS, Failure.FORBIDDEN_PORT):
        return _ended(state, RobotsAvailability.UNAVAILABLE, note)  # like a redirect to nowhere: will never be had
    own = failure if failure in LINKS_OWN and not state.asked else None
    return evolve(_ended(state, RobotsAvailability.UNREACHABLE, note), failure=own)


def _redirected(state: Fetching, outcome: Outcome) -> Fetching | Fetched:
    """The next request; or the end where there is none: such a file is unavailable, as the RFC has it for the sixth
    redirect."""
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
    """True for plain text, whatever coding it is said to have: browsers show it. UTF-8, or another charset that is
    ASCII for the most part, without control characters: packed data has these within its first bytes."""
    if _BINARY.search(body):
        return False
    try:
        body.decode()
    except UnicodeDecodeError:
        return sum(byte > 0x7F for byte in body) * 5 <= len(body)
    return True


def _unpacked(body: bytes) -> bytes | None:
    """A body that is said to be packed, MAX_BYTES of it at most: unpacked where it is gzip, zlib or raw deflate (which
    browsers read as "deflate" too), as it is where it is plain text after all; None where it is neither."""
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
