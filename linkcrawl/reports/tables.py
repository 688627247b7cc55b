"""The tables of the page: their columns, and the command behind each number."""

from __future__ import annotations

import re
from collections.abc import Sequence

from linkcrawl.check.verdict import sentence
from linkcrawl.items import Category, iso
from linkcrawl.reports import commands
from linkcrawl.reports.html import Cell, Column, Element, h, link, number, ratio, shown, stranger, table, text_column
from linkcrawl.reports.model import HostTrouble, OutcomeTable, Report, Section
from linkcrawl.reports.rows import Rows, broken, mentions, of_collection, of_provider, overdue

#: Short names of the categories, for tables with a column for each.
SHORT = {
    Category.OK: "Ok",
    Category.BROKEN: "Broken",
    Category.UNDETERMINED: "Undeter­mined",
    Category.RESTRICTED: "Restric­ted",
    Category.BLOCKED_BY_ROBOTS: "Robots",
    Category.INVALID: "Invalid",
}


def named(section: Section) -> Element:
    """The name of a section."""
    return h("em", "not given") if section.name is None else stranger(section.name)


def swatch(category: Category) -> Element:
    """A category's name with its colour; it may wrap after underscores."""
    first, *words = re.findall("[^_]+_?", category)
    name = h("span", first, *(part for word in words for part in (h("wbr"), word)))
    return h("span", h("span", class_=f"swatch {category.lower()}"), name, class_="category")


def categories(section: Section) -> Element:
    """The six categories of all links."""
    columns = [text_column("category"), *(Column(title=title) for title in ("links", "share", "mean ms", "max ms"))]
    rows = [
        [
            Cell(swatch(line.category), str(line.category)),
            number(line.links, commands.export(category=line.category)),
            ratio(line.links / section.checked if section.checked else None),
            number(line.mean_ms),
            number(line.max_ms),
        ]
        for line in section.categories
    ]
    return table("Categories", columns, rows, "categories")


def collections(report: Report, most: int) -> Element | None:
    """A row for each collection. A link in several collections counts in each."""
    columns = _section_columns("collection", moved=True)
    rows = [_collection(section, report) for section in report.collections[:most]]
    return table("Collections", columns, rows, "collections") if rows else None


def providers(report: Report, most: int) -> Element | None:
    """A row for each provider."""
    columns = _section_columns("provider", moved=False)
    rows = [_provider(section, report) for section in report.providers[:most]]
    return table("Providers", columns, rows, "providers") if rows else None


def _section_columns(title: str, *, moved: bool) -> list[Column]:
    return [
        text_column(title),
        Column(title="valid", hint="links that are Ok among those checked"),
        Column(title="links"),
        Column(title="proxies", hint="resource proxies: mentions of these links"),
        Column(title="checked"),
        Column(title="never checked"),
        Column(title="over­due", hint="checked before, and due again"),
        *(Column(title=SHORT[category], hint=str(category)) for category in Category),
        Column(title="sus­pected", hint="Broken, but not confirmed yet"),
        Column(title="other type", hint="another media type than the metadata claim"),
        *([Column(title="worth updat­ing", hint="permanent redirects")] if moved else []),
        Column(title="mean ms"),
        Column(title="max ms"),
    ]


def _collection(section: Section, report: Report) -> list[Cell]:
    rows = of_collection(section, report)
    every = rows(None)
    return [
        *_counts(section, rows, every and commands.with_mentions(every), report.made_at),
        number(section.mismatches, every and commands.with_mismatch(every)),
        number(section.moved),
        *_times(section),
    ]


def _provider(section: Section, report: Report) -> list[Cell]:
    rows = of_provider(section, report)
    every = rows(None)
    return [
        *_counts(section, rows, every and commands.with_mentions(every), report.made_at),
        number(section.mismatches, every and commands.with_mismatch(every)),
        *_times(section),
    ]


def _counts(section: Section, rows: Rows, mentioned: str | None, now: float) -> list[Cell]:
    return [
        Cell(named(section), section.name or ""),
        ratio(section.valid_ratio),
        number(section.links),
        mentions(section, mentioned),
        number(section.checked, rows(None)),
        number(section.never_checked),
        overdue(section, rows, now),
        *(number(line.links, rows(line.category)) for line in section.categories),
        broken(section.suspected, rows, confirmed=False),
    ]


def _times(section: Section) -> list[Cell]:
    """Mean and maximum over all categories of a section."""
    timed = [line for line in section.categories if line.mean_ms is not None]
    links = sum(line.links for line in timed)
    mean = sum((line.mean_ms or 0) * line.links for line in timed) / links if links else None
    return [number(mean), number(max((line.max_ms or 0 for line in timed), default=None))]


def statuses(section: Section, rows_of: Rows) -> Element | None:
    """Status codes and reasons, with how long they took."""
    columns = [
        text_column("category"),
        Column(title="status"),
        text_column("reason"),
        *(Column(title=title) for title in ("links", "share", "mean ms", "max ms")),
    ]
    rows = [_status(line, section, rows_of(line.category)) for line in section.statuses]
    return table("Status codes", columns, rows) if rows else None


