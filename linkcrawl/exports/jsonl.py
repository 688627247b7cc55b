"""Records as JSON lines, under the contract's names: the same lines as the feed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from linkcrawl.items import Record


def lines(records: Iterable[Record]) -> Iterator[str]:
    """One JSON object a line, without its line end."""
    for record in records:
        yield json.dumps(record.row(), ensure_ascii=False)
