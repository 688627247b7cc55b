"""The report's charts as SVG elements without style or script: page.css colours them, so that one drawing serves both
themes and paper. Drawn by pygal (extra `report`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any

from lxml import etree

from linkcrawl.items import Category
from linkcrawl.reports.html import clean
from linkcrawl.reports.model import MonthRatio, Section

SVG = "{http://www.w3.org/2000/svg}"
#: Sizes in user units: two charts fit side by side on a page, and letters are readable where one fills a phone. BAR:
#: height of one bar. AXIS: height of the axis below the bars.
WIDTH, HEIGHT, LETTERS, BAR, AXIS = 520, 290, 14, 24, 50
#: The most months, collections, and letters of a collection's name that a chart has room for.
MONTHS, BARS, NAME = 36, 10, 22


def history(months: Sequence[MonthRatio]) -> etree._Element:
    """The ratio of valid links at the end of each month. The axis starts at a multiple of ten below the least ratio, so
    that the slope shows: most catalogues move between 90 and 100 %."""
    pygal = _pygal()
    known = [month for month in months if month.valid_ratio is not None][-MONTHS:]
    shares = [(month.valid_ratio or 0) * 100 for month in known]
    least = min(90, int(min(shares) // 10) * 10)
    chart = pygal.Line(
        range=(least, 100),
        y_labels=_steps(least),
        x_labels=[month.month for month in known],
        x_labels_major_count=4,
        show_minor_x_labels=False,
        truncate_label=-1,
        dots_size=3,
        **_common(HEIGHT),
    )
    chart.add("Ok", shares, formatter=lambda share: f"{share:.1f} %")
    return _plain(chart, "Valid links by month, in per cent")


def shares(sections: Sequence[Section]) -> etree._Element:
    """Categories of the largest collections, as percentages of their checked links."""
    pygal = _pygal()
    shown = [section for section in sections if section.checked and section.name is not None][:BARS][::-1]
    chart = pygal.HorizontalStackedBar(
        range=(0, 100),
        x_labels=[_short(section.name or "") for section in shown],
        y_labels=_steps(0),
        **_common(len(shown) * BAR + AXIS),
    )
    for category in Category:
        values = [section.count(category) / section.checked * 100 for section in shown]
        chart.add(str(category), values, formatter=lambda share, category=category: f"{category}: {share:.1f} %")
    return _plain(chart, "Categories of the largest collections, in per cent of their checked links")


def _pygal() -> Any:
    """pygal, without the import finder that it installs for its maps: Python 3.11 warns of it at each import, and
    later versions ignore it."""
    import pygal

    sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "pygal"]
    return pygal


def _steps(least: int) -> list[int]:
    return list(range(least, 101, 20 if least < 50 else 10))


def _short(name: str) -> str:
    name = clean(name)
    return name if len(name) <= NAME else name[: NAME - 1] + "…"


def _common(height: int) -> dict[str, Any]:
    return {
        "style": _pygal().style.Style(
            label_font_size=LETTERS, major_label_font_size=LETTERS
        ),  # pygal leaves room for letters of this size
        "width": WIDTH,
        "height": height,
        "margin": 10,
        "margin_right": 30,  # for half of the last label
        "show_legend": False,
        "js": [],
        "disable_xml_declaration": True,
    }


def _plain(chart: Any, label: str) -> etree._Element:
    """The drawing without pygal's script: the texts that it would show become titles, which browsers show."""
    svg = etree.fromstring(chart.render(), etree.XMLParser(remove_comments=True, resolve_entities=False))
    del svg.attrib["id"]
    svg.set("class", "chart")
    svg.set("role", "img")
    svg.set("aria-label", label)
    for child in svg.findall(f"{SVG}defs") + svg.findall(f"{SVG}title"):
        svg.remove(child)
    for titled in list(svg.iter(f"{SVG}title")):
        _drop(titled)
    for mark in list(_marks(svg)):
        texts = [mark.findtext(f"{SVG}desc[@class='{part}']") for part in ("x_label", "value")]
        for description in mark.findall(f"{SVG}desc"):
            mark.remove(description)
        etree.SubElement(mark, f"{SVG}title").text = ": ".join(text for text in texts if text)
    return svg


def _drop(element: etree._Element) -> None:
    parent = element.getparent()
    if parent is not None:
        parent.remove(element)


def _marks(svg: etree._Element) -> Iterator[etree._Element]:
    return (group for group in svg.iter(f"{SVG}g") if group.find(f"{SVG}desc") is not None)
