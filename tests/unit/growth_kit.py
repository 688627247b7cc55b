"""How time grows with the length of a text. Ratios only: how fast a machine is says nothing."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time
from typing import Any

#: A ratio that linear work keeps below when its input is made four times as long, and quadratic work (16) doesn't.
LIMIT = 9.0
#: Seconds of processor time that are long enough to be compared.
MEASURABLE = 0.002
TRIES = 5


def assert_linear(work: Callable[[Any], object], made: Callable[[int], Any], *, most: int = 20_000) -> None:
    """`work` on what `made` gives for 4n must not take more than in proportion to n. n is doubled until the work can be
    measured; what never can, up to `most`, is bounded."""
    size = 500
    while (small := _seconds(work, made(size))) < MEASURABLE and size < most:
        size *= 2
    ratio = float("inf")
    for _ in range(TRIES):
        ratio = min(ratio, _seconds(work, made(4 * size)) / max(small, MEASURABLE))
        if ratio <= LIMIT:
            return
        small = max(small, _seconds(work, made(size)))
    raise AssertionError(f"{ratio:.1f} times the time for 4 times the text, {size} to {4 * size}")


def _seconds(work: Callable[[Any], object], text: Any) -> float:
    begin = process_time()
    work(text)
    return process_time() - begin
