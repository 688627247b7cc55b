"""What pages point at exists: files, headings, modules, commands, arguments and settings."""

from __future__ import annotations

import re
import shlex
from itertools import pairwise
from pathlib import Path

import attrs
import pytest
from scrapy.utils.project import get_project_settings

from linkcrawl.config import KNOWN
from linkcrawl.session import Arguments
from tests.docs.pages import PAGES, ROOT, anchors, blocks, links, name

pages = pytest.mark.parametrize("page", PAGES, ids=name)


def is_outside(target: str) -> bool:
    return target.startswith(("http://", "https://", "mailto:"))


@pages
def test_links_lead_somewhere(page: Path) -> None:
    for target in links(page.read_text()):
        if is_outside(target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{target}: no such file"
        assert there.is_relative_to(ROOT), f"{target}: outside the project"
        assert not anchor or anchor in anchors(there.read_text()), f"{target}: no such heading"


@pages
def test_modules_and_files_that_are_named_exist(page: Path) -> None:
    named = re.findall(r"`((?:linkcrawl|tests|docs|scripts|deploy|demo|seeds|\.ci)/[\w./-]*)`", page.read_text())
    for path in named:
        if not path.startswith("demo/out"):
            assert (ROOT / path).exists(), f"{path} is named, but isn't there"


def test_every_room_is_in_the_architecture() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    inside = (ROOT / "linkcrawl").iterdir()
    rooms = {f"linkcrawl/{path.name}/" if path.is_dir() else f"linkcrawl/{path.name}" for path in inside}
    rooms -= {"linkcrawl/__init__.py", "linkcrawl/__pycache__/", "linkcrawl/py.typed"}
    assert {room for room in rooms if f"`{room}`" not in text} == set()


def test_every_page_is_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        inside = [target.partition("#")[0] for target in links(page.read_text()) if not is_outside(target)]
        waiting += [(page.parent / path).resolve() for path in inside if path.endswith(".md")]
    assert {name(page) for page in PAGES} - {name(page) for page in reached} == set()


# Command lines.


def command_lines() -> list[tuple[str, str]]:
    """Every line of a shell block, or of a crontab, that starts one of our commands: page and line."""
    found = []
    for page in PAGES:
        text = page.read_text()
        for block in [*blocks(text, "sh"), *blocks(text, "crontab")]:
            for line in block.replace("\\\n", " ").splitlines():
                started = re.search(r"(?:^|[\s/])((?:make|scrapy) .*)", line.partition(" #")[0])
                if started:
                    found.append((name(page), started[1]))
    return found


@pytest.fixture(scope="module")
def targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_the_pages_have_command_lines() -> None:
    assert ("README.md", "make demo") in command_lines()
    assert ("README.md", "make test") in command_lines()


@pytest.mark.parametrize(("page", "line"), command_lines())
def test_command_lines_are_what_the_program_understands(page: str, line: str, targets: set[str]) -> None:
    program, verb, *rest = shlex.split(line)
    if program == "make":
        assert verb in targets
        return
    assert (ROOT / "linkcrawl" / "commands" / f"{verb}.py").exists(), f"{page}: scrapy {verb}"
    for option, value in pairwise([*rest, ""]):
        given = value.split("=")[0]
        if option == "-a":
            assert given in {part.name for part in attrs.fields(Arguments)}, f"{page}: -a {given}"
        if option == "-s":
            assert given in {*KNOWN, *get_project_settings()}, f"{page}: -s {given}"


def test_every_verb_of_the_makefile_is_explained(targets: set[str]) -> None:
    explained = set(re.findall(r"`make (\w+)`", (ROOT / "CONTRIBUTING.md").read_text()))
    assert explained == targets - {"help"} | {"help"}
