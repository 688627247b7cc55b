"""The summary of a MongoDB store: aggregations over `links` and `proxies`, and one over `records` for the months."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from pymongo.database import Database

from linkcrawl.items import Category, Record
from linkcrawl.stores.contract import Mismatch, Summary, SummaryPart, Tally
from linkcrawl.stores.mongo import reading
from linkcrawl.stores.mongo.documents import Document, last_until, record_from
from linkcrawl.stores.mongo.schema import RETIRED_ONLY
from linkcrawl.stores.summary import Span, in_order, months, tallies_in_order, whole

#: The field of a mention, by the field of a link that lists it.
_MENTIONED = {"collections": "collection", "providers": "provider"}
_MISMATCHED = {"last.mime_matches": False}
#: The condition that a mention isn't retired.
_LIVE = {"retired_at": None}


def summary(database: Database[Document], now: float, top: int) -> Summary:
    """See Store.summary. Its queries run one after the other: beside a crawl their results may differ by what was
    checked meanwhile."""
    hosts = tuple(_hosts(database, now))
    return Summary(
        at=now,
        books=reading.books(database, now),
        overall=whole(hosts),
        collections=in_order(_listed(database, "collections", now)),
        providers=in_order(_listed(database, "providers", now)),
        hosts=in_order(hosts),
        slowest=tuple(_slowest(database, top)),
        mismatches=tuple(_mismatches(database, top)),
        months=months(_spans(database), now),
    )


def _grouped(now: float, part: str | None) -> Document:
    """The stage that groups links by part and result, including links that were never checked."""
    outcome = {name: f"$last.{name}" for name in ("category", "status", "reason", "confirmed")}
    due = {"$lte": ["$next_check_at", last_until(now)]}
    timed = {"$ne": [{"$ifNull": ["$last.duration_ms", None]}, None]}
    return {
        "$group": {
            "_id": {"part": part, **outcome},
            "count": {"$sum": 1},
            "due": {"$sum": {"$cond": [due, 1, 0]}},
            "timed": {"$sum": {"$cond": [timed, 1, 0]}},
            "total_ms": {"$sum": "$last.duration_ms"},
            "max_ms": {"$max": "$last.duration_ms"},
            "mismatches": {"$sum": {"$cond": [{"$eq": ["$last.mime_matches", False]}, 1, 0]}},
        }
    }


def _hosts(database: Database[Document], now: float) -> Iterator[SummaryPart]:
    per_host: list[Document] = [
        {"$match": _LIVE},
        {"$lookup": {"from": "links", "localField": "link", "foreignField": "_id", "as": "of"}},
        {"$group": {"_id": {"$first": "$of.host"}, "count": {"$sum": 1}}},
    ]
    proxies = {line["_id"]: line["count"] for line in database["proxies"].aggregate(per_host)}
    return _parts(database["links"].aggregate([{"$match": reading.ACTIVE}, _grouped(now, "$host")]), proxies)


def _listed(database: Database[Document], field: str, now: float) -> Iterator[SummaryPart]:
    """The parts of collections or providers; links mentioned without one are a part as well."""
    mention = _MENTIONED[field]
    counted = database["proxies"].aggregate(
        [{"$match": _LIVE}, {"$group": {"_id": f"${mention}", "count": {"$sum": 1}}}]
    )
    proxies = {line["_id"]: line["count"] for line in counted}
    yield from _parts(database["links"].aggregate([{"$unwind": f"${field}"}, _grouped(now, f"${field}")]), proxies)
    without = database["proxies"].aggregate(
        [
            {"$match": {mention: None, **_LIVE}},
            {"$group": {"_id": "$link"}},
            {"$lookup": {"from": "links", "localField": "_id", "foreignField": "_id", "as": "of"}},
            {"$replaceRoot": {"newRoot": {"$first": "$of"}}},
            _grouped(now, None),
        ]
    )
    yield from _parts(without, proxies)


def _parts(lines: Iterable[Document], proxies: dict[str | None, int]) -> Iterator[SummaryPart]:
    by_part: dict[str | None, list[Document]] = defaultdict(list)
    for line in lines:
        by_part[line["_id"]["part"]].append(line)
    for name, found in by_part.items():
        checked = [line for line in found if line["_id"].get("category") is not None]
        yield SummaryPart(
            name=name,
            links=sum(line["count"] for line in found),
            proxies=proxies.get(name, 0),
            checked=sum(line["count"] for line in checked),
            overdue=sum(line["due"] for line in checked),
            tallies=tallies_in_order(map(_tally, checked)),
        )


def _tally(line: Document) -> Tally:
    outcome = line["_id"]
    return Tally(
        category=Category(outcome["category"]),
        status=outcome.get("status"),
        reason=outcome["reason"],
        confirmed=outcome["confirmed"],
        count=line["count"],
        timed=line["timed"],
        total_ms=line["total_ms"],
        max_ms=line["max_ms"],
        mismatches=line["mismatches"],
    )


def _slowest(database: Database[Document], top: int) -> Iterator[Record]:
    timed = database["links"].find({"last.duration_ms": {"$gte": 0}, **reading.ACTIVE}, {"last.record": 1})
    names = [link["last"]["record"] for link in timed.sort("last.duration_ms", -1).limit(top)]
    found = {document["_id"]: document for document in database["records"].find({"_id": {"$in": names}})}
    return (record_from(found[name]) for name in names)


def _mismatches(database: Database[Document], top: int) -> Iterator[Mismatch]:
    """By the link's expected media type, which never changes once given: it is the record's too."""
    pairs = database["links"].aggregate(
        [
            {"$match": {**_MISMATCHED, **reading.ACTIVE}},
            {
                "$group": {
                    "_id": {"expected": "$expected_mime", "got": "$last.mime"},
                    "count": {"$sum": 1},
                    "example": {"$min": "$url"},
                }
            },
            {"$sort": {"count": -1, "_id.expected": 1, "_id.got": 1}},
            {"$limit": top},
        ]
    )
    for pair in pairs:
        yield Mismatch(**pair["_id"], count=pair["count"], example=pair["example"])


def _spans(database: Database[Document]) -> Iterator[Span]:
    month = {"$dateToString": {"date": "$checked_at", "format": "%Y-%m"}}
    spans = database["records"].aggregate(
        [
            {"$project": {"link": 1, "checked_at": 1, "category": 1, "month": month}},
            {
                "$setWindowFields": {
                    "partitionBy": "$link",
                    "sortBy": {"checked_at": 1},
                    "output": {"ends": {"$shift": {"output": "$month", "by": 1}}},
                }
            },
            {"$match": {"$expr": {"$ne": ["$month", "$ends"]}}},
            {
                "$group": {
                    "_id": {"category": "$category", "begins": "$month", "ends": "$ends"},
                    "count": {"$sum": 1},
                }
            },
        ]
    )
    for span in spans:
        stretch = span["_id"]
        yield Span(
            category=Category(stretch["category"]),
            begins=stretch["begins"],
            ends=stretch.get("ends"),
            count=span["count"],
        )
    # The latest record of a retired link counts no more from the month in which the link was retired.
    taken = {"$max": ["$retired_at", "$last.checked_at"]}
    retired = database["links"].aggregate(
        [
            {"$match": {**RETIRED_ONLY, "last": {"$ne": None}}},
            {
                "$group": {
                    "_id": {
                        "category": "$last.category",
                        "month": {"$dateToString": {"date": taken, "format": "%Y-%m"}},
                    },
                    "count": {"$sum": 1},
                }
            },
        ]
    )
    for line in retired:
        of = line["_id"]
        yield Span(category=Category(of["category"]), begins=of["month"], ends=None, count=-line["count"])
