"""Harvests and the retiring of mentions in the MongoDB store.

Without transactions, a collection is retired page by page: first the links of a page, then its mentions. So whoever
repeats it after a kill finds the mentions of an unfinished page again, and completes their links.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from pymongo import UpdateOne
from pymongo.collection import Collection
from pymongo.database import Database

from linkcrawl.items import RETIRED
from linkcrawl.stores.contract import NEVER, Purged
from linkcrawl.stores.mongo.documents import Document, date
from linkcrawl.stores.mongo.reading import ACTIVE

#: Links of one page.
PAGE = 1000

#: The condition that a mention isn't retired.
LIVE: Document = {"retired_at": None}


def begin(meta: Collection[Document], harvests: Collection[Document], now: float) -> int:
    """See Store.begin_harvest."""
    counted = {"$inc": {"next": 1}}
    meta.update_one({"_id": "harvests"}, counted, upsert=True)
    while True:
        found = meta.find_one({"_id": "harvests"})
        assert found is not None
        number = int(found["next"])
        made = harvests.update_one(
            {"_id": number}, {"$setOnInsert": {"began_at": date(now), "ended_at": None}}, upsert=True
        )
        if made.upserted_id is not None:
            return number
        meta.update_one({"_id": "harvests"}, counted)  # another process has taken that number


def latest(harvests: Collection[Document]) -> int:
    """The number of the harvest that began last; 0 where none has."""
    found = harvests.find_one({}, {"_id": 1}, sort=[("_id", -1)], hint="_id_")
    return 0 if found is None else int(found["_id"])


def count_step(meta: Collection[Document]) -> None:
    """Links may have been retired or purged."""
    meta.update_one({"_id": "retirements"}, {"$inc": {"value": 1}}, upsert=True)


def retirements(meta: Collection[Document]) -> int:
    """See Store.retirements."""
    found = meta.find_one({"_id": "retirements"})
    return 0 if found is None else int(found["value"])


def bring_back(link: Document) -> UpdateOne:
    """The update of a retired link that is mentioned again: due at once, with the media type that is claimed now."""
    came = {"retired_at": None, "next_check_at": date(NEVER), "expected_mime": link["expected_mime"]}
    return UpdateOne({"_id": link["_id"], "next_check_at": date(RETIRED)}, {"$set": came})


def had(harvest: int) -> Document:
    """The update of a stored mention that a harvest has."""
    return {"$set": {"retired_at": None}, "$max": {"harvest": harvest}}


def absent(harvest: int, collection: str | None) -> Document:
    """The condition that a live mention of a collection isn't in the harvest, nor in one after it."""
    return {"collection": collection, "harvest": {"$not": {"$gte": harvest}}, **LIVE}


def links_of(database: Database[Document], collection: str | None) -> int:
    """See Store.links_of."""
    links = database["links"]
    if collection is not None:
        return links.count_documents({"collections": {"$eq": collection}, **ACTIVE}, hint="by_collection")
    members: list[Document] = [{"$match": {"collection": None, **LIVE}}, {"$group": {"_id": "$link"}}]
    found = list(database["proxies"].aggregate([*members, {"$count": "links"}], hint="by_collection"))
    return int(found[0]["links"]) if found else 0


def lost(
    database: Database[Document], harvest: int, collection: str | None, losing: Sequence[str | None]
) -> Iterator[bytes]:
    """See Store.lost. `losing`: this collection, and those before it."""
    for ids in _pages(database["proxies"], absent(harvest, collection)):
        stays = {
            "link": {"$in": ids},
            "$or": [{"harvest": {"$gte": harvest}}, {"collection": {"$nin": list(losing)}}],
            **LIVE,
        }
        kept = {found["link"] for found in database["proxies"].find(stays, {"link": 1}, hint="by_link")}
        yield from (bytes.fromhex(link) for link in ids if link not in kept)


