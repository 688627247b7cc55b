"""The store in a MongoDB database: for large installations, and where other programs read it too (docs/mongodb.md).

A standalone server is enough. On a replica set, writes wait for the majority of its members.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import pymongo
from bson.datetime_ms import DatetimeMS
from pymongo.database import Database
from pymongo.errors import PyMongoError

from linkcrawl.items import RETIRED, DueLink, Finished, HostMemory, Order, Record, Rejudged, RobotsFile
from linkcrawl.stores.contract import (
    AddCounts,
    CheckProgress,
    CheckRequest,
    ClusterName,
    HostBacklog,
    KnownLink,
    LinkEntry,
    LinkFilter,
    PlacedRecord,
    Position,
    Proxy,
    Purged,
    Query,
    Retired,
    Summary,
    Totals,
)
from linkcrawl.stores.mongo import asking, reading, retiring
from linkcrawl.stores.mongo.claim import Claim
from linkcrawl.stores.mongo.copying import MongoCopyable
from linkcrawl.stores.mongo.documents import (
    Document,
    due_link,
    first_from,
    host_memory,
    last_until,
    moment_of,
    order_of,
    proxy_of,
    record_from,
    robots_file,
)
from linkcrawl.stores.mongo.dropped import DroppedCollections
from linkcrawl.stores.mongo.schema import DURABLE, OURS, RETIRED_ONLY, faults, open_database, unless_read_only
from linkcrawl.stores.mongo.summary import summary
from linkcrawl.stores.mongo.writing import Writer, prune, recall_future
from linkcrawl.stores.rows import LEAST, text
from linkcrawl.units import HOUR
from linkcrawl.urls.servers import shown

#: Seconds for commands that read all records or links, instead of the URL's `socketTimeoutMS`.
PATIENT = HOUR


class MongoStore:
    """The store contract (stores.contract.Store) on one database. Every call may be repeated after StoreLost."""

    def __init__(self, where: str, database: Database[Document]):
        self._where = where
        self._database = database
        self._writer = Writer(database)
        self._meta = database["meta"].with_options(write_concern=DURABLE)
        self._claim = Claim(self._meta, where)
        self._before_was_clean: bool | None = None
        self._is_shared = False
        self._dropped: DroppedCollections | None = None

    @classmethod
    def open(cls, url: str, *, make: bool = True) -> MongoStore:
        """The store of a URL `mongodb://HOST:PORT/DB?options` or `mongodb+srv://…`; unless `make` is false, a new one
        where there is none. Raises StoreError, and StoreLost where the batch of a dead process can't be completed."""
        store = cls(shown(url), open_database(url, make=make))
        try:
            with faults(store._where), unless_read_only(make):
                store._writer.complete_abandoned()
        except BaseException:
            store._database.client.close()
            raise
        return store

    def copyable(self) -> MongoCopyable:
        return MongoCopyable(self._database, self._where)

    def close(self) -> None:
        try:
            self._claim.release()
        except PyMongoError:
            pass  # the claim expires by itself
        finally:
            self._database.client.close()

    # -- one crawl at a time ------------------------------------------------------------------------------------

    def claim(self, shared: ClusterName | None = None) -> None:
        if self._before_was_clean is not None:
            if shared is not None:
                with faults(self._where):
                    self._claim.rename(shared)
            return
        with faults(self._where):
            self._claim.take(shared)
            self._dropped = DroppedCollections(self._database, self._where, OURS)
            self._is_shared = shared is not None
            self._before_was_clean = self._read_clean()
            self._write_clean(False)

    def was_clean(self) -> bool:
        with faults(self._where):
            return self._read_clean() if self._before_was_clean is None else self._before_was_clean

    def mark_clean(self) -> None:
        if self._is_shared:
            return  # other workers may be crawling, or may have died
        with faults(self._where):
            self._check_claim()
            self._write_clean(True)

    def is_claimed(self) -> bool:
        with faults(self._where):
            return self._claim.taken or self._claim.is_taken()

    @property
    def may_send(self) -> bool:
        return not self._claim.taken or self._claim.is_held

    def _read_clean(self) -> bool:
        found = self._meta.find_one({"_id": "clean"})
        return found is None or bool(found["value"])

    def _write_clean(self, clean: bool) -> None:
        self._meta.update_one({"_id": "clean"}, {"$set": {"value": clean}}, upsert=True)

    def _check_claim(self) -> None:
        """Raises ClaimLost where another crawl has taken the claim, StoreLost where a collection was dropped."""
        if self._claim.taken:
            self._claim.check()
        if self._dropped is not None:
            self._dropped.check()

    # -- writing ------------------------------------------------------------------------------------------------

    def add(self, entries: Sequence[LinkEntry], harvest: int = 0) -> AddCounts:
        with faults(self._where):
            return self._writer.add(entries, harvest)

    def begin_harvest(self, now: float) -> int:
        with faults(self._where):
            return self._writer.begin_harvest(now)

    def end_harvest(self, harvest: int, now: float) -> None:
        with faults(self._where):
            self._writer.end_harvest(harvest, now)

    def mark(self, entries: Sequence[LinkEntry], harvest: int) -> None:
        with faults(self._where):
            self._writer.mark(entries, harvest)

    def known(self, keys: Collection[bytes]) -> set[bytes]:
        wanted = {"_id": {"$in": [key.hex() for key in keys]}}
        with faults(self._where):
            return {bytes.fromhex(found["_id"]) for found in self._database["links"].find(wanted, {"_id": 1})}

    def retirements(self) -> int:
        with faults(self._where):
            return retiring.retirements(self._meta)

    def retired_among(self, link_ids: Sequence[int | str]) -> set[int | str]:
        active = {"_id": {"$in": list(link_ids)}, **reading.ACTIVE}
        with faults(self._where):
            return set(link_ids) - {found["_id"] for found in self._database["links"].find(active, {"_id": 1})}

    def history(self, key: bytes) -> Iterator[Record]:
        of_link = {"link": {"$eq": key.hex()}}
        with faults(self._where), self._database["records"].find(of_link, hint="by_link") as found:
            for document in found.sort([("checked_at", 1), ("n", 1)]):
                yield record_from(document)

    def retired_before(self, moment: float) -> Iterator[bytes]:
        chosen = {"retired_at": {"$gte": DatetimeMS(LEAST), "$lt": first_from(moment)}}
        with faults(self._where):
            for found in self._database["links"].find(chosen, {"_id": 1}):
                yield bytes.fromhex(found["_id"])

    def only_in(self, names: Sequence[str]) -> Iterator[bytes]:
        with faults(self._where):
            yield from retiring.only_in(self._database, [text(name) for name in names])

    def purge(self, keys: Collection[bytes], *, dry_run: bool = False) -> Purged:
        ids = [key.hex() for key in keys]
        with faults(self._where):
            return retiring.count(self._database, ids) if dry_run else self._writer.purge(ids)

    def purge_mentions(self, names: Sequence[str], *, dry_run: bool = False) -> int:
        chosen = {"collection": {"$in": [text(name) for name in names]}}
        with faults(self._where), pymongo.timeout(PATIENT):
            if dry_run:
                return self._database["proxies"].count_documents(chosen)
            return self._database["proxies"].delete_many(chosen | RETIRED_ONLY).deleted_count

    def links_of(self, collection: str) -> int:
        with faults(self._where), pymongo.timeout(PATIENT):
            return retiring.links_of(self._database, text(collection) or None)

    def lost(self, harvest: int, collection: str, before: Sequence[str] = ()) -> Iterator[bytes]:
        losing = [text(name) or None for name in (collection, *before)]
        with faults(self._where), pymongo.timeout(PATIENT):
            yield from retiring.lost(self._database, harvest, losing[0], losing)

    def retire(self, harvest: int, collection: str, now: float) -> Retired:
        with faults(self._where), pymongo.timeout(PATIENT):
            return self._writer.retire(harvest, text(collection) or None, now)

    def retire_mentions(self, entries: Sequence[LinkEntry], now: float) -> Retired:
        with faults(self._where), pymongo.timeout(PATIENT):
            return self._writer.retire_mentions(entries, now)

    def finish(self, finished: Sequence[Finished]) -> frozenset[int | str]:
        with faults(self._where):
            self._check_claim()
            return self._writer.finish(finished)

    def remember(self, memories: Iterable[HostMemory]) -> None:
        with faults(self._where):
            self._check_claim()
            self._writer.remember(memories)

    def remember_robots(self, files: Iterable[RobotsFile]) -> None:
        with faults(self._where):
            self._check_claim()
            self._writer.remember_robots(files)

    def forget_robots(self, now: float) -> int:
        with faults(self._where), pymongo.timeout(PATIENT):
            self._check_claim()
            return self._writer.forget_robots(now)

    def give_order(self, order: Order) -> None:
        with faults(self._where):
            self._writer.give_order(order)

    def ask(self, request: CheckRequest, link_ids: Sequence[int | str]) -> int:
        with faults(self._where), pymongo.timeout(PATIENT):
            return asking.ask(self._database, request, link_ids)

    def asked(self, limit: int, after: int | str | None = None) -> list[DueLink]:
        with faults(self._where):
            self._check_claim()
            return asking.asked(self._database, limit, after)

    def check_request(self, request_id: str) -> CheckRequest | None:
        with faults(self._where):
            return asking.check_request(self._database, request_id)

    def progress(self, request_id: str) -> CheckProgress:
        with faults(self._where):
            return asking.progress(self._database, request_id)

    def answers(self, request_id: str) -> Iterator[Record]:
        with faults(self._where):
            return asking.answers(self._database, request_id)

    def withdraw(self, link_ids: Sequence[int | str], since: float, reason: str, error: str, now: float) -> int:
        with faults(self._where):
            self._check_claim()
            return self._writer.withdraw(link_ids, since, reason, error, now)

    def rejudge(self, rejudged: Sequence[Rejudged]) -> frozenset[int | str]:
        with faults(self._where):
            self._check_claim()
            return self._writer.rejudge(rejudged)

    def prune(self, since: float, until: float) -> int:
        with faults(self._where), pymongo.timeout(PATIENT):
            self._check_claim()
            return prune(self._database["records"], since, until)

    # -- reading ------------------------------------------------------------------------------------------------

    def backlog(self, now: float, link_filter: LinkFilter = LinkFilter()) -> list[HostBacklog]:
        with faults(self._where):
            self._check_claim()
            return reading.backlog(self._database, now, link_filter)

    def due(
        self, host: str, now: float, limit: int, link_filter: LinkFilter = LinkFilter(), after: DueLink | None = None
    ) -> list[DueLink]:
        with faults(self._where):
            self._check_claim()
            return reading.due(self._database, text(host), now, limit, link_filter, after)

    def next_due_at(self, now: float) -> float | None:
        later = {"next_check_at": {"$gt": last_until(now)}}
        with faults(self._where):
            found = self._database["links"].find_one(
                later, {"_id": 0, "next_check_at": 1}, sort=[("next_check_at", 1)], hint="by_due_time"
            )
        moment = None if found is None else moment_of(found["next_check_at"])
        return None if moment == RETIRED else moment

    def recall_future(self, after: float, now: float) -> tuple[int, float]:
        with faults(self._where):
            self._check_claim()
            return recall_future(self._database["links"], after, now)

    def revision(self) -> int:
        with faults(self._where):
            return self._database["links"].estimated_document_count()  # links are never deleted

    def hosts(self, names: Sequence[str] | None = None) -> Iterator[HostMemory]:
        """Not streamed: it must be one snapshot, and callers keep all of it in memory anyway."""
        wanted = {} if names is None else {"_id": {"$in": [text(name) for name in names]}}
        with faults(self._where):
            documents = list(self._database["hosts"].find(wanted, sort=[("_id", 1)]))
        return map(host_memory, documents)

    def robots(self, authorities: Sequence[str]) -> list[RobotsFile]:
        wanted = {"_id": {"$in": [text(authority) for authority in authorities]}}
        with faults(self._where):
            return [robots_file(found) for found in self._database["robots"].find(wanted, sort=[("_id", 1)])]

    def orders(self) -> dict[str, Order]:
        with faults(self._where):
            self._check_claim()
            return {found["_id"]: order_of(found) for found in self._database["orders"].find()}

    def summary(self, now: float, top: int = 100) -> Summary:
        with faults(self._where), pymongo.timeout(PATIENT):
            return summary(self._database, now, top)

    def records(self, query: Query = Query()) -> Iterator[Record]:
        with faults(self._where):
            yield from reading.records(self._database, query)

    def page(self, query: Query, limit: int, after: Position | None = None) -> list[PlacedRecord]:
        with faults(self._where):
            return reading.page(self._database, query, limit, after)

    def lookup(self, keys: Sequence[bytes]) -> dict[bytes, KnownLink]:
        with faults(self._where):
            return reading.lookup(self._database, keys)

    def fingerprint(self) -> str:
        with faults(self._where):
            return reading.fingerprint(self._database)

    def judged_before(self, version: int, limit: int, after: int | str | None = None) -> list[tuple[DueLink, Record]]:
        with faults(self._where), pymongo.timeout(PATIENT):
            return reading.judged_before(self._database, version, limit, after)

    def proxies(self, link_ids: Sequence[int | str]) -> dict[int | str, list[Proxy]]:
        found: dict[int | str, list[Proxy]] = {link_id: [] for link_id in link_ids}
        with faults(self._where):
            chosen = {"_id": {"$in": list(link_ids)}}
            links = self._database["links"].find(chosen, {"retired_at": 1})
            retired_at = {link["_id"]: link.get("retired_at") for link in links}
            for document in self._database["proxies"].find({"link": {"$in": list(link_ids)}}):
                if document.get("retired_at") == retired_at.get(document["link"]):
                    found[document["link"]].append(proxy_of(document))
        return {link_id: sorted(mentions, key=_place) for link_id, mentions in found.items()}

    def link(self, key: bytes) -> DueLink | None:
        with faults(self._where):
            found = self._database["links"].find_one({"_id": {"$eq": key.hex()}})
        return None if found is None else due_link(found)

    def latest(self, key: bytes) -> Record | None:
        with faults(self._where):
            return reading.latest(self._database, key)

    def checks_by_hour(self, since: float, until: float) -> dict[int, int]:
        with faults(self._where):
            return reading.checks_by_hour(self._database["records"], since, until)

    def books(self, now: float) -> Totals:
        with faults(self._where):
            return reading.books(self._database, now)

    def collections(self) -> list[str]:
        with faults(self._where):
            return [found["_id"] for found in self._database["collections"].find(sort=[("_id", 1)])]


def _place(proxy: Proxy) -> tuple[str, ...]:
    return tuple(
        value or ""
        for value in (proxy.collection, proxy.record, proxy.provider, proxy.resource_type, proxy.expected_mime)
    )
