"""Writing to the MongoDB store in batches, all or nothing: a standalone server has no transactions.

A batch is first stored whole as one document of `batches`, which is atomic and durable. Then its parts are written
where they belong, by idempotent writes. Then the document is deleted. A process that dies before the first step has
written nothing; one that dies later leaves the document, and the next `open` writes the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from itertools import islice
from typing import Any

from bson import encode
from bson.datetime_ms import DatetimeMS
from pymongo import DeleteMany, ReplaceOne, ReturnDocument, UpdateOne
from pymongo.collection import Collection
from pymongo.database import Database
from pymongo.errors import BulkWriteError

from linkcrawl.items import RETIRED, Category, Finished, HostMemory, Order, Rejudged, RobotsFile
from linkcrawl.stores.contract import ASKED, AddCounts, LinkEntry, Purged, Retired
from linkcrawl.stores.mongo import asking, retiring
from linkcrawl.stores.mongo.documents import (
    JUDGEMENT,
    Document,
    check,
    date,
    described,
    first_from,
    host_document,
    last_until,
    mention,
    moment_of,
    moved,
    new_link,
    order_document,
    rejudgement,
    robots_document,
)
from linkcrawl.stores.mongo.mentions import changes, merge
from linkcrawl.stores.mongo.reading import ACTIVE
from linkcrawl.stores.mongo.schema import DURABLE
from linkcrawl.stores.process_identity import is_alive, this_process
from linkcrawl.stores.rows import text

#: Largest document of a batch in bytes; MongoDB's limit is 16 MiB. A larger batch is split, each part all or nothing.
LARGEST_BATCH = 12 * 1024 * 1024
#: Seconds after which a batch of a process on another machine is taken for abandoned. Completing one that isn't only
#: spoils the count of new links.
ABANDONED = 60
#: Names of stored collections that are kept in memory; a full memory is emptied.
REMEMBERED = 100_000

#: Links whose old records are removed by one command.
DELETED_AT_ONCE = 1000

_DUPLICATE_KEY = 11000

#: What identifies an item among others of its kind.
_ITEM_IDS: dict[str, Callable[[Document], bytes]] = {
    "add": lambda item: item["proxy"]["_id"],
    "finish": lambda item: f"{item['record']['_id']} {int(item['record']['checked_at'])}".encode(),
    "withdraw": lambda item: item["record"].encode(),
    "retire": lambda item: repr(sorted(item.items())).encode(),
    "purge": lambda item: item["link"].encode(),
    "rejudge": lambda item: f"{item['record']} {item['said']} {item['before']}".encode(),
}


class Writer:
    """Writes batches. Every method raises PyMongoError."""

    def __init__(self, database: Database[Document]):
        self._links = database["links"]
        self._proxies = database["proxies"]
        self._records = database["records"]
        self._hosts = database["hosts"]
        self._robots = database["robots"]
        self._orders = database["orders"].with_options(write_concern=DURABLE)
        self._collections = database["collections"]
        self._harvests = database["harvests"].with_options(write_concern=DURABLE)
        self._requested = database["requested_checks"]
        self._database = database
        self._meta = database["meta"]
        self._batches = database["batches"].with_options(write_concern=DURABLE)
        self._me = this_process()
        self._known_collections: set[str] = set()
        self._begun: Document | None = None
        self._refused: set[int | str] = set()
        self._kinds = {
            "add": self._add,
            "finish": self._finish,
            "withdraw": self._withdraw,
            "rejudge": self._rejudge,
            "retire": self._retire,
            "purge": self._purge,
        }
        self._retired = Retired()

    def add(self, entries: Sequence[LinkEntry], harvest: int = 0) -> AddCounts:
        """See Store.add."""
        had_by = harvest or retiring.latest(self._harvests)
        taken = self._write_batch("add", [mention(entry, had_by) for entry in entries])
        return AddCounts(new=taken.new, known=len(entries) - taken.new, proxies=taken.proxies)

    def finish(self, finished: Sequence[Finished]) -> frozenset[int | str]:
        """See Store.finish. Raises LookupError, and stores nothing, for a link that isn't there."""
        items: dict[str, Document] = {}
        for item in map(check, finished):
            items.setdefault(item["record"]["_id"], item)
        self._refuse_unknown_links({item["record"]["link"] for item in items.values()})
        self._refused.clear()
        self._write_batch("finish", list(items.values()))
        return frozenset(self._refused)

    def remember(self, memories: Iterable[HostMemory]) -> None:
        """See Store.remember."""
        documents = map(host_document, memories)
        writes = [ReplaceOne({"_id": {"$eq": host["_id"]}}, host, upsert=True) for host in documents]
        if writes:
            self._hosts.bulk_write(writes, ordered=False)

    def remember_robots(self, files: Iterable[RobotsFile]) -> None:
        """See Store.remember_robots."""
        for document in map(robots_document, files):  # one by one: together they may be larger than a command may be
            self._robots.replace_one({"_id": {"$eq": document["_id"]}}, document, upsert=True)

    def forget_robots(self, now: float) -> int:
        """See Store.forget_robots."""
        return self._robots.delete_many({"until": {"$lt": date(now)}}).deleted_count

    def give_order(self, order: Order) -> None:
        """See Store.give_order."""
        document = order_document(order)
        self._orders.replace_one({"_id": {"$eq": document["_id"]}}, document, upsert=True)

    def withdraw(self, link_ids: Sequence[int | str], since: float, reason: str, error: str, now: float) -> int:
        """See Store.withdraw."""
        spoilt = {"last.checked_at": {"$gte": first_from(since)}, "last.reason": {"$ne": reason}}
        found = self._links.find({"_id": {"$in": list(link_ids)}, **spoilt}, {"last.record": 1})
        said = {"category": str(Category.UNDETERMINED), "reason": reason, "error": text(error), "confirmed": True}
        items = [
            {"record": link["last"]["record"], "link": link["_id"], "said": said, "next_check_at": date(now)}
            for link in found
        ]
        self._write_batch("withdraw", items)
        return len(items)

    def rejudge(self, rejudged: Sequence[Rejudged]) -> frozenset[int | str]:
        """See Store.rejudge."""
        by_link = {one.record.link_id: one for one in rejudged}
        fields = {"last.record": 1, "last.checked_at": 1}
        latest = {link["_id"]: link["last"] for link in self._links.find({"_id": {"$in": list(by_link)}}, fields)}
        items = [
            rejudgement(one, latest[link_id]["record"])
            for link_id, one in by_link.items()
            if latest.get(link_id) and latest[link_id]["checked_at"] == date(one.before.checked_at)
        ]
        self._write_batch("rejudge", items)
        return frozenset(by_link) - self._standing(items)

    def _standing(self, items: list[Document]) -> set[Any]:
        """The links whose latest record says what the items say."""
        fields = {f"last.{name}": 1 for name in ("record", *JUDGEMENT)}
        found = self._links.find({"_id": {"$in": [item["link"] for item in items]}}, fields)
        latest = {link["_id"]: link["last"] for link in found}
        said = {
            item["link"]: {"record": item["record"]} | {name: item["said"][name] for name in JUDGEMENT}
            for item in items
        }
        return {link_id for link_id, words in said.items() if latest[link_id] == words}

    def complete_abandoned(self) -> None:
        """Complete the batches of processes that have died."""
        too_old = {"$lt": ["$at", {"$subtract": ["$$NOW", ABANDONED * 1000]}]}
        for found in list(self._batches.aggregate([{"$project": {"by": 1, "too_old": too_old}}])):
            alive = is_alive(found["by"])
            if alive is False or (alive is None and found["too_old"]):
                batch = self._batches.find_one({"_id": found["_id"]})
                if batch is not None:
                    self._complete(batch)

    def _write_batch(self, kind: str, items: list[Document]) -> AddCounts:
        if len(items) > 1 and len(encode({"items": items})) > LARGEST_BATCH:
            half = len(items) // 2
            return self._write_batch(kind, items[:half]) + self._write_batch(kind, items[half:])
        batch = {"_id": _batch_id(kind, items), "kind": kind, "by": self._me, "items": items}
        if self._begun is not None and self._begun["_id"] != batch["_id"]:
            self._run(self._begun)  # its call failed, and the caller didn't repeat it
        return self._run(batch) if items else AddCounts()

    def _run(self, batch: Document) -> AddCounts:
        self._begun = batch
        kept = {name: value for name, value in batch.items() if name != "_id"}
        self._batches.update_one({"_id": batch["_id"]}, {"$set": kept, "$currentDate": {"at": True}}, upsert=True)
        taken = self._complete(batch)
        self._begun = None
        return taken

    def _complete(self, batch: Document) -> AddCounts:
        taken = self._kinds[batch["kind"]](batch["items"])
        self._batches.delete_one({"_id": batch["_id"]})
        return taken

    # -- links and proxies --------------------------------------------------------------------------------------

    def _add(self, items: list[Document]) -> AddCounts:
        links: dict[str, Document] = {}
        for item in items:
            merge(links, item["link"])
        self._add_collections({name for link in links.values() for name in link["collections"]})
        new = self._add_links(links)
        proxies = {item["proxy"]["_id"]: item["proxy"] for item in reversed(items)}  # of equal ones the first
        return AddCounts(new=new, proxies=self._add_mentions(proxies))

    def _add_mentions(self, mentions: dict[Any, Document]) -> int:
        """Insert those that aren't stored, and note that stored ones are live and had by their harvest. Returns how
        many were new."""
        chosen = {"_id": {"$in": list(mentions)}}
        there = {found["_id"]: found for found in self._proxies.find(chosen, {"harvest": 1, "retired_at": 1})}
        new = [document for name, document in mentions.items() if name not in there]
        overtaken = _insert(self._proxies, new)
        behind = [
            UpdateOne({"_id": name}, retiring.had(document.get("harvest", 0)))
            for name, document in mentions.items()
            if name in overtaken or (name in there and _is_behind(there[name], document.get("harvest", 0)))
        ]
        if behind:
            self._proxies.bulk_write(behind, ordered=False)
        return len(new) - len(overtaken)

    def _add_collections(self, names: set[str]) -> None:
        unknown = names - self._known_collections
        self._insert_missing(self._collections, {name: {"_id": name} for name in unknown})
        if len(self._known_collections) >= REMEMBERED:
            self._known_collections.clear()
        self._known_collections |= unknown

    def _add_links(self, links: dict[str, Document]) -> int:
        """Insert the new links and update the known ones. Returns how many were new."""
        fields = {"priority": 1, "expected_mime": 1, "collections": 1, "providers": 1, "next_check_at": 1}
        known = {link["_id"]: link for link in self._links.find({"_id": {"$in": list(links)}}, fields)}
        new = [new_link(link) for link_id, link in links.items() if link_id not in known]
        overtaken = _insert(self._links, new)
        updates = [
            change
            for link_id, link in links.items()
            if link_id in overtaken or link_id in known
            for change in changes(link, known.get(link_id))
        ]
        back = [link_id for link_id, link in known.items() if link["next_check_at"] >= date(RETIRED)]
        if back:
            self._links.bulk_write([retiring.bring_back(links[link_id]) for link_id in back], ordered=False)
        if updates:
            self._links.bulk_write(updates, ordered=False)
        return len(new) - len(overtaken)

    def _insert_missing(self, collection: Collection[Document], documents: dict[Any, Document]) -> int:
        """Insert those that aren't stored. Returns how many. (A query first is cheaper than many duplicate key
        errors.)"""
        there = {found["_id"] for found in collection.find({"_id": {"$in": list(documents)}}, {"_id": 1})}
        missing = [document for document_id, document in documents.items() if document_id not in there]
        return len(missing) - len(_insert(collection, missing))

    # -- harvests -----------------------------------------------------------------------------------------------

    def begin_harvest(self, now: float) -> int:
        """See Store.begin_harvest."""
        return retiring.begin(self._meta, self._harvests, now)

    def end_harvest(self, harvest: int, now: float) -> None:
        """See Store.end_harvest."""
        self._harvests.update_one({"_id": harvest}, {"$set": {"ended_at": date(now)}})

    def mark(self, entries: Sequence[LinkEntry], harvest: int) -> None:
        """See Store.mark."""
        names = [mention(entry, harvest)["proxy"]["_id"] for entry in entries]
        self._proxies.update_many({"_id": {"$in": names}}, {"$max": {"harvest": harvest}})

    def retire(self, harvest: int, collection: str | None, now: float) -> Retired:
        """See Store.retire."""
        self._retired, self._purged = Retired(), Purged()
        self._write_batch("retire", [{"harvest": harvest, "collection": collection, "at": date(now)}])
        return self._retired

    def retire_mentions(self, entries: Sequence[LinkEntry], now: float) -> Retired:
        """See Store.retire_mentions."""
        self._retired, self._purged = Retired(), Purged()
        self._write_batch("retire", [{"mentions": described(entry), "at": date(now)} for entry in entries])
        return self._retired

    def _retire(self, items: list[Document]) -> AddCounts:
        for item in items:
            chosen = item.get("mentions") or retiring.absent(item["harvest"], item["collection"])
            mentions, links = retiring.retire(self._database, {**chosen, **retiring.LIVE}, moment_of(item["at"]))
            self._retired += Retired(mentions=mentions, links=links)
        return AddCounts()

    def purge(self, links: Sequence[str]) -> Purged:
        """See Store.purge."""
        self._purged = Purged()
        self._write_batch("purge", [{"link": link} for link in links])
        return self._purged

    def _purge(self, items: list[Document]) -> AddCounts:
        """The links last: a link whose records are being deleted is told by its batch."""
        ids = [item["link"] for item in items]
        of_links = {"link": {"$in": ids}}
        self._purged += Purged(
            records=self._records.delete_many(of_links, hint="by_link").deleted_count,
            mentions=self._proxies.delete_many(of_links, hint="by_link").deleted_count,
        )
        self._database["requested_checks"].delete_many(of_links)
        self._purged += Purged(links=self._links.delete_many({"_id": {"$in": ids}}).deleted_count)
        retiring.count_step(self._meta)
        return AddCounts()

    # -- checks -------------------------------------------------------------------------------------------------

    def _refuse_unknown_links(self, link_ids: set[Any]) -> None:
        there = {found["_id"] for found in self._links.find({"_id": {"$in": list(link_ids)}}, {"_id": 1})}
        if absent := sorted(map(repr, link_ids - there)):
            raise LookupError(f"a check has ended of link {absent[0]}, which is not in this store")

    def _finish(self, items: list[Document]) -> AddCounts:
        """Records first, then their links, so that a link never names a record that isn't there. The numbers `n` are
        taken after the batch's document was written: so a reader sees whole batches only (reading.records)."""
        counter = self._meta.find_one_and_update(
            {"_id": "records"}, {"$inc": {"next": len(items)}}, upsert=True, return_document=ReturnDocument.AFTER
        )
        assert counter is not None  # as it is made where there was none
        first = counter["next"] - len(items)
        there = _insert(self._records, [item["record"] | {"n": first + place} for place, item in enumerate(items)])
        overtaken = self._overtaken(items, there)
        moves = [_move(item) for item in items if item["record"]["_id"] not in overtaken]
        if moves:
            self._links.bulk_write(moves, ordered=False)
        for item in items:
            record = item["record"]
            if item["before"] is not None and item["before"] > record["checked_at"]:
                self._put_before(record["link"], record["checked_at"])
        stored = [item["record"] for item in items if item["record"]["_id"] not in overtaken]
        if answered := asking.answers_of((record["link"], record["checked_at"]) for record in stored):
            self._requested.bulk_write(answered, ordered=False)
        return AddCounts()

    def _put_before(self, link: Any, moment: DatetimeMS) -> None:
        """Give the link's records of later times a time just before the moment, a millisecond apart, in their order."""
        later = {"link": link, "checked_at": {"$gt": moment}}
        found = list(self._records.find(later, {"_id": 1}, sort=[("checked_at", -1)]))
        times = [(each["_id"], DatetimeMS(int(moment) - place)) for place, each in enumerate(found, 1)]
        changes = [UpdateOne({"_id": name}, {"$set": {"checked_at": at}}) for name, at in times]
        if changes:
            self._records.bulk_write(changes, ordered=False)

    def _overtaken(self, items: list[Document], there: set[Any]) -> set[Any]:
        """Of records that were there already, those of another check that came first. Where the other batch is still
        being written, its links are updated here, so that they don't stay due meanwhile."""
        if not there:
            return there
        stored = {found["_id"]: found["checked_at"] for found in self._records.find({"_id": {"$in": list(there)}})}
        others = {
            item["record"]["_id"]: item["record"]["link"]
            for item in items
            if stored.get(item["record"]["_id"], item["record"]["checked_at"]) != item["record"]["checked_at"]
        }
        self._refused |= set(others.values())
        for batch in list(self._batches.find({"kind": "finish", "items.record._id": {"$in": list(others)}})):
            first = [
                item for item in batch["items"] if item["record"]["checked_at"] == stored.get(item["record"]["_id"])
            ]
            if first:
                self._links.bulk_write([_move(item) for item in first], ordered=False)
        return set(others)

    def _withdraw(self, items: list[Document]) -> AddCounts:
        """Records first, as in `_finish`; a link that has been checked again meanwhile stays as it is."""
        records, links = [], []
        for item in items:
            due = {"next_check_at": item["next_check_at"]}
            records.append(UpdateOne({"_id": item["record"]}, {"$set": item["said"] | due}))
            last = {f"last.{name}": value for name, value in item["said"].items()}
            of_record = {"_id": item["link"], "last.record": item["record"]}
            links.append(UpdateOne(of_record, {"$set": last}))
            links.append(UpdateOne({**of_record, **ACTIVE}, {"$set": due}))
        self._records.bulk_write(records, ordered=False)
        self._links.bulk_write(links, ordered=False)
        return AddCounts()

    def _rejudge(self, items: list[Document]) -> AddCounts:
        """Records first, as in `_finish`. What says something else by now than when it was judged stays as it is: a
        record that was withdrawn meanwhile is told by its reason, in its own document and in its link's."""
        records, links = [], []
        for item in items:
            moved = {} if item["state"] is None else {"next_check_at": item["next_check_at"]}
            records.append(UpdateOne({"_id": item["record"], **_says(item["before"])}, {"$set": item["said"] | moved}))
            if item["state"] is not None:
                moved["state"] = item["state"]
            last = {f"last.{name}": value for name, value in item["said"].items()}
            latest = {"_id": item["link"], "last.record": item["record"], **_says(item["before"], "last.")}
            kept = {name: value for name, value in moved.items() if name != "next_check_at"}
            stays = {"next_check_at": {"$in": [date(ASKED), date(RETIRED)]}}
            links.append(UpdateOne({**latest, **stays}, {"$set": last | kept}))
            goes = {"next_check_at": {"$nin": [date(ASKED), date(RETIRED)]}}
            links.append(UpdateOne({**latest, **goes}, {"$set": last | moved}))
        self._records.bulk_write(records, ordered=False)
        self._links.bulk_write(links, ordered=False)
        return AddCounts()


