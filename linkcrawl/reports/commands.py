"""The command line that yields the rows behind a number: `scrapy export`, filtered where it has no option for it.

A command yields as many rows as its number says, or there is none. The filters rely on the order of a record's fields
(the contract's), and on JSON: a text inside a value has its quotes escaped, so no URL can pass for a field.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable

from linkcrawl.items import Category, iso
from linkcrawl.stores.rows import glob

#: Longest name that is written into a command.
LONGEST_NAME = 300
#: Before it stands what linkcrawl knows of a mention, after it the seed's own fields.
_EXTRA = ', "extra": '


def glob_of(name: str, others: Iterable[str | None] = ()) -> str | None:
    """A glob for the collection of this name: what can't be typed, and `*`, becomes `?`. None for a name that is too
    long to be typed at all, and where that glob takes one of the other collections as well."""
    if len(name) > LONGEST_NAME:
        return None
    pattern = "".join("?" if char == "*" or not char.isprintable() else char for char in name)
    fits = glob(pattern).fullmatch
    is_alone = "?" not in pattern or not any(other not in (None, name) and fits(other) for other in others)
    return pattern if is_alone else None


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


def of_provider(provider: str, *, category: Category | None = None, mentions: bool = False) -> str | None:
    """Rows of a provider: the first mention of each link, or all of them. None for a name that can't be typed. Only
    what stands before the seed's own fields counts, as these may hold anything."""
    if len(provider) > LONGEST_NAME or not _json(provider).isprintable():
        return None
    told = _awk(f'"provider": {_json(provider)}, "resource_type": ')
    url = _awk(', "collections": ')
    program = f"index($1, {told})" + ("" if mentions else f" && split($1, part, {url}) && !seen[part[1]]++")
    return f"{export(category=category, rows='proxy')} | {shlex.join(['awk', '-F', _EXTRA, program])}"


def overdue(command: str, now: float) -> str:
    """Of these, the records of links that are due again."""
    return f"""{command} | awk -F'"next_check_at": "' 'substr($2, 1, 24) <= "{iso(now)}"'"""


def host(name: str) -> str:
    """What is known of a host, and what it means for its links."""
    return shlex.join(["scrapy", "hosts", "show", name])


def letter(name: str) -> str:
    """The letter to the administrator of a host that turns us away."""
    return shlex.join(["scrapy", "hosts", "letter", name])


def explain(url: str) -> str:
    """What would be done with a URL, and why."""
    return shlex.join(["scrapy", "explain", url])


def _json(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _awk(text: str) -> str:
    """The text as awk has it in a program."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _grep(command: str, pattern: str) -> str:
    return f"{command} | {shlex.join(['grep', '-E', pattern])}"


def _fixed(command: str, text: str) -> str:
    return f"{command} | {shlex.join(['grep', '-F', text])}"
