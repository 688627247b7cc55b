"""One URL is parsed once: the host of the gate is the host that is connected to, named and given cookies."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from network_kit import crawler
from scrapy import Request

import linkcrawl
from linkcrawl import urls
from linkcrawl.check.cookies import Jar
from linkcrawl.check.outcome import Failure
from linkcrawl.check.procedure import Next, Rules, begin
from linkcrawl.network.fault import Fault
from linkcrawl.network.handler import CheckDownloadHandler, RequestFailed
from linkcrawl.network.request import request_bytes
from linkcrawl.network.transport import CONTEXT, Transport
from linkcrawl.urls import Target
from linkcrawl.urls.domains import hostname_of

# fmt: off
PIECES = st.sampled_from([
    "http://", "https://", "http:", "//", "/", "\\", "@", ":", "#", "?", "%", "%2f", "%2e", "[", "]", "..", ".", "'",
    " ", "\t", "\r\n", "\ud800", "\udce9", "\x00", "é", "ü", "ß", "。", "example.org", "EXAMPLE.org.", "a", "b.example",
    "80", "443", "8080", "99999", "127.1", "0x7f.1", "2130706433", "[::ffff:10.0.0.1]", "[2001:DB8::1]", "xn--", "_",
])
# fmt: on
BEGINNINGS = st.sampled_from(
    ["http://", "https://", "HTTP:\\\\", "http:", " https:/", "http://me:secret@", "https:///"]
)
HOSTS = st.sampled_from(
    ["a.example", "B.Example.", "bücher.example", "127.1", "0x7f.1", "[2001:DB8::1]", "a_b.example", "a.example:8080",
     "[::ffff:1.2.3.4]:443", "a%2eb.example", "\uff11\uff12\uff17.1", "a。example:80"]
)  # fmt: skip
ENDS = st.lists(PIECES, max_size=8).map("".join)
TEXTS = st.one_of(
    st.tuples(BEGINNINGS, HOSTS, st.sampled_from(["", "/", "?", "\\", "#", "@"]), ENDS).map("".join),
    st.tuples(BEGINNINGS, HOSTS, st.text(max_size=20)).map("".join),
    st.lists(PIECES, max_size=10).map("".join),
)


#: Most texts are no URLs.
often = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], deadline=None)


class Recorder:
    """A resolver that remembers what is asked and finds nothing."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def resolve(self, hostname: str) -> Fault:
        self.asked.append(hostname)
        return Fault(failure=Failure.DNS_NOT_FOUND)


class Wire:
    """A download handler whose connections end at its resolver."""

    def __init__(self, handler: CheckDownloadHandler) -> None:
        self._handler = handler

    def connected_to(self, url: str, target: Target | None = None) -> list[str]:
        """The hosts that the handler wants to connect to for a request."""
        self._handler._resolver = recorder = Recorder()  # type: ignore[assignment]

        async def run() -> None:
            request = Request(url, meta={"verbatim_url": True, CONTEXT: Transport(target=target)})
            with pytest.raises(RequestFailed):
                await self._handler.download_request(request)

        asyncio.run(run())
        return recorder.asked


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    handler = CheckDownloadHandler.from_crawler(crawler())
    resolver = handler._resolver
    yield Wire(handler)
    resolver.close()


def named(payload: bytes | Fault) -> str:
    """The host of a request's Host field, without port, brackets and the root's dot."""
    assert isinstance(payload, bytes)
    lines = payload.decode("ascii").split("\r\n")
    assert [line for line in lines if line.lower().startswith("host:")] == [lines[1]]
    return hostname_of(lines[1].removeprefix("Host: ")).removesuffix(".")


@often
@given(TEXTS)
@example("http://example.org\\@other.example/")
@example("http://example.org.:8080/?@other.example")
@example("https://\uff11\uff12\uff17.1/")
@example("http:///example.org:80\\x")
@example("http://a.example/\r\nHost: b.example")
def test_gate_connection_host_field_and_cookies_have_one_host(wire: Wire, text: str) -> None:
    step = begin(text, Rules())
    assume(isinstance(step, Next))
    assert isinstance(step, Next)
    target = step.request.target
    gate = hostname_of(target.host)
    assert gate == target.hostname
    assert wire.connected_to(target.url, target) == [gate]
    assert named(request_bytes("HEAD", target, {})) == gate
    jar = Jar().take(["n=v; Path=/"], target, 0.0)
    assert [cookie.domain for cookie in jar.cookies] == [gate]
    assert jar.field(target).value == "n=v"
    assert target.is_address == _is_address(gate)


@often
@given(TEXTS)
@example("http://example.org\\@other.example/")
@example("http://a.example/\r\nHost: b.example")
@example("http:///example.org/")
def test_a_request_of_another_component_goes_to_the_host_of_its_gate_or_nowhere(wire: Wire, text: str) -> None:
    """The scheduler reads its URL for the gate, the handler for the connection."""
    try:
        url = Request(text, meta={"verbatim_url": True}).url
    except ValueError:  # Scrapy's own
        return
    hosts = wire.connected_to(url)
    gate = urls.read(url)
    assert hosts == [] or (isinstance(gate, Target) and hosts == [gate.hostname])
    if not all("!" <= char <= "~" for char in url):
        assert hosts == []


@often
@given(TEXTS)
def test_the_parts_are_the_url(text: str) -> None:
    target = urls.read(text)
    assume(isinstance(target, Target))
    assert isinstance(target, Target)
    assert target.url == f"{target.scheme}://{target.host_field}{target.request_target}"
    assert target.request_target == target.path + target.url[len(target.authority + target.path) :]
    assert target.query == target.url.partition("?")[2]
    assert target.path.startswith("/")
    default = {"http": 80, "https": 443}[target.scheme]
    assert target.host_field.endswith(f":{target.port}") == (target.port != default)


#: Rooms on the way from a seed's URL to the socket.
WAY = ["check", "cluster", "frontier", "ingest", "network", "politeness", "spiders", "status", "urls"]
#: Other parsers of URLs: urllib's, Scrapy's and w3lib's.
PARSERS = {"urlsplit", "urlparse", "urljoin", "urlunsplit", "urlparse_cached", "parse_url", "canonicalize_url"}
ROOT = Path(linkcrawl.__file__).parent


@pytest.mark.parametrize("room", WAY)
def test_no_other_parser_is_imported_on_the_way(room: str) -> None:
    found = {
        (str(path.relative_to(ROOT)), alias.name)
        for path in (ROOT / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom | ast.Import)
        for alias in node.names
        if alias.name in PARSERS or alias.name == "urllib.parse"
    }
    assert found == set()


def _is_address(hostname: str) -> bool:
    try:
        ip_address(hostname)
    except ValueError:
        return False
    return True
