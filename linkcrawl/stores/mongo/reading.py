"""The queries of the MongoDB store: due links, records by time, totals. All use an index of schema.INDEXES."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import islice

from attrs import frozen
from bson.datetime_ms import DatetimeMS
from bson.min_key import MinKey
from pymongo.collection import Collection
from pymongo.database import Database

from linkcrawl.items import RETIRED, DueLink, Record
from linkcrawl.stores.contract import (
    REFUSALS,
    HostBacklog,
    KnownLink,
    LinkFilter,
    PlacedRecord,
    Position,
    Query,
    Totals,
)
from linkcrawl.stores.mongo.documents import Document, date, due_link, first_from, last_until, moment_of, record_from
from linkcrawl.stores.mongo.schema import BY_REFUSAL, RETIRED_ONLY
from linkcrawl.stores.rows import LEAST, after_prefix, glob

#: Records of one page. Each page is a query of its own, so that a slow reader keeps no cursor open.
PAGE = 500
#: Links that are looked up in one query.
KEYS_TOGETHER = 1000

_ANY_ID = {"_id": {"$gte": MinKey()}}
_CHECKED = {"last.checked_at": {"$gte": DatetimeMS(LEAST)}}
#: The condition that a link isn't retired.
ACTIVE = {"next_check_at": {"$lt": date(RETIRED)}}


def matching_collections(database: Database[Document], pattern: str) -> list[str]:
    """Names of the collections that match a glob. Not by $regex, which would take a foreign text for a pattern."""
    fits = glob(pattern).fullmatch
    return [found["_id"] for found in database["collections"].find() if fits(found["_id"])]


def _conditions(database: Database[Document], now: float, link_filter: LinkFilter) -> list[Document]:
    """The conditions of a LinkFilter."""
    if link_filter.recheck_before is None:
        conditions: list[Document] = [{"next_check_at": {"$lte": last_until(now)}}]
    else:
        checked = {"$gte": first_from(link_filter.recheck_before)}
        if link_filter.recheck_after is not None:
            checked["$lte"] = last_until(link_filter.recheck_after)
        conditions = [{"last.checked_at": {"$not": checked}}, ACTIVE]
    if link_filter.collection is not None:
        conditions.append({"collections": {"$in": matching_collections(database, link_filter.collection)}})
    return conditions


def checks_by_hour(records: Collection[Document], since: float, until: float) -> dict[int, int]:
    """See Store.checks_by_hour. Whole hours in milliseconds are taken off by the server."""
    within = {"checked_at": {"$gte": first_from(since), "$lt": first_from(until)}}
    milliseconds = {"$toLong": "$checked_at"}
    hour = {"$subtract": [milliseconds, {"$mod": [milliseconds, 3_600_000]}]}
    lines = records.aggregate([{"$match": within}, {"$group": {"_id": hour, "count": {"$sum": 1}}}], hint="by_time")
    return {int(line["_id"]) // 1000: line["count"] for line in lines}


def backlog(database: Database[Document], now: float, link_filter: LinkFilter) -> list[HostBacklog]:
    """See Store.backlog."""
    links, fits = database["links"], glob("*" if link_filter.host is None else link_filter.host).fullmatch
    hint = "by_due_time" if link_filter.recheck_before is None else "by_last_check"
    grouped = links.aggregate(
        [
            {"$match": {"$and": _conditions(database, now, link_filter)}},
            {"$group": {"_id": "$host", "due": {"$sum": 1}}},
        ],
        hint="by_collection" if link_filter.collection is not None else hint,
    )
    return [HostBacklog(host=line["_id"], due=line["due"]) for line in grouped if fits(line["_id"])]


def due(
    database: Database[Document], host: str, now: float, limit: int, link_filter: LinkFilter, after: DueLink | None
) -> list[DueLink]:
    """See Store.due. It makes one or two seeks in the index for each priority of the host, however many links there
    are."""
    if link_filter.host is not None and not glob(link_filter.host).fullmatch(host):
        return []
    links = database["links"]
    conditions = _conditions(database, now, link_filter)
    parts: list[Document] = [{}]
    if after is None:
        priority = _priority(links, host, {})
    else:
        priority, since = after.priority, date(after.next_check_at)
        parts = [{"next_check_at": since, "_id": {"$gt": after.id}}, {"next_check_at": {"$gt": since}}]
    found: list[Document] = []
    while priority is not None:
        of_host = {"host": {"$eq": host}, "priority": priority}
        for part in parts:
            chosen = links.find({"$and": [of_host, part, *conditions]}, hint="by_turn", batch_size=limit)
            found += chosen.sort([("next_check_at", 1), ("_id", 1)]).limit(limit - len(found))
            if len(found) >= limit:
                return [due_link(document) for document in found]
        priority, parts = _priority(links, host, {"priority": {"$lt": priority}}), [{}]
    return [due_link(document) for document in found]


def _priority(links: Collection[Document], host: str, below: Document) -> int | None:
    """The host's highest priority, or the next below."""
    fields = {"_id": 0, "priority": 1}
    found = links.find_one({"host": {"$eq": host}, **below}, fields, sort=[("priority", -1)], hint="by_turn")
    return None if found is None else found["priority"]


