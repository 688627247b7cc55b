"""Collections that somebody drops: noticed while the store is in use, and restored as far as possible when it is opened
again.

A dropped collection comes back with the next write, but without validator and indexes; a dropped `meta` also forgets
the layout, and the number of the next record, below which readers look.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pymongo.database import Database

from linkcrawl.errors import StoreLost

logger = logging.getLogger(__name__)

#: Seconds between two looks at the server's list of collections.
LOOK = 5.0

Document = dict[str, Any]


class DroppedCollections:
    """Notices when a collection of `names` is dropped, or made anew, from now on. Raises PyMongoError."""

    def __init__(self, database: Database[Document], where: str, names: Iterable[str]):
        self._database = database
        self._where = where
        self._names = sorted(names)
        self._ids = self._read()
        self._looked_at = time.monotonic()

    def check(self) -> None:
        """Raises StoreLost where a collection is not the one that it was; PyMongoError."""
        if time.monotonic() - self._looked_at < LOOK:
            return
        ids = self._read()
        for name in self._names:
            if ids.get(name) != self._ids.get(name):
                raise StoreLost(f"{self._where}: the collection {name} was dropped while in use")
        self._looked_at = time.monotonic()

    def _read(self) -> dict[str, Any]:
        """The server's ids of the collections, by name."""
        found = self._database.list_collections(filter={"name": {"$in": self._names}})
        return {collection["name"]: collection["info"].get("uuid") for collection in found}


def is_ours(database: Database[Document], names: Iterable[str], validator: Callable[[str], Document]) -> bool:
    """True where each of these collections, which are not none, has the validator of the present layout. Raises
    PyMongoError."""
    found = {collection["name"]: collection["options"] for collection in database.list_collections()}
    wanted = [name for name in names if name != "meta"]
    return bool(wanted) and all(found[name].get("validator") == validator(name) for name in wanted)


def restore_meta(database: Database[Document], where: str) -> None:
    """Count records on from a number that is larger than any before: no store had as many records as milliseconds have
    passed since 1970. Raises PyMongoError."""
    logger.warning("%s: the collection meta was lost, and is made anew from what the others hold", where)
    database["meta"].update_one({"_id": "records"}, {"$max": {"next": int(time.time() * 1000)}}, upsert=True)


def restore_validators(
    database: Database[Document], names: Iterable[str], validator: Callable[[str], Mapping[str, Any]]
) -> None:
    """Give their validators back to collections that have none. Raises PyMongoError."""
    for collection in database.list_collections(filter={"name": {"$in": sorted(names)}}):
        if "validator" not in collection["options"]:
            database.command("collMod", collection["name"], validator=validator(collection["name"]))