def _is_behind(stored: Document, harvest: int) -> bool:
    """Whether a stored mention is retired, or was last had by a harvest before this one."""
    return stored.get("retired_at") is not None or stored.get("harvest", 0) < harvest


def _says(judgement: Document, prefix: str = "") -> Document:
    """The condition that a document says so. One from before there was `verdict_version` has none, and means 1."""
    said: Document = {f"{prefix}{name}": {"$eq": value} for name, value in judgement.items()}
    if judgement["verdict_version"] == 1:
        said[f"{prefix}verdict_version"] = {"$in": [1, None]}
    return said


def prune(records: Collection[Document], since: float, until: float) -> int:
    """See Store.prune. Raises PyMongoError."""
    stretch = {"$gte": first_from(since), "$lt": first_from(until)}
    several = records.aggregate(
        [
            {"$match": {"checked_at": stretch}},
            {"$group": {"_id": "$link", "last": {"$max": "$checked_at"}, "number": {"$sum": 1}}},
            {"$match": {"number": {"$gt": 1}}},
        ],
        hint="by_time",
        allowDiskUse=True,
    )
    removed = 0
    while links := list(islice(several, DELETED_AT_ONCE)):
        before_last = [{"link": link["_id"], "checked_at": stretch | {"$lt": link["last"]}} for link in links]
        removed += records.bulk_write([DeleteMany(chosen) for chosen in before_last], ordered=False).deleted_count
    return removed


