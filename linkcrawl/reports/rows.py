"""The numbers of a section, each with the command that yields its rows, where there is one."""

from __future__ import annotations

from collections.abc import Callable

from linkcrawl.items import Category
from linkcrawl.reports import commands
from linkcrawl.reports.html import Cell, number
from linkcrawl.reports.model import Report, Section

#: The command for a section's links of a category (None: of all); None where there is no command.
Rows = Callable[[Category | None], str | None]


def of_everything(category: Category | None) -> str | None:
    """Rows of all links."""
    return commands.export(category=category)


def of_collection(section: Section, report: Report) -> Rows:
    """Rows of a collection's links."""
    if section.name is None:
        return lambda category: None
    glob = commands.glob_of(section.name, (other.name for other in report.collections))
    return lambda category: glob and commands.export(collection=glob, category=category)


def of_provider(section: Section, report: Report) -> Rows:
    """Rows of a provider's links."""
    if section.name is None:
        return lambda category: None
    glob = commands.glob_of(section.name, (other.name for other in report.providers))
    return lambda category: glob and commands.export(provider=glob, category=category)


def broken(links: int, rows: Rows, *, confirmed: bool) -> Cell:
    """Broken links that are confirmed, or suspected."""
    every = rows(Category.BROKEN)
    return number(links, every and commands.with_confirmed(every, confirmed))


def overdue(section: Section, rows: Rows, now: float) -> Cell:
    """Links that are due again."""
    every = rows(None)
    return number(section.overdue, every and commands.overdue(every, now))


def mentions(section: Section, command: str | None) -> Cell:
    """Resource proxies. Links that were never checked have no rows: while there are any, there is no command."""
    return number(section.proxies, None if section.never_checked else command)
