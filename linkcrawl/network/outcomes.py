"""Makes the outcome that the check room judges of an answer's fields."""

from __future__ import annotations

from collections.abc import Iterable

from linkcrawl.check.outcome import Outcome

#: Fields that hold one value. A server that sends several means the first; joined they would mean nothing.
#: Content-Length is none of them: several different ones say that no length is known (RFC 9110, 8.6). Nor is
#: Content-Type: the last valid one counts (check.fields.bare_mime). Nor is Retry-After: of several, pace heeds the
#: longest.
_SINGLE = frozenset({"date", "etag", "last-modified", "location"})


def answered(
    fields: Iterable[tuple[str, str]],
    *,
    status: int,
    ip: str | None,
    sent_at: float,
    seconds: float,
    timed: bool = True,
    page: bytes = b"",
) -> Outcome:
    """An answer's outcome. `fields`: lower-case names and clean values; `seconds`: from `sent_at` to the answer, or to
    when we could read it where that is much later (`timed` is False). `page`: see Outcome."""
    values: dict[str, list[str]] = {}
    cookies: list[str] = []
    for name, value in fields:
        if name == "set-cookie":  # a comma may stand within one: RFC 9110, 5.3
            cookies.append(value)
        elif name not in values:
            values[name] = [value]
        elif name not in _SINGLE:
            values[name].append(value)
    return Outcome(
        sent_at=sent_at,
        ended_at=sent_at + seconds,
        duration_ms=round(seconds * 1000) if timed else None,
        ip=ip,
        status=status,
        headers={name: lines[0] if len(lines) == 1 else ", ".join(lines) for name, lines in values.items()},
        set_cookie=tuple(cookies),
        page=page,
    )
