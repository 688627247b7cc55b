"""The house: no circle of imports, none that runs upwards, and pure rooms that are pure.

Imports under TYPE_CHECKING and inside functions count like any other: who reads a file follows them all the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import linkcrawl

ROOT = Path(linkcrawl.__file__).parent

#: The floors of the house, lowest first: a room imports from its own floor and those below it only.
FLOORS = [
    ["linkcrawl.errors", "linkcrawl.startup", "linkcrawl.text", "linkcrawl.line_file", "linkcrawl.units"],
    ["linkcrawl.urls"],
    ["linkcrawl.items", "linkcrawl.redis_client"],
    ["linkcrawl.clock"],
    ["linkcrawl.config"],
    ["linkcrawl.check"],
    ["linkcrawl.network"],
    ["linkcrawl.audit"],
    ["linkcrawl.politeness"],
    ["linkcrawl.stores"],
    ["linkcrawl.sources"],
    ["linkcrawl.ingest"],
    ["linkcrawl.frontier.gates"],
    ["linkcrawl.session"],
    ["linkcrawl.frontier"],
    ["linkcrawl.cluster"],
    ["linkcrawl.assembly"],
    ["linkcrawl.status"],
    ["linkcrawl.simulation", "linkcrawl.exports"],
    ["linkcrawl.reports"],
    ["linkcrawl.service"],
    ["linkcrawl.spiders", "linkcrawl.pipelines", "linkcrawl.extensions"],
    ["linkcrawl.settings"],
    ["linkcrawl.wiring"],
    ["linkcrawl.cli"],
    ["linkcrawl.commands"],
]


def module_of(path: Path) -> str:
    name = ".".join(["linkcrawl", *path.relative_to(ROOT).with_suffix("").parts])
    return name.removesuffix(".__init__")


MODULES = {module_of(path): path for path in sorted(ROOT.rglob("*.py"))}


def imports(module: str) -> Iterator[str]:
    """The modules of ours that a module imports, wherever in it that stands."""
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("linkcrawl"):
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                yield inside if inside in MODULES else node.module


GRAPH = {module: sorted({found for found in imports(module) if found != module}) for module in MODULES}


def circles() -> list[list[str]]:
    """Strongly connected groups of more than one module (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for other in GRAPH[module]:
            if other not in index:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], index[other])
        if low[module] == index[module]:
            group = []
            while (member := stack.pop()) != module:
                group.append(member)
            if group:
                found.append(sorted([*group, module]))

    for module in GRAPH:
        if module not in index:
            visit(module)
    return found


def floor_of(module: str) -> int:
    """The floor whose room's name is the longest that the module's begins with."""
    rooms = [
        (len(room), floor)
        for floor, level in enumerate(FLOORS)
        for room in level
        if f"{module}.".startswith(f"{room}.")
    ]
    assert rooms, f"{module} is in no room: FLOORS lacks it"
    return max(rooms)[1]


def test_no_circle_of_imports() -> None:
    assert circles() == []


@pytest.mark.parametrize("module", [module for module in MODULES if module != "linkcrawl"])
def test_no_import_upwards(module: str) -> None:
    upwards = [other for other in GRAPH[module] if other != "linkcrawl" and floor_of(other) > floor_of(module)]
    assert upwards == []
