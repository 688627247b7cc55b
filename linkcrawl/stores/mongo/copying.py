"""The MongoDB store as the source or the target of a copy."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

from attrs import evolve
from bson.min_key import MinKey
from pymongo import ReplaceOne, UpdateOne
from pymongo.database import Database

from linkcrawl.items import Finished, LinkState
from linkcrawl.stores.copying import ROWS, SUMS, CopiedLink, CopiedMention, CopiedRecord, CopyProgress
from linkcrawl.stores.mongo.documents import Document, check, date, due_link, last_of, moment_of, record_from
from linkcrawl.stores.mongo.schema import RETIRED_ONLY, faults
from linkcrawl.stores.rows import state_document, to_json

#: MongoDB's collections, and conditions, in the order of SUMS.
_COUNTED: tuple[tuple[str, Document], ...] = (
    ("links", {}),
    ("links", RETIRED_ONLY),
    ("proxies", {}),
    ("records", {}),
    ("hosts", {}),
    ("robots", {}),
    ("orders", {}),
    ("harvests", {}),
    ("check_requests", {}),
)
_MENTION = ("collection", "record", "expected_mime", "provider", "resource_type")
#: The fields of ROWS that are dates, and those that are dates in a list.
_TIMES = frozenset(
    ("head_useless_since", "last_end", "failing_since", "until", "at", "began_at", "ended_at", "asked_at", "checked_at")
)
_LISTS = frozenset(("failing_days",))


class MongoCopyable:
    """See stores.copying.Copyable. `where`: the database's name for messages."""

    def __init__(self, database: Database[Document], where: str):
        self._database = database
        self._where = where

    def sums(self) -> dict[str, int]:
        with faults(self._where):
            return {
                what: self._database[name].count_documents(condition)
                for what, (name, condition) in zip(SUMS, _COUNTED, strict=True)
            }

    def links(self, after: bytes, limit: int) -> list[CopiedLink]:
        with faults(self._where):
            found = list(self._database["links"].find({"_id": {"$gt": after.hex()}}).sort("_id", 1).limit(limit))
            mentions = defaultdict(list)
            for line in self._database["proxies"].find({"link": {"$in": [link["_id"] for link in found]}}):
                mentions[line["link"]].append(_mention(line))
        return [_link(document, tuple(mentions[document["_id"]])) for document in found]

    def records(self, after: tuple[float, int] | None, limit: int) -> list[CopiedRecord]:
        with faults(self._where):
            found: list[Document] = []
            for part in _parts(after):
                lines = self._database["records"].find(part, hint="by_time").sort([("checked_at", 1), ("n", 1)])
                found += lines.limit(limit - len(found))
                if len(found) == limit:
                    break
            links = {"_id": {"$in": list({line["link"] for line in found})}}
            lasts = self._database["links"].find(links, {"last.record": 1})
            latest = {link["last"]["record"] for link in lasts if link["last"]}
        return [
            CopiedRecord(
                key=bytes.fromhex(line["link"]),
                record=record_from(line),
                place=(moment_of(line["checked_at"]), line["n"]),
                is_latest=line["_id"] in latest,
            )
            for line in found
        ]

    def rows(self, table: str) -> Iterator[tuple[Any, ...]]:
        first = "request" if table == "requested_checks" else "_id"
        names = (first, *ROWS[table][1:])
        with faults(self._where):
            for document in self._database[table].find():
                yield tuple(_from_date(name, document.get(name)) for name in names)

    def progress(self) -> CopyProgress | None:
        with faults(self._where):
            found = self._database["meta"].find_one({"_id": "copy"})
        return None if found is None else CopyProgress.of(json.loads(found["progress"]))

    def add_links(self, links: Sequence[CopiedLink], progress: CopyProgress) -> None:
        with faults(self._where):
            mentions = [_proxy(link, mention) for link in links for mention in link.mentions]
            named = {name for link in links for name in link.collections}
            named |= {line["collection"] for line in mentions if line["collection"]}
            self._replace("collections", [{"_id": name} for name in named])
            self._replace("links", [_link_document(link) for link in links])
            self._replace("proxies", mentions)
        self.note(progress)

    def add_records(self, records: Sequence[CopiedRecord], first: int, progress: CopyProgress) -> None:
        documents, latest = [], []
        for n, copied in enumerate(records, start=first):
            record = evolve(copied.record, link_id=copied.key.hex())
            document = {**check(Finished(record=record, state=LinkState()))["record"], "n": n}
            documents.append(document)
            if copied.is_latest:
                latest.append(UpdateOne({"_id": record.link_id}, {"$set": {"last": last_of(document)}}))
        with faults(self._where):
            self._database["meta"].update_one({"_id": "records"}, {"$max": {"next": progress.records}}, upsert=True)
            self._replace("records", documents)
            if latest:
                self._database["links"].bulk_write(latest, ordered=False)
        self.note(progress)

    def add_rows(self, table: str, rows: Sequence[tuple[Any, ...]]) -> None:
        with faults(self._where):
            self._replace(table, [_row_document(table, row) for row in rows])

    def note(self, progress: CopyProgress | None) -> None:
        meta = self._database["meta"]
        with faults(self._where):
            if progress is None:
                meta.delete_one({"_id": "copy"})
            else:
                # as text: MongoDB would take other numbers for the places
                meta.replace_one({"_id": "copy"}, {"progress": json.dumps(progress.document())}, upsert=True)

    def _replace(self, name: str, documents: Sequence[Document]) -> None:
        if documents:
            writes = [ReplaceOne({"_id": {"$eq": line["_id"]}}, line, upsert=True) for line in documents]
            self._database[name].bulk_write(writes, ordered=False)


