"""Orders of people, and the withdrawing and pruning of records, on a connection that is in a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from linkcrawl.items import RETIRED, Act, Category, Order
from linkcrawl.stores.rows import text

_GIVE = """
INSERT INTO orders (host, act, at, reason, until) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (host) DO UPDATE SET act = excluded.act, at = excluded.at, reason = excluded.reason, until = excluded.until
"""

_WITHDRAW = """
UPDATE records SET category = ?, reason = ?, error = ?, confirmed = 1, next_check_at = ?
WHERE id = (SELECT last_record_id FROM links WHERE id = ?) AND checked_at >= ? AND reason <> ?
"""

_DUE_AGAIN = (
    f"UPDATE links SET next_check_at = iif(next_check_at < {RETIRED}, ?, next_check_at), last_category = ? WHERE id = ?"
)

_PRUNE = """
DELETE FROM records
WHERE checked_at >= :since AND checked_at < :until AND EXISTS (
    SELECT 1 FROM records AS later
    WHERE later.link_id = records.link_id AND later.checked_at > records.checked_at AND later.checked_at < :until
)
"""


def give(db: sqlite3.Connection, order: Order) -> None:
    """See Store.give_order."""
    db.execute(_GIVE, (text(order.host), str(order.act), order.at, text(order.reason), order.until))


def orders(db: sqlite3.Connection) -> dict[str, Order]:
    """See Store.orders."""
    return {
        row["host"]: Order(
            host=row["host"], act=Act(row["act"]), at=row["at"], reason=row["reason"], until=row["until"]
        )
        for row in db.execute("SELECT * FROM orders")
    }


def withdraw(
    db: sqlite3.Connection, link_ids: Sequence[int | str], since: float, reason: str, error: str, now: float
) -> int:
    """See Store.withdraw."""
    count = 0
    for link_id in link_ids:
        values = (str(Category.UNDETERMINED), reason, text(error), now, link_id, since, reason)
        if db.execute(_WITHDRAW, values).rowcount:
            db.execute(_DUE_AGAIN, (now, str(Category.UNDETERMINED), link_id))
            count += 1
    return count


def recall_future(db: sqlite3.Connection, after: float, now: float) -> tuple[int, float]:
    """See Store.recall_future. The index of records by time tells at once that there are none."""
    of_the_future = "last_checked_at > :after AND id IN (SELECT link_id FROM records WHERE checked_at > :after)"
    values = {"after": after, "now": now}
    row = db.execute(f"SELECT count(*), max(last_checked_at) FROM links WHERE {of_the_future}", values).fetchone()
    if row[0]:
        planned = "next_check_at = :now + (next_check_at - last_checked_at)"
        later = f"next_check_at > last_checked_at AND next_check_at < {RETIRED}"
        db.execute(f"UPDATE links SET {planned} WHERE {of_the_future} AND {later}", values)
    return row[0], row[1] or 0.0


def put_before(db: sqlite3.Connection, link_id: int | str, moment: float) -> None:
    """Give the link's records of later times a time just before the moment, a millisecond apart, in their order."""
    later = db.execute(
        "SELECT id FROM records WHERE link_id = ? AND checked_at > ? ORDER BY checked_at DESC", (link_id, moment)
    ).fetchall()
    for place, row in enumerate(later, 1):
        earlier = moment - place / 1000
        db.execute("UPDATE OR IGNORE records SET checked_at = ? WHERE id = ?", (earlier, row[0]))


def prune(db: sqlite3.Connection, since: float, until: float) -> int:
    """See Store.prune."""
    return db.execute(_PRUNE, {"since": since, "until": until}).rowcount