# -- records ----------------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class _Moment:
    """What was stored when a reader began: records numbered below `next`, except those of batches that were being
    written (`hidden`). A batch takes its numbers only after its document is in `batches`, and keeps the document until
    all of it is written; so every batch below `next` is whole or hidden."""

    next: int
    hidden: frozenset[tuple[str, DatetimeMS]]

    @classmethod
    def of(cls, database: Database[Document]) -> _Moment:
        counter = database["meta"].find_one({"_id": "records"})
        fields = {"items.record._id": 1, "items.record.checked_at": 1}
        writing = database["batches"].find({"kind": "finish"}, fields)
        hidden = frozenset(_which(item["record"]) for batch in writing for item in batch["items"])
        return cls(next=counter["next"] if counter else 0, hidden=hidden)


def records(database: Database[Document], query: Query) -> Iterator[Record]:
    """See Store.records."""
    return map(record_from, _documents(database, query, PAGE, None))


def page(database: Database[Document], query: Query, limit: int, after: Position | None) -> list[PlacedRecord]:
    """See Store.page."""
    found = islice(_documents(database, query, min(PAGE, limit), after), limit)
    return [
        PlacedRecord(record=record_from(document), position=Position(moment_of(document["checked_at"]), document["n"]))
        for document in found
    ]


def _documents(database: Database[Document], query: Query, size: int, after: Position | None) -> Iterator[Document]:
    """The documents of `records` that a query chooses, strictly after a position. `size`: of those read at once."""
    moment = _Moment.of(database)
    names = None if query.collection is None else matching_collections(database, query.collection)
    for page in _pages(database["records"], query, moment, size, after):
        page = _of_links(database, page, names, query)
        if query.changed or not query.history:
            page = _chosen(database["records"], page, query, moment)
        yield from page


def _pages(
    stored: Collection[Document], query: Query, moment: _Moment, size: int, after: Position | None
) -> Iterator[list[Document]]:
    """The records of a time range and category, in the order of time, then of storing."""
    conditions: list[Document] = [_within(query.since, query.until), {"n": {"$lt": moment.next}}]
    if query.category is not None:
        conditions.append({"category": str(query.category)})
    if query.redirected:
        conditions.append({"redirects": {"$gt": 0}})
    if query.reasons:
        conditions.append({"reason": {"$in": list(query.reasons)}})
    conditions += _of_facts(query)
    if query.ended_at:
        ranges = [{"final_url": {"$gte": start, "$lt": after_prefix(start)}} for start in query.ended_at]
        conditions.append({"$or": [{"final_url": None}, *ranges]})
    hint = "by_time" if query.category is None else "by_category"
    if query.link is not None:
        conditions.append({"link": query.link})
        hint = "by_link"
    elif query.reasons and set(query.reasons) <= set(REFUSALS) and BY_REFUSAL in stored.index_information():
        hint = BY_REFUSAL
    order = [("checked_at", 1), ("n", 1)]
    parts: list[Document] = [{}] if after is None else _after(date(after.at), after.number)
    while parts:
        page: list[Document] = []
        for part in parts:
            found = stored.find({"$and": [part, *conditions]}, hint=hint, batch_size=size).sort(order)
            page += found.limit(size - len(page))
            if len(page) == size:
                break
        yield [document for document in page if _which(document) not in moment.hidden]
        if len(page) < size:
            return
        parts = _after(page[-1]["checked_at"], page[-1]["n"])


