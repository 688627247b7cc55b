"""The command line that yields the rows behind a number: `scrapy export`, filtered where it has no option for it.

The filters rely on the order of a record's fields (the contract's), and on JSON: a text inside a value has its quotes
escaped, so no URL can pass for a field.
"""

from __future__ import annotations

import json
import shlex

from linkcrawl.items import Category, iso

#: Longest name that is written into a command.
LONGEST_NAME = 300


def glob_of(name: str) -> str | None:
    """A glob for a collection of exactly this name, as near as globs can: what can't be typed, and `*`, becomes `?`.
    None for a name that is too long to be typed at all."""
    if len(name) > LONGEST_NAME:
        return None
    return "".join("?" if char == "*" or not char.isprintable() else char for char in name)


def export(*, collection: str | None = None, category: Category | None = None, rows: str | None = None) -> str:
    """Records of a collection (a glob) and category, or one row for each mention."""
    parts = ["scrapy", "export", "-o", "-", "--format", "jsonl"]
    parts += ["--category", str(category)] if category is not None else []
    parts += [f"--collection={collection}"] if collection is not None else []  # a name may begin with a -
    parts += ["--rows", rows] if rows is not None else []
    return shlex.join(parts)


def with_reason(command: str, reason: str, status: int | None = None, *, any_status: bool = False) -> str:
    """Of these, the records with a reason and a status."""
    told = "null" if status is None else str(status)
    pattern = f'"reason": "{reason}", "confirmed": (true|false)'
    return _grep(command, pattern if any_status else f'{pattern}, "status": {told},')


def with_confirmed(command: str, confirmed: bool) -> str:
    """Of these, the records that are confirmed, or only suspected."""
    return _grep(command, f'"reason": "[a-z0-9_]+", "confirmed": {str(confirmed).lower()},')


def with_mismatch(command: str) -> str:
    """Of these, the records whose media type is not the claimed one."""
    return _grep(command, '"mime_matches": false,')


def with_pair(command: str, expected: str, got: str) -> str:
    """Of these, the records that claim one media type and have another."""
    return _fixed(command, f'"expected_mime": {_json(expected)}, "mime": {_json(got)}, "mime_matches": false,')


def of_provider(command: str, provider: str) -> str:
    """Of these rows by mention, those of a provider."""
    return _fixed(command, f'"provider": {_json(provider)},')


def overdue(command: str, now: float) -> str:
    """Of these, the records of links that are due again."""
    return f"""{command} | awk -F'"next_check_at": "' 'substr($2, 1, 24) <= "{iso(now)}"'"""


def host(name: str) -> str:
    """What is known of a host, and what it means for its links."""
    return shlex.join(["scrapy", "hosts", "show", name])


def explain(url: str) -> str:
    """What would be done with a URL, and why."""
    return shlex.join(["scrapy", "explain", url])


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _grep(command: str, pattern: str) -> str:
    return f"{command} | {shlex.join(['grep', '-E', pattern])}"


def _fixed(command: str, text: str) -> str:
    return f"{command} | {shlex.join(['grep', '-F', text])}"
