"""Inserting entries into the SQLite store in bulk: the one hot path of seeding (six million mentions)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from linkcrawl.items import RETIRED
from linkcrawl.stores.contract import NEVER, AddCounts, LinkEntry
from linkcrawl.stores.rows import optional_text, text, to_json, whole
from linkcrawl.stores.sqlite import retiring

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
    "INSERT INTO proxies "
    "(link_id, collection_id, provider_id, record, resource_type, expected_mime, extra, harvest) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
)
# A mention that was stored already: it is live, and had by this harvest.
_HAD = """
UPDATE proxies SET retired_at = NULL, harvest = max(harvest, ?)
WHERE link_id = ? AND collection_id = ? AND provider_id = ? AND record = ? AND resource_type = ? AND expected_mime = ?
  AND (retired_at IS NOT NULL OR harvest < ?)
"""
_MARK = """
UPDATE proxies SET harvest = ?1
WHERE harvest < ?1 AND link_id = (SELECT id FROM links WHERE key = ?2) AND record = ?5 AND resource_type = ?6
  AND collection_id = coalesce((SELECT id FROM collections WHERE name = ?3), iif(?3 = '', 0, -1))
  AND provider_id = coalesce((SELECT id FROM providers WHERE name = ?4), iif(?4 = '', 0, -1)) AND expected_mime = ?7
"""
# A retired link that is mentioned again: due at once, with the media type that is claimed now.
_BRING_BACK = f"UPDATE links SET retired_at = NULL, next_check_at = {NEVER}, expected_mime = ? WHERE id = ?"
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

    __slots__ = ("changed", "expected_mime", "id", "is_retired", "priority")

    def __init__(self, id: int, priority: int, expected_mime: str | None, *, is_retired: bool = False):
        self.id = id
        self.priority = priority
        self.expected_mime = None if is_retired else expected_mime  # that of a mention which is gone
        self.is_retired = is_retired
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

    def add(self, db: sqlite3.Connection, entries: Sequence[LinkEntry], harvest: int = 0) -> AddCounts:
        """Insert links, mentions, and the links' collections and providers; bring back what is retired of them. The
        transaction must hold the write lock: new links get the ids after the largest."""
        links = _known(db, {entry.key for entry in entries})
        first_id = (db.execute("SELECT max(id) FROM links").fetchone()[0] or 0) + 1
        new = self._add_links(db, entries, links, first_id)
        db.executemany(
            _RAISE_LINK, [(link.priority, link.expected_mime, link.id) for link in links.values() if link.changed]
        )
        back = [(link.expected_mime, link.id) for link in links.values() if link.is_retired]
        db.executemany(_BRING_BACK, back)
        rows = self._rows_of_proxies(db, entries, links)
        return AddCounts(new=new, known=len(entries) - new, proxies=_add_proxies(db, rows, harvest))

    def known(self, db: sqlite3.Connection, keys: Iterable[bytes]) -> set[bytes]:
        """See Store.known."""
        return set(_known(db, keys))

    def mark(self, db: sqlite3.Connection, entries: Sequence[LinkEntry], harvest: int) -> None:
        """See Store.mark."""
        db.executemany(
            _MARK,
            (
                (
                    harvest,
                    entry.key,
                    text(entry.seed.collection or ""),
                    text(entry.seed.provider or ""),
                    text(entry.seed.record or ""),
                    text(entry.seed.resource_type or ""),
                    text(entry.seed.expected_mime or ""),
                )
                for entry in entries
            ),
        )

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

    def _rows_of_proxies(
        self, db: sqlite3.Connection, entries: Sequence[LinkEntry], links: dict[bytes, _Link]
    ) -> list[tuple[Any, ...]]:
        """The mentions as rows, without the harvest; their links' collections and providers are inserted."""
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
        db.executemany(_ADD_COLLECTION, sorted(collections))
        db.executemany(_ADD_PROVIDER, sorted(providers))
        return rows


def _add_proxies(db: sqlite3.Connection, rows: list[tuple[Any, ...]], harvest: int) -> int:
    """Insert the mentions, and note that stored ones are live and had by the harvest. Returns how many were new."""
    had_by = harvest or retiring.latest(db)
    added = db.executemany(_ADD_PROXY, [(*row, had_by) for row in rows]).rowcount
    if had_by and added < len(rows):
        db.executemany(_HAD, [(had_by, *row[:-1], had_by) for row in rows])
    return added


def _known(db: sqlite3.Connection, keys: Iterable[bytes]) -> dict[bytes, _Link]:
    """The stored links among these keys."""
    wanted = sorted(keys)  # in the order of the index, which is kinder to the cache
    links = {}
    for start in range(0, len(wanted), KEYS_A_STATEMENT):
        part = wanted[start : start + KEYS_A_STATEMENT]
        marks = ",".join("?" * len(part))
        for key, *link in db.execute(
            f"SELECT key, id, priority, expected_mime, next_check_at FROM links WHERE key IN ({marks})", part
        ):
            *known, next_check_at = link
            links[key] = _Link(*known, is_retired=next_check_at >= RETIRED)
    return links
