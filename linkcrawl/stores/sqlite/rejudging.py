"""Latest records that are judged again, in the SQLite store."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from linkcrawl.items import RETIRED, DueLink, Record, Rejudged
from linkcrawl.stores.contract import ASKED
from linkcrawl.stores.rows import JUDGED, record_document, state_document, to_json
from linkcrawl.stores.sqlite import reading

_JUDGED_BEFORE = """
SELECT links.id AS id FROM links JOIN records ON records.id = last_record_id
WHERE links.id > :after AND verdict_version < :version ORDER BY links.id LIMIT :limit
"""
_LINKS = """
SELECT links.*, name AS host FROM links JOIN hosts ON hosts.id = host_id
WHERE links.id IN (SELECT value FROM json_each(?)) ORDER BY links.id
"""
_RECORDS = """
SELECT records.*, links.url AS url FROM links JOIN records ON records.id = last_record_id
WHERE links.id IN (SELECT value FROM json_each(?)) ORDER BY links.id
"""
_REJUDGE = f"""
UPDATE records SET {", ".join(f"{name} = :{name}" for name in JUDGED)}
WHERE id = (SELECT last_record_id FROM links WHERE id = :link_id) AND checked_at = :checked_at
  AND category = :category_before AND reason = :reason_before AND confirmed = :confirmed_before
  AND verdict_version = :version_before
"""
_STANDS = """
SELECT 1 FROM links JOIN records ON records.id = last_record_id
WHERE links.id = :link_id AND records.checked_at = :checked_at AND records.category = :category AND reason = :reason
  AND confirmed = :confirmed AND verdict_version = :verdict_version
"""
_MOVE = f"""
UPDATE links SET next_check_at = iif(next_check_at IN ({ASKED}, {RETIRED}), next_check_at, :next_check_at),
    last_category = :category, attempt = :attempt, interval = :interval,
    hard_since = :hard_since, hard_count = :hard_count, hard_by_get = :hard_by_get
WHERE id = :link_id
"""


def judged_before(
    db: sqlite3.Connection, version: int, limit: int, after: int | str | None
) -> list[tuple[DueLink, Record]]:
    """See Store.judged_before. The caller's transaction makes links and records be of one moment."""
    values = {"version": version, "limit": limit, "after": 0 if after is None else after}
    ids = to_json([row["id"] for row in db.execute(_JUDGED_BEFORE, values)])
    links = reading.due_links(db, db.execute(_LINKS, (ids,)).fetchall())
    return list(zip(links, map(reading.record, db.execute(_RECORDS, (ids,))), strict=True))


def rejudge(db: sqlite3.Connection, rejudged: Sequence[Rejudged]) -> frozenset[int | str]:
    """See Store.rejudge."""
    return frozenset(one.record.link_id for one in rejudged if not _stands(db, one))


def _stands(db: sqlite3.Connection, one: Rejudged) -> bool:
    """Put one judgement in its place; whether it stands there now."""
    before = {
        "category_before": str(one.before.category),
        "reason_before": one.before.reason,
        "confirmed_before": one.before.confirmed,
        "version_before": one.before.verdict_version,
    }
    values = record_document(one.record) | {"link_id": one.record.link_id} | before
    if not db.execute(_REJUDGE, values).rowcount:
        return db.execute(_STANDS, values).fetchone() is not None
    if one.state is not None:
        db.execute(_MOVE, values | state_document(one.state))
    return True
