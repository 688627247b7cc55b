"""PURE. Texts for people: strangers' text on one line, and spans of time."""

from __future__ import annotations

from linkcrawl.units import DAY, HOUR, MINUTE

_SPANS = ((DAY, "d"), (HOUR, "h"), (MINUTE, "min"), (1.0, "s"))


def one_line(text: str) -> str:
    """The text with everything that can't be printed on one line escaped, such as `\\x1b` (CWE-117)."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def span(seconds: float) -> str:
    """A span of time in the largest unit that it has two of: `90 s`, `3.5 h`, `58 d`."""
    unit, name = next((each for each in _SPANS if seconds >= 2 * each[0]), _SPANS[-1])
    return f"{_number(seconds / unit)} {name}"


def seconds_text(seconds: float) -> str:
    """A delay, always in seconds, so that delays can be compared: `0.25 s`, `3,600 s`."""
    return f"{_number(seconds)} s"


def _number(value: float) -> str:
    return f"{value:,.0f}" if 999.5 <= value < 1e15 else f"{value:.3g}"
