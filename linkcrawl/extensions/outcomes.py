"""The outcomes of one crawl's checks: numbers and times by category, status and reason."""

from __future__ import annotations

from collections import Counter

from attrs import define, field

from linkcrawl.items import Category, Record

#: Category, status and reason of a record.
OutcomeKind = tuple[Category, int | None, str]


@define
class Times:
    """How long checks took. `count`: all checks; `timed`: those that have a time, in milliseconds."""

    count: int = 0
    timed: int = 0
    total_ms: int = 0
    max_ms: int | None = None

    @property
    def mean_ms(self) -> float | None:
        return self.total_ms / self.timed if self.timed else None

    def add(self, duration_ms: int | None) -> None:
        """Count a check."""
        self.count += 1
        if duration_ms is not None:
            self.timed += 1
            self.total_ms += duration_ms
            self.max_ms = max(duration_ms, self.max_ms or 0)


@define
class OutcomeCounts:
    """Sums of records. Memory grows with the kinds of outcomes, not with the records."""

    whole: Times = field(factory=Times)
    categories: Counter[Category] = field(factory=Counter)
    kinds: dict[OutcomeKind, Times] = field(factory=dict)

    def add(self, record: Record) -> None:
        """Count a record."""
        self.whole.add(record.duration_ms)
        self.categories[record.category] += 1
        kind = record.category, record.status, record.reason
        if kind not in self.kinds:
            self.kinds[kind] = Times()
        self.kinds[kind].add(record.duration_ms)

    @property
    def service(self) -> float:
        """Mean seconds of a check, politeness waits not counted; 0 before the first."""
        return (self.whole.mean_ms or 0.0) / 1000

    def rows(self) -> list[tuple[str, str, str, str, str, str]]:
        """Rows of category, reason, status, count, mean and maximum milliseconds as text; by category, most first."""
        order = sorted(self.kinds.items(), key=lambda kind: (kind[0][0], -kind[1].count, kind[0][2], kind[0][1] or 0))
        return [
            (
                str(category),
                reason,
                "-" if status is None else str(status),
                str(times.count),
                "-" if times.mean_ms is None else f"{times.mean_ms:.0f}",
                "-" if times.max_ms is None else str(times.max_ms),
            )
            for (category, status, reason), times in order
        ]
