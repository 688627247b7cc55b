"""Collections of a store that somebody drops: noticed under a crawl, mended when the store is opened again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pymongo
import pytest
from pymongo.errors import WriteError

from linkcrawl.errors import StoreError, StoreLost
from linkcrawl.stores.contract import Query, Store
from linkcrawl.stores.mongo import dropped
from linkcrawl.stores.mongo.schema import OURS
from linkcrawl.stores.opening import open_store
from tests.contract.making import check, entry, links
from tests.contract.mongodb import Client, database, server_url


@pytest.fixture
def url() -> Iterator[str]:
    with database(server_url()) as url:
        yield url


@pytest.fixture
def store(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr(dropped, "LOOK", 0.0)
    with closing(open_store(url)) as store:
        store.claim()
        store.add([entry(n) for n in range(4)])
        store.finish([check(link, 1000.0) for link in links(store)[:2]])
        yield store


def drop(url: str, name: str) -> None:
    client: Client = pymongo.MongoClient(url)
    with client:
        client.get_default_database()[name].drop()


@pytest.mark.parametrize("name", sorted(OURS))
def test_a_collection_that_is_dropped_under_a_crawl_is_noticed(store: Store, url: str, name: str) -> None:
    store.due("a.example", 2e9, 10)
    drop(url, name)
    for _ in range(2):  # it doesn't come back, also where a write has made it anew
        with pytest.raises(StoreLost, match=f"the collection {name} was dropped while in use"):
            store.finish([check(link, 2000.0) for link in links(store)[:2]])


def test_a_store_whose_meta_was_dropped_is_whole_again(
    store: Store, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    store.close()
    drop(url, "meta")
    with closing(open_store(url)) as again:
        assert "the collection meta was lost" in caplog.text
        again.finish([check(link, 2000.0) for link in links(again)[:2]])
        assert [record.checked_at for record in again.records(Query(history=True))] == [1000.0, 1000.0, 2000.0, 2000.0]
        assert again.books(3000.0).checked == 4
    with closing(open_store(url)) as third:
        assert len(list(third.records())) == 4


def test_without_meta_a_collection_of_another_layout_is_another_programs(store: Store, url: str) -> None:
    store.close()
    drop(url, "meta")
    client: Client = pymongo.MongoClient(url)
    with client:
        client.get_default_database().command("collMod", "links", validator={})
    with pytest.raises(StoreError, match="of another program"):
        open_store(url)


def test_a_dropped_collection_gets_its_validator_and_indexes_back(store: Store, url: str) -> None:
    drop(url, "records")
    client: Client = pymongo.MongoClient(url)
    with client:
        records = client.get_default_database()["records"]
        records.insert_one({"_id": "made by a write"})
        records.delete_many({})
        store.close()
        with closing(open_store(url)) as again:
            assert list(again.records()) == []
            again.finish([check(link, 2000.0) for link in links(again)[:2]])
            assert len(list(again.records())) == 2
        with pytest.raises(WriteError):
            records.insert_one({"_id": "of another program"})
