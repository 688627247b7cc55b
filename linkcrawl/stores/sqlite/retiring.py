"""Harvests and the retiring of mentions in the SQLite store, on a connection that is in a transaction.

The links of a collection are found by `link_collections`, their mentions by the mentions' primary key: no index of the
mentions by collection is needed. Mentions without a collection (id 0) are searched for among all.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from linkcrawl.items import RETIRED
from linkcrawl.stores.contract import LinkEntry, Retired
from linkcrawl.stores.rows import text, to_json

_LINKS_OF = {
    True: "SELECT link_id FROM link_collections WHERE collection_id = :collection",
    False: "SELECT DISTINCT link_id FROM proxies WHERE collection_id = 0 AND retired_at IS NULL",
}
# Links of the collection that have live mentions only there and in those `before`, and none that the harvest had.
_LOST = """
SELECT links.key FROM ({links}) AS members JOIN links ON links.id = members.link_id
WHERE NOT EXISTS (
    SELECT 1 FROM proxies WHERE link_id = links.id AND retired_at IS NULL
      AND (harvest >= :harvest OR collection_id NOT IN (SELECT value FROM json_each(:losing)))
)
"""
_ABSENT = "retired_at IS NULL AND harvest < :harvest AND collection_id = :collection"
_GOING = "INSERT INTO temp.going SELECT DISTINCT link_id FROM proxies WHERE link_id IN ({links}) AND " + _ABSENT
_RETIRE_MENTIONS = f"UPDATE proxies SET retired_at = :now WHERE link_id IN (SELECT id FROM temp.going) AND {_ABSENT}"

# What follows for the links in temp.going, whatever made their mentions retire.
_FOLLOWS = (
    """
DELETE FROM link_collections WHERE link_id IN (SELECT id FROM temp.going) AND NOT EXISTS (
    SELECT 1 FROM proxies WHERE link_id = link_collections.link_id
    AND collection_id = link_collections.collection_id AND retired_at IS NULL
)""",
    """
DELETE FROM link_providers WHERE link_id IN (SELECT id FROM temp.going) AND NOT EXISTS (
    SELECT 1 FROM proxies WHERE link_id = link_providers.link_id
    AND provider_id = link_providers.provider_id AND retired_at IS NULL
)""",
    # the type that a live mention claims, where the one in force was a retired mention's
    """
UPDATE links SET expected_mime = (
    SELECT min(expected_mime) FROM proxies WHERE link_id = links.id AND retired_at IS NULL AND expected_mime <> ''
)
WHERE id IN (SELECT id FROM temp.going) AND expected_mime IS NOT NULL
  AND EXISTS (SELECT 1 FROM proxies WHERE link_id = links.id AND retired_at IS NULL)
  AND NOT EXISTS (
    SELECT 1 FROM proxies
    WHERE link_id = links.id AND retired_at IS NULL AND proxies.expected_mime = links.expected_mime
  )""",
)
_RETIRE_LINKS = f"""
UPDATE links SET retired_at = :now, next_check_at = {RETIRED}
WHERE id IN (SELECT id FROM temp.going) AND next_check_at < {RETIRED}
  AND NOT EXISTS (SELECT 1 FROM proxies WHERE link_id = links.id AND retired_at IS NULL)
"""
_OF_COLLECTION = f"""
SELECT count(*) FROM ({{links}}) AS members JOIN links ON links.id = members.link_id WHERE next_check_at < {RETIRED}
"""
_RETIRE_MENTION = """
UPDATE proxies SET retired_at = :now
WHERE link_id = :link AND retired_at IS NULL
  AND (:collection IS NULL OR collection_id = (SELECT id FROM collections WHERE name = :collection))
  AND (:provider IS NULL OR provider_id = (SELECT id FROM providers WHERE name = :provider))
  AND (:record IS NULL OR record = :record)
  AND (:resource_type IS NULL OR resource_type = :resource_type)
  AND (:expected_mime IS NULL OR expected_mime = :expected_mime)
