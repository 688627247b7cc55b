"""The command line that yields the rows behind a number: `scrapy export`, piped through a filter that it has no option
for.

A command yields as many rows as its number; where none does, there is no command. The filters rely on the order of a
record's fields (the contract's), and on JSON: quotes within a value are escaped, so no URL can look like a field.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable

from linkcrawl.items import Category, iso
from linkcrawl.stores.rows import glob

#: Characters of the longest name that a command contains.
LONGEST_NAME = 300
#: Separates the fields of a mention that linkcrawl knows from the seed's unknown ones.
_EXTRA = ', "extra": '


def glob_of(name: str, others: Iterable[str | None] = ()) -> str | None:
    """A glob for the collection of this name, with `?` for `*` and for characters that can't be typed. None for a name
    that is too long, and where the glob matches one of the other collections as well."""
    if len(name) > LONGEST_NAME:
        return None
    pattern = "".join("?" if char == "*" or not char.isprintable() else char for char in name)
    matches = glob(pattern).fullmatch
    is_alone = "?" not in pattern or not any(other not in (None, name) and matches(other) for other in others)
    return pattern if is_alone else None


def export(*, collection: str | None = None, category: Category | None = None, rows: str | None = None) -> str:
    """Records of a collection (a glob) and category. `rows`: `proxy` for one row for each mention."""
    parts = ["scrapy", "export", "-o", "-", "--format", "jsonl"]
    parts += ["--category", str(category)] if category is not None else []
    parts += [f"--collection={collection}"] if collection is not None else []  # a name may begin with a -
    parts += ["--rows", rows] if rows is not None else []
    return shlex.join(parts)


def with_reason(command: str, reason: str, status: int | None = None, *, any_status: bool = False) -> str:
    """Of the command's records, those with a reason and a status (None: without an answer)."""
    number = "null" if status is None else str(status)
    pattern = f'"reason": "{reason}", "confirmed": (true|false)'
    return _grep(command, pattern if any_status else f'{pattern}, "status": {number},')


def with_confirmed(command: str, confirmed: bool) -> str:
    """Of the command's records, those that are confirmed, or only suspected."""
    return _grep(command, f'"reason": "[a-z0-9_]+", "confirmed": {str(confirmed).lower()},')


def with_mismatch(command: str) -> str:
    """Of the command's records, those whose media type is not the claimed one."""
    return _grep(command, '"mime_matches": false,')


def with_pair(command: str, expected: str, got: str) -> str:
    """Of the command's records, those that claim one media type and have another."""
    return _fixed(command, f'"expected_mime": {_json(expected)}, "mime": {_json(got)}, "mime_matches": false,')


def of_provider(provider: str, *, category: Category | None = None, mentions: bool = False) -> str | None:
    """Rows of a provider: the first mention of each link, or all mentions. None for a name that can't be typed. The
    filter reads only what comes before the seed's unknown fields, as these may hold anything."""
    if len(provider) > LONGEST_NAME or not _json(provider).isprintable():
        return None
    field = _awk(f'"provider": {_json(provider)}, "resource_type": ')
    url = _awk(', "collections": ')
    program = f"index($1, {field})" + ("" if mentions else f" && split($1, part, {url}) && !seen[part[1]]++")
    return f"{export(category=category, rows='proxy')} | {shlex.join(['awk', '-F', _EXTRA, program])}"


def overdue(command: str, now: float) -> str:
    """Of the command's records, those of links that are due again."""
    return f"""{command} | awk -F'"next_check_at": "' 'substr($2, 1, 24) <= "{iso(now)}"'"""


def host(name: str) -> str:
    """Shows what is known of a host."""
    return shlex.join(["scrapy", "hosts", "show", name])


def letter(name: str) -> str:
    """Writes the letter to the administrator of a host that turns us away."""
    return shlex.join(["scrapy", "hosts", "letter", name])


def explain(url: str) -> str:
    """Shows what would be done with a URL, and why."""
    return shlex.join(["scrapy", "explain", url])


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _awk(text: str) -> str:
    """The text as a string in an awk program."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _grep(command: str, pattern: str) -> str:
    return f"{command} | {shlex.join(['grep', '-E', pattern])}"


def _fixed(command: str, text: str) -> str:
    return f"{command} | {shlex.join(['grep', '-F', text])}"
