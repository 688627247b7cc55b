"""How commands show things on a terminal: columns, spans of time. Every line stays one line, for grep,
and what strangers wrote (names of collections, answers of servers) can't steer the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from linkcrawl.check.fields import one_line

_SPANS = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"))


def columns(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table without frames; the last column is as long as it is."""
    head, rows = [*map(one_line, head)], [[*map(one_line, row)] for row in rows]
    widths = [max(len(row[index]) for row in (head, *rows)) for index in range(len(head) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in (head, *rows)
    )


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Names and what is said of them, a line each; a name that is empty goes on with the one before."""
    width = max(len(name) for name, _ in pairs)
    return "\n".join(f"{name.ljust(width)}  {one_line(text)}".rstrip() for name, text in pairs)


def span(seconds: float) -> str:
    """A span of time in the largest unit that it has two of: `90 s`, `3.5 h`, `58 d`."""
    unit, name = next((each for each in _SPANS if seconds >= 2 * each[0]), _SPANS[-1])
    return f"{_number(seconds / unit)} {name}"


def seconds_text(seconds: float) -> str:
    """A delay, always in seconds, so that delays can be compared: `0.25 s`, `3,600 s`."""
    return f"{_number(seconds)} s"


def _number(value: float) -> str:
    return f"{value:,.0f}" if 999.5 <= value < 1e15 else f"{value:.3g}"


def tell(text: str) -> None:
    """Print; a reader that has seen enough (`| head`) is no fault."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