"""


def begin(db: sqlite3.Connection, now: float) -> int:
    """See Store.begin_harvest."""
    return int(db.execute("INSERT INTO harvests (began_at) VALUES (?) RETURNING id", (now,)).fetchone()[0])


def end(db: sqlite3.Connection, harvest: int, now: float) -> None:
    """See Store.end_harvest."""
    db.execute("UPDATE harvests SET ended_at = ? WHERE id = ?", (now, harvest))


def latest(db: sqlite3.Connection) -> int:
    """The number of the harvest that began last; 0 where none has."""
    return int(db.execute("SELECT coalesce(max(id), 0) FROM harvests").fetchone()[0])


def count(db: sqlite3.Connection) -> None:
    """Links may have been retired or purged."""
    db.execute(
        "INSERT INTO meta (name, value) VALUES ('retirements', '1') "
        "ON CONFLICT (name) DO UPDATE SET value = CAST(value AS INTEGER) + 1"
    )


def retirements(db: sqlite3.Connection) -> int:
    """See Store.retirements."""
    found = db.execute("SELECT value FROM meta WHERE name = 'retirements'").fetchone()
    return 0 if found is None else int(found[0])


def lost(db: sqlite3.Connection, harvest: int, collection: str, before: Sequence[str]) -> Iterator[bytes]:
    """See Store.lost."""
    values = {
        "harvest": harvest,
        "collection": _collection_id(db, collection),
        "losing": to_json([_collection_id(db, name) for name in (collection, *before)]),
    }
    return (row[0] for row in db.execute(_LOST.format(links=_LINKS_OF[bool(collection)]), values))


def links_of(db: sqlite3.Connection, collection: str) -> int:
    """See Store.links_of."""
    values = {"collection": _collection_id(db, collection)}
    return int(db.execute(_OF_COLLECTION.format(links=_LINKS_OF[bool(collection)]), values).fetchone()[0])


def retire(db: sqlite3.Connection, harvest: int, collection: str, now: float) -> Retired:
    """See Store.retire."""
    values = {"harvest": harvest, "collection": _collection_id(db, collection), "now": now}
    with_going = _GOING.format(links=_LINKS_OF[bool(collection)])
    _empty_going(db)
    db.execute(with_going, values)
    mentions = db.execute(_RETIRE_MENTIONS, values).rowcount
    return Retired(mentions=mentions, links=_follow(db, now))


def retire_mentions(db: sqlite3.Connection, entries: Sequence[LinkEntry], now: float) -> Retired:
    """See Store.retire_mentions."""
    _empty_going(db)
    mentions = 0
    for entry in entries:
        found = db.execute("SELECT id FROM links WHERE key = ?", (entry.key,)).fetchone()
        if found is None:
            continue
        names = ("collection", "provider", "record", "resource_type", "expected_mime")
        given = {name: getattr(entry.seed, name) for name in names}
        values = {name: text(value) if value else None for name, value in given.items()}
        mentions += db.execute(_RETIRE_MENTION, {**values, "link": found[0], "now": now}).rowcount
        db.execute("INSERT INTO temp.going VALUES (?) ON CONFLICT DO NOTHING", (found[0],))
    return Retired(mentions=mentions, links=_follow(db, now))


def _empty_going(db: sqlite3.Connection) -> None:
    db.execute("CREATE TEMP TABLE IF NOT EXISTS going (id INTEGER PRIMARY KEY)")
    db.execute("DELETE FROM temp.going")


def _follow(db: sqlite3.Connection, now: float) -> int:
    """Bring the links in temp.going up to their live mentions. Returns how many are retired by that."""
    for statement in _FOLLOWS:
        db.execute(statement)
    retired = db.execute(_RETIRE_LINKS, {"now": now}).rowcount
    db.execute("DELETE FROM temp.going")
    count(db)
    return retired


def _collection_id(db: sqlite3.Connection, name: str) -> int:
    """The id of a collection; 0 for "", which is none, and -1 for one that no link was ever in."""
    if not name:
        return 0
    found = db.execute("SELECT id FROM collections WHERE name = ?", (text(name),)).fetchone()
    return -1 if found is None else int(found[0])
