"""Reading the project's own Markdown: tables, code blocks, headings and links."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent

#: Every page that a reader may come to.
PAGES = sorted(
    path for folder in ("docs", "deploy", "seeds", "demo") for path in (ROOT / folder).rglob("*.md") if path.is_file()
) + sorted(ROOT.glob("*.md"))


def read(name: str) -> str:
    return (ROOT / name).read_text()


def name(path: Path) -> str:
    """A page as tests print it."""
    return path.relative_to(ROOT).as_posix()


def section(text: str, heading: str) -> str:
    """What stands under a heading, up to the next one of its level or above; it must be there."""
    found = re.search(rf"^(#+) {re.escape(heading)}$", text, re.MULTILINE)
    assert found, f"no heading {heading!r}"
    rest = text[found.end() :]
    end = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def rows(text: str) -> list[list[str]]:
    """The cells of every table row, without heads and rules."""
    lines = [line.strip() for line in text.splitlines()]
    kept = [
        line
        for line, after in zip(lines, [*lines[1:], ""], strict=True)
        if line.startswith("|") and not _is_rule(line) and not _is_rule(after)
    ]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in kept]


def _is_rule(line: str) -> bool:
    return bool(re.fullmatch(r"\|[-:| ]+\|", line))


def words(cell: str) -> list[str]:
    """What stands between backticks, fenced blocks left out."""
    return re.findall(r"`([^`\n]+)`", without_blocks(cell))


def word(cell: str) -> str:
    """The one name that a cell consists of."""
    assert re.fullmatch(r"`[^`]+`", cell), f"{cell!r} is not one name in backticks"
    return cell[1:-1]


def blocks(text: str, language: str) -> list[str]:
    """The fenced code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(text: str) -> set[str]:
    """The anchors that a page's headings make, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", without_blocks(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def links(text: str) -> list[str]:
    """The targets of Markdown links, code left out."""
    prose = re.sub(r"`[^`\n]*`", "", without_blocks(text))
    return re.findall(r"\]\(([^)\s]+)\)", prose)
