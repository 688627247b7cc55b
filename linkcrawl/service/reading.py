"""The calls that read: links, their checks, collections, hosts, the report."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from attrs import evolve, frozen

from linkcrawl import __version__, urls
from linkcrawl.config import Config
from linkcrawl.errors import StoreError
from linkcrawl.exports.jsonl import line
from linkcrawl.items import iso
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.service.cursors import cursor_of, position_of
from linkcrawl.service.problems import Problem
from linkcrawl.service.readers import StoreReaders
from linkcrawl.service.table import LARGEST_PAGE, PAGE, Call
from linkcrawl.service.views import HostsReader, View, report_view, same_hosts
from linkcrawl.stores.contract import KnownLink, Position, Query, Store
from linkcrawl.stores.rows import text
from linkcrawl.urls.userinfo import without_userinfo

#: Seconds before now at which lists of checks end. A record is stored up to that long after its check, unless the store
#: was lost meanwhile; so no record comes later that belongs before the end of a page.
SETTLED = 5.0
#: Threads that read the store for answers.
THREADS = 4


@frozen(kw_only=True)
class Reply:
    """An answer. `data`: JSON; or `lines`: of NDJSON, in parts of many lines. `untagged`: fields of `data` that may
    change without another ETag."""

    data: Any = None
    lines: AsyncIterator[bytes] | None = None
    status: int = 200
    headers: Mapping[str, str] = {}
    untagged: tuple[str, ...] = ()


class Reading:
    """Answers the calls of the table that read. Close it in the end."""

    def __init__(self, config: Config, policies: Policies, document: Mapping[str, Any]):
        self._readers = StoreReaders(config.store, THREADS)
        self._watcher = StoreReaders(config.store, 1)
        self._document = document
        self._report = View(self._readers, self._watcher, report_view(config))
        self._hosts = View(self._readers, self._watcher, HostsReader(config, policies), same_hosts)

    def close(self) -> None:
        self._readers.close()
        self._watcher.close()

    # -- links --------------------------------------------------------------------------------------------------

    async def link(self, call: Call) -> Reply:
        """GET /v1/links"""
        rows = await self._readers.call(lambda store: link_rows(store, [call.values["url"]], time.time()))
        return Reply(data=rows[0])

    async def lookup(self, call: Call) -> Reply:
        """POST /v1/links/lookup"""
        asked: list[str] = call.body["urls"]
        if call.wants_lines:
            parts = [asked[start : start + LARGEST_PAGE] for start in range(0, len(asked), LARGEST_PAGE)]
            return Reply(lines=self._lookup_lines(parts))
        rows = await self._readers.call(lambda store: link_rows(store, asked, time.time()))
        return Reply(data={"results": rows})

    async def _lookup_lines(self, parts: Sequence[Sequence[str]]) -> AsyncIterator[bytes]:
        for part in parts:
            yield await self._readers.call(_encoded(part))

    async def history(self, call: Call) -> Reply:
        """GET /v1/links/history"""
        url = urls.tidy(call.values["url"])
        key = urls.key(url, urls.read_tidy(url))
        known = await self._readers.call(lambda store: store.lookup([key]).get(key))
        if known is None:
            return _no_records() if not call.wants_lines else Reply(lines=_nothing())
        return await self._records(call, Query(link=known.link.id, history=True))

    # -- checks -------------------------------------------------------------------------------------------------

    async def checks(self, call: Call) -> Reply:
        """GET /v1/checks"""
        values = call.values
        since, until = values["since"], values["until"]
        if since is not None and until is not None and until < since:
            raise Problem(409, f"until: {call.given['until']!r} is before since; a later time would work")
        query = Query(
            since=since,
            until=until,
            collection=values["collection"],
            provider=values["provider"],
            host=values["host"],
            category=values["category"],
            reasons=() if values["reason"] is None else (values["reason"],),
            changed=bool(values["changed"]),
            history=bool(values["history"]),
            retired=bool(values["retired"]),
        )
        settled = time.time() - SETTLED
        return await self._records(call, evolve(query, until=settled if until is None else min(until, settled)))

    async def _records(self, call: Call, query: Query) -> Reply:
        conditions = _conditions(call)
        given = call.values["cursor"]
        after = None if given is None else Position(*position_of(given, call.path, conditions))
        if call.wants_lines:
            return Reply(lines=self._record_lines(query, after))
        limit = call.values["limit"] or PAGE
        placed = await self._readers.call(lambda store: store.page(query, limit + 1, after))
        more, page = len(placed) > limit, placed[:limit]
        position = [page[-1].position.at, page[-1].position.number] if more else None
        rows = [one.record.row() for one in page]
        return Reply(data={"records": rows, "links": {"next": _next(call, conditions, position)}})

    async def _record_lines(self, query: Query, after: Position | None) -> AsyncIterator[bytes]:
        while True:
            part, after = await self._readers.call(_encoded_page(query, after))
            if part:
                yield part
            if after is None:
                return

    # -- collections, hosts, the report -------------------------------------------------------------------------

    async def report(self, call: Call) -> Reply:
        """GET /v1/report"""
        return Reply(data=await self._report.value(), untagged=("made_at",))

    async def collections(self, call: Call) -> Reply:
        """GET /v1/collections"""
        sections = {section["name"]: section for section in (await self._report.value())["collections"]}
        ordered = {name or "": sections[name] for name in sorted(sections, key=lambda name: (name is not None, name))}
        return _page("collections", ordered, call)

    async def collection(self, call: Call) -> Reply:
        """GET /v1/collections/{name}"""
        wanted = call.values["name"]
        for section in (await self._report.value())["collections"]:
            if (section["name"] or "") == wanted:
                return Reply(data=section)
        raise Problem(404, f"name: the store has no links of a collection {wanted[:60]!r}; /v1/collections names all")

    async def hosts(self, call: Call) -> Reply:
        """GET /v1/hosts"""
        return _page("hosts", (await self._hosts.value()).rows, call)

    async def host(self, call: Call) -> Reply:
        """GET /v1/hosts/{host}"""
        answer, wanted = await self._hosts.value(), call.values["host"]
        host = wanted if wanted in answer.rows else urls.host_key(wanted)
        if host is None or host not in answer.rows:
            raise Problem(404, f"host: {wanted[:60]!r} is no host that links of the store lead to; /v1/hosts names all")
        return Reply(data=await self._readers.call(lambda store: answer.details(store, host)))

    # -- the service itself -------------------------------------------------------------------------------------

    async def openapi(self, call: Call) -> Reply:
        """GET /v1/openapi.json"""
        return Reply(data=self._document)

    async def health(self, call: Call) -> Reply:
        """GET /v1/health"""
        try:
            await self._watcher.call(lambda store: store.fingerprint(), seconds=10)
        except StoreError:
            raise Problem(503, "the store doesn't answer; the service goes on by itself when it does") from None
        return Reply(data={"status": "ok", "version": __version__})


def link_rows(store: Store, asked: Sequence[str], now: float) -> list[dict[str, Any]]:
    """What the store says of each of these URLs at `now` (Unix seconds), in their order. Raises StoreLost."""
    readings = [(url, urls.read_tidy(url)) for url in map(urls.tidy, asked)]
    keys = [urls.key(url, reading) for url, reading in readings]
    known = store.lookup(list(dict.fromkeys(keys)))
    return [
        _link_row(url, reading, known.get(key), now)
        for url, (_, reading), key in zip(asked, readings, keys, strict=True)
    ]


def _link_row(url: str, reading: urls.Target | urls.Refused, known: KnownLink | None, now: float) -> dict[str, Any]:
    state, why = _state(reading, known, now)
    has_next = known is not None and state != "retired" and known.record is not None
    return {
        "url": text(without_userinfo(url)),
        "known": known is not None,
        "state": state,
        "why": why,
        "next_check_at": iso(known.link.next_check_at) if known is not None and has_next else None,
        "collections": [] if known is None or known.is_retired else list(known.link.collections),
        "record": None if known is None or known.record is None else known.record.row(),
    }


def _state(reading: urls.Target | urls.Refused, known: KnownLink | None, now: float) -> tuple[str, str]:
    if known is None:
        never = f", and it can't be requested: {reading.error}" if isinstance(reading, urls.Refused) else ""
        return "unknown", f"the store doesn't have this URL{never}"
    if known.is_retired:
        return "retired", "no harvest mentions it any more; it isn't checked"
    link, record = known.link, known.record
    if record is None:
        return "due", "never checked yet"
    said = f"checked {iso(record.checked_at)}: {record.category}, {record.reason}"
    said += "" if record.confirmed else ", suspected only"
    if link.next_check_at <= now:
        return "due", f"{said}; due again since {iso(link.next_check_at)}"
    return "later", f"{said}; again at {iso(link.next_check_at)}"


def _encoded(asked: Sequence[str]) -> Callable[[Store], bytes]:
    return lambda store: b"".join(map(line, link_rows(store, asked, time.time())))


def _encoded_page(query: Query, after: Position | None) -> Callable[[Store], tuple[bytes, Position | None]]:
    """Reads and encodes the next lines of a stream; with the position to go on from, None at the end."""

    def read(store: Store) -> tuple[bytes, Position | None]:
        placed = store.page(query, LARGEST_PAGE, after)
        part = b"".join(line(one.record.row()) for one in placed)
        return part, placed[-1].position if len(placed) == LARGEST_PAGE else None

    return read


def _no_records() -> Reply:
    return Reply(data={"records": [], "links": {"next": None}})


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


def _page(name: str, items: Mapping[str, Any], call: Call) -> Reply:
    """A page of items that are ordered by their keys."""
    conditions, given = _conditions(call), call.values["cursor"]
    after = None if given is None else position_of(given, call.path, conditions)
    rest = [key for key in items if after is None or key > after]
    if call.wants_lines:
        return Reply(lines=_lines([items[key] for key in rest]))
    limit = call.values["limit"] or PAGE
    page = rest[:limit]
    position = page[-1] if len(rest) > limit else None
    return Reply(data={name: [items[key] for key in page], "links": {"next": _next(call, conditions, position)}})


async def _lines(rows: Sequence[Mapping[str, Any]]) -> AsyncIterator[bytes]:
    for start in range(0, len(rows), PAGE):
        yield b"".join(map(line, rows[start : start + PAGE]))


def _conditions(call: Call) -> dict[str, str]:
    return {name: value for name, value in call.given.items() if name not in ("cursor", "limit")}


def _next(call: Call, conditions: Mapping[str, str], position: Any) -> str | None:
    """The address of the next page; None where there is none."""
    if position is None:
        return None
    query = {name: value for name, value in call.given.items() if name != "cursor"}
    return f"{call.path}?{urlencode({**query, 'cursor': cursor_of(call.path, conditions, position)})}"
