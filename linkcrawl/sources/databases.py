"""MongoDB collections as sources: one seed a document, with our field names or those of the older layout.

A source is `mongodb://HOST:PORT/DB/COLLECTION?options` (or mongodb+srv). Sources are only read.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote

from bson import ObjectId
from bson.codec_options import CodecOptions, DatetimeConversion
from bson.datetime_ms import DatetimeMS
from pymongo import ReadPreference
from pymongo.change_stream import CollectionChangeStream
from pymongo.collection import Collection
from pymongo.errors import OperationFailure, PyMongoError

from linkcrawl.errors import ConfigError, SourceLost, StoreError
from linkcrawl.items import Reject, Seed
from linkcrawl.sources.rows import internal_error, reject, seed_or_reject, unread
from linkcrawl.stores.mongo.schema import client_of, one_line
from linkcrawl.urls.servers import shown

logger = logging.getLogger(__name__)

WOULD_WORK = "mongodb://HOST:PORT/DB/COLLECTION"

#: How far back each poll looks for new documents again: writers make ObjectIds by their own clocks, and in no common
#: order within a second.
OVERLAP = timedelta(minutes=2)
#: Milliseconds that the server waits for a change before it answers a poll.
AWAIT = 100

# Strangers write these documents: a text that isn't UTF-8, or a date beyond the year 9999, must not end the reading.
CODEC: CodecOptions[dict[str, Any]] = CodecOptions(
    unicode_decode_error_handler="replace", datetime_conversion=DatetimeConversion.DATETIME_AUTO
)


def check(source: str) -> None:
    """Raise ConfigError, one line, for a collection that can't be reached or doesn't exist."""
    with _opened(source):
        pass


def read(source: str) -> Iterator[Seed | Reject]:
    """The seeds of a collection, in the order of `_id`; where the connection is lost, one Reject ends them."""
    with _opened(source) as collection:
        line = 0
        try:
            for line, document in enumerate(collection.find(sort=[("_id", 1)]), start=1):
                yield seed_of(document, shown(source), line)
        except PyMongoError as fault:
            yield unread(f"can't be read further: {one_line(fault)}", source=shown(source), line=line + 1)


class NewDocuments:
    """The documents that come into a collection from now on, for a continuous crawl.

    Make it before the collection is read, so that no document is missed in between. A replica set reports inserted,
    replaced and updated documents by a change stream. A standalone server is polled for larger `_id`s: that finds new
    documents whose ids are ObjectIds or grow; the next crawl that reads the whole collection finds the others.
    """

    def __init__(self, source: str):
        """Raises ConfigError, as `check` does."""
        self._name = shown(source)
        self._opening = _opened(source)
        self._collection = self._opening.__enter__()
        self._polled = 0
        try:
            self._watcher: _ChangeStream | _LargerIds = (
                _ChangeStream(self._collection)
                if _has_change_streams(self._collection)
                else _LargerIds(self._collection)
            )
        except PyMongoError as fault:
            self.close()
            raise ConfigError(f"seeds: {self._name} can't be watched: {one_line(fault)}") from fault

    def poll(self) -> Iterator[Seed | Reject]:
        """The seeds of documents that came since the last poll; some may come twice, which the store ignores.

        Raises SourceLost, possibly after some rows."""
        try:
            for document in self._watcher.new():
                self._polled += 1
                yield seed_of(document, self._name, self._polled)
        except PyMongoError as fault:
            raise SourceLost(f"{self._name}: {one_line(fault)}") from fault

    def close(self) -> None:
        self._opening.__exit__(None, None, None)


class _ChangeStream:
    """New documents by the change stream of a replica set."""

    def __init__(self, collection: Collection[dict[str, Any]]):
        self._collection = collection
        self._token: Mapping[str, Any] | None = None
        self._stream: CollectionChangeStream[dict[str, Any]] | None = self._watch()

    def _watch(self) -> CollectionChangeStream[dict[str, Any]]:
        written = [{"$match": {"operationType": {"$in": ["insert", "replace", "update"]}}}]
        return self._collection.watch(
            written, full_document="updateLookup", max_await_time_ms=AWAIT, resume_after=self._token
        )

    def new(self) -> Iterator[dict[str, Any]]:
        try:
            if self._stream is None:
                self._stream = self._watch()
            while (change := self._stream.try_next()) is not None:
                self._token = self._stream.resume_token
                if change["fullDocument"] is not None:  # None: it was deleted meanwhile
                    yield change["fullDocument"]
            self._token = self._stream.resume_token
        except PyMongoError as fault:
            self._stream = None
            if not isinstance(fault, OperationFailure) or fault.has_error_label("ResumableChangeStreamError"):
                raise
            # the server no longer has the changes after the token: read the whole collection again
            self._token = None
            self._stream = self._watch()
            yield from self._collection.find()


class _LargerIds:
    """New documents of a standalone server: those with a larger `_id` than the largest so far."""

    def __init__(self, collection: Collection[dict[str, Any]]):
        self._collection = collection
        newest = collection.find_one(sort=[("_id", -1)], projection={"_id": 1})
        self._last: Any = newest["_id"] if newest else None
        self._seen: set[ObjectId] = {found["_id"] for found in self._from_overlap({"_id": 1})}

    def new(self) -> Iterator[dict[str, Any]]:
        for document in self._from_overlap(None):
            document_id = document["_id"]
            if isinstance(document_id, ObjectId):
                if document_id in self._seen:
                    continue
                self._seen.add(document_id)
                self._last = max(self._last or document_id, document_id)  # a late document may have a smaller id
            else:
                self._last = document_id
            yield document
        if isinstance(self._last, ObjectId):
            start = _overlap_start(self._last)
            self._seen = {seen for seen in self._seen if seen >= start}

    def _from_overlap(self, fields: dict[str, int] | None) -> Iterator[dict[str, Any]]:
        larger: dict[str, Any] = {}
        if isinstance(self._last, ObjectId):
            larger = {"_id": {"$gte": _overlap_start(self._last)}}
        elif self._last is not None:
            larger = {"_id": {"$gt": self._last}}
        return iter(self._collection.find(larger, fields, sort=[("_id", 1)]))


def _overlap_start(last: ObjectId) -> ObjectId:
    return ObjectId.from_datetime(last.generation_time - OVERLAP)


def _has_change_streams(collection: Collection[dict[str, Any]]) -> bool:
    hello = collection.database.command("hello")
    return "setName" in hello or hello.get("msg") == "isdbgrid"  # isdbgrid: the router of a sharded cluster


def seed_of(document: Mapping[str, Any], source: str, line: int) -> Seed | Reject:
    """The seed of a document; its `_id` is not a field. `line`: the number of the document, from 1. Never raises: a
    fault of ours is logged and costs only this document."""
    try:
        row = {name: _plain(value) for name, value in document.items()}
        text = json.dumps(row, ensure_ascii=False)
    except Exception as fault:
        logger.exception("%s:%d: no seed could be made of this document", source, line)
        return reject(internal_error(fault), source=source, line=line)
    row.pop("_id", None)
    return seed_or_reject(row, source=source, line=line, text=text)


def _plain(value: Any) -> Any:
    """A BSON value as a JSON value; one that JSON has no type for becomes text."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    if isinstance(value, datetime):
        return value.isoformat()
    if value is None or isinstance(value, str | bool | float):
        return value
    return int(value) if isinstance(value, int | DatetimeMS) else str(value)


@contextmanager
def _opened(source: str) -> Iterator[Collection[dict[str, Any]]]:
    server, slashes, rest = source.partition("://")
    place, question, options = rest.partition("?")
    *hosts, database, name = place.split("/") if place.count("/") >= 2 else ("", "", "")
    if not (database and name):
        raise ConfigError(f"seeds: {shown(source)} names no collection; {WOULD_WORK} would work")
    url = f"{server}{slashes}{'/'.join(hosts)}/{database}{question}{options}"
    try:
        client = client_of(url, "seeds", WOULD_WORK)
    except StoreError as fault:
        raise ConfigError(str(fault)) from fault
    with client:
        collection = client[unquote(database)].get_collection(
            unquote(name), codec_options=CODEC, read_preference=ReadPreference.PRIMARY_PREFERRED
        )
        try:
            there = collection.database.list_collection_names(filter={"name": collection.name})
        except PyMongoError as fault:
            raise ConfigError(f"seeds: {shown(source)} can't be read: {one_line(fault)}") from fault
        if not there:
            raise ConfigError(f"seeds: {shown(source)}: there is no collection {collection.name!r} in this database")
        yield collection
