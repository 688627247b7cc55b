"""What judges the files of deploy/: other people's programs, and the metrics that a crawl tells."""

from __future__ import annotations

import re

import pytest

from scripts.programs import path_of
from tests.crawl.test_metrics import ALONE, CLUSTER

TOLD = {f"{name}{ending}" for name in ALONE | CLUSTER for ending in ("", "_total")}


def metrics_in(text: str) -> set[str]:
    """Our metrics that a text names."""
    return set(re.findall(r"\blinkcrawl_[a-z_]+", text))


def needed(program: str) -> str:
    """The path of a program that judges its own files. `make test` gets it where it can be had."""
    path = path_of(program)
    if path is None:
        pytest.skip(f"there is no {program}; `make test` says what would work")
    return path
