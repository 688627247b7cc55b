"""Finds out if two globs of a policy file can match the same host. PURE."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PORT = re.compile(r":[0-9*?]+$")


def may_meet(some: Iterable[str], others: Iterable[str]) -> bool:
    """True where a host can match one glob of each. Ports are ignored: a glob without one matches all."""
    others = [_PORT.sub("", glob) for glob in others]
    return any(_meet(_PORT.sub("", glob), other) for glob in some for other in others)


def _meet(one: str, other: str) -> bool:
    """`reached[j]`: a text can be matched whole by what was read of `one` and by the first j characters of `other`."""
    reached = [True, *(other[: j + 1] == "*" * (j + 1) for j in range(len(other)))]
    for mark in one:
        before = reached
        reached = [before[0] and mark == "*"]
        for j, its in enumerate(other):
            stays = (mark == "*" and (before[j + 1] or reached[j])) or (its == "*" and (before[j + 1] or reached[j]))
            fits = mark != "*" and its != "*" and (mark == its or "?" in (mark, its))
            reached.append(stays or (fits and before[j]))
    return reached[-1]
