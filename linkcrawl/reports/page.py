"""The report as one self-contained HTML page: no network, no other file. Without scripts it lacks only sorting, the
theme switch and the commands behind numbers."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator, Sequence
from importlib.resources import files

from lxml import etree

from linkcrawl.items import iso
from linkcrawl.reports import charts, commands, rows, tables
from linkcrawl.reports.html import UNKNOWN, Cell, Element, h, number, ratio, shown
from linkcrawl.reports.model import Report, Section

#: Rows of a table of collections or providers, and sections that get a status table. JSON has all.
ROWS, DETAILED = 200, 60


def page(report: Report) -> bytes:
    """The page, UTF-8. Needs pygal."""
    style, script = (files(__package__).joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    when = iso(report.made_at)[:16].replace("T", " ") + " UTC"
    allowed = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{allowed}'; base-uri 'none'"
    head = h(
        "head",
        h("meta", charset="utf-8"),
        h("meta", http_equiv="Content-Security-Policy", content=policy),
        h("meta", name="viewport", content="width=device-width, initial-scale=1"),
        h("meta", name="referrer", content="no-referrer"),
        h("title", f"Link report, {when}"),
        _raw("style", style),
    )
    body = h("body", _banner(report, when), h("main", *_content(report)), _command_bar(), _raw("script", script))
    written = etree.tostring(h("html", head, body, lang="en"), encoding="utf-8", method="html")
    return b"<!DOCTYPE html>\n" + written


def _raw(tag: str, ours: str) -> Element:
    """A style or script of ours, which is not escaped."""
    element = etree.Element(tag)
    element.text = ours
    return element


def _banner(report: Report, when: str) -> Element:
    theme = h("button", "Dark or light", type="button", id="theme", title="Switch between dark and light")
    return h("header", h("div", h("h1", "Link report"), h("p", f"{when} · {report.crawler}")), theme)


def _command_bar() -> Element:
    close = h("button", "\u00d7", type="button", id="close", aria_label="Close", title="Close")
    copy = h("button", "Copy", type="button", id="copy", aria_describedby="command")
    return h("div", h("code", id="command"), copy, close, id="bar", hidden="", role="region", aria_label="Command")


def _content(report: Report) -> Iterator[Element]:
    yield _overview(report)
    yield _books(report)
    yield from _charts(report)
    yield _part("Collections", tables.collections(report, ROWS), _cut(len(report.collections)))
    if any(section.name is not None for section in report.providers):
        yield _part("Providers", tables.providers(report, ROWS), _cut(len(report.providers)))
    yield _statuses(report)
    yield _part(
        "Hosts that block us or ask us to slow down",
        tables.hosts(report),
        "Links of these hosts are not broken: the hosts don't want to be asked, or not so often.",
    )
    yield _part(
        "Walls against robots",
        tables.walls(report),
        "These hosts want proof of a human visitor. Nothing is known of the links behind: the command at a host writes "
        "the letter to its administrator.",
    )
    yield _part("Not asked, and why", tables.excluded(report))
    yield _part(
        "Permanent redirects worth updating",
        tables.moves(report),
        "These links still work. Their servers say, by 301 or 308, that the resource has another URL for good. "
        "Resolvers of persistent identifiers are left out: the identifier is what should be cited.",
    )
    yield _part("Other media types than the metadata claim", tables.mismatches(report))
    yield _part("Slowest links", tables.slowest(report))


def _cut(length: int) -> str | None:
    return f"The {ROWS} largest of {length:,}; the JSON report has all." if length > ROWS else None


def _part(title: str, content: Element | None, about: str | None = None) -> Element:
    empty = h("p", "None.", class_="none") if content is None else content
    return h("section", h("h2", title), h("p", about) if about else None, empty)


def _overview(report: Report) -> Element:
    whole = report.overall
    all_of = commands.export()
    valid = UNKNOWN if whole.valid_ratio is None else f"{whole.valid_ratio * 100:.1f} %"
    sentence = h("p", h("strong", valid), " of ", shown(number(whole.checked, all_of)), " checked links are valid")
    figures = [
        ("links", number(whole.links)),
        ("resource proxies", rows.mentions(whole, commands.export(rows="proxy"))),
        ("never checked", number(whole.never_checked)),
        ("overdue", rows.overdue(whole, rows.of_everything, report.made_at)),
        ("broken, confirmed", rows.broken(whole.confirmed, rows.of_everything, confirmed=True)),
        ("broken, suspected", rows.broken(whole.suspected, rows.of_everything, confirmed=False)),
        ("other media type", number(whole.mismatches, commands.with_mismatch(all_of))),
        ("worth updating", Cell(h("a", f"{whole.moved:,}", href="#moves") if whole.moved else "0")),
    ]
    pairs = [h("div", h("dt", name), h("dd", shown(cell))) for name, cell in figures]
    return h(
        "section",
        h("div", sentence, class_="headline"),
        _bar(whole),
        tables.categories(whole),
        h("dl", *pairs, class_="figures"),
        id="overview",
    )


def _bar(section: Section) -> Element:
    """All checked links as one bar, with a part for each category."""
    parts = [
        h("span", class_=f"of {line.category.lower()}", style=f"flex-grow: {line.links}", title=f"{line.category}")
        for line in section.categories
        if line.links
    ]
    return h("div", *parts, class_="shares", aria_hidden="true")


def _books(report: Report) -> Element:
    books = report.books
    overdue = report.overall.overdue
    sums: list[tuple[str, int, list[tuple[str, int]]]] = [
        ("links", books.links, [("active", books.active), ("retired", books.retired)]),
        ("active", books.active, [("checked", books.checked), ("never checked", books.never_checked)]),
        ("active", books.active, [("due", books.due), ("later", books.later)]),
        ("due", books.due, [("never checked", books.never_checked), ("overdue", overdue)]),
        ("checked", books.checked, [(line.category, line.links) for line in report.overall.categories]),
    ]
    lines = []
    for name, total, parts in sums:
        added = " + ".join(f"{part:,} {label}" for label, part in parts)
        sign = "=" if sum(part for _, part in parts) == total else "≠"
        lines.append(h("li", f"{total:,} {name} {sign} {added}"))
    verdict = "The books balance." if report.balanced else "The books don't balance: please report this as a bug."
    history = f" {books.records:,} checks are kept in all."
    return h("section", h("h2", "Books"), h("p", verdict + history), h("ul", *lines, class_="books"), id="books")


def _charts(report: Report) -> Iterator[Element]:
    figures = []
    if sum(month.valid_ratio is not None for month in report.months) > 1:
        words = "Valid links at the end of each month, in per cent of those checked by then"
        figures.append(h("figure", h("figcaption", words), charts.history(report.months)))
    if any(section.name is not None and section.checked for section in report.collections):
        words = "The largest collections by category, in per cent of their checked links"
        figures.append(h("figure", h("figcaption", words), charts.shares(report.collections)))
    if figures:
        yield h("section", *figures, class_="charts", id="charts")


def _statuses(report: Report) -> Element:
    section = _part("Status codes", tables.statuses(report.overall, rows.of_everything))
    by_collection = [
        _status_of(section, rows.of_collection(section, report)) for section in _detailed(report.collections)
    ]
    by_provider = [_status_of(part, rows.of_provider(part, report)) for part in _detailed(report.providers)]
    for title, of_each in (("collection", by_collection), ("provider", by_provider)):
        if of_each:
            section.append(h("details", h("summary", f"By {title}, the largest {len(of_each)}"), *of_each))
    return section


def _detailed(sections: Sequence[Section]) -> list[Section]:
    return [section for section in sections if section.name is not None and section.checked][:DETAILED]


def _status_of(section: Section, rows_of: rows.Rows) -> Element:
    """A status table that can be unfolded."""
    known = h(
        "summary",
        tables.named(section),
        f": {section.checked:,} checked, ",
        shown(ratio(section.valid_ratio)),
        " valid",
    )
    return h("details", known, tables.statuses(section, rows_of))
