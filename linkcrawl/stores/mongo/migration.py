"""Bringing an older MongoDB store up to date (stores.layout), in steps that may be interrupted and repeated.

A standalone server has no transactions, and a store may hold millions of documents. So a version is a walk through
`records` and `links` in the order of `_id`, a stretch at a time, with changes that may be made twice; how far the walk
came stands in `meta`, and who opens the store next goes on from there. The store has its new version only when the walk
has come to its end. Several processes may walk at once. A crawl of the version before may go on writing meanwhile, and
what it writes behind the walk is understood by readers (stores.layout).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

from bson.min_key import MinKey
from pymongo import UpdateMany, WriteConcern
from pymongo.collection import Collection
from pymongo.database import Database

from linkcrawl.stores.layout import LAYOUT, added_fields, renamed_reasons

logger = logging.getLogger(__name__)

#: Documents of one stretch, which is one command.
STRETCH = 5_000

_DURABLE = WriteConcern(w="majority", j=True)
Document = dict[str, Any]


def migrate(database: Database[Document], version: int, validator: Document) -> None:
    """Bring a store of this version to LAYOUT. `validator`: what `records` must be from now on. Raises PyMongoError."""
    meta = database["meta"].with_options(write_concern=_DURABLE)
    meta.update_one({"_id": "schema"}, {"$max": {"becomes": LAYOUT}})  # an older program keeps away from now on
    database.command("collMod", "records", validator=validator)
    for step in range(version + 1, LAYOUT + 1):
        logger.info("The store is brought from version %d to version %d", step - 1, step)
        for name, prefix in (("records", ""), ("links", "last.")):
            if changes := _changes(step, prefix):
                _walk(database[name], meta, step, changes)
        meta.update_one({"_id": "schema"}, {"$max": {"version": step}})
        meta.delete_one({"_id": f"migration to {step}"})


def _changes(step: int, prefix: str) -> list[tuple[Document, Document]]:
    """What a version changes in documents, as condition and update. `prefix`: where the record's fields stand. A field
    whose default is null needs nothing: to MongoDB an absent one is null."""
    changes: list[tuple[Document, Document]] = [
        ({f"{prefix}{part.name}": {"$exists": False}}, {"$set": {f"{prefix}{part.name}": part.default}})
        for part in added_fields(step)
        if part.default is not None
    ]
    if prefix:  # a link that was never checked has no record's fields
        changes = [({f"{prefix}category": {"$exists": True}, **condition}, update) for condition, update in changes]
    return changes + [
        ({f"{prefix}reason": old}, {"$set": {f"{prefix}reason": new}}) for old, new in renamed_reasons(step).items()
    ]


def _walk(
    collection: Collection[Document], meta: Collection[Document], step: int, changes: list[tuple[Document, Document]]
) -> None:
    """Make the changes in all documents, from where an interrupted walk came to."""
    progress = {"_id": f"migration to {step}"}
    came_to = (meta.find_one(progress) or {}).get(collection.name, MinKey())
    for stretch, last in _stretches(collection, came_to):
        collection.bulk_write(
            [UpdateMany({"$and": [{"_id": stretch}, condition]}, update) for condition, update in changes],
            ordered=False,
        )
        if last is not None:
            meta.update_one(progress, {"$max": {collection.name: last}}, upsert=True)


def _stretches(collection: Collection[Document], came_to: Any) -> Iterator[tuple[Document, Any]]:
    """Ranges of `_id` that hold STRETCH documents each, with the last `_id` of each; the last range is open (None)."""
    while True:
        found = list(
            collection.find({"_id": {"$gt": came_to}}, {"_id": 1}, hint="_id_")
            .sort("_id", 1)
            .skip(STRETCH - 1)
            .limit(1)
        )
        if not found:
            yield {"$gt": came_to}, None
            return
        last = found[0]["_id"]
        yield {"$gt": came_to, "$lte": last}, last
        came_to = last
