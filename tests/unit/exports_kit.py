"""For tests of exports: records of every kind, the command run in this process, and a strict reader of EDGI lines."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from scrapy.settings import Settings

from linkcrawl.commands.export import Command
from linkcrawl.exports import FORMATS
from linkcrawl.exports.rows import Row
from linkcrawl.items import Category, DueLink, Hop, Record
from linkcrawl.stores.contract import Proxy
from tests.contract.making import record

#: 2026-11-30 11:00 UTC, and an hour.
HOUR = 3600
T = float(datetime(2026, 11, 30, 11, tzinfo=UTC).timestamp())

LINK = DueLink(id=1, url="https://a.example/1", host="a.example", collections=("A", "B"))


def hop(url: str, status: int | None = 200, method: str = "HEAD", **fields: Any) -> Hop:
    plain = {"location": None, "duration_ms": 7, "ip": "192.0.2.1", "error": None, "at": T}
    return Hop(url=url, status=status, method=method, **plain | fields)


def made(at: float = T, url: str = LINK.url, **fields: Any) -> Record:
    """A record of a link; a test names only what it is about."""
    return record(LINK, at, at + HOUR, url=url, **{"final_url": url} | fields)


#: The answers lead from one to two to three; the HEADs before found nothing.
REDIRECTED = made(
    redirects=2,
    method="GET",
    final_url="https://c.example/3",
    hops=(
        hop("https://a.example/1", 302, location="/login"),
        hop("https://a.example/login", 405),
        hop("https://a.example/1", None, "GET", error="broken off", duration_ms=None),
        hop("https://a.example/1", 301, "GET", location="//b.example/2"),
        hop("https://b.example/2", 308, "GET", location="https://c.example/3"),
        hop("https://c.example/3", 200, "GET", ip="2001:db8::3"),
    ),
)
DEAD = made(
    category=Category.BROKEN,
    reason="dns_not_found",
    confirmed=False,
    status=None,
    mime=None,
    duration_ms=None,
    error="there is no host a.example",
    attempt=1,
    hops=(hop(LINK.url, None, duration_ms=None, ip=None, error="there is no host a.example"),),
)
NEVER_ASKED = made(
    category=Category.BLOCKED_BY_ROBOTS,
    reason="robots_disallowed",
    status=None,
    method=None,
    mime=None,
    duration_ms=None,
    hops=(),
    attempt=1,
)
KINDS = {"plain": made(), "redirected": REDIRECTED, "dead": DEAD, "never_asked": NEVER_ASKED}

PROXY = Proxy(
    collection="A",
    record="oai:x:1",
    expected_mime="Text/HTML; charset=utf-8",
    provider="X",
    resource_type="Resource",
    extra={"note": "ä", "depth": [1, None]},
)


def encoded(name: str, records: Iterable[Record], proxy: Proxy | None = None) -> bytes:
    """The file that a format makes of records, each for the same mention."""
    rows = (Row(record=record, proxy=proxy) for record in records)
    return b"".join(FORMATS[name].encode(rows, proxy is not None))


def export(store_url: str, *arguments: object) -> int:
    """`scrapy export` with these arguments; its exit status."""
    command, parser = Command(), argparse.ArgumentParser()
    command.settings = Settings()
    command.settings.setmodule("linkcrawl.settings")
    command.settings.set("LINKCRAWL_STORE", store_url)
    command.add_options(parser)
    opts = parser.parse_args([str(argument) for argument in arguments])
    command.run([], opts)
    return command.exitcode


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


# web-monitoring-db, as of August 2026: the columns of `versions`, and what import job and models ask of them.
_KNOWN = {"url", "capture_time", "body_url", "body_hash", "source_type", "source_metadata", "status", "network_error"}
_KNOWN |= {"media_type", "content_length", "headers", "title", "page_maintainers", "page_tags"}
_PAGE = re.compile(r"\A(https?|ftp)://([^/@]+@)?([^/]+\.[^/]{2,})")


def edgi_import(line: bytes) -> dict[str, Any]:
    """One line as the importer takes it; AssertionError for what it would refuse, or lose."""
    assert line.count(b"\n") == 1
    assert line.endswith(b"\n")
    version: dict[str, Any] = json.loads(line, parse_constant=lambda name: {}[name])
    assert set(version) <= _KNOWN, "unknown fields are dropped without a word"
    assert b"\\u0000" not in line.replace(b"\\\\", b""), "PostgreSQL refuses NUL"
    for name in ("url", "capture_time", "source_type"):
        assert isinstance(version[name], str)
        assert version[name]
    assert datetime.fromisoformat(version["capture_time"]).tzinfo
    parts = urlsplit(version["url"].strip())
    authority = parts.hostname if parts.port in (None, 80, 443) else f"{parts.hostname}:{parts.port}"
    assert _PAGE.match(f"{parts.scheme.lower()}://{authority}/"), version["url"]
    status, error = version["status"], version["network_error"]
    assert (status is None) != (error is None), "a version is an answer or an error"
    assert status is None or (type(status) is int and 100 <= status <= 599)
    assert error is None or (isinstance(error, str) and error)
    media = version["media_type"]
    assert media is None or re.fullmatch(r"\w[\w!#$&^_+\-.]+/\w[\w!#$&^_+\-.]+", media, re.ASCII)
    length = version["content_length"]
    assert length is None or (type(length) is int and 0 <= length < 2**31)
    assert (version["body_url"], version["body_hash"]) == (None, None), "we have no bodies"
    _metadata(version["source_metadata"])
    return version


def _metadata(metadata: dict[str, Any]) -> None:
    assert "mime_type" not in metadata, "the importer takes it for media_type"
    redirects, statuses = metadata.get("redirects", []), metadata.get("statuses", [])
    assert isinstance(redirects, list)
    assert isinstance(statuses, list)
    assert len(redirects) == len(statuses) != 1
    assert not redirects or metadata["redirected_url"] == redirects[-1]
