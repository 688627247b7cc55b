"""Collections of MongoDB as sources: both layouts, whatever stands in a document, and what comes in later."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from bson import Binary, Decimal128, Int64, ObjectId
from bson.datetime_ms import DatetimeMS
from pymongo.collection import Collection

from linkcrawl import sources
from linkcrawl.errors import ConfigError
from linkcrawl.ingest.ingest import IngestCounts, ingest
from linkcrawl.items import Reject, Seed
from linkcrawl.sources.databases import NewDocuments, SourceLost
from linkcrawl.stores.opening import open_store
from tests.contract.mongodb import Client, Mongod, database, looking_at, mongod, server_url

Documents = Collection[dict[str, Any]]


@pytest.fixture
def url() -> Iterator[str]:
    with database(server_url()) as url:
        yield url


@pytest.fixture
def documents(url: str) -> Iterator[Documents]:
    with looking_at(url) as seen:
        yield seen.create_collection("seeds")


@pytest.fixture(scope="module")
def replica_set(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mongod]:
    with mongod(tmp_path_factory.mktemp("replica"), "--replSet", "rs") as server:
        with Client(server.url, directConnection=True) as client:
            member = {"_id": 0, "host": f"127.0.0.1:{server.port}"}
            client.admin.command("replSetInitiate", {"_id": "rs", "members": [member]})
        with Client(f"{server.url}/?replicaSet=rs") as client:
            client.admin.command("ping")
        yield server


def read(url: str) -> list[Seed | Reject]:
    return list(sources.read(f"{url}/seeds"))


def test_our_fields_and_the_older_layout(url: str, documents: Documents) -> None:
    ours = {
        "url": "https://a.example/1",
        "collection": "C",
        "record": "r",
        "expected_mime": "text/html",
        "provider": "P",
        "resource_type": "LandingPage",
        "priority": Int64(5),
        "note": "kept",
    }
    older = {"url": "https://a.example/2", "collection": "D", "record": "s", "expectedMimeType": "text/xml"}
    documents.insert_many([{"_id": 1, **ours}, {"_id": 2, **older}])
    known = {name: value for name, value in ours.items() if name != "note"}
    assert read(url) == [
        Seed(**known, extra={"note": "kept"}),
        Seed(url="https://a.example/2", collection="D", record="s", expected_mime="text/xml"),
    ]


def test_a_document_with_nothing_to_check_is_rejected_and_named(url: str, documents: Documents) -> None:
    bad: list[dict[str, Any]] = [
        {},
        {"url": None},
        {"url": 7},
        {"url": {"$gt": ""}},
        {"url": "no scheme"},
        {"URL": "x"},
    ]
    good = {"url": "https://a.example/"}
    documents.insert_many([{"_id": place, **document} for place, document in enumerate([*bad, good])])
    *rejects, seed = read(url)
    assert seed == Seed(url="https://a.example/")
    assert all(isinstance(reject, Reject) for reject in rejects)
    assert [reject.line for reject in rejects] == [1, 2, 3, 4, 5, 6]  # type: ignore[union-attr]
    assert {reject.source for reject in rejects} == {f"{url}/seeds"}  # type: ignore[union-attr]
    assert '"_id": 4' in rejects[4].text  # type: ignore[union-attr]


STRANGE = {
    "an object id": (ObjectId("6569a0c0a1b2c3d4e5f60718"), "6569a0c0a1b2c3d4e5f60718"),
    "a date": (datetime(2026, 11, 30, 9, 5, tzinfo=UTC), "2026-11-30T09:05:00"),
    "a date after the year 9999": (DatetimeMS(10**15), 10**15),
    "a decimal": (Decimal128("1.50"), "1.50"),
    "bytes": (Binary(b"\xff", 128), "b'\\xff'"),
    "operators": ({"$where": "1", "a.b": [{"$gt": ""}]}, {"$where": "1", "a.b": [{"$gt": ""}]}),
    "a large number": (Int64(2**62), 2**62),
    "NUL": ("a\0b", "a\0b"),
}


@pytest.mark.parametrize("case", STRANGE)
def test_whatever_a_document_holds_is_kept(url: str, documents: Documents, tmp_path: Path, case: str) -> None:
    given, kept = STRANGE[case]
    documents.insert_one({"url": "https://a.example/", "field": given})
    [seed] = read(url)
    assert isinstance(seed, Seed)
    assert seed.extra == {"field": kept}
    store = open_store(f"sqlite:///{tmp_path}/store.db")
    assert ingest([f"{url}/seeds"], store, tmp_path / "rejects") == IngestCounts(read=1, new=1)
    [link] = store.due("a.example", 1.0, 5)
    assert store.proxies([link.id])[link.id][0].extra == {"field": kept}
    store.close()


def test_a_collection_is_streamed_in_order(url: str, documents: Documents) -> None:
    documents.insert_many([{"_id": place, "url": f"https://a.example/{place}"} for place in range(5000, 0, -1)])
    assert [seed.url for seed in read(url)] == [f"https://a.example/{place}" for place in range(1, 5001)]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("source", "part"),
    [
        ("mongodb://u:secret@127.0.0.1:1/db", "names no collection"),
        ("mongodb://127.0.0.1:1", "names no collection"),
        ("mongodb://127.0.0.1:1//seeds", "names no collection"),
        ("mongodb://u:secret@127.0.0.1:1/db/seeds?serverSelectionTimeoutMS=200", "refused"),
        ("mongodb://127.0.0.1:1/db/seeds?tsl=1", "Unknown option"),
        ("mongodb://127.0.0.1:x/db/seeds", "is not understood"),
    ],
)
def test_a_source_that_cannot_be_read_is_one_line(source: str, part: str) -> None:
    with pytest.raises(ConfigError) as refused:
        sources.check_source(source)
    said = str(refused.value)
    assert said.startswith("seeds: mongodb://127.0.0.1")
    assert part in said
    assert "secret" not in said
    assert "\n" not in said


def test_a_collection_that_is_not_there_is_told(url: str, documents: Documents) -> None:
    with pytest.raises(ConfigError, match="there is no collection 'seed' in this database"):
        sources.read(f"{url}/seed")
    sources.check_source(f"{url}/seeds")


def urls_of(new: NewDocuments) -> list[str]:
    return [row.url for row in new.poll() if isinstance(row, Seed)]


@pytest.fixture(params=["standalone", "replica set"])
def live(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a database of either kind of server."""
    if request.param == "standalone":
        with database(server_url()) as url:
            yield url
    else:
        with database(request.getfixturevalue("replica_set").url) as url:
            yield f"{url}?replicaSet=rs"


