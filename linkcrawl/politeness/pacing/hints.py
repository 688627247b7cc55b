"""Throttle hints in an answer: Retry-After, RateLimit fields, throttling statuses, walls. PURE.

The waits are seconds, the moments Unix seconds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import islice

from linkcrawl.check.fields import redirect_target
from linkcrawl.check.outcome import Failure, Outcome
from linkcrawl.check.statuses import REDIRECTS, SHUT_OUT, SLOW_DOWN
from linkcrawl.check.walls import wall_of_answer, wall_of_page, wall_of_redirect
from linkcrawl.politeness.pacing.state import AnswerKind, PaceSample
from linkcrawl.units import DAY, HOUR, MINUTE
from linkcrawl.urls import Target, join

#: Base of relative redirects: a wall shows by path and query, whatever the host.
_ANY_PAGE = "http://page.invalid/"


#: How a server that shuts us out fails: fail2ban's default action refuses connections, others reset or drop them.
SHUT_FAILURES = frozenset({Failure.REFUSED, Failure.RESET, Failure.UNREACHABLE, Failure.TIMEOUT_CONNECT})

_SECONDS = re.compile(r"[0-9]+(\.[0-9]+)?")
_DURATION = re.compile(r"(?=[0-9])(?:([0-9]+)d)?(?:([0-9]+)h)?(?:([0-9]+)m)?(?:([0-9]+(?:\.[0-9]+)?)s)?", re.IGNORECASE)
# One value of a list; the comma after the weekday of a date separates none.
_VALUE = re.compile(r"(?:\s*(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,)?[^,]+", re.IGNORECASE)
_MAX_VALUES = 20
#: Characters of a time, a span or a date; the longest forms have 50.
_MAX_TIME = 100
#: Digits of a number that means something, decimals included.
_MAX_NUMBER = 40
_UNITS = (DAY, HOUR, MINUTE, 1.0)
#: Seconds by which a Date may differ from our clock though both are right: it has no fractions.
_DATE_GRAIN = 1.0
#: A reset number above this is a Unix time, in seconds, or in a unit that makes it larger by the thousand.
_EPOCH = 1e9
_EPOCH_END = 1e11
#: Seconds that a reset number may be as a wait; a larger one below _EPOCH is taken for milliseconds.
_LONGEST_WAIT = DAY
#: Seconds until a Unix time that a quota may be reset at; one further off is nobody's quota. Months are the longest.
_LONGEST_QUOTA = 32 * DAY

# Of a structured field (RFC 9651): what a member may begin with, a parameter, an integer.
_NAME = re.compile(r'"[^"\\]*"|[A-Za-z*][^\s"=]*')
_PARAMETER = re.compile(r'([a-z*][a-z0-9_.*-]*)=("[^"\\]*"|[^\s"]+)')
_INTEGER = re.compile(r"[0-9]{1,15}")
_PREFIXES = ("ratelimit", "x-ratelimit", "x-rate-limit")
_LIMITS = frozenset({"ratelimit", *(f"{prefix}-remaining" for prefix in _PREFIXES)})


def sample_of(outcome: Outcome, ended: float, cost: float) -> PaceSample:
    """The outcome of a request as pacing sees it. `ended`: Unix seconds of the crawl's clock, not of the outcome's,
    which may be set meanwhile. `cost`: delays that the request counts for."""
    status = outcome.status
    challenged = _is_wall(outcome)
    return PaceSample(
        ended=ended,
        kind=_kind(outcome, challenged),
        refused=challenged or status in SHUT_OUT,
        shut=outcome.failure in SHUT_FAILURES and not outcome.stale,
        latency=None if outcome.duration_ms is None else outcome.duration_ms / 1000,
        retry_at=retry_at(status, outcome.headers, ended),
        cost=cost,
    )


def _is_wall(outcome: Outcome) -> bool:
    """True for an answer that is a challenge, or redirects to one."""
    if outcome.status is None:
        return False
    if wall_of_answer(outcome) or (outcome.page and wall_of_page(outcome.page)):
        return True
    location = redirect_target(outcome.headers) if outcome.status in REDIRECTS else ""
    target = join(_ANY_PAGE, location) if location else None
    return isinstance(target, Target) and wall_of_redirect(target, outcome.status) is not None


def _kind(outcome: Outcome, challenged: bool) -> AnswerKind:
    if outcome.status is None:
        return AnswerKind.TIMEOUT if outcome.failure is not None and outcome.failure.is_timeout else AnswerKind.FAILURE
    if outcome.status in SLOW_DOWN:
        return AnswerKind.THROTTLED
    return AnswerKind.ERROR if challenged or outcome.status >= 400 else AnswerKind.OK


def retry_at(status: int | None, headers: Mapping[str, str], ended: float) -> float | None:
    """Until when an answer that ended at `ended` asks us to stay away (Unix seconds, as far off as it says).

    Retry-After counts from 3xx up, where RFC 9110, 10.2.3 gives it a meaning; one that can't be read or is over is
    ignored. RateLimit fields count with any status once nothing of the quota remains; Retry-After takes precedence
    (draft-ietf-httpapi-ratelimit-headers).
    """
    if status is None:
        return None
    wait = _retry_after(headers, ended) if status >= 300 else None
    if wait is None and not _cached(headers):
        wait = _rate_limit(headers, ended)
    return ended + wait if wait is not None and wait > 0 else None


def _retry_after(headers: Mapping[str, str], ended: float) -> float | None:
    """Seconds. Of several values the longest that can be read counts."""
    values = islice(_VALUE.finditer(headers.get("retry-after", "")), _MAX_VALUES)
    return max(_known(_wait(found[0], headers, ended) for found in values), default=None)


def _wait(value: str, headers: Mapping[str, str], ended: float) -> float | None:
    value = value.strip()
    if _SECONDS.fullmatch(value):
        return float(value)
    if len(value) > _MAX_TIME:
        return None
    parts = _DURATION.fullmatch(value)  # `1m30s`: no standard's, but sent (tcort/link-check#24)
    if parts:
        return sum(float(number or 0) * unit for number, unit in zip(parts.groups(), _UNITS, strict=True))
    moment = _http_date(value)
    return None if moment is None else _until(moment, headers, ended)


def _until(moment: float, headers: Mapping[str, str], ended: float) -> float:
    """Seconds from `ended` to a moment of the server's clock; its Date tells how that differs from ours."""
    date = _http_date(headers.get("date", ""))
    behind = 0.0 if date is None else ended - date
    return moment - ended + (behind if abs(behind) > _DATE_GRAIN else max(behind, 0.0))