def retire(database: Database[Document], chosen: Document, now: float) -> tuple[int, int]:
    """Retire the mentions that `chosen` selects, and what follows for their links. Returns how many mentions and links
    were."""
    proxies, links = database["proxies"], database["links"]
    mentions = retired = 0
    for ids in _pages(proxies, chosen):
        going = {"$and": [{"link": {"$in": ids}}, chosen]}
        gone = {found["_id"] for found in proxies.find(going, {"_id": 1}, hint="by_link")}
        staying: dict[str, list[Document]] = {link: [] for link in ids}
        for found in proxies.find({"link": {"$in": ids}, **LIVE}, hint="by_link"):
            if found["_id"] not in gone:
                staying[found["link"]].append(found)
        fields = {"collections": 1, "providers": 1, "expected_mime": 1, "next_check_at": 1}
        writes: list[UpdateOne] = []
        for link in list(links.find({"_id": {"$in": ids}}, fields)):
            left = staying[link["_id"]]
            changes = _pulled(link, left)
            if left:
                changes += _claimed(link, left)
            elif link["next_check_at"] < date(RETIRED):
                changes.append({"$set": {"retired_at": date(now), "next_check_at": date(RETIRED)}})
                retired += 1
            writes += [UpdateOne({"_id": link["_id"]}, change) for change in changes]
        if writes:
            links.bulk_write(writes)
        mentions += proxies.update_many(
            {"_id": {"$in": list(gone)}, **LIVE}, {"$set": {"retired_at": date(now)}}
        ).modified_count
        _bring_back_mentioned(database, [link for link, left in staying.items() if not left])
        count_step(database["meta"])
    return mentions, retired


def _pages(proxies: Collection[Document], chosen: Document) -> Iterator[list[str]]:
    """The links of the mentions that are chosen, each once, in pages. The mentions are read once: a query for each page
    would read all of them for each."""
    with proxies.aggregate([{"$match": chosen}, {"$group": {"_id": "$link"}}], allowDiskUse=True) as found:
        while ids := [line["_id"] for line in islice(found, PAGE)]:
            yield ids


def _pulled(link: Document, left: Sequence[Document]) -> list[Document]:
    """The updates that take away the collections and providers that no mention is left in."""
    gone = {
        names: [name for name in link[names] if name not in {mention[of] for mention in left}]
        for names, of in (("collections", "collection"), ("providers", "provider"))
    }
    pulled = {names: {"$in": values} for names, values in gone.items() if values}
    return [{"$pull": pulled}] if pulled else []


def _claimed(link: Document, left: Sequence[Document]) -> list[Document]:
    """The update to a media type that a mention claims, where the one in force is claimed by none."""
    claims = sorted({mention["expected_mime"] for mention in left if mention["expected_mime"]})
    if link["expected_mime"] is None or link["expected_mime"] in claims:
        return []
    return [{"$set": {"expected_mime": claims[0] if claims else None}}]


def _bring_back_mentioned(database: Database[Document], ids: list[str]) -> None:
    """Bring back links that another process has mentioned while they were retired."""
    mentioned = {"link": {"$in": ids}, **LIVE}
    again = {found["link"] for found in database["proxies"].find(mentioned, {"link": 1}, hint="by_link")}
    if again:
        came = {"$set": {"retired_at": None, "next_check_at": date(NEVER)}}
        database["links"].update_many({"_id": {"$in": list(again)}, "next_check_at": date(RETIRED)}, came)


def only_in(database: Database[Document], names: Sequence[str]) -> Iterator[bytes]:
    """See Store.only_in."""
    proxies = database["proxies"]
    for ids in _pages(proxies, {"collection": {"$in": list(names)}}):
        elsewhere = {"link": {"$in": ids}, "collection": {"$nin": list(names)}, **LIVE}
        kept = {found["link"] for found in proxies.find(elsewhere, {"link": 1}, hint="by_link")}
        links = database["links"].find({"_id": {"$in": ids}}, {"retired_at": 1})
        retired_at = {link["_id"]: link.get("retired_at") for link in links}
        chosen = {"link": {"$in": [link for link in ids if link not in kept]}, "collection": {"$in": list(names)}}
        found = {
            mention["link"]
            for mention in proxies.find(chosen, {"link": 1, "retired_at": 1}, hint="by_link")
            if mention.get("retired_at") == retired_at.get(mention["link"])
        }
        yield from (bytes.fromhex(link) for link in ids if link in found)


def count(database: Database[Document], ids: Sequence[str]) -> Purged:
    """What purging these links would delete."""
    of_links = {"link": {"$in": list(ids)}}
    return Purged(
        links=database["links"].count_documents({"_id": {"$in": list(ids)}}),
        mentions=database["proxies"].count_documents(of_links),
        records=database["records"].count_documents(of_links),
    )