def _status(line: OutcomeTable, section: Section, every: str | None) -> list[Cell]:
    reason = line.reason or ""
    return [
        Cell(swatch(line.category), str(line.category)),
        number(line.status),
        Cell(h("span", reason, title=sentence(reason)), reason),
        number(line.links, every and commands.with_reason(every, reason, line.status)),
        ratio(line.links / section.checked),
        number(line.mean_ms),
        number(line.max_ms),
    ]


def hosts(report: Report) -> Element | None:
    """Hosts in trouble, and their troubles."""
    columns = [
        text_column("host"),
        text_column("what happened"),
        Column(title="links"),
        Column(title="due"),
        Column(title="turned away", hint="links that it refused to let us check"),
    ]
    rows = [
        [
            Cell(stranger(trouble.host), trouble.host, commands.host(trouble.host)),
            Cell("; ".join(_troubles(trouble))),
            number(trouble.links),
            number(trouble.due),
            number(trouble.refused),
        ]
        for trouble in report.hosts
    ]
    return table("Hosts that block us or ask us to slow down", columns, rows, "hosts") if rows else None


def _troubles(trouble: HostTrouble) -> list[str]:
    texts = []
    if trouble.ordered is not None:
        texts.append(
            f"blocked by an operator: {trouble.ordered[:200]}" if trouble.ordered else "blocked by an operator"
        )
    if trouble.blocked_since is not None:
        since = _minute(trouble.blocked_since)
        texts.append(f"has turned us away since {since}: blocked until a person unblocks it, or its probation")
    if trouble.silent_until is not None:
        texts.append(f"wants to be left alone until {_minute(trouble.silent_until)}")
    if trouble.crawl_delay is not None:
        texts.append(f"its robots.txt asks for {trouble.crawl_delay:,.3g} s between requests")
    if trouble.back_off:
        texts.append(f"backed off to {trouble.back_off:,.3g} s after refusals or time-outs")
    if trouble.reasons:
        texts.append("turned links away: " + ", ".join(trouble.reasons))
    return texts


def _minute(moment: float) -> str:
    return iso(moment)[:16].replace("T", " ") + " UTC"


def walls(report: Report) -> Element | None:
    """Products that turn robots away, and the hosts that have them."""
    columns = [text_column("wall"), text_column("host"), Column(title="links")]
    rows = [
        [Cell(wall.wall), Cell(stranger(host.host), host.host, commands.letter(host.host)), number(host.links)]
        for wall in report.walls
        for host in wall.hosts
    ]
    return table("Walls against robots", columns, rows, "walls") if rows else None


def excluded(report: Report) -> Element | None:
    """Links that were not asked."""
    columns = [text_column("reason"), text_column("what it means"), Column(title="links"), text_column("hosts")]
    rows = []
    for line in report.excluded:
        names: list[Element | str] = []
        for host in line.hosts:
            names += [", "] if names else []
            names.append(h("span", shown(Cell(stranger(host), command=commands.host(host)))))
        more = line.host_count - len(line.hosts)
        every = commands.export(category=line.category)
        rows.append(
            [
                Cell(line.reason),
                Cell(sentence(line.reason)),
                number(line.links, commands.with_reason(every, line.reason, any_status=True)),
                Cell(h("span", *names, f" and {more:,} more" if more > 0 else None), line.host_count),
            ]
        )
    return table("Not asked, and why", columns, rows, "excluded") if rows else None


def moves(report: Report) -> Element | None:
    """Permanent redirects, by site."""
    columns = [*map(text_column, ("from", "to")), Column(title="links"), *map(text_column, ("for example", "now at"))]
    rows: list[Sequence[Cell]] = [
        [
            Cell(stranger(move.from_site), move.from_site),
            Cell(stranger(move.to_site), move.to_site),
            number(move.links),
            Cell(link(move.url), move.url),
            Cell(link(move.target), move.target),
        ]
        for move in report.moves
    ]
    return table("Permanent redirects worth updating", columns, rows, "moves") if rows else None


def mismatches(report: Report) -> Element | None:
    """Pairs of claimed and given media types."""
    columns = [*map(text_column, ("claimed", "given")), Column(title="links"), text_column("for example")]
    rows = [
        [
            Cell(stranger(pair.expected), pair.expected),
            Cell(stranger(pair.got), pair.got),
            number(pair.count, commands.with_pair(commands.export(), pair.expected, pair.got)),
            Cell(link(pair.example), pair.example),
        ]
        for pair in report.mismatches
    ]
    return table("Other media types", columns, rows, "mismatches") if rows else None


def slowest(report: Report) -> Element | None:
    """The slowest links."""
    columns = [
        text_column("link"),
        Column(title="ms"),
        Column(title="status"),
        text_column("category"),
        text_column("collections"),
    ]
    rows = [
        [
            Cell(link(slow.url), slow.url),
            number(slow.duration_ms, commands.explain(slow.url) if slow.url.isprintable() else None),
            number(slow.status),
            Cell(swatch(slow.category), str(slow.category)),
            Cell(stranger(", ".join(slow.collections))),
        ]
        for slow in report.slowest
    ]
    return table("Slowest links", columns, rows, "slowest") if rows else None
