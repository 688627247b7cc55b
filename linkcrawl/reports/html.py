"""HTML as elements. Strangers' text stays text, because no markup is ever made by joining strings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from attrs import frozen
from lxml import etree

Element = etree._Element
Child = Element | str | None

#: Characters of the longest text of a stranger that is shown.
LONGEST = 300
#: Shown for an unknown number.
UNKNOWN = "\u2013"
# characters that XML, and so an lxml element, can't hold, and invisible ones
_UNSHOWN = re.compile("[^\t\n\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def h(tag: str, *children: Child, **attributes: str | None) -> Element:
    """An element with children: texts, elements, or None for no child. `class_` is `class`, `data_x` is `data-x`."""
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
    """The text with U+FFFD for characters that a page can't hold."""
    return _UNSHOWN.sub("\ufffd", text)


def stranger(text: str) -> Element:
    """A stranger's text, cut where it is long, and isolated: it can't turn the direction of the text around it."""
    return h("bdi", text if len(text) <= LONGEST else text[:LONGEST] + "…")


def link(url: str) -> Element:
    """A link to an http or https URL; any other URL (`javascript:`) as text only."""
    if not re.match(r"https?://", url, re.IGNORECASE):
        return stranger(url)
    return h("a", stranger(url), href=url, rel="noopener noreferrer nofollow")


@frozen
class Cell:
    """A table's cell. `value`: to sort by, where it isn't the text. `command`: yields the rows behind a number."""

    shown: Child
    value: float | str | None = None
    command: str | None = None


def number(count: float | None, command: str | None = None, *, digits: int = 0, unit: str = "") -> Cell:
    """A number; an unknown one is a dash and sorts last. A zero has no command."""
    if count is None:
        return Cell(UNKNOWN, -1)
    return Cell(f"{count:,.{digits}f}{unit}", round(count, digits), command if count else None)


def ratio(share: float | None, command: str | None = None) -> Cell:
    """A share (0 to 1) in per cent."""
    return number(None if share is None else share * 100, command, digits=1, unit=" %")


def shown(cell: Cell) -> Child:
    """The content of a cell; with a command, as a button that shows the command."""
    if cell.command is None:
        return cell.shown
    return h("button", cell.shown, type="button", class_="n", data_command=cell.command)


@frozen(kw_only=True)
class Column:
    """A table's column. `hint`: an explanation of its title. `numeric`: it holds numbers."""

    title: str
    hint: str | None = None
    numeric: bool = True


def text_column(title: str, hint: str | None = None) -> Column:
    """A column of texts."""
    return Column(title=title, hint=hint, numeric=False)


def table(label: str, columns: Sequence[Column], rows: Iterable[Sequence[Cell]], id_: str | None = None) -> Element:
    """A table that a click on a column's title sorts. Its first column names the row."""
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