def _after(at: DatetimeMS, n: int) -> list[Document]:
    """The ranges of the index that hold the records after a position."""
    return [{"checked_at": at, "n": {"$gt": n}}, {"checked_at": {"$gt": at}}]


def _which(record: Document) -> tuple[str, DatetimeMS]:
    """Distinguishes a stored record from another of the same `_id` that was refused (Store.finish)."""
    return record["_id"], record["checked_at"]


def _within(since: float | None, until: float | None) -> Document:
    """A half-open range of `checked_at`."""
    bounds: Document = {"$gte": DatetimeMS(LEAST) if since is None else first_from(since)}
    if until is not None:
        bounds["$lt"] = first_from(until)
    return {"checked_at": bounds}


def _of_facts(query: Query) -> list[Document]:
    """The conditions of a query about `confirmed`, statuses and media types."""
    conditions: list[Document] = []
    if query.confirmed is not None:
        conditions.append({"confirmed": query.confirmed})
    if query.statuses:
        conditions.append({"status": {"$in": list(query.statuses)}})
    if query.mismatched:
        conditions.append({"mime_matches": False})
    if query.expected_mime is not None:
        conditions.append({"expected_mime": {"$eq": query.expected_mime}})
    if query.mime is not None:
        conditions.append({"mime": {"$eq": query.mime}})
    return conditions


def _of_links(
    database: Database[Document], page: list[Document], names: list[str] | None, query: Query
) -> list[Document]:
    """The records of a page whose links the query is about. `names`: the collections that its glob matches; None where
    it has none."""
    ids = list({document["link"] for document in page})
    when: Document = {} if query.link is not None else {"$gte" if query.retired else "$lt": date(RETIRED)}
    if query.due_at is not None:
        when["$lte"] = last_until(query.due_at)
    chosen: Document = {"_id": {"$in": ids}}
    if when:
        chosen["next_check_at"] = when
    if names is not None and not query.retired:
        chosen["collections"] = {"$in": names}
    fields = {"retired_at": 1, "host": 1, "providers": 1}
    links = {link["_id"]: link for link in database["links"].find(chosen, fields, hint="_id_")}
    if query.host is not None:
        fits = glob(query.host).fullmatch
        links = {link_id: link for link_id, link in links.items() if fits(link["host"])}
    if query.retired and (names is not None or query.provider is not None):
        links = _mentioned_last(database["proxies"], links, names, query.provider)
    elif query.provider is not None:
        fits = glob(query.provider).fullmatch
        links = {link_id: link for link_id, link in links.items() if any(map(fits, link["providers"]))}
    return [document for document in page if document["link"] in links]


def _mentioned_last(
    proxies: Collection[Document], links: dict[str, Document], names: list[str] | None, provider: str | None
) -> dict[str, Document]:
    """Of these retired links those that were mentioned last in one of the collections, and of a provider that matches
    the glob: in mentions that were retired when the link was."""
    chosen: Document = {"link": {"$in": list(links)}, **RETIRED_ONLY}
    collections = None if names is None else frozenset(names)
    fits = None if provider is None else glob(provider).fullmatch
    fields = {"link": 1, "retired_at": 1, "collection": 1, "provider": 1}
    in_collection, of_provider = set(), set()
    for line in proxies.find(chosen, fields, hint="by_link"):
        if line["retired_at"] != links[line["link"]]["retired_at"]:
            continue
        if collections is None or line["collection"] in collections:
            in_collection.add(line["link"])
        if fits is None or (line["provider"] is not None and fits(line["provider"])):
            of_provider.add(line["link"])
    return {link_id: link for link_id, link in links.items() if link_id in in_collection & of_provider}


def _chosen(stored: Collection[Document], page: list[Document], query: Query, moment: _Moment) -> list[Document]:
    """The records of a page that are their link's latest before `until` (without `history`), and that differ from the
    check before (with `changed`)."""
    of_page = {"link": {"$in": list({document["link"] for document in page})}}
    fields = {"link": 1, "checked_at": 1, "n": 1, "category": 1, "status": 1, "final_url": 1}
    conditions = [of_page, _within(None, query.until), {"n": {"$lt": moment.next}}]
    history: dict[str, list[Document]] = {}
    for found in stored.find({"$and": conditions}, fields, hint="by_link").sort([("link", 1), ("checked_at", 1)]):
        if _which(found) not in moment.hidden:
            history.setdefault(found["link"], []).append(found)
    return [document for document in page if _wanted(document, history.get(document["link"], []), query)]