def recall_future(links: Collection[Document], after: float, now: float) -> tuple[int, float]:
    """See Store.recall_future."""
    future = {"last.checked_at": {"$gt": last_until(after)}}
    only = {"_id": 0, "last.checked_at": 1}
    latest = links.find_one(future, only, sort=[("last.checked_at", -1)], hint="by_last_check")
    if latest is None:
        return 0, 0.0
    count = links.count_documents(future, hint="by_last_check")
    later = future | ACTIVE | {"$expr": {"$gt": ["$next_check_at", "$last.checked_at"]}}
    planned = {"$add": [date(now), {"$subtract": ["$next_check_at", "$last.checked_at"]}]}
    links.update_many(later, [{"$set": {"next_check_at": planned}}], hint="by_last_check")
    return count, moment_of(latest["last"]["checked_at"])


def _batch_id(kind: str, items: list[Document]) -> bytes:
    """Equal for the same batch, so that a retry replaces the first try."""
    digest = blake2b(kind.encode(), digest_size=16)
    for item in items:
        digest.update(_ITEM_IDS[kind](item))
    return digest.digest()


def _move(item: Document) -> UpdateOne:
    """The update of a link by its check, unless the link has a later one. (Where a clock was put back, that later one
    may be the one on which the check began.)"""
    record, last = item["record"], "last.checked_at"
    either: list[Document] = [{last: {"$not": {"$gte": record["checked_at"]}}}]
    if item.get("before") is not None:  # batches of older versions have none
        either.append({last: item["before"]})
    return UpdateOne({"_id": record["link"], "$or": either}, moved(item))


def _insert(collection: Collection[Document], documents: Sequence[Document]) -> set[Any]:
    """Insert the documents that aren't stored. Returns the ids of those that are."""
    if not documents:
        return set()
    try:
        collection.insert_many(documents, ordered=False)
    except BulkWriteError as fault:
        errors = fault.details["writeErrors"]
        if fault.details["writeConcernErrors"] or any(error["code"] != _DUPLICATE_KEY for error in errors):
            raise
        return {error["op"]["_id"] for error in errors}
    return set()