def _parts(after: tuple[float, int] | None) -> list[Document]:
    if after is None:
        return [{"checked_at": {"$gte": MinKey()}}]
    at = date(after[0])
    return [{"checked_at": at, "n": {"$gt": after[1]}}, {"checked_at": {"$gt": at}}]


def _link(document: Document, mentions: tuple[CopiedMention, ...]) -> CopiedLink:
    link, retired_at = due_link(document), document.get("retired_at")
    return CopiedLink(
        key=bytes.fromhex(document["_id"]),
        url=link.url,
        host=link.host,
        priority=link.priority,
        expected_mime=link.expected_mime,
        next_check_at=link.next_check_at,
        retired_at=None if retired_at is None else moment_of(retired_at),
        last_checked_at=link.last_checked_at,
        last_category=link.last_category,
        state=link.state,
        collections=link.collections,
        providers=link.providers,
        mentions=mentions,
    )


def _mention(document: Document) -> CopiedMention:
    retired_at = document.get("retired_at")
    return CopiedMention(
        **{name: document[name] for name in _MENTION},
        extra=document["extra"],
        retired_at=None if retired_at is None else moment_of(retired_at),
        harvest=document.get("harvest", 0),
    )


def _link_document(link: CopiedLink) -> Document:
    state = state_document(link.state)
    document: Document = {
        "_id": link.key.hex(),
        "url": link.url,
        "host": link.host,
        "priority": link.priority,
        "expected_mime": link.expected_mime,
        "collections": list(link.collections),
        "providers": list(link.providers),
        "next_check_at": date(link.next_check_at),
        "last": None,  # until its latest record comes
        "state": {**state, "hard_since": _to_date(state["hard_since"])},
    }
    return document if link.retired_at is None else {**document, "retired_at": date(link.retired_at)}


def _proxy(link: CopiedLink, mention: CopiedMention) -> Document:
    fields = {name: getattr(mention, name) for name in _MENTION}
    identity = to_json([link.key.hex(), *fields.values()]).encode()
    document: Document = {
        "_id": blake2b(identity, digest_size=16).digest(),
        "link": link.key.hex(),
        **fields,
        "extra": mention.extra,
        "harvest": mention.harvest,
    }
    return document if mention.retired_at is None else {**document, "retired_at": date(mention.retired_at)}


def _row_document(table: str, row: tuple[Any, ...]) -> Document:
    document = {
        name: _to_date(value) if name in _TIMES else value for name, value in zip(ROWS[table], row, strict=True)
    }
    if table == "requested_checks":
        return {"_id": f"{document['request']}:{document['link']}", **document}
    for name in _LISTS & document.keys():
        document[name] = [date(moment) for moment in json.loads(document[name])]
    document["_id"] = document.pop(ROWS[table][0])
    return document


def _from_date(name: str, value: Any) -> Any:
    if name in _LISTS:
        return to_json([moment_of(moment) for moment in value or ()])
    return moment_of(value) if name in _TIMES and value is not None else value


def _to_date(moment: float | None) -> Any:
    return None if moment is None else date(moment)
