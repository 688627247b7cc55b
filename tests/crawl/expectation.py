"""What a crawl must make of each misbehaviour of the table: the record, and the requests that the server sees.

`asks` and `other` are all requests but those for robots.txt, in order, at the misbehaviour's own address and at its
other one. A record's field is given by its value, or by `Like`, a pattern.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen


@frozen
class Like:
    """A text that matches this pattern as a whole."""

    pattern: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and re.fullmatch(self.pattern, other) is not None

    __hash__ = None  # type: ignore[assignment]


ERROR = Like(r"\S[^\n]*")
BOTH = ("HEAD /doc", "GET /doc")


@frozen(kw_only=True)
class Expected:
    """What is to be seen of one misbehaviour. `most_sent`: bytes that the server may have sent for one request."""

    record: Mapping[str, Any]
    asks: tuple[str, ...] = ()
    other: tuple[str, ...] = ()
    most_sent: int = field(default=4 * 2**20)


def _expect(category: str, reason: str, asks: tuple[str, ...], record: Mapping[str, Any]) -> Expected:
    given = dict(record)
    other = given.pop("other", ())
    confirmed = category != "Broken"
    method = asks[-1].partition(" ")[0] if asks and "method" not in given else None
    known = {"category": category, "reason": reason, "confirmed": confirmed, "redirects": 0, "timeout": False}
    return Expected(record={**known, "method": method, **given}, asks=asks, other=other)


def ok(*asks: str, **record: Any) -> Expected:
    usual = {"status": 200, "error": None, "attempt": 0}
    return _expect("Ok", "ok", asks or ("HEAD /doc",), usual | record)


def failed(category: str, reason: str, status: int | None, *asks: str, **record: Any) -> Expected:
    """Not Ok: suspected where it is `Broken`, and always with a reason for people."""
    usual = {"status": status, "error": ERROR, "attempt": 1}
    return _expect(category, reason, asks or BOTH, usual | record)


def undetermined(reason: str, status: int | None, *asks: str, **record: Any) -> Expected:
    return failed("Undetermined", reason, status, *asks, **record)


def broken(reason: str, status: int | None, *asks: str, **record: Any) -> Expected:
    return failed("Broken", reason, status, *asks, **record)


def timed_out(*asks: str, **record: Any) -> Expected:
    return undetermined("timeout", None, *asks, timeout=True, **record)


def not_asked(category: str, reason: str, **record: Any) -> Expected:
    """Ended before any page was requested."""
    usual: dict[str, Any] = {"status": None, "error": ERROR, "attempt": 1, "hops": [], "method": None, "mime": None}
    return Expected(record={"category": category, "reason": reason, "redirects": 0} | usual | record)


def lands(at: str, *, start: str = "/from", **record: Any) -> Expected:
    """A redirect at the same address that was followed to exactly this target."""
    return ok(f"HEAD {start}", f"HEAD {at}", redirects=1, **record)


def stops(category: str, reason: str, *, status: int = 302, **record: Any) -> Expected:
    """A redirect that is reported and not followed."""
    return failed(category, reason, status, "HEAD /from", **record)
