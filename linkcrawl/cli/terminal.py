"""How commands show things on a terminal: columns, spans of time. Every line stays one line, for grep,
and what strangers wrote (names of collections, answers of servers) can't steer the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from linkcrawl.text import one_line


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


def tell(text: str) -> None:
    """Print; a reader that has seen enough (`| head`) is no fault."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
