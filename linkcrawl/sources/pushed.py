"""Seeds that people push to Redis, as with scrapy-redis: `lpush resourceproxies:start_urls '{"url": "…"}'`, or a bare
URL.

A batch is moved to a list of its taker's own in one step, and acknowledged when it is in the store: a taker that dies
in between loses none. Rejected ones go to a list beside the key, too.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from functools import partial
from importlib import resources
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import redis
from attrs import asdict, frozen
from scrapy_redis.connection import get_redis

from linkcrawl.errors import ConfigError, SourceLost
from linkcrawl.items import Reject, Seed
from linkcrawl.sources.lines import MAX_LINE
from linkcrawl.sources.marks import Checkpoint
from linkcrawl.sources.rows import internal_error, reject, seed_or_reject
from linkcrawl.urls.userinfo import without_userinfo

logger = logging.getLogger(__name__)

#: Seeds that are in hand at a time.
AT_ONCE = 500
#: Seconds of silence after which what a taker has in hand goes back; far more than a batch takes.
SILENT = 120
#: Seconds to connect and to answer.
TIMEOUT = 5.0
#: Rejects that are kept beside the key; older ones are in LINKCRAWL_REJECTS only.
KEPT_REJECTS = 10_000


@frozen(kw_only=True)
class PushedKey:
    """A key of a Redis database. `server`: its redis:// URL."""

    server: str
    key: str

    @property
    def rejects(self) -> str:
        """The list beside the key: `resourceproxies:rejects` beside `resourceproxies:start_urls`."""
        before, colon, _ = self.key.rpartition(":")
        return f"{before}{colon}rejects" if colon else f"{self.key}:rejects"

    @property
    def shown(self) -> str:
        """The place for messages, without user and password."""
        return f"{without_userinfo(self.server)}/{self.key}"


def place_of(source: str) -> PushedKey:
    """The place that `redis://HOST[:PORT]/DB/KEY` names. Raises ConfigError."""
    parts = urlsplit(source)
    database, slash, key = parts.path.removeprefix("/").partition("/")
    if not (database.isdecimal() and slash and key):
        raise ConfigError(
            f"seeds: {without_userinfo(source)!r} names no database and key; "
            "redis://HOST/0/resourceproxies:start_urls would work"
        )
    return PushedKey(server=urlunsplit((parts.scheme, parts.netloc, f"/{database}", parts.query, "")), key=key)


def check(source: str) -> None:
    """Raise ConfigError, one line, where nothing can be taken there."""
    place = place_of(source)
    try:
        with _client(place) as client:
            client.ping()
    except (redis.RedisError, OSError, ValueError) as fault:
        said = " ".join(str(fault).split())
        raise ConfigError(f"seeds: {place.shown} can't be read: {said}; that of a running Redis would work") from None


def waiting(source: str) -> bool:
    """Whether something is there, or was in the hand of a taker. Raises SourceLost."""
    place = place_of(source)
    try:
        with _client(place) as client:
            return bool(client.exists(place.key, f"{place.key}:takers"))
    except redis.RedisError as fault:
        raise SourceLost(f"{place.shown}: {fault}") from fault


def read(source: str) -> Iterator[Seed | Reject | Checkpoint]:
    """Take all seeds that are there now. After each Checkpoint, what came before it must be in the store."""
    place, taker = place_of(source), uuid4().hex
    taking, takers = f"{place.key}:taking:{taker}", f"{place.key}:takers"
    script = resources.files("linkcrawl.sources").joinpath("pushed.lua").read_text(encoding="utf-8")
    number = 0
    try:
        with _client(place) as client:
            while pushed := client.eval(script, 3, place.key, taking, takers, taker, AT_ONCE, SILENT):
                rejected = []
                for text in pushed:
                    number += 1
                    row = _row(text, place.shown, number)
                    if isinstance(row, Reject):
                        rejected.append(row)
                    yield row
                yield Checkpoint(stored=partial(_acknowledge, client, place, taking, rejected))
            client.zrem(takers, taker)
    except redis.RedisError as fault:
        raise SourceLost(f"{place.shown}: {fault}") from fault


def look(source: str) -> Iterator[Seed | Reject]:
    """The seeds that are there now, which stay there. One that is pushed meanwhile may come, or not. Raises
    SourceLost."""
    place = place_of(source)
    try:
        with _client(place) as client:
            for number, text in enumerate(_there(client, place.key), 1):
                yield _row(text, place.shown, number)
    except redis.RedisError as fault:
        raise SourceLost(f"{place.shown}: {fault}") from fault


def _there(client: redis.Redis, key: str) -> Iterator[Any]:
    kind = client.type(key)
    if kind == b"set":
        yield from client.sscan_iter(key, count=AT_ONCE)
    elif kind == b"zset":
        yield from (text for text, _ in client.zscan_iter(key, count=AT_ONCE))
    else:  # counted from its end, which is the oldest: what is pushed meanwhile moves nothing
        last = -1
        while texts := client.lrange(key, last - AT_ONCE + 1, last):
            yield from reversed(texts)
            last -= AT_ONCE


def _acknowledge(client: redis.Redis, place: PushedKey, taking: str, rejected: list[Reject]) -> None:
    with client.pipeline() as batch:
        if rejected:
            batch.lpush(place.rejects, *(json.dumps(asdict(row)) for row in rejected))
            batch.ltrim(place.rejects, 0, KEPT_REJECTS - 1)
        batch.delete(taking)
        batch.execute()


def _row(pushed: bytes, source: str, number: int) -> Seed | Reject:
    """The seed of a pushed text, a JSON object or else a URL. Never raises: a fault of ours is logged and costs this
    text only."""
    try:
        return _read_row(pushed, source, number)
    except Exception as fault:
        logger.exception("%s:%d: no seed could be made of this text", source, number)
        return reject(internal_error(fault), source=source, line=number)


def _read_row(pushed: bytes, source: str, number: int) -> Seed | Reject:
    if len(pushed) > MAX_LINE:
        return reject(f"longer than {MAX_LINE} bytes", source=source, line=number)
    text = pushed.decode("utf-8", "replace").strip()
    if not text.startswith("{"):
        return seed_or_reject({"url": text}, source=source, line=number, text=text)
    try:
        row: Any = json.loads(text)
    except (ValueError, RecursionError) as fault:
        return reject(f"not JSON: {fault}", source=source, line=number, text=text)
    return seed_or_reject(row, source=source, line=number, text=text)


def _client(place: PushedKey) -> redis.Redis:
    client: redis.Redis = get_redis(
        url=place.server, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT, encoding="utf-8"
    )
    return client
