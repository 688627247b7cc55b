"""The database of a MongoDB store: how it is reached, its collections and indexes, and what its errors mean."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl

from bson.codec_options import CodecOptions, DatetimeConversion
from bson.datetime_ms import DatetimeMS
from OpenSSL import SSL
from pymongo import ASCENDING, DESCENDING, HASHED, IndexModel, MongoClient, ReadPreference, WriteConcern
from pymongo.database import Database
from pymongo.errors import (
    BulkWriteError,
    ConfigurationError,
    DocumentTooLarge,
    DuplicateKeyError,
    InvalidName,
    InvalidOperation,
    InvalidURI,
    OperationFailure,
    PyMongoError,
)

from linkcrawl.errors import StoreError, StoreLost
from linkcrawl.items import FIELDS_OF_RECORD
from linkcrawl.stores.contract import REFUSALS
from linkcrawl.stores.layout import LAYOUT
from linkcrawl.stores.mongo.dropped import is_ours, restore_meta, restore_validators
from linkcrawl.stores.mongo.migration import migrate
from linkcrawl.stores.rows import LEAST
from linkcrawl.urls.servers import shown, without_login

#: Milliseconds, where the URL doesn't set them: to find a server that accepts writes, to connect to it, and to wait for
#: one answer. The last is long enough for the largest aggregation, and ends the wait for a server that hangs.
TIMEOUTS = {"serverSelectionTimeoutMS": 5_000, "connectTimeoutMS": 5_000, "socketTimeoutMS": 60_000}

#: Dates as whole milliseconds: exact, and without datetime's end in the year 9999.
CODEC: CodecOptions[dict[str, Any]] = CodecOptions(datetime_conversion=DatetimeConversion.DATETIME_MS)

#: Databases of the server itself. `local` is not replicated.
SERVERS_OWN = frozenset({"admin", "config", "local"})

#: MongoDB's collections of a store. Its `collections` holds the names of the catalogue's collections.
OURS = frozenset(
    {
        "batches",
        "check_requests",
        "collections",
        "harvests",
        "hosts",
        "links",
        "meta",
        "orders",
        "proxies",
        "records",
        "requested_checks",
        "robots",
    }
)

#: The BSON type of `_id` and the fields that a document must have. By them the server refuses documents of other
#: programs (docs/mongodb.md). `meta` holds various.
REQUIRED: dict[str, tuple[str, tuple[str, ...]]] = {
    "batches": ("binData", ("kind", "by", "items")),
    "check_requests": ("string", ("asked_at", "by", "reason")),
    "collections": ("string", ()),
    "harvests": ("int", ("began_at", "ended_at")),
    "hosts": ("string", ("head_useless_since", "last_end", "failing_since", "pace", "robots")),
    "links": ("string", ("url", "host", "priority", "next_check_at", "collections", "providers", "last", "state")),
    "orders": ("string", ("act", "at", "reason", "until")),
    "proxies": ("binData", ("link", "collection", "provider", "extra")),
    "requested_checks": ("string", ("request", "link", "checked_at")),
    "robots": ("string", ("until", "entry")),
    "records": ("string", ("link", "n", *(part.name for part in FIELDS_OF_RECORD if part.since == 1))),
}


def validator(name: str) -> dict[str, Any]:
    """What the server requires of a collection's documents. A field that came later than the first layout may be
    absent: while a store is brought up to date, workers of the version before go on writing to it."""
    kind, fields = REQUIRED[name]
    types: dict[str, Any] = {"_id": {"bsonType": kind}}
    if name == "records":
        types |= {part.name: {"bsonType": [*part.type.bson, *(["null"] * part.null)]} for part in FIELDS_OF_RECORD}
    return {"$jsonSchema": {"required": ["_id", *fields], "properties": types}}


#: Links and mentions that are retired; others have no `retired_at`, or null.
RETIRED_ONLY = {"retired_at": {"$gte": DatetimeMS(LEAST)}}

#: The index of `records` that show a refusal. One that a user who may only read finds may be missing yet.
BY_REFUSAL = "by_refusal"
#: The indexes of each collection. All queries of the store use them (tests/contract/test_mongo_plans).
INDEXES: dict[str, list[IndexModel]] = {
    "links": [
        IndexModel(
            [("host", ASCENDING), ("priority", DESCENDING), ("next_check_at", ASCENDING), ("_id", ASCENDING)],
            name="by_turn",
        ),
        IndexModel([("next_check_at", ASCENDING), ("host", ASCENDING)], name="by_due_time"),
        IndexModel([("last.checked_at", ASCENDING), ("host", ASCENDING)], name="by_last_check"),
        IndexModel([("collections", ASCENDING)], name="by_collection"),
        IndexModel(
            [
                ("last.category", ASCENDING),
                ("last.status", ASCENDING),
                ("last.reason", ASCENDING),
                ("last.duration_ms", ASCENDING),
            ],
            name="by_status",
        ),
        IndexModel([("url", HASHED)], name="by_url"),
        IndexModel(
            [("retired_at", ASCENDING), ("last.checked_at", ASCENDING)],
            name="by_retirement",
            partialFilterExpression=RETIRED_ONLY,
        ),
    ],
    "proxies": [
        IndexModel([("link", ASCENDING)], name="by_link"),
        IndexModel([("collection", ASCENDING), ("record", ASCENDING)], name="by_collection"),
        IndexModel(
            [("retired_at", ASCENDING), ("collection", ASCENDING), ("link", ASCENDING)],
            name="by_retirement",
            partialFilterExpression=RETIRED_ONLY,
        ),
    ],
    "requested_checks": [
        IndexModel([("request", ASCENDING)], name="by_request"),
        IndexModel([("checked_at", ASCENDING), ("link", ASCENDING)], name="by_link"),
    ],
    "robots": [IndexModel([("until", ASCENDING)], name="by_until")],
    "records": [
        IndexModel([("link", ASCENDING), ("checked_at", ASCENDING)], name="by_link"),
        IndexModel([("checked_at", ASCENDING), ("n", ASCENDING)], name="by_time"),
        IndexModel([("category", ASCENDING), ("checked_at", ASCENDING), ("n", ASCENDING)], name="by_category"),
        IndexModel([("collections", ASCENDING), ("checked_at", ASCENDING)], name="by_collection"),
        IndexModel(
            [("reason", ASCENDING), ("checked_at", ASCENDING), ("n", ASCENDING)],
            name=BY_REFUSAL,
            partialFilterExpression={"reason": {"$in": list(REFUSALS)}},
        ),
    ],
}

#: Server codes: this user may not do that; a collection of this name is there.
NOT_AUTHORIZED, _IS_THERE = 13, 48
#: Server codes for a wrong command: BadValue, FailedToParse, TypeMismatch, InvalidBSON, unknown operators. All other
#: codes are about the server's state.
_WRONGLY_ASKED = frozenset({2, 9, 14, 22, 168, 15998, 16410, 40324})
_PROGRAM_FAULTS = (InvalidOperation, InvalidName, DocumentTooLarge)

#: What pymongo raises for a URL; the last two for files that its TLS options name.
_UNUSABLE_URLS = (ConfigurationError, InvalidURI, InvalidName, OSError, SSL.Error)

MAJORITY = WriteConcern(w="majority")
#: For writes that must survive a power failure at once; later writes become durable later.
DURABLE = WriteConcern(w="majority", j=True)


def one_line(fault: PyMongoError) -> str:
    """The message of the server or the connection, without the description of the whole deployment."""
    if isinstance(fault, BulkWriteError):
        errors = [*fault.details.get("writeErrors", ()), *fault.details.get("writeConcernErrors", ())]
        said = errors[0].get("errmsg", str(fault)) if errors else str(fault)
    elif isinstance(fault, OperationFailure) and fault.details:
        said = fault.details.get("errmsg", str(fault))
    else:
        said = re.split(r" \(configured timeouts|, Timeout: |, full error:", str(fault))[0]
    said = re.sub(r"(not authorized on .* to execute command) \{ (\w+): .*", r"\1 \2", str(said), flags=re.DOTALL)
    return " ".join(said.split())[:500]


@contextmanager
def faults(where: str) -> Iterator[None]:
    """Turns errors that the server or the network causes into StoreLost, on one line."""
    try:
        yield
    except _PROGRAM_FAULTS:
        raise
    except PyMongoError as fault:
        is_index_gone = "hint provided does not correspond to an existing index" in str(fault)  # a dropped collection
        if isinstance(fault, OperationFailure) and fault.code in _WRONGLY_ASKED and not is_index_gone:
            raise
        raise StoreLost(f"{where}: {one_line(fault)}") from fault


@contextmanager
def refusals(where: str, setting: str) -> Iterator[None]:
    """Turns every error of opening into StoreError, on one line that names the setting."""
    try:
        yield
    except PyMongoError as fault:
        is_forbidden = isinstance(fault, OperationFailure) and fault.code == NOT_AUTHORIZED
        would_work = "; a user with the role readWrite would work, and read for exports and reports"
        raise StoreError(
            f"{setting}: {where} can't be used: {one_line(fault)}{would_work if is_forbidden else ''}"
        ) from fault


def client_of(url: str, setting: str, would_work: str = "mongodb://HOST:PORT/DB") -> MongoClient[dict[str, Any]]:
    """A client for a MongoDB URL; it doesn't connect yet. Raises StoreError, also for an option that pymongo would only
    warn of: a misspelt `tls` must not go unnoticed."""
    given = {name.lower() for name, _ in parse_qsl(url.partition("?")[2], keep_blank_values=True)}
    timeouts = {name: value for name, value in TIMEOUTS.items() if name.lower() not in given}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", UserWarning)
            return MongoClient(url, **timeouts)  # type: ignore[arg-type]  # names and values are pymongo's own
    except (*_UNUSABLE_URLS, ValueError, TypeError, UserWarning) as fault:
        said = without_login(str(fault), url)
        raise StoreError(f"{setting}: {shown(url)} is not understood: {said}; {would_work} would work") from None


def open_database(url: str, setting: str = "LINKCRAWL_STORE", *, make: bool = True) -> Database[dict[str, Any]]:
    """The database of a URL `mongodb://HOST:PORT/DB?options`, reached and up to date; close its client in the end.
    Unless `make`, one that holds no store yet is refused: a misspelt name must not pass for an empty store; and a user
    who may only read is welcome.

    Everything is read from the primary: a link that a secondary still thinks due would be checked twice. Raises
    StoreError.
    """
    client = client_of(url, setting)
    try:
        with refusals(shown(url), setting):
            database = _database(client, url, setting)
            if not make and database["meta"].find_one({"_id": "schema"}) is None:
                raise StoreError(f"{setting}: there is no store {shown(url)} yet; `scrapy seed` or a crawl makes one")
            _prepare(database, shown(url), setting, make)
        return database
    except BaseException:
        client.close()
        raise


def _database(client: MongoClient[dict[str, Any]], url: str, setting: str) -> Database[dict[str, Any]]:
    server, _, path = shown(url).partition("://")[2].partition("/")
    if not path or "." in path:  # pymongo takes what follows a dot for a collection
        raise StoreError(
            f"{setting}: {shown(url)} {'names no database' if not path else 'has a dot in the name of its database'}; "
            f"mongodb://{server}/linkcrawl would work"
        )
    if path in SERVERS_OWN:
        raise StoreError(
            f"{setting}: {shown(url)} names a database of the server's own; mongodb://{server}/linkcrawl would work, "
            f"with ?authSource={path} where users are kept there"
        )
    named = client.get_default_database()
    return named.with_options(codec_options=CODEC, read_preference=ReadPreference.PRIMARY, write_concern=MAJORITY)


def _prepare(database: Database[dict[str, Any]], where: str, setting: str, make: bool) -> None:
    """Refuse what isn't ours, mark what is new, bring up to date what is older, and make the indexes. Several processes
    may do so at once."""
    meta = database["meta"]
    schema = meta.find_one({"_id": "schema"})
    if schema is None:
        foreign = sorted(OURS.intersection(_filled(database)))
        if foreign and not is_ours(database, foreign, validator):
            raise StoreError(
                f"{setting}: {where} holds a collection {foreign[0]!r} of another program; another database would work"
            )
        if foreign:
            restore_meta(database, where)
        try:
            meta.with_options(write_concern=DURABLE).insert_one({"_id": "schema", "version": LAYOUT})
        except DuplicateKeyError:
            schema = meta.find_one({"_id": "schema"})
    version = LAYOUT if schema is None else max(schema["version"], schema.get("becomes", 0))
    if version > LAYOUT:
        raise StoreError(
            f"{setting}: {where} has version {version}, made by a newer linkcrawl; this one knows versions up to "
            f"{LAYOUT}: upgrade linkcrawl, or name another database"
        )
    if make:
        _make_collections(database)
    if schema is not None and schema["version"] < LAYOUT:
        with unless_read_only(make):
            migrate(database, schema["version"], validator("records"))
    with unless_read_only(make):
        restore_validators(database, REQUIRED, validator)
    for name, indexes in INDEXES.items():
        with unless_read_only(make):
            database[name].create_indexes(indexes)


@contextmanager
def unless_read_only(must: bool) -> Iterator[None]:
    """Around an optional write of a command that only reads: unless it `must`, a missing permission is no error."""
    try:
        yield
    except OperationFailure as fault:
        if must or fault.code != NOT_AUTHORIZED:
            raise


def _make_collections(database: Database[dict[str, Any]]) -> None:
    for name in REQUIRED.keys() - set(database.list_collection_names()):
        try:
            database.create_collection(name, check_exists=False, validator=validator(name))
        except OperationFailure as fault:
            if fault.code != _IS_THERE:  # else another process has just made it
                raise


def _filled(database: Database[dict[str, Any]]) -> list[str]:
    names = database.list_collection_names()
    if "meta" in names and database["meta"].find_one({"_id": "schema"}) is not None:
        return []  # another process has just made the store
    return [name for name in names if database[name].find_one({}, {"_id": 1}) is not None]