def source_of(live: str) -> str:
    return live.replace("?", "/seeds?") if "?" in live else f"{live}/seeds"


def test_documents_that_come_later_are_found_once(live: str) -> None:
    with looking_at(live) as seen:
        seen["seeds"].insert_one({"url": "https://a.example/before"})
        new = NewDocuments(source_of(live))
        assert urls_of(new) == []
        for n in range(3):
            seen["seeds"].insert_many([{"url": f"https://a.example/{n}/{m}"} for m in range(200)])
            assert sorted(urls_of(new)) == sorted(f"https://a.example/{n}/{m}" for m in range(200))
            assert urls_of(new) == []
        new.close()


def test_a_document_of_a_slower_clock_is_found(live: str) -> None:
    with looking_at(live) as seen:
        new_id = ObjectId()
        older = ObjectId.from_datetime(new_id.generation_time - timedelta(seconds=30))
        seen["seeds"].insert_one({"_id": new_id, "url": "https://a.example/1"})
        new = NewDocuments(source_of(live))
        seen["seeds"].insert_one({"_id": older, "url": "https://a.example/2"})
        assert urls_of(new) == ["https://a.example/2"]
        assert urls_of(new) == []
        new.close()


@pytest.mark.parametrize("ids", [(1, 2, 3), ("a", "b", "c"), (1.5, 2, 3.5)], ids=str)
def test_ids_that_count_on_are_followed(live: str, ids: tuple[Any, ...]) -> None:
    with looking_at(live) as seen:
        seen["seeds"].insert_one({"_id": ids[0], "url": "https://a.example/0"})
        new = NewDocuments(source_of(live))
        for n in (1, 2):
            seen["seeds"].insert_one({"_id": ids[n], "url": f"https://a.example/{n}"})
            assert urls_of(new) == [f"https://a.example/{n}"]
        new.close()


