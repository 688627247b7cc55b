"""The command line that yields the rows behind a number: a plain `scrapy export`.

A command yields as many rows as its number, as long as the store stays as it is; where none does, there is no command.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from linkcrawl.items import Category, iso
from linkcrawl.stores.rows import glob

#: Characters of the longest name that a command contains.
LONGEST_NAME = 300


def glob_of(name: str, others: Iterable[str | None] = ()) -> str | None:
    """A glob for the collection or provider of this name, with `?` for `*` and for characters that can't be typed. None
    for a name that is too long, and where the glob matches one of the others as well."""
    if len(name) > LONGEST_NAME:
        return None
    pattern = "".join("?" if char == "*" or not char.isprintable() else char for char in name)
    matches = glob(pattern).fullmatch
    is_alone = "?" not in pattern or not any(other not in (None, name) and matches(other) for other in others)
    return pattern if is_alone else None


def export(
    *,
    collection: str | None = None,
    provider: str | None = None,
    category: Category | None = None,
    rows: str | None = None,
) -> str:
    """Records of a collection and provider (globs) and category. `rows`: `proxy` for one row for each mention."""
    parts = ["scrapy", "export", "-o", "-", "--format", "jsonl"]
    parts += ["--category", str(category)] if category is not None else []
    parts += [f"--collection={collection}"] if collection is not None else []  # a name may begin with a -
    parts += [f"--provider={provider}"] if provider is not None else []
    parts += ["--rows", rows] if rows is not None else []
    return shlex.join(parts)


def with_mentions(command: str) -> str:
    """The mentions of the command's records."""
    return f"{command} --rows proxy"


def with_reason(command: str, reason: str, status: int | None = None, *, any_status: bool = False) -> str:
    """Of the command's records, those with a reason and a status (None: without an answer)."""
    of_reason = f"{command} --reason {shlex.quote(reason)}"
    return of_reason if any_status else f"{of_reason} --status {'none' if status is None else status}"


def with_confirmed(command: str, confirmed: bool) -> str:
    """Of the command's records, those that are confirmed, or only suspected."""
    return f"{command} {'--confirmed' if confirmed else '--suspected'}"


def with_mismatch(command: str) -> str:
    """Of the command's records, those whose media type is not the claimed one."""
    return f"{command} --mismatch"


def with_pair(command: str, expected: str, got: str) -> str | None:
    """Of the command's records, those that claim one media type and have another. None for one that can't be typed."""
    if not (expected.isprintable() and got.isprintable()) or len(expected) + len(got) > LONGEST_NAME:
        return None
    return f"{with_mismatch(command)} {shlex.join([f'--expected-mime={expected}', f'--mime={got}'])}"


def overdue(command: str, now: float) -> str:
    """Of the command's records, those of links that were due at `now`."""
    return f"{command} --due {iso(now)}"


def host(name: str) -> str:
    """Shows what is known of a host."""
    return shlex.join(["scrapy", "hosts", "show", name])


def letter(name: str) -> str:
    """Writes the letter to the administrator of a host that turns us away."""
    return shlex.join(["scrapy", "hosts", "letter", name])


def explain(url: str) -> str:
    """Shows what would be done with a URL, and why."""
    return shlex.join(["scrapy", "explain", url])
