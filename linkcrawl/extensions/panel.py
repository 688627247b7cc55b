"""The progress of a crawl as a panel and a table for a terminal, and as lines for a log: all of the same values."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen
from rich import box
from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from linkcrawl.extensions.outcomes import OutcomeCounts
from linkcrawl.frontier.gates.eta import FrontierStats
from linkcrawl.items import Category
from linkcrawl.text import span

COLOURS = {
    Category.OK: "green",
    Category.BROKEN: "red",
    Category.UNDETERMINED: "yellow",
    Category.RESTRICTED: "blue",
    Category.BLOCKED_BY_ROBOTS: "magenta",
    Category.INVALID: "bright_black",
}
#: Width at which a table is measured: more than any needs.
WIDEST = 1000
HEAD = ("category", "reason", "status", "links", "mean ms", "max ms")


@frozen(kw_only=True)
class PanelState:
    """A crawl at a moment. `checked`: records of this crawl. `rate`: checks a second lately. `requests`: in flight."""

    checked: int
    rate: float
    requests: int
    stats: FrontierStats
    categories: Mapping[Category, int]

    @property
    def counts(self) -> list[tuple[Category, int]]:
        """The categories that occurred, with their numbers, in the order of `Category`."""
        return [(category, self.categories[category]) for category in Category if self.categories.get(category)]


def line(state: PanelState) -> str:
    """One log line for programs: `progress name=value …`."""
    stats = state.stats
    pairs: dict[str, object] = {
        "checked": state.checked,
        "per_second": f"{state.rate:.2f}",
        "due": stats.due,
        "requests": state.requests,
        "ready": stats.ready,
        "waiting": stats.waiting,
        "in_flight": stats.in_flight,
        "blocked": stats.blocked,
        "eta_seconds": f"{stats.eta:.0f}",
    }
    if stats.slowest is not None:
        pairs |= {"slowest": stats.slowest[0], "slowest_seconds": f"{stats.slowest[1]:.0f}"}
    pairs |= {str(category): count for category, count in state.counts}
    return "progress " + " ".join(f"{name}={value}" for name, value in pairs.items())


def panel(state: PanelState) -> RenderableType:
    """The panel for a terminal."""
    stats = state.stats
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    more = f"   at least {span(round(stats.eta))} more" if stats.eta >= 1 else ""
    done = f"{state.checked:,} ({state.rate:.1f} a second)   due {stats.due:,}{more}"
    grid.add_row("checked", done)
    grid.add_row(
        "hosts",
        f"{stats.in_flight:,} in flight   {stats.ready:,} ready   {stats.waiting:,} waiting   "
        f"{stats.blocked:,} blocked",
    )
    counts = Text("   ").join(
        Text.assemble((f"{count:,} ", "bold"), (str(category), COLOURS[category])) for category, count in state.counts
    )
    grid.add_row("links", counts)
    if stats.slowest is not None:
        grid.add_row("slowest", Text(f"{stats.slowest[0]}, {span(round(stats.slowest[1]))} at least"))
    return Panel(grid, title="linkcrawl", title_align="left", border_style="dim")


def table(outcomes: OutcomeCounts, console: Console) -> RenderableType:
    """The outcomes as a table; on a console that is too narrow for one, as a line or two for each outcome."""
    made = Table(
        title="What came of the links", title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for name in HEAD:
        made.add_column(name, overflow="fold", justify="left" if name in HEAD[:3] else "right")
    for row in outcomes.rows():
        made.add_row(*map(Text, row))
    wanted = console.measure(made, options=console.options.update(max_width=WIDEST)).maximum
    return made if wanted <= console.width else _narrow(outcomes)


def _narrow(outcomes: OutcomeCounts) -> Table:
    made = Table.grid(padding=(0, 1))
    made.add_column(justify="right", style="bold")
    made.add_column(overflow="fold")
    for category, reason, status, links, mean, most in outcomes.rows():
        answer = "" if status == "-" else f" {status}"
        times = "" if mean == "-" else f", mean {mean} ms, max {most} ms"
        made.add_row(links, Text(f"{category} {reason}{answer}{times}"))
    return made


def lines(outcomes: OutcomeCounts) -> list[str]:
    """The outcomes as log lines for programs: `outcome name=value …`."""
    names = [name.replace(" ", "_") for name in HEAD]
    return [
        "outcome " + " ".join(f"{name}={value}" for name, value in zip(names, row, strict=True))
        for row in outcomes.rows()
    ]