def test_an_empty_collection_is_followed_from_its_first_document(live: str) -> None:
    with looking_at(live) as seen:
        seen.create_collection("seeds")
        new = NewDocuments(source_of(live))
        assert urls_of(new) == []
        seen["seeds"].insert_many([{"url": "https://a.example/1"}, {"url": "https://a.example/2"}])
        assert sorted(urls_of(new)) == ["https://a.example/1", "https://a.example/2"]
        assert urls_of(new) == []
        new.close()


def test_new_documents_are_found_without_a_scan(url: str, documents: Documents) -> None:
    documents.insert_many(
        [
            {
                "_id": ObjectId.from_datetime(datetime.now(UTC) - timedelta(days=1, minutes=n)),
                "url": "https://a.example/",
            }
            for n in range(2000)
        ]
    )
    new = NewDocuments(f"{url}/seeds")
    documents.insert_one({"url": "https://a.example/new"})
    documents.database.command("profile", 2)
    assert urls_of(new) == ["https://a.example/new"]
    documents.database.command("profile", 0)
    new.close()
    [asked] = documents.database["system.profile"].find({"command.find": "seeds"})
    assert asked["docsExamined"] < 10


def test_a_replica_set_tells_of_updates_too(replica_set: Mongod) -> None:
    with database(replica_set.url) as url, looking_at(url) as seen:
        seen["seeds"].insert_one({"_id": 1, "url": "wrong"})
        new = NewDocuments(f"{url}/seeds?replicaSet=rs")
        seen["seeds"].update_one({"_id": 1}, {"$set": {"url": "https://a.example/right"}})
        seen["seeds"].insert_one({"_id": 2, "url": "https://a.example/gone"})
        seen["seeds"].delete_one({"_id": 2})
        assert "https://a.example/right" in urls_of(new)
        new.close()


def test_a_source_that_was_away_goes_on_where_it_ended(tmp_path: Path) -> None:
    with mongod(tmp_path, "--replSet", "rs") as server:
        with Client(server.url, directConnection=True) as client:
            member = {"_id": 0, "host": f"127.0.0.1:{server.port}"}
            client.admin.command("replSetInitiate", {"_id": "rs", "members": [member]})
        url = f"{server.url}/db?replicaSet=rs"
        with looking_at(url) as seen:
            seen["seeds"].insert_one({"url": "https://a.example/1"})
            new = NewDocuments(f"{server.url}/db/seeds?replicaSet=rs&serverSelectionTimeoutMS=500")
            seen["seeds"].insert_one({"url": "https://a.example/2"})
            assert urls_of(new) == ["https://a.example/2"]
        server.kill()
        with pytest.raises(SourceLost) as lost:
            urls_of(new)
        assert "\n" not in str(lost.value)
        server.start()
        with looking_at(url) as seen:
            seen["seeds"].insert_one({"url": "https://a.example/3"})
        found: list[str] = []
        deadline = time.monotonic() + 60
        while not found and time.monotonic() < deadline:
            try:
                found = urls_of(new)
            except SourceLost:
                time.sleep(0.2)
        assert found == ["https://a.example/3"]
        new.close()


def test_a_collection_that_is_lost_while_it_is_read_ends_with_one_reject(tmp_path: Path) -> None:
    with mongod(tmp_path) as server:
        with looking_at(f"{server.url}/db") as seen:
            seen["seeds"].insert_many([{"url": f"https://a.example/{os.urandom(400).hex()}"} for _ in range(30_000)])
        reading = sources.read(f"{server.url}/db/seeds?serverSelectionTimeoutMS=500")
        first = next(reading)
        server.kill()
        *rest, last = [first, *reading]
    assert all(isinstance(row, Seed) for row in rest)
    assert isinstance(last, Reject)
    assert last.why.startswith("can't be read further: ")
