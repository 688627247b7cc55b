"""The pure rooms are pure: they decide from their arguments alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import linkcrawl

ROOT = Path(linkcrawl.__file__).parent
PURE = [
    *sorted((ROOT / "check").glob("*.py")),
    *sorted((ROOT / "politeness/pacing").glob("*.py")),
    *sorted((ROOT / "frontier/gates").glob("*.py")),
    *(ROOT / "simulation" / name for name in ("engine.py", "scenario.py")),  # workload.py reads the catalogue's profile
    *(ROOT / "network" / name for name in ("answer.py", "body.py", "head.py", "outcomes.py", "request.py")),
    *(ROOT / "politeness/policy" / name for name in ("globs.py", "limits.py", "quiet_hours.py", "rules.py")),
    *(ROOT / "politeness/robots" / name for name in ("fetch.py", "parser.py")),
    *sorted((ROOT / "urls").glob("*.py")),
]
SAY_SO = [
    path for path in sorted(ROOT.rglob("*.py")) if "PURE" in (ast.get_docstring(ast.parse(path.read_text())) or "")
]
ROOMS = sorted({path for path in [*PURE, *SAY_SO] if path.name != "__init__.py"})

#: Whatever does I/O, waits, or gives other answers at other times.
# fmt: off
IMPURE = {
    "scrapy", "twisted", "pymongo", "redis", "scrapy_redis", "asyncio", "socket", "ssl", "threading", "subprocess",
    "time", "random", "secrets", "uuid", "os", "pathlib", "io", "sqlite3", "logging",
}
# fmt: on
#: Clocks and files that come without such an import.
MACHINE_CLOCKS = {"datetime", "date", "time", "Timestamp"}
CALLS = {"now", "utcnow", "today", "open", "input", "print", "formatdate", "localtime"}


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


def called(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = node.func
            if isinstance(function, ast.Attribute):
                # a clock that was handed in is asked as `self._context.now()`; only the machine's own is impure
                owner = getattr(function.value, "attr", getattr(function.value, "id", ""))
                yield function.attr if function.attr != "now" or owner in MACHINE_CLOCKS else ""
            else:
                yield getattr(function, "id", "")


def faults(source: str) -> list[str]:
    tree = ast.parse(source)
    modules = [name for name in imported(tree) if name.partition(".")[0] in IMPURE]
    return modules + [f"{name}()" for name in called(tree) if name in CALLS]


@pytest.mark.parametrize("path", ROOMS, ids=lambda path: str(path.relative_to(ROOT)))
def test_room_is_pure(path: Path) -> None:
    assert faults(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "from random import random",
        "import scrapy.http",
        "datetime.now(UTC)",
        "open('x')",
        "def f():\n import redis",
    ],
)
def test_impurity_is_seen(source: str) -> None:
    assert faults(source)


def test_nothing_of_a_crawler_is_loaded_with_the_check_room() -> None:
    """Imports of imports too: a process that only judges needs no reactor, no loop, no database."""
    program = (
        "import sys, linkcrawl.check.conclude;"
        "print(sorted({'scrapy', 'twisted', 'pymongo', 'redis', 'asyncio', 'sqlite3'} & set(sys.modules)))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60, cwd=ROOT.parent
    )
    assert shown.stdout.strip() == "[]"
