"""Deleting links with all that is kept of them, in the SQLite store."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence

from linkcrawl.items import RETIRED
from linkcrawl.stores.contract import Purged
from linkcrawl.stores.rows import text, to_json

_IDS = "(SELECT id FROM collections WHERE name IN (SELECT value FROM json_each(:names)))"
_ONLY_IN = f"""
SELECT key FROM links
WHERE id IN (SELECT link_id FROM link_collections WHERE collection_id IN {_IDS})
  AND NOT EXISTS (
    SELECT 1 FROM proxies WHERE link_id = links.id AND retired_at IS NULL AND collection_id NOT IN {_IDS}
  )
UNION ALL
SELECT key FROM links
WHERE next_check_at >= {RETIRED} AND EXISTS (
    SELECT 1 FROM proxies
    WHERE link_id = links.id AND proxies.retired_at = links.retired_at AND collection_id IN {_IDS}
)
"""
_OF_LINKS = "link_id IN (SELECT id FROM temp.purged)"


def retired_before(db: sqlite3.Connection, moment: float) -> Iterator[bytes]:
    """See Store.retired_before."""
    chosen = "SELECT key FROM links WHERE retired_at IS NOT NULL AND retired_at < ? ORDER BY retired_at"
    return (row[0] for row in db.execute(chosen, (moment,)))


def only_in(db: sqlite3.Connection, names: Sequence[str]) -> Iterator[bytes]:
    """See Store.only_in."""
    return (row[0] for row in db.execute(_ONLY_IN, {"names": to_json([text(name) for name in names])}))


def purge(db: sqlite3.Connection, keys: Collection[bytes]) -> Purged:
    """See Store.purge."""
    db.execute("CREATE TEMP TABLE IF NOT EXISTS purged (id INTEGER PRIMARY KEY)")
    db.execute("DELETE FROM temp.purged")
    db.executemany("INSERT OR IGNORE INTO temp.purged SELECT id FROM links WHERE key = ?", ((key,) for key in keys))
    db.execute("UPDATE links SET last_record_id = NULL WHERE id IN (SELECT id FROM temp.purged)")
    counts = {}
    for table in ("records", "requested_checks", "link_collections", "link_providers", "proxies"):
        counts[table] = db.execute(f"DELETE FROM {table} WHERE {_OF_LINKS}").rowcount
    links = db.execute("DELETE FROM links WHERE id IN (SELECT id FROM temp.purged)").rowcount
    db.execute("DELETE FROM temp.purged")
    return Purged(links=links, mentions=counts["proxies"], records=counts["records"])


def purge_mentions(db: sqlite3.Connection, names: Sequence[str]) -> int:
    """See Store.purge_mentions."""
    chosen = f"DELETE FROM proxies WHERE retired_at IS NOT NULL AND collection_id IN {_IDS}"
    return db.execute(chosen, {"names": to_json([text(name) for name in names])}).rowcount


def count(db: sqlite3.Connection, keys: Collection[bytes]) -> Purged:
    """What `purge` would delete."""
    counts = Purged()
    for key in keys:
        found = db.execute("SELECT id FROM links WHERE key = ?", (key,)).fetchone()
        if found is not None:
            records, mentions = (
                db.execute(f"SELECT count(*) FROM {table} WHERE link_id = ?", (found[0],)).fetchone()[0]
                for table in ("records", "proxies")
            )
            counts += Purged(links=1, mentions=mentions, records=records)
    return counts


def count_mentions(db: sqlite3.Connection, names: Sequence[str]) -> int:
    """How many mentions these collections have, retired ones too."""
    chosen = f"SELECT count(*) FROM proxies WHERE collection_id IN {_IDS}"
    return int(db.execute(chosen, {"names": to_json([text(name) for name in names])}).fetchone()[0])
