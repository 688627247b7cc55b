"""Runs Python code against a store in a process of its own, to be killed at the worst moment."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
_PREAMBLE = """
import sys
from linkcrawl.stores.contract import *
from linkcrawl.stores.opening import *
from linkcrawl.errors import *
from tests.contract.making import *
store = open_store(sys.argv[1])
def say(word): print(word, flush=True)
"""


@contextmanager
def process(url: str, code: str) -> Iterator[subprocess.Popen[str]]:
    """`store` is the store of that URL there; `say` writes a line that the test reads. Killed at the end."""
    with subprocess.Popen(
        [sys.executable, "-c", _PREAMBLE + code, url],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def line(running: subprocess.Popen[str]) -> str:
    """The next line that the process says; "" when it has ended."""
    assert running.stdout is not None
    return running.stdout.readline().strip()