def _wanted(document: Document, history: list[Document], query: Query) -> bool:
    place = next((place for place, found in enumerate(history) if found["_id"] == document["_id"]), None)
    if place is None:
        return False  # pruned since the page was read
    if not query.history and place != len(history) - 1:
        return False
    if not query.changed or place == 0:
        return True
    before = history[place - 1]
    return any(before[name] != document[name] for name in ("category", "status", "final_url"))


def latest(database: Database[Document], key: bytes) -> Record | None:
    """See Store.latest."""
    found = database["records"].find_one({"link": key.hex()}, sort=[("checked_at", -1)], hint="by_link")
    return None if found is None else record_from(found)


def lookup(database: Database[Document], keys: Sequence[bytes]) -> dict[bytes, KnownLink]:
    """See Store.lookup. A record that a newer one has replaced since its link was read is read again."""
    known: dict[bytes, KnownLink] = {}
    for start in range(0, len(keys), KEYS_TOGETHER):
        ids = [key.hex() for key in keys[start : start + KEYS_TOGETHER]]
        links = list(database["links"].find({"_id": {"$in": ids}}, hint="_id_"))
        names = [link["last"]["record"] for link in links if link["last"] is not None]
        found = {record["_id"]: record_from(record) for record in database["records"].find({"_id": {"$in": names}})}
        for link in links:
            key = bytes.fromhex(link["_id"])
            record = None if link["last"] is None else found.get(link["last"]["record"]) or latest(database, key)
            known[key] = KnownLink(link=due_link(link), record=record)
    return known


def fingerprint(database: Database[Document]) -> str:
    """See Store.fingerprint. Numbers of documents, which the server keeps; the number that the next record gets; and
    the orders, which are few."""
    names = ("links", "proxies", "records", "collections", "harvests", "check_requests")
    counter = database["meta"].find_one({"_id": "records"})
    orders = sorted((order["_id"], order["act"], int(order["at"])) for order in database["orders"].find())
    counts = [database[name].estimated_document_count() for name in names]
    said = repr((counter and counter["next"], counts, orders))
    return blake2b(said.encode(), digest_size=16).hexdigest()


def judged_before(
    database: Database[Document], version: int, limit: int, after: int | str | None
) -> list[tuple[DueLink, Record]]:
    """See Store.judged_before. A link whose record has just gone with a newer check's coming is left out."""
    chosen: Document = {
        "_id": {"$gt": "" if after is None else after},
        "last.category": {"$gte": ""},
        "last.verdict_version": {"$not": {"$gte": version}},  # or none yet: an older program's
    }
    links = list(database["links"].find(chosen, hint="_id_").sort("_id", 1).limit(limit))
    names = [link["last"]["record"] for link in links]
    found = {record["_id"]: record for record in database["records"].find({"_id": {"$in": names}})}
    return [
        (due_link(link), record_from(found[link["last"]["record"]]))
        for link in links
        if link["last"]["record"] in found
    ]


# -- sums -------------------------------------------------------------------------------------------------------


def books(database: Database[Document], now: float) -> Totals:
    """See Store.books. It counts one after the other, links last: counts only grow, so the sums stay valid beside a
    crawl."""
    links = database["links"]
    due_now = links.count_documents({"next_check_at": {"$lte": last_until(now)}}, hint="by_due_time")
    checked = links.count_documents(_CHECKED, hint="by_last_check")
    checked -= links.count_documents({**RETIRED_ONLY, **_CHECKED})
    retired = links.count_documents(RETIRED_ONLY)
    stored = database["records"].count_documents(_ANY_ID, hint="_id_")
    proxies = database["proxies"].count_documents(_ANY_ID, hint="_id_")
    proxies -= database["proxies"].count_documents(RETIRED_ONLY)
    total = links.count_documents(_ANY_ID, hint="_id_")
    retired = min(retired, total)
    active = total - retired
    checked = max(0, min(checked, active))  # a link that moves on while it is counted may be counted twice
    due_now = min(due_now, active)
    return Totals(
        links=total,
        active=active,
        retired=retired,
        proxies=proxies,
        checked=checked,
        never_checked=active - checked,
        due=due_now,
        later=active - due_now,
        records=stored,
    )
