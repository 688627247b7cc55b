"""Requests for checks in the MongoDB store. A request's links are written before they are due, and the request itself
last: what a kill leaves of one that was never answered to is links that are checked once more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from bson.datetime_ms import DatetimeMS
from pymongo import InsertOne, UpdateMany
from pymongo.collection import Collection
from pymongo.database import Database
from pymongo.errors import BulkWriteError

from linkcrawl.items import DueLink, Record
from linkcrawl.stores.contract import ASKED, CheckProgress, CheckRequest, HostBacklog
from linkcrawl.stores.mongo.documents import Document, date, due_link, moment_of, record_from
from linkcrawl.stores.mongo.reading import ACTIVE
from linkcrawl.stores.rows import text

#: Links that one command is about.
AT_ONCE = 1000
_DUPLICATE_KEY = 11000


def ask(database: Database[Document], request: CheckRequest, link_ids: Sequence[int | str]) -> int:
    """See Store.ask."""
    links, requested, request_id = database["links"], database["requested_checks"], text(request.id)
    for part in _parts(link_ids):
        found = links.find({"_id": {"$in": part}, **ACTIVE}, {"_id": 1})
        lines = [
            {"_id": f"{request_id}:{link['_id']}", "request": request_id, "link": link["_id"], "checked_at": None}
            for link in found
        ]
        _insert(requested, lines)
        chosen = {"_id": {"$in": [line["_id"] for line in lines]}, "checked_at": None}
        still = [line["link"] for line in requested.find(chosen, {"link": 1}, hint="_id_")]
        links.update_many({"_id": {"$in": still}, **ACTIVE}, {"$set": {"next_check_at": date(ASKED)}})
    said = {"asked_at": date(request.asked_at), "by": text(request.by), "reason": text(request.reason)}
    database["check_requests"].update_one({"_id": {"$eq": request_id}}, {"$setOnInsert": said}, upsert=True)
    return requested.count_documents({"request": {"$eq": request_id}}, hint="by_request")


def answers_of(checks: Iterable[tuple[Any, DatetimeMS]]) -> list[UpdateMany]:
    """The updates of `requested_checks` by records that are stored: each the link and `checked_at`."""
    return [
        UpdateMany({"checked_at": None, "link": link}, {"$set": {"checked_at": at}}, hint="by_link")
        for link, at in checks
    ]


def asked(database: Database[Document], limit: int, after: int | str | None) -> list[DueLink]:
    """See Store.asked. The lines of requests are in the order of links by their index; several may be of one link."""
    found: list[DueLink] = []
    open_lines = {"checked_at": None}
    while len(found) < limit:
        chosen = open_lines if after is None else open_lines | {"link": {"$gt": after}}
        lines = database["requested_checks"].find(chosen, {"link": 1}, hint="by_link").sort("link", 1).limit(AT_ONCE)
        ids = list(dict.fromkeys(line["link"] for line in lines))
        if not ids:
            break
        asked_for = {"_id": {"$in": ids}, "next_check_at": date(ASKED)}
        links = {link["_id"]: link for link in database["links"].find(asked_for, hint="_id_")}
        found += [due_link(links[link_id]) for link_id in ids if link_id in links]
        after = ids[-1]
    return found[:limit]


def check_request(database: Database[Document], request_id: str) -> CheckRequest | None:
    """See Store.check_request."""
    found = database["check_requests"].find_one({"_id": {"$eq": text(request_id)}})
    if found is None:
        return None
    return CheckRequest(id=found["_id"], asked_at=moment_of(found["asked_at"]), by=found["by"], reason=found["reason"])


def progress(database: Database[Document], request_id: str) -> CheckProgress:
    """See Store.progress."""
    asked_for, open_links = 0, []
    chosen = {"request": {"$eq": text(request_id)}}
    for line in database["requested_checks"].find(chosen, {"link": 1, "checked_at": 1}, hint="by_request"):
        asked_for += 1
        if line["checked_at"] is None:
            open_links.append(line["link"])
    waiting: dict[str, int] = {}
    for part in _parts(open_links):
        for link in database["links"].find({"_id": {"$in": part}, **ACTIVE}, {"host": 1}, hint="_id_"):
            waiting[link["host"]] = waiting.get(link["host"], 0) + 1
    lines = tuple(HostBacklog(host=host, due=waiting[host]) for host in sorted(waiting))
    return CheckProgress(asked=asked_for, waiting=lines)


def answers(database: Database[Document], request_id: str) -> Iterator[Record]:
    """See Store.answers. Not streamed: it is one person's list."""
    chosen = {"request": {"$eq": text(request_id)}}
    lines = database["requested_checks"].find(chosen, {"link": 1, "checked_at": 1}, hint="by_request")
    answered = {line["link"]: line["checked_at"] for line in lines if line["checked_at"] is not None}
    found: list[Document] = []
    for part in _parts(list(answered)):
        least = min(answered[link] for link in part)
        since = {"link": {"$in": part}, "checked_at": {"$gte": least}}
        records = database["records"].find(since, hint="by_link")
        found += [record for record in records if record["checked_at"] == answered[record["link"]]]
    found.sort(key=lambda record: (record["checked_at"], record["n"]))
    return map(record_from, found)


def _parts(items: Sequence[Any]) -> Iterator[list[Any]]:
    return (list(items[first : first + AT_ONCE]) for first in range(0, len(items), AT_ONCE))


def _insert(collection: Collection[Document], documents: list[Document]) -> None:
    """Insert those that aren't there."""
    if not documents:
        return
    try:
        collection.bulk_write([InsertOne(document) for document in documents], ordered=False)
    except BulkWriteError as fault:
        if any(error["code"] != _DUPLICATE_KEY for error in fault.details["writeErrors"]):
            raise
