"""The HTTP service over a store, asked over a socket."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing, suppress
from typing import Any
from urllib.parse import quote

import pytest
from aiohttp import ClientSession, web
from attrs import frozen

from linkcrawl import urls
from linkcrawl.config import KNOWN, Config, read_config
from linkcrawl.items import Act, Category, Order, Seed, iso
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.service.openapi import openapi
from linkcrawl.service.reading import Reading
from linkcrawl.service.routes import ROUTES
from linkcrawl.service.server import LONGEST_BODY, Api, ApiServer
from linkcrawl.stores.contract import LinkEntry, Store
from linkcrawl.stores.opening import open_store
from tests.contract.making import check

PATHS = ["/v1/links?url=http://a.example/0", "/v1/checks", "/v1/collections", "/v1/hosts", "/v1/report"]
PATHS += ["/v1/openapi.json", "/v1/links/history?url=http://a.example/0", "/v1/hosts/a.example", "/v1/health"]
LINES = {"Accept": "application/x-ndjson"}
#: Long ago, so that no list ends before it.
THEN = 1_700_000_000.0


@frozen
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        assert self.headers["Content-Type"] == "application/x-ndjson"
        return [json.loads(line) for line in self.body.splitlines()]


class Asker:
    """A client of one service."""

    def __init__(self, session: ClientSession, base: str):
        self._session = session
        self._base = base

    async def __call__(self, path: str, body: Any = None, method: str | None = None, **headers: str) -> Answer:
        from yarl import URL

        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if isinstance(body, dict):
            body, named = json.dumps(body), {"Content-Type": "application/json", **named}
        method = method or ("GET" if body is None else "POST")
        url = URL(self._base + path, encoded=True)
        async with self._session.request(method, url, data=body, headers=named) as answer:
            return Answer(answer.status, answer.headers, await answer.read())

    async def pages(self, path: str, name: str) -> list[Any]:
        found = []
        following: str | None = path
        while following is not None:
            page = (await self(following)).json
            found += page[name]
            following = page["links"]["next"]
        return found


def config_of(store_url: str) -> Config:
    settings: dict[str, Any] = {name: setting.default for name, setting in KNOWN.items()}
    settings |= {"DOWNLOAD_DELAY": 1, "AUTOTHROTTLE_TARGET_CONCURRENCY": 0.2, "AUTOTHROTTLE_MAX_DELAY": 60}
    return read_config({**settings, "CONCURRENT_REQUESTS": 8, "LINKCRAWL_STORE": store_url}, need_contact=False)


def serving(url: str, ask: Callable[[Asker], Awaitable[None]]) -> None:
    """Ask a service over this store."""

    async def run() -> None:
        reading = Reading(config_of(url), Policies(), openapi(ROUTES))
        runner = web.ServerRunner(ApiServer(Api(reading, ROUTES)), shutdown_timeout=0.1)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            port = runner.addresses[0][1]
            async with ClientSession(auto_decompress=False, headers={"Accept-Encoding": "identity"}) as session:
                await ask(Asker(session, f"http://127.0.0.1:{port}"))
        finally:
            await runner.cleanup()
            reading.close()

    asyncio.run(asyncio.wait_for(run(), 60))


def add(store: Store, url: str, **seed: Any) -> None:
    target = urls.read(url)
    host = target.host if isinstance(target, urls.Target) else ""
    store.add([LinkEntry(key=urls.identity(url), url=url, host=host, seed=Seed(url=url, **seed))])


@pytest.fixture
def url(new_url: Callable[[], str]) -> str:
    """A store of five links at two hosts; four were checked, the first twice."""
    made = new_url()
    with closing(open_store(made)) as store:
        for n in range(5):
            add(store, f"http://{'ab'[n % 2]}.example/{n}", collection=f"C/{n % 2} é", provider="P")
        for n in range(4):
            link = store.link(urls.identity(f"http://{'ab'[n % 2]}.example/{n}"))
            assert link is not None
            bad = {"category": Category.BROKEN, "reason": "http_404", "status": 404} if n == 1 else {}
            store.finish([check(link, THEN + n, THEN + 1e9, **bad)])
            if n == 0:
                store.finish([check(link, THEN + 10, THEN + 1e9)])
    return made


def test_links_are_answered_known_or_not(url: str) -> None:
    async def ask(get: Asker) -> None:
        known = (await get("/v1/links?url=http://a.example/0")).json
        assert (known["known"], known["state"], known["collections"]) == (True, "later", ["C/0 é"])
        assert known["next_check_at"] == known["record"]["next_check_at"] == iso(THEN + 1e9)
        assert known["record"]["checked_at"] == iso(THEN + 10)
        fresh = (await get("/v1/links?url=http://a.example/4")).json
        assert (fresh["state"], fresh["record"], fresh["next_check_at"]) == ("due", None, None)
        for text in ("http://nobody.example/", "not a url", "http://a.example/%00", "%"):
            got = (await get(f"/v1/links?url={quote(text)}")).json
            assert got["url"] == text
            assert (got["known"], got["state"], got["record"], got["collections"]) == (False, "unknown", None, [])
        assert b"secret" not in (await get("/v1/links?url=http://me:secret@nobody.example/")).body

    serving(url, ask)


def test_a_lookup_answers_in_the_order_asked(url: str) -> None:
    asked = ["http://b.example/1", "http://nobody.example/", "http://a.example/0", "http://b.example/1", ""]

    async def ask(get: Asker) -> None:
        answer = (await get("/v1/links/lookup", {"urls": asked})).json["results"]
        assert [row["url"] for row in answer] == asked
        assert [row["known"] for row in answer] == [True, False, True, True, False]
        assert answer[2] == (await get("/v1/links?url=http://a.example/0")).json
        text = await get("/v1/links/lookup", "\r\n".join(asked).encode(), Content_Type="text/plain")
        assert text.json["results"] == answer[:4]  # an empty line is no URL
        assert (await get("/v1/links/lookup", {"urls": asked}, **LINES)).lines == answer
        many = await get("/v1/links/lookup", {"urls": ["http://x.example/"] * 10_001})
        assert many.status == 400

    serving(url, ask)


def test_lists_are_the_same_by_pages_of_any_size_and_as_lines(url: str) -> None:
    async def ask(get: Asker) -> None:
        whole = (await get("/v1/checks?history=1")).json["records"]
        assert [record["checked_at"] for record in whole] == [iso(THEN + n) for n in (0, 1, 2, 3, 10)]
        for limit in (1, 2, 1000):
            assert await get.pages(f"/v1/checks?history=1&limit={limit}", "records") == whole
        assert (await get("/v1/checks?history=1&limit=1", **LINES)).lines == whole
        assert len((await get("/v1/checks")).json["records"]) == 4
        first = (await get("/v1/links/history?url=http://a.example/0&limit=1")).json
        assert first["records"] == whole[:1]
        assert (await get.pages("/v1/links/history?url=http://a.example/0&limit=1", "records")) == [whole[0], whole[4]]
        assert (await get("/v1/links/history?url=http://nobody.example/")).json["records"] == []
        hosts = await get.pages("/v1/hosts?limit=1", "hosts")
        assert [host["host"] for host in hosts] == ["a.example"]  # only its links are due; nothing was asked
        names = [one["name"] for one in await get.pages("/v1/collections?limit=1", "collections")]
        assert names == ["C/0 é", "C/1 é"]
        assert (await get(f"/v1/collections/{quote(names[1], safe='')}")).json["name"] == names[1]

    serving(url, ask)


@pytest.mark.parametrize(
    ("query", "number"),
    [
        (f"since={quote(iso(THEN + 1))}&history=1", 4),
        (f"since={quote(iso(THEN + 1))}&until={quote(iso(THEN + 2))}&history=1", 1),
        ("since=2023-11-14T23:13:22%2B01:00&history=1", 3),
        ("category=Broken", 1),
        ("reason=http_404", 1),
        ("collection=C/1*", 2),
        ("provider=P&host=b.*", 2),
        ("provider=Q", 0),
        ("changed=1", 3),
        ("retired=1", 0),
    ],
)
def test_checks_are_chosen(url: str, query: str, number: int) -> None:
    async def ask(get: Asker) -> None:
        assert len((await get(f"/v1/checks?{query}")).json["records"]) == number

    serving(url, ask)


def test_a_list_ends_before_checks_that_may_still_be_joined_by_earlier_ones(url: str) -> None:
    with closing(open_store(url)) as store:
        link = store.link(urls.identity("http://a.example/4"))
        assert link is not None
        store.finish([check(link, time.time() - 1)])

    async def ask(get: Asker) -> None:
        assert len((await get("/v1/checks?history=1")).json["records"]) == 5
        assert (await get("/v1/links?url=http://a.example/4")).json["record"] is not None

    serving(url, ask)


def test_etags_hold_until_the_answer_changes(url: str) -> None:
    async def ask(get: Asker) -> None:
        tags = {}
        for path in PATHS:
            answer = await get(path)
            assert answer.status == 200, path
            assert answer.headers["Content-Type"] == "application/json"
            tags[path] = answer.headers["ETag"]
            head = await get(path, method="HEAD")
            assert (head.status, head.body, head.headers["ETag"]) == (200, b"", tags[path])
            same = await get(path, If_None_Match=f'"other", {tags[path]}')
            assert (same.status, same.body) == (304, b""), path
            assert (await get(path, If_None_Match='"other"')).status == 200
            packed = await get(path, Accept_Encoding="gzip")
            body = gzip.decompress(packed.body) if packed.headers.get("Content-Encoding") else packed.body
            assert body == answer.body
            assert "Accept-Encoding" in packed.headers["Vary"]
        with closing(open_store(url)) as store:
            add(store, "http://c.example/new", collection="New")
            store.give_order(Order(host="a.example", act=Act.BLOCK, at=time.time(), reason="moving"))
        await asyncio.sleep(0.5)  # four times what these small answers took
        for path in ("/v1/collections", "/v1/report", "/v1/hosts", "/v1/hosts/a.example"):
            assert (await get(path, If_None_Match=tags[path])).status == 200, path

    serving(url, ask)


def test_a_block_that_ends_by_the_clock_shows(url: str) -> None:
    with closing(open_store(url)) as store:
        now = time.time()
        store.give_order(Order(host="a.example", act=Act.BLOCK, at=now, reason="a moment", until=now + 1.0))

    async def ask(get: Asker) -> None:
        before = await get("/v1/hosts/a.example")
        assert before.json["state"] == "blocked"
        for _ in range(100):
            after = await get("/v1/hosts/a.example", If_None_Match=before.headers["ETag"])
            if after.status == 200:
                break
            await asyncio.sleep(0.05)
        assert after.json["state"] != "blocked"

    serving(url, ask)


BAD: list[tuple[int, str, str, Any, dict[str, str]]] = [
    (404, "GET", "/v1/nope", None, {}),
    (404, "GET", "/v1/report/", None, {}),
    (404, "GET", "/v1/hosts/none.example", None, {}),
    (404, "GET", "/v1/hosts/%00", None, {}),
    (404, "GET", "/v1/collections/none", None, {}),
    (404, "GET", "/v1/%2e%2e/%2e%2e/etc/passwd", None, {}),
    (400, "GET", "/v1/hosts/%ff", None, {}),
    (405, "DELETE", "/v1/links", None, {}),
    (405, "GET", "/v1/links/lookup", None, {}),
    (405, "OPTIONS", "/v1/report", None, {}),
    (400, "GET", "/v1/links", None, {}),
    (400, "GET", "/v1/links?url=a&url=b", None, {}),
    (400, "GET", "/v1/checks?offset=3", None, {}),
    (400, "GET", "/v1/report?token=x", None, {}),
    (400, "GET", "/v1/checks?" + "&".join(f"p{n}=1" for n in range(99)), None, {}),
    (400, "POST", "/v1/links/lookup", b"{", {"Content_Type": "application/json"}),
    (400, "POST", "/v1/links/lookup", b"", {"Content_Type": "application/json"}),
    (400, "POST", "/v1/links/lookup", b"[" * 100_000, {"Content_Type": "application/json"}),
    (400, "POST", "/v1/links/lookup", b'{"urls":' + b"9" * 9999 + b"}", {"Content_Type": "application/json"}),
    (400, "POST", "/v1/links/lookup", b"http://a/\xff", {"Content_Type": "text/plain"}),
    (400, "POST", "/v1/links/lookup", {"urls": "http://a/"}, {}),
    (400, "POST", "/v1/links/lookup", {"urls": [1]}, {}),
    (400, "POST", "/v1/links/lookup", {"urls": [], "more": 1}, {}),
    (415, "POST", "/v1/links/lookup", b"urls=1", {"Content_Type": "application/x-www-form-urlencoded"}),
    (415, "POST", "/v1/links/lookup", gzip.compress(b" " * 10**7), {"Content_Encoding": "gzip"}),
    (413, "POST", "/v1/links/lookup", io.BytesIO(b" " * (LONGEST_BODY + 1)), {"Content_Type": "application/json"}),
    (421, "GET", "/v1/report", None, {"Host": "evil.example"}),
    (421, "GET", "/v1/report", None, {"Host": "127.0.0.1.evil.example:80"}),
    (400, "GET", "/v1/report", None, {"X": "x" * 40_000}),
]


def test_every_error_is_a_problem(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    open_store(url).close()

    async def ask(get: Asker) -> None:
        for status, method, path, body, headers in BAD:
            answer = await get(path, body, method, **headers)
            assert answer.status == status, (method, path, answer.body)
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.json["status"] == status
            assert answer.json["title"]
        for value in ("abc", "'", quote('{"$gt":0}'), "AAAA"):
            assert (await get(f"/v1/checks?cursor={value}")).status == 404
        assert (await get("/v1/report", Host="localhost:9000")).status == 200
        assert (await get("/v1/report", Host="[::1]")).status == 200

    serving(url, ask)


def test_a_cursor_of_another_list_is_refused(url: str) -> None:
    async def ask(get: Asker) -> None:
        following = (await get("/v1/checks?history=1&limit=1")).json["links"]["next"]
        cursor = following.partition("cursor=")[2]
        assert (await get(f"/v1/checks?history=1&cursor={cursor}")).status == 200
        assert (await get(f"/v1/checks?cursor={cursor}")).status == 404
        assert (await get(f"/v1/hosts?cursor={cursor}")).status == 404

    serving(url, ask)


def test_a_store_that_is_lost_is_503_and_comes_back_by_itself(tmp_path: Any) -> None:
    path = f"{tmp_path}/store.db"
    url = f"sqlite:///{path}"
    with closing(open_store(url)) as store:
        add(store, "http://a.example/0")

    async def ask(get: Asker) -> None:
        asked = ["/v1/links?url=http://a.example/0", "/v1/report", "/v1/health", "/v1/hosts", "/v1/checks"]
        for one in asked:
            assert (await get(one)).status == 200
        os.rename(path, f"{path}.away")
        for one in asked:
            answer = await get(one)
            assert (answer.status, answer.headers["Content-Type"]) == (503, "application/problem+json"), one
            assert str(tmp_path).encode() not in answer.body
        os.rename(f"{path}.away", path)
        for one in asked:
            assert (await get(one)).status == 200

    serving(url, ask)


def test_a_fault_of_the_program_says_nothing_of_the_inside(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    open_store(url).close()

    def broken(*args: Any) -> None:
        raise KeyError("the inside")

    monkeypatch.setattr("linkcrawl.service.reading.link_rows", broken)

    async def ask(get: Asker) -> None:
        answer = await get("/v1/links?url=http://a.example/?secret")
        assert (answer.status, answer.headers["Content-Type"]) == (500, "application/problem+json")
        assert b"inside" not in answer.body
        assert (await get("/v1/health")).status == 200

    serving(url, ask)
    assert "the inside" in caplog.text
    assert "secret" not in caplog.text


def test_a_reader_who_takes_nothing_holds_up_nobody(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/store.db"
    with closing(open_store(url)) as store:
        add(store, "http://a.example/0")
        link = store.link(urls.identity("http://a.example/0"))
        assert link is not None
        store.finish([check(link, THEN + n, error="x" * 3000) for n in range(2000)])

    async def ask(get: Asker) -> None:
        base = get._base.removeprefix("http://")
        host, port = base.split(":")
        slow = []
        for _ in range(8):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(
                f"GET /v1/checks?history=1 HTTP/1.1\r\nHost: {base}\r\nAccept: application/x-ndjson\r\n\r\n".encode()
            )
            await reader.read(1)
            slow.append(writer)
        assert (await get("/v1/links?url=http://a.example/0")).json["known"]
        for writer in slow:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
        assert (await get("/v1/health")).status == 200

    serving(url, ask)
