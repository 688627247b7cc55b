"""The questions that docs/mongodb.md prints for mongosh run, by indexes, and its status table is the program's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from bson import json_util

from linkcrawl.items import Category
from linkcrawl.stores.contract import Store
from linkcrawl.stores.mongo.schema import OURS
from linkcrawl.stores.opening import open_store
from tests.contract.making import check, entry, link
from tests.contract.mongodb import database, looking_at, server_url
from tests.docs.pages import blocks, read, rows, section

PAGE = read("docs/mongodb.md")
QUESTIONS = [line for block in blocks(PAGE, "js") for line in block.splitlines()]


@pytest.fixture
def url() -> Iterator[str]:
    with database(server_url()) as url:
        with closing(open_store(url)) as store:
            fill(store)
        yield url


def fill(store: Store) -> None:
    """Something that each question finds."""
    store.add([entry(n, collection="Europeana", record="r") for n in (1, 2, 3)])
    broken = {"category": Category.BROKEN, "reason": "http_404", "status": 404}
    store.finish([check(link(store, 1), 1_795_910_400.0, **broken), check(link(store, 2), 1_795_910_401.0)])
    with looking_at(store._where) as seen:  # type: ignore[attr-defined]
        seen["links"].update_one({"url": "https://a.example/1"}, {"$set": {"url": "https://example.org/"}})


def asked(database: Any, question: str) -> list[dict[str, Any]]:
    """What mongosh would give: `db.COLLECTION.find(…).sort(…)` or `.aggregate(…)`."""
    parts = re.fullmatch(r"db\.(\w+)\.(find|aggregate)\((.*?)\)(?:\.sort\((.*)\))?", quoted(question))
    assert parts, question
    arguments = json_util.loads(f"[{parts[3]}]")
    cursor = getattr(database[parts[1]], parts[2])(*arguments)
    if parts[4]:
        cursor = cursor.sort(json_util.loads(parts[4]))
    return list(cursor)


def quoted(question: str) -> str:
    return re.sub(r'ISODate\(("[^"]*")\)', r'{"$date": \1}', question)


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_is_answered_by_an_index(url: str, question: str) -> None:
    with looking_at(url) as seen:
        seen.command("profile", 2)
        assert asked(seen, question)
        seen.command("profile", 0)
        [line] = seen["system.profile"].find({"op": {"$in": ["query", "command"]}, "planSummary": {"$exists": True}})
        assert "COLLSCAN" not in line["planSummary"] or "$unwind" in question


def test_the_status_table_is_the_programs(url: str) -> None:
    overall, of_one = [question for question in QUESTIONS if '"reason"' in question]
    with looking_at(url) as seen, closing(open_store(url)) as store:
        summary = store.summary(0.0)
        [of_collection] = summary.collections
        assert of_collection.name == "Europeana"
        for question, part in ((overall, summary.overall), (of_one, of_collection)):
            printed = [
                (line["_id"]["category"], line["_id"]["reason"], line["count"], line["mean_ms"], line["max_ms"])
                for line in asked(seen, question)
            ]
            assert len(printed) == 2
            assert printed == [
                (line.category, line.reason, line.count, line.total_ms / line.timed, line.max_ms)
                for line in part.tallies
            ]


def test_the_status_table_of_all_links_reads_no_document(url: str) -> None:
    overall = next(question for question in QUESTIONS if '"reason"' in question)
    with looking_at(url) as seen:
        seen.command("profile", 2)
        assert asked(seen, overall)
        seen.command("profile", 0)
        [line] = seen["system.profile"].find({"planSummary": {"$exists": True}})
    assert line["docsExamined"] == 0


def test_every_collection_and_field_is_described(url: str) -> None:
    text = section(PAGE, "Collections")
    assert {name for name in OURS if f"`{name}`" not in text} == set()
    with looking_at(url) as seen:
        stored = seen["links"].find_one({"last": {"$ne": None}})
        assert stored is not None
    named = {name for first, *_ in rows(text) for name in re.findall(r"`(\w+)`", first)}
    assert set(stored) <= named
