"""Requests for checks in the SQLite store."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence

from linkcrawl.items import RETIRED, DueLink, Record
from linkcrawl.stores.contract import ASKED, CheckProgress, CheckRequest, HostBacklog
from linkcrawl.stores.rows import text
from linkcrawl.stores.sqlite import reading

_REQUEST = "INSERT INTO check_requests (id, asked_at, by, reason) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
_ADD = """
INSERT INTO requested_checks (request_id, link_id)
SELECT ?, id FROM links WHERE id IN (SELECT value FROM json_each(?)) AND next_check_at < ?
ON CONFLICT DO NOTHING
"""
_MAKE_DUE = """
UPDATE links SET next_check_at = ? WHERE next_check_at < ? AND id IN (
    SELECT link_id FROM requested_checks WHERE request_id = ? AND checked_at IS NULL
)
"""
_ANSWER = "UPDATE requested_checks SET checked_at = ? WHERE link_id = ? AND checked_at IS NULL"
_LINKS = """
SELECT links.*, hosts.name AS host FROM links INDEXED BY links_by_time JOIN hosts ON hosts.id = host_id
WHERE next_check_at = ? AND links.id > ? ORDER BY links.id LIMIT ?
"""
_WAITING = """
SELECT hosts.name, count(*) FROM requested_checks
JOIN links ON links.id = link_id JOIN hosts ON hosts.id = host_id
WHERE request_id = ? AND checked_at IS NULL AND next_check_at < ?
GROUP BY hosts.id ORDER BY hosts.name
"""
_ANSWERS = """
SELECT records.*, links.url AS url FROM requested_checks AS asked
JOIN records ON records.link_id = asked.link_id AND records.checked_at = asked.checked_at
JOIN links ON links.id = asked.link_id
WHERE request_id = ? ORDER BY records.checked_at, records.id
"""


def ask(db: sqlite3.Connection, request: CheckRequest, link_ids: Sequence[int | str]) -> int:
    """See Store.ask. In a transaction of the caller's."""
    values = (text(request.id), request.asked_at, text(request.by), text(request.reason))
    db.execute(
        "INSERT INTO check_requests (id, asked_at, by, reason) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", values
    )
    db.execute(_ADD, (values[0], json.dumps(list(link_ids)), RETIRED))
    db.execute(_MAKE_DUE, (ASKED, RETIRED, values[0]))
    counted = "SELECT count(*) FROM requested_checks WHERE request_id = ?"
    return int(db.execute(counted, values[:1]).fetchone()[0])


def answer(db: sqlite3.Connection, link_id: int | str, checked_at: float) -> None:
    """A record of the link is stored: whoever asked for it has it. In the same transaction."""
    db.execute(_ANSWER, (checked_at, link_id))


def asked(db: sqlite3.Connection, limit: int, after: int | str | None) -> list[DueLink]:
    """See Store.asked."""
    return reading.due_links(db, db.execute(_LINKS, (ASKED, 0 if after is None else after, limit)).fetchall())


def check_request(db: sqlite3.Connection, request_id: str) -> CheckRequest | None:
    """See Store.check_request."""
    row = db.execute("SELECT * FROM check_requests WHERE id = ?", (text(request_id),)).fetchone()
    return None if row is None else CheckRequest(**dict(row))


def progress(db: sqlite3.Connection, request_id: str) -> CheckProgress:
    """See Store.progress. The caller's transaction makes the counts be of one moment."""
    given = (text(request_id),)
    number = db.execute("SELECT count(*) FROM requested_checks WHERE request_id = ?", given).fetchone()[0]
    waiting = db.execute(_WAITING, (*given, RETIRED))
    return CheckProgress(asked=number, waiting=tuple(HostBacklog(host=host, due=due) for host, due in waiting))


def answers(db: sqlite3.Connection, request_id: str) -> Iterator[Record]:
    """See Store.answers."""
    return map(reading.record, db.execute(_ANSWERS, (text(request_id),)))