def _http_date(text: str) -> float | None:
    """A date in any of the three forms of RFC 9110, 5.6.7; the third has no zone and means UTC."""
    if len(text) > _MAX_TIME:
        return None
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _iso_date(text: str) -> float | None:
    """A date by ISO 8601; without a zone it means UTC."""
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _cached(headers: Mapping[str, str]) -> bool:
    """True for an answer out of a cache: its limits are somebody else's."""
    age = headers.get("age", "").strip()
    return bool(_INTEGER.fullmatch(age)) and int(age) > 0


def _rate_limit(headers: Mapping[str, str], ended: float) -> float | None:
    """Seconds until the quota is renewed; None while some of it remains, or where nothing can be read."""
    if _LIMITS.isdisjoint(headers):
        return None
    waits = [_members_wait(headers, ended)]
    for prefix in _PREFIXES:
        remaining, reset = (_values(headers.get(f"{prefix}-{name}", "")) for name in ("remaining", "reset"))
        used_up = [_is_used_up(value) for value in remaining]
        if any(used_up):
            # Of several quotas those that are used up count; where it isn't clear which reset is whose, all do.
            whose = used_up if len(used_up) == len(reset) else [True] * len(reset)
            pairs = zip(reset, whose, strict=True)
            waits += [_reset_wait(value, headers, ended) for value, counts in pairs if counts]
    return max(_known(waits), default=None)


def _values(value: str) -> list[str]:
    """The values of a field that came several times or holds several, without parameters."""
    found = islice(_VALUE.finditer(value), _MAX_VALUES)
    return [part for part in (value[0].partition(";")[0].strip() for value in found) if part]


def _is_used_up(remaining: str) -> bool:
    """True where less than one request remains; servers say `0`, and `0.0`."""
    return bool(_SECONDS.fullmatch(remaining)) and len(remaining) <= _MAX_NUMBER and float(remaining) < 1


def _reset_wait(value: str, headers: Mapping[str, str], ended: float) -> float | None:
    """Seconds until a quota is renewed; None where the value can't be read or makes no sense.

    Sent are waits and Unix times, in seconds or milliseconds, with decimals or without (Reddit, Discord, Rocket.Chat);
    micro- and nanoseconds by mistake; spans such as `6m0s`; dates.
    """
    if len(value) > _MAX_TIME:
        return None
    if not _SECONDS.fullmatch(value):
        moment = _iso_date(value)
        return _sensible(_wait(value, headers, ended) if moment is None else _until(moment, headers, ended))
    number = float(value) if len(value) <= _MAX_NUMBER else math.inf
    if number < _EPOCH:
        wait = number if number <= _LONGEST_WAIT else number / 1000
        return wait if wait <= _LONGEST_WAIT else None
    for _ in range(3):
        if number >= _EPOCH_END:
            number /= 1000
    return _sensible(_until(number, headers, ended)) if number < _EPOCH_END else None


def _sensible(wait: float | None) -> float | None:
    return wait if wait is not None and wait <= _LONGEST_QUOTA else None


def _members_wait(headers: Mapping[str, str], ended: float) -> float | None:
    """The longest wait of the policies of a RateLimit field that are used up: `"name";r=0;t=30` (draft 8 and later) or
    `limit=9, remaining=0, reset=30` (draft 7). A field with one malformed part is ignored."""
    members = [_member(text) for text in headers.get("ratelimit", "")[:2000].split(",")]
    joined: dict[str, str] = {}
    waits = []
    for member in members:
        if member is None:
            return None
        joined |= member
        waits.append(_member_wait(member.get("r"), member.get("t"), headers, ended))
    waits.append(_member_wait(joined.get("remaining"), joined.get("reset"), headers, ended))
    return max(_known(waits), default=None)


def _member(text: str) -> dict[str, str] | None:
    """The parameters of a member; None for a text that is none."""
    head, *rest = (part.strip() for part in text.split(";"))
    parameters = [_PARAMETER.fullmatch(part) for part in (rest if _NAME.fullmatch(head) else [head, *rest])]
    return None if None in parameters else {found[1]: found[2] for found in parameters if found}


def _member_wait(remaining: str | None, reset: str | None, headers: Mapping[str, str], ended: float) -> float | None:
    if remaining is None or reset is None or not _is_used_up(remaining) or not _SECONDS.fullmatch(reset):
        return None
    return _reset_wait(reset, headers, ended)


def _known(waits: Iterable[float | None]) -> list[float]:
    return [wait for wait in waits if wait is not None]
