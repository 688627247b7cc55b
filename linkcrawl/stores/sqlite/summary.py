"""The summary of a SQLite store: aggregates that each read links, mentions or records once."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator

from linkcrawl.items import RETIRED, Category
from linkcrawl.stores.contract import Mismatch, Summary, SummaryPart, Tally
from linkcrawl.stores.sqlite import reading
from linkcrawl.stores.summary import Span, in_order, months, tallies_in_order, whole

# The active links of each part, as (part, link). Part 0 of collections and providers has links mentioned without one.
# `live`: the condition that a mention isn't retired.
_MEMBERS = {
    "hosts": f"SELECT host_id AS part, id AS link FROM links WHERE next_check_at < {RETIRED}",
    "collections": """
        SELECT collection_id AS part, link_id AS link FROM link_collections
        UNION ALL SELECT DISTINCT 0, link_id FROM proxies WHERE collection_id = 0 AND {live}""",
    "providers": """
        SELECT provider_id AS part, link_id AS link FROM link_providers
        UNION ALL SELECT DISTINCT 0, link_id FROM proxies WHERE provider_id = 0 AND {live}""",
}
_PROXIES = {
    "hosts": "SELECT host_id, count(*) FROM proxies JOIN links ON links.id = link_id WHERE {live} GROUP BY 1",
    "collections": "SELECT collection_id, count(*) FROM proxies WHERE {live} GROUP BY 1",
    "providers": "SELECT provider_id, count(*) FROM proxies WHERE {live} GROUP BY 1",
}
_COUNTS = """
SELECT part, count(*), count(last_checked_at),
       coalesce(sum(next_check_at <= ? AND last_checked_at IS NOT NULL), 0)
FROM ({members}) JOIN links ON links.id = link
GROUP BY part
"""
_TALLIES = """
SELECT part, records.category, status, reason, confirmed, count(*) AS count,
       count(duration_ms) AS timed, coalesce(sum(duration_ms), 0) AS total_ms, max(duration_ms) AS max_ms,
       coalesce(sum(mime_matches = 0), 0) AS mismatches
FROM ({members}) JOIN links ON links.id = link JOIN records ON records.id = last_record_id
GROUP BY part, records.category, status, reason, confirmed
"""
_SLOWEST = f"""
SELECT records.*, links.url AS url FROM links JOIN records ON records.id = last_record_id
WHERE duration_ms IS NOT NULL AND links.next_check_at < {RETIRED} ORDER BY duration_ms DESC, records.id LIMIT ?
"""
_MISMATCHES = f"""
SELECT records.expected_mime AS expected, mime AS got, count(*) AS count, min(links.url) AS example
FROM links JOIN records ON records.id = last_record_id
WHERE mime_matches = 0 AND links.next_check_at < {RETIRED} GROUP BY 1, 2 ORDER BY count DESC, 1, 2 LIMIT ?
"""
# A record counts until its link's next one. One that is followed in the same month counts at no month's end.
_SPANS = """
WITH standing AS (
    SELECT category, strftime('%Y-%m', checked_at, 'unixepoch') AS begins,
           lead(strftime('%Y-%m', checked_at, 'unixepoch')) OVER (PARTITION BY link_id ORDER BY checked_at) AS ends
    FROM records
)
SELECT category, begins, ends, count(*) AS count FROM standing WHERE ends IS NOT begins GROUP BY 1, 2, 3
"""
# The latest record of a retired link counts no more from the month in which the link was retired.
_RETIRED = """
SELECT last_category AS category, strftime('%Y-%m', max(retired_at, last_checked_at), 'unixepoch') AS begins,
       count(*) AS count
FROM links WHERE retired_at IS NOT NULL AND last_category IS NOT NULL GROUP BY 1, 2
"""


def summary(db: sqlite3.Connection, now: float, top: int) -> Summary:
    """See Store.summary. The caller's transaction makes it one snapshot."""
    hosts = tuple(_parts(db, "hosts", now))
    return Summary(
        at=now,
        books=reading.books(db, now),
        overall=whole(hosts),
        collections=in_order(_parts(db, "collections", now)),
        providers=in_order(_parts(db, "providers", now)),
        hosts=in_order(hosts),
        slowest=tuple(map(reading.record, db.execute(_SLOWEST, (top,)))),
        mismatches=tuple(Mismatch(**dict(row)) for row in db.execute(_MISMATCHES, (top,))),
        months=months(_spans(db), now),
    )


def _parts(db: sqlite3.Connection, table: str, now: float) -> Iterator[SummaryPart]:
    live = "proxies.retired_at IS NULL" if reading.knows_retiring(db) else "TRUE"
    members = _MEMBERS[table].format(live=live)
    names = dict(map(tuple, db.execute(f"SELECT id, name FROM {table}")))
    proxies = dict(map(tuple, db.execute(_PROXIES[table].format(live=live))))
    tallies = defaultdict(list)
    for row in db.execute(_TALLIES.format(members=members)):
        tallies[row["part"]].append(_tally(row))
    for part, links, checked, overdue in db.execute(_COUNTS.format(members=members), (now,)):
        yield SummaryPart(
            name=names.get(part),
            links=links,
            proxies=proxies.get(part, 0),
            checked=checked,
            overdue=overdue,
            tallies=tallies_in_order(tallies[part]),
        )


def _tally(row: sqlite3.Row) -> Tally:
    return Tally(
        category=Category(row["category"]),
        status=row["status"],
        reason=row["reason"],
        confirmed=bool(row["confirmed"]),
        count=row["count"],
        timed=row["timed"],
        total_ms=row["total_ms"],
        max_ms=row["max_ms"],
        mismatches=row["mismatches"],
    )


def _spans(db: sqlite3.Connection) -> Iterator[Span]:
    for category, begins, ends, count in db.execute(_SPANS):
        yield Span(category=Category(category), begins=begins, ends=ends, count=count)
    if reading.knows_retiring(db):
        for category, begins, count in db.execute(_RETIRED):
            yield Span(category=Category(category), begins=begins, ends=None, count=-count)
