"""A MongoDB store that can't be opened says so in one line, soon, and shows no password."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pymongo.errors import WriteError

from linkcrawl.errors import StoreError, StoreLost
from linkcrawl.stores.layout import LAYOUT
from linkcrawl.stores.mongo.schema import OURS, REQUIRED
from linkcrawl.stores.opening import open_existing, open_store
from tests.contract.making import check, entry, link
from tests.contract.mongodb import Client, database, looking_at, mongod, server_url


@pytest.fixture
def url() -> Iterator[str]:
    with database(server_url()) as url:
        yield url


def refusal(url: str) -> str:
    with pytest.raises(StoreError) as refused:
        open_store(url)
    said = str(refused.value)
    assert said.startswith("LINKCRAWL_STORE: ")
    assert "\n" not in said
    assert len(said) < 600
    return said


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("mongodb://127.0.0.1:27017", "names no database; mongodb://127.0.0.1:27017/linkcrawl would work"),
        ("mongodb://127.0.0.1:27017/?w=1", "names no database"),
        ("mongodb:///db", "is not understood"),
        ("mongodb://127.0.0.1:port/db", "is not understood"),
        ("mongodb://127.0.0.1:99999/db", "is not understood"),
        ("mongodb://127.0.0.1:27017/a$b", "is not understood"),
        ("mongodb://127.0.0.1:27017/a.b", "has a dot in the name of its database"),
        ("mongodb://127.0.0.1/db?w=-7", "is not understood"),
        ("mongodb://127.0.0.1/db?tsl=true", "is not understood: Unknown option"),
        ("mongodb://user:pass/word@127.0.0.1/db", "is not understood"),
        ("mongodb+srv://127.0.0.1/db", "is not understood"),
        ("mongo://127.0.0.1/db", "is not understood"),
    ],
)
def test_a_url_that_cannot_be_used(url: str, part: str) -> None:
    said = refusal(url)
    assert part in said
    assert "would work" in said
    assert "pass" not in said.replace("password", "")
    assert "word@" not in said


def test_nobody_there_is_told_within_seconds() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        began = time.monotonic()
        said = refusal(f"mongodb://u:secret@127.0.0.1:{closed.getsockname()[1]}/db")
    assert "refused" in said
    assert "secret" not in said
    assert time.monotonic() - began < 30


def test_a_port_that_is_no_mongodb_is_told_within_seconds() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        said = refusal(f"mongodb://127.0.0.1:{silent.getsockname()[1]}/db?connectTimeoutMS=300")
    assert "timed out" in said


def test_a_store_of_a_newer_version_is_refused_and_left_alone(url: str) -> None:
    open_store(url).close()
    with looking_at(url) as seen:
        seen["meta"].update_one({"_id": "schema"}, {"$set": {"version": LAYOUT + 1}})
    assert f"has version {LAYOUT + 1}, made by a newer linkcrawl; this one knows versions up to {LAYOUT}" in refusal(
        url
    )


@pytest.mark.parametrize("name", ["links", "records", "meta"])
def test_a_database_of_another_program_is_refused_and_left_alone(url: str, name: str) -> None:
    with looking_at(url) as seen:
        seen[name].insert_one({"theirs": 1})
        assert f"holds a collection {name!r} of another program" in refusal(url)
        assert seen.list_collection_names() == [name]


def test_other_collections_may_stand_beside_a_store(url: str) -> None:
    with looking_at(url) as seen:
        seen["linksChecked"].insert_one({"url": "https://a.example/"})
        open_store(url).close()
        open_store(url).close()
        assert seen["linksChecked"].count_documents({"url": "https://a.example/"}) == 1


def test_an_index_that_cannot_be_made_is_told(url: str) -> None:
    with looking_at(url) as seen:
        open_store(url).close()
        seen["links"].drop_index("by_turn")
        seen["links"].create_index([("url", 1)], name="by_turn")
    assert "by_turn" in refusal(url)


def test_a_command_that_only_reads_makes_no_store(url: str) -> None:
    with pytest.raises(StoreError, match=r"there is no store mongodb://.* yet; `scrapy seed` or a crawl makes one"):
        open_existing(url)
    with looking_at(url) as seen:
        assert seen.list_collection_names() == []
    open_store(url).close()
    open_existing(url).close()


@pytest.mark.parametrize("name", ["admin", "config", "local"])
def test_a_database_of_the_servers_own_is_refused(name: str) -> None:
    said = refusal(f"mongodb://u:secret@127.0.0.1:1/{name}")
    assert f"/{name} names a database of the server's own; mongodb://127.0.0.1:1/linkcrawl would work" in said
    assert "secret" not in said


@pytest.mark.parametrize("option", ["tlsCAFile", "tlsCertificateKeyFile", "tlsCRLFile"])
@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
def test_a_file_of_tls_that_cannot_be_used_is_told(tmp_path: Path, option: str, content: bytes | None) -> None:
    file = tmp_path / "x.pem"
    if content is not None:
        file.write_bytes(content)
    said = refusal(f"mongodb://u:secret@127.0.0.1:1/db?tls=true&{option}={file}&serverSelectionTimeoutMS=100")
    assert "secret" not in said


#: Documents of other programs, and what comes near to ours.
FOREIGN: list[dict[str, Any]] = [{"theirs": 1}, {"_id": "a" * 32, "url": "https://a.example/"}, {"_id": 5, "kind": "x"}]


@pytest.mark.parametrize("name", sorted(REQUIRED))
def test_documents_of_another_program_are_refused_by_the_server(url: str, name: str) -> None:
    store = open_store(url)
    store.add([entry(1, collection="C")])
    store.finish([check(link(store, 1), 1.0)])
    with looking_at(url) as seen:
        for foreign in FOREIGN[:1] if name == "collections" else FOREIGN:
            with pytest.raises(WriteError, match="failed validation"):
                seen[name].insert_one(dict(foreign))
    assert len(list(store.records())) == store.books(2.0).links == 1
    store.close()


def test_all_collections_but_meta_are_closed_to_others() -> None:
    assert {*REQUIRED, "meta"} == OURS


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """URLs of one store for users of a server that asks for passwords, by their role."""
    with mongod(tmp_path_factory.mktemp("users"), "--auth") as server, Client(server.url) as client:
        client.admin.command("createUser", "root", pwd="r", roles=["root"])
        place = server.url.removeprefix("mongodb://") + "/db"
        with Client(f"mongodb://root:r@{place}?authSource=admin") as root:
            for role in ("read", "readWrite"):
                root["db"].command("createUser", role, pwd="p:@/ä", roles=[role])
            root["db"].command("createUser", "none", pwd="p:@/ä", roles=[])
        yield {role: f"mongodb://{role}:p%3A%40%2F%C3%A4@{place}" for role in ("read", "readWrite", "none")}


def test_whoever_may_only_read_can_export_and_report(users: dict[str, str]) -> None:
    store = open_store(users["readWrite"])
    store.add([entry(1, collection="C")])
    store.finish([check(link(store, 1), 1.0)])
    store.close()
    reader = open_existing(users["read"])
    assert [record.url for record in reader.records()] == ["https://a.example/1"]
    assert reader.summary(2.0).books.checked == 1
    with pytest.raises(StoreLost, match=r"not authorized on db to execute command (insert|update)"):
        reader.add([entry(2)])
    reader.close()


@pytest.mark.parametrize("role", ["read", "none"])
def test_who_may_not_write_is_told_what_would_work(users: dict[str, str], role: str) -> None:
    open_store(users["readWrite"]).close()
    said = refusal(users[role])
    assert "not authorized on db to execute command " in said
    assert "{" not in said
    assert said.endswith("a user with the role readWrite would work, and read for exports and reports")


def test_who_has_no_password_or_a_wrong_one_is_told(users: dict[str, str]) -> None:
    assert "Authentication failed" in refusal(users["read"].replace("%3A", "x"))
    assert "requires authentication" in refusal("mongodb://" + users["read"].rpartition("@")[2])
