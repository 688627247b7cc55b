"""Runs tests/reactor in a process of its own, with pytest-twisted and Scrapy's reactor."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent.parent / "reactor"


def test_what_touches_deferreds_and_the_reactor() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "pytest_twisted",
        "--reactor=asyncio",
        "-p",
        "no:cacheprovider",
        "-q",
    ]
    done = subprocess.run([*command, TESTS], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^[1-9]\d* passed", done.stdout, re.MULTILINE), done.stdout
