"""The versions of the layout that SQLite and MongoDB stores have in common, and what each version added.

A store keeps its version. A program brings an older store up to date when it opens it, one version after the other, and
refuses a newer one. A version brings fields of the record (`since` of the field, items.py), other words for reasons
(RENAMED_REASONS), tables or collections (ADDED_TABLES), columns of others (ADDED_COLUMNS), or several of these.
Whatever a version brings, its reader also reads what the versions before have written: while a store is brought up to
date, workers of the version before may go on writing to it.
"""

from __future__ import annotations

from collections.abc import Mapping

from linkcrawl.items import FIELDS_OF_RECORD, RecordField

#: Version -> reasons that it renamed: the old word and the new one.
RENAMED_REASONS: Mapping[int, Mapping[str, str]] = {2: {"parked": "poison_link"}}

#: Version -> tables or collections that it brought. `robots`: robots.txt files, which stood in host memory before.
ADDED_TABLES: Mapping[int, tuple[str, ...]] = {
    3: ("robots",),
    5: ("harvests", "check_requests", "requested_checks"),
}

#: Version -> columns that tables of before got, by table; what a store of before doesn't have of them is empty.
ADDED_COLUMNS: Mapping[int, Mapping[str, tuple[str, ...]]] = {
    4: {"host_memory": ("failing_days",)},
    5: {"links": ("retired_at",), "proxies": ("retired_at", "harvest")},
}

#: The version that brought the index of REFUSALS (stores.contract).
INDEXED_REFUSALS = 6

#: The version that this program writes.
LAYOUT = max(
    *RENAMED_REASONS, *ADDED_TABLES, *ADDED_COLUMNS, INDEXED_REFUSALS, *(part.since for part in FIELDS_OF_RECORD)
)

_WORDS_OF_NOW = {old: new for words in RENAMED_REASONS.values() for old, new in words.items()}


def added_fields(version: int) -> list[RecordField]:
    """The fields of the record that a version brought."""
    return [part for part in FIELDS_OF_RECORD if part.since == version]


def renamed_reasons(version: int) -> Mapping[str, str]:
    """The reasons that a version renamed, old word -> new word."""
    return RENAMED_REASONS.get(version, {})


def reason_of_now(word: str) -> str:
    """The present word for a reason that a store holds."""
    return _WORDS_OF_NOW.get(word, word)
