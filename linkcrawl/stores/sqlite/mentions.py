"""The mentions of links in the SQLite store."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from linkcrawl.stores.contract import Proxy
from linkcrawl.stores.rows import from_json, to_json
from linkcrawl.stores.sqlite import reading

_PROXIES = """
SELECT link_id, collections.name AS collection, record, expected_mime, providers.name AS provider, resource_type, extra
FROM proxies
LEFT JOIN collections ON collections.id = collection_id
LEFT JOIN providers ON providers.id = provider_id
WHERE link_id IN (SELECT value FROM json_each(?)) AND {live}
ORDER BY collection, record, provider, resource_type, expected_mime
"""
# The live mentions of an active link, and those that a retired one had last.
_LAST = "proxies.retired_at IS (SELECT retired_at FROM links WHERE links.id = link_id)"


def proxies(db: sqlite3.Connection, link_ids: Sequence[int | str]) -> dict[int | str, list[Proxy]]:
    """See Store.proxies."""
    found: dict[int | str, list[Proxy]] = {link_id: [] for link_id in link_ids}
    live = _LAST if reading.knows_retiring(db) else "TRUE"
    for row in db.execute(_PROXIES.format(live=live), (to_json(link_ids),)):
        found[row["link_id"]].append(
            Proxy(
                collection=row["collection"],
                record=row["record"] or None,
                expected_mime=row["expected_mime"] or None,
                provider=row["provider"],
                resource_type=row["resource_type"] or None,
                extra={} if row["extra"] is None else from_json(row["extra"]),
            )
        )
    return found
