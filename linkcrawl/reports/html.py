"""HTML as elements, so that whatever strangers wrote stays text: nothing here ever joins strings to markup."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from attrs import frozen
from lxml import etree

Element = etree._Element
Child = Element | str | None

#: Longest text of a stranger that is shown.
LONGEST = 300
#: Stands for a number that isn't known.
UNKNOWN = "\u2013"
# What XML, and so an lxml element, can't hold; and what would not be seen.
_UNSHOWN = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def h(tag: str, *children: Child, **attributes: str | None) -> Element:
    """An element with children (texts or elements; None is left out). `class_` is `class`, `data_x` is `data-x`."""
    element = etree.Element(tag)
    for name, value in attributes.items():
        if value is not None:
            element.set(name.rstrip("_").replace("_", "-"), clean(value))
    for child in children:
        if isinstance(child, str):
            _add_text(element, clean(child))
        elif child is not None:
            element.append(child)
    return element


def _add_text(element: Element, text: str) -> None:
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text


def clean(text: str) -> str:
    """The text with U+FFFD for what can't stand in a page."""
    return _UNSHOWN.sub("\ufffd", text)


def stranger(text: str) -> Element:
    """A text that we did not write: cut where it is long, and unable to turn the direction of what stands round it."""
    return h("bdi", text if len(text) <= LONGEST else text[:LONGEST] + "…")


def link(url: str) -> Element:
    """A URL that leads there if it is one of the web; any other (`javascript:`) is text only."""
    if not re.match(r"https?://", url, re.IGNORECASE):
        return stranger(url)
    return h("a", stranger(url), href=url, rel="noopener noreferrer nofollow")


@frozen
class Cell:
    """A table's cell: what it shows, what it is sorted by where that isn't the text, and the command behind it."""

    shown: Child
    value: float | str | None = None
    command: str | None = None


def number(count: float | None, command: str | None = None, *, digits: int = 0, unit: str = "") -> Cell:
    """A number; an unknown one is a dash and is sorted last. Nothing is behind a zero."""
    if count is None:
        return Cell(UNKNOWN, -1)
    return Cell(f"{count:,.{digits}f}{unit}", round(count, digits), command if count else None)


def ratio(share: float | None, command: str | None = None) -> Cell:
    """A share as per cent."""
    return number(None if share is None else share * 100, command, digits=1, unit=" %")


def shown(cell: Cell) -> Child:
    """What a cell shows; with a command behind it, as a button that tells it."""
    if cell.command is None:
        return cell.shown
    return h("button", cell.shown, type="button", class_="n", data_command=cell.command)


@frozen(kw_only=True)
class Column:
    """A table's column: its title, a longer word on it, and whether it holds numbers."""

    title: str
    hint: str | None = None
    numeric: bool = True


def text_column(title: str, hint: str | None = None) -> Column:
    """A column of texts."""
    return Column(title=title, hint=hint, numeric=False)


def table(label: str, columns: Sequence[Column], rows: Iterable[Sequence[Cell]], id_: str | None = None) -> Element:
    """A table that can be sorted by a click on a column's title; its first column names the row."""
    head = [
        h(
            "th",
            h("button", column.title, type="button", class_="sort", title=column.hint),
            scope="col",
            class_="num" if column.numeric else None,
        )
        for column in columns
    ]
    body = [h("tr", *map(_cell, row, columns, ["th"] + ["td"] * (len(columns) - 1))) for row in rows]
    filled = h("table", h("thead", h("tr", *head)), h("tbody", *body), aria_label=label, id=id_)
    return h("div", filled, class_="scroll", tabindex="0", role="region", aria_label=label)


def _cell(cell: Cell, column: Column, tag: str) -> Element:
    value = None if cell.value is None else str(cell.value)
    scope = "row" if tag == "th" else None
    return h(tag, shown(cell), scope=scope, class_="num" if column.numeric else None, data_value=value)
