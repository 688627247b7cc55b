"""Inserting entries into the SQLite store in bulk: the one hot path of seeding (six million mentions)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from linkcrawl.stores.contract import NEVER, AddCounts, LinkEntry
from linkcrawl.stores.rows import optional_text, text, to_json, whole

#: Texts of one dictionary table that are kept in memory; a full memory is emptied.
REMEMBERED = 100_000
#: Keys looked up in one statement; SQLite before 3.32 allowed 999 variables.
KEYS_A_STATEMENT = 500

_ADD_LINK = (
    "INSERT INTO links (id, key, url, host_id, priority, expected_mime, next_check_at) "
    f"VALUES (?, ?, ?, ?, ?, ?, {NEVER})"
)
_RAISE_LINK = "UPDATE links SET priority = ?, expected_mime = ? WHERE id = ?"
_ADD_PROXY = (
    "INSERT INTO proxies (link_id, collection_id, provider_id, record, resource_type, expected_mime, extra) "
    "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
_ADD_COLLECTION = "INSERT INTO link_collections (link_id, collection_id) VALUES (?, ?) ON CONFLICT DO NOTHING"
_ADD_PROVIDER = "INSERT INTO link_providers (link_id, provider_id) VALUES (?, ?) ON CONFLICT DO NOTHING"


class DictionaryTable:
    """Ids of the texts of one dictionary table; new texts are added. Ids never change, so they are remembered. Call
    `forget` after the rollback of a transaction that may have added texts."""

    def __init__(self, table: str):
        self._add = f"INSERT INTO {table} (name) VALUES (?) ON CONFLICT DO NOTHING"
        self._find = f"SELECT id FROM {table} WHERE name = ?"
        self._ids: dict[str, int] = {}

    def id(self, db: sqlite3.Connection, name: str) -> int:
        known = self._ids.get(name)
        if known is not None:
            return known
        if len(self._ids) >= REMEMBERED:
            self._ids.clear()
        stored = text(name)
        db.execute(self._add, (stored,))
        found: int = db.execute(self._find, (stored,)).fetchone()[0]
        self._ids[name] = found
        return found

    def forget(self) -> None:
        self._ids.clear()


class _Link:
    """A link that the batch mentions: its id, and the fields that the batch may change."""

    __slots__ = ("changed", "expected_mime", "id", "priority")

    def __init__(self, id: int, priority: int, expected_mime: str | None):
        self.id = id
        self.priority = priority
        self.expected_mime = expected_mime
        self.changed = False

    def mentioned(self, priority: int, expected_mime: str | None) -> None:
        if priority > self.priority:
            self.priority = priority
            self.changed = True
        if self.expected_mime is None and expected_mime is not None:
            self.expected_mime = expected_mime
            self.changed = True


class BulkInserter:
    """Adds batches of entries, inside the caller's transaction."""

    def __init__(self) -> None:
        self._hosts = DictionaryTable("hosts")
        self._collections = DictionaryTable("collections")
        self._providers = DictionaryTable("providers")

    def forget(self) -> None:
        """Forget the ids of a transaction that was rolled back."""
        for names in (self._hosts, self._collections, self._providers):
            names.forget()

    def add(self, db: sqlite3.Connection, entries: Sequence[LinkEntry]) -> AddCounts:
        """Insert links, mentions, and the links' collections and providers. The transaction must hold the write lock:
        new links get the ids after the largest."""
        links = _known(db, {entry.key for entry in entries})
        first_id = (db.execute("SELECT max(id) FROM links").fetchone()[0] or 0) + 1
        new = self._add_links(db, entries, links, first_id)
        db.executemany(
            _RAISE_LINK, [(link.priority, link.expected_mime, link.id) for link in links.values() if link.changed]
        )
        return AddCounts(new=new, known=len(entries) - new, proxies=self._add_proxies(db, entries, links))

    def _add_links(
        self, db: sqlite3.Connection, entries: Sequence[LinkEntry], links: dict[bytes, _Link], first_id: int
    ) -> int:
        """Insert the new links, add them to `links`, and return how many; update known ones."""
        rows: list[tuple[Any, ...]] = []
        for entry in entries:
            priority, expected_mime = whole(entry.seed.priority), optional_text(entry.seed.expected_mime or None)
            link = links.get(entry.key)
            if link is not None:
                link.mentioned(priority, expected_mime)
                continue
            link = links[entry.key] = _Link(first_id + len(rows), priority, expected_mime)
            host_id = self._hosts.id(db, entry.host)
            rows.append((link.id, entry.key, text(entry.url), host_id, priority, expected_mime))
        db.executemany(_ADD_LINK, rows)
        return len(rows)

    def _add_proxies(self, db: sqlite3.Connection, entries: Sequence[LinkEntry], links: dict[bytes, _Link]) -> int:
        rows: list[tuple[Any, ...]] = []
        collections: set[tuple[int, int]] = set()
        providers: set[tuple[int, int]] = set()
        for entry in entries:
            seed, link_id = entry.seed, links[entry.key].id
            collection_id = provider_id = 0
            if seed.collection:
                collection_id = self._collections.id(db, seed.collection)
                collections.add((link_id, collection_id))
            if seed.provider:
                provider_id = self._providers.id(db, seed.provider)
                providers.add((link_id, provider_id))
            rows.append(
                (
                    link_id,
                    collection_id,
                    provider_id,
                    text(seed.record or ""),
                    text(seed.resource_type or ""),
                    text(seed.expected_mime or ""),
                    to_json(dict(seed.extra)) if seed.extra else None,
                )
            )
        added = db.executemany(_ADD_PROXY, rows).rowcount
        db.executemany(_ADD_COLLECTION, sorted(collections))
        db.executemany(_ADD_PROVIDER, sorted(providers))
        return added


def _known(db: sqlite3.Connection, keys: Iterable[bytes]) -> dict[bytes, _Link]:
    """The stored links among these keys."""
    wanted = sorted(keys)  # in the order of the index, which is kinder to the cache
    links = {}
    for start in range(0, len(wanted), KEYS_A_STATEMENT):
        part = wanted[start : start + KEYS_A_STATEMENT]
        marks = ",".join("?" * len(part))
        for key, *link in db.execute(
            f"SELECT key, id, priority, expected_mime FROM links WHERE key IN ({marks})", part
        ):
            links[key] = _Link(*link)
    return links
