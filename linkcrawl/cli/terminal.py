"""Layout for a terminal. Each row stays one line, for grep, and strangers' text (names of collections, answers of
servers) can't steer the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from linkcrawl.text import one_line


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Rows under a head, without frames. All columns but the last are padded."""
    head, rows = [*map(one_line, head)], [[*map(one_line, row)] for row in rows]
    widths = [max(len(row[index]) for row in (head, *rows)) for index in range(len(head) - 1)]
    return "\n".join(
        "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]]).rstrip()
        for row in (head, *rows)
    )


def name_list(pairs: Sequence[tuple[str, str]]) -> str:
    """Names with texts beside them, a line each. An empty name continues the one before."""
    width = max(len(name) for name, _ in pairs)
    return "\n".join(f"{name.ljust(width)}  {one_line(text)}".rstrip() for name, text in pairs)
