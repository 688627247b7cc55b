"""The handler against a server that does, byte for byte, what servers do."""

import asyncio
import contextlib
import logging
import socket

import pytest
from attrs import evolve
from network_kit import always, answers, ask, handler, one, serve
from scrapy.http import Request, Response

from linkcrawl import urls
from linkcrawl.check.cookies import octets
from linkcrawl.check.outcome import Failure
from linkcrawl.network.handler import NameMoved, RequestFailed
from linkcrawl.network.transport import CONTEXT, Transport

OK = b"HTTP/1.1 200 OK\r\n"
EMPTY = OK + b"Content-Length: 0\r\n\r\n"


ANSWERED = [
    # what the server does, method, status
    (answers(EMPTY), "HEAD", 200),
    (answers(b"HTTP/1.1 200\r\n\r\n"), "HEAD", 200),
    (answers(b"HTTP/1.1 999 No\r\n\r\n"), "HEAD", 999),
    (answers(b"HTTP/1.0 404 Not Found\n\n"), "HEAD", 404),
    (answers(b"HTTP/2 200\r\n\r\n"), "HEAD", 200),
    (answers(b"\r\n\r\n", OK, b"no colon\r\n", b"A: b\r\n", b"\r\n"), "HEAD", 200),
    (answers(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Hints\r\n\r\n", EMPTY), "HEAD", 200),
    (answers(EMPTY, then="close"), "HEAD", 200),
    (answers(OK + b"Content-Length: 5\r\n\r\nhello"), "HEAD", 200),
    (answers(OK + b"Content-Length: 500\r\n\r\nhello", then="close"), "GET", 200),
    (answers(OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n"), "GET", 200),
    (answers(OK + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nnope"), "GET", 200),
    (answers(b"HTTP/1.1 204 No Content\r\n\r\n"), "GET", 204),
    (answers(b"HTTP/1.1 301 Moved\r\nLocation: /x\r\n\r\n"), "HEAD", 301),
]


@pytest.mark.parametrize(("script", "method", "status"), ANSWERED)
def test_the_head_decides(script, method, status):
    result, outcome, _ = one(script, method)
    assert isinstance(result, Response)
    assert (result.status, outcome.status) == (status, status)
    assert (str(result.ip_address), outcome.ip) == ("127.0.0.1", "127.0.0.1")
    assert outcome.failure is None
    assert outcome.error is None
    assert outcome.duration_ms is not None
    assert outcome.ended_at >= outcome.sent_at


async def garbage_without_end(line):
    await line.request()
    await line.say(b"\x00\x01\x02")
    await line.hold()


async def resets_at_once(line):
    line.reset()


FAILED = [
    # what the server does, failure, words of the error
    (answers(then="close"), Failure.EMPTY_REPLY, "without an answer"),
    (answers(then="reset"), Failure.RESET, "before the answer"),
    (resets_at_once, Failure.RESET, "before the answer"),
    (answers(b"HTTP/1.1 200", then="close"), Failure.RESET, "within the head"),
    (answers(OK + b"A: b\r\n", then="close"), Failure.RESET, "within the head"),
    (answers(OK, then="reset"), Failure.RESET, "within the head"),
    (answers(b"\r\n", then="close"), Failure.RESET, "within the head"),
    (answers(b"<html>hello</html>\r\n", then="close"), Failure.PROTOCOL, "no HTTP"),
    (answers(b"SSH-2.0-x\r\n"), Failure.PROTOCOL, "no HTTP"),
    (garbage_without_end, Failure.PROTOCOL, "no HTTP"),
    (answers(b"HTTP/1.1 101 Switching Protocols\r\n\r\n"), Failure.PROTOCOL, "101"),
    (answers(OK + b"A: b\r\n" * 300_000), Failure.TOO_LARGE, "too large"),
    (answers(OK + b"A: " + b"b" * 5_000_000 + b"\r\n\r\n"), Failure.TOO_LARGE, "too large"),
]


@pytest.mark.parametrize("method", ["HEAD", "GET"])
@pytest.mark.parametrize(("script", "failure", "words"), FAILED)
def test_failures_are_told_apart(script, failure, words, method):
    result, outcome, peer = one(script, method, path="/p?secret=1")
    assert isinstance(result, RequestFailed)
    assert (result.failure, outcome.failure) == (failure, failure)
    assert outcome.status is None
    assert outcome.ip == result.ip == "127.0.0.1"
    assert outcome.error == result.error
    assert words in outcome.error
    assert f"127.0.0.1:{peer.port}" in outcome.error
    assert "secret" not in outcome.error
    assert outcome.error.isprintable()


def test_nobody_listens():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))

        async def run():
            async with handler() as made:
                return await ask(made, f"http://127.0.0.1:{closed.getsockname()[1]}/")

        _, outcome = asyncio.run(run())
    assert outcome.failure is Failure.REFUSED
    assert outcome.ip == "127.0.0.1"
    assert "refused" in outcome.error


@pytest.mark.parametrize(
    ("url", "failure", "words"),
    [
        ("http://10.0.0.1/", Failure.FORBIDDEN_ADDRESS, "10.0.0.1"),
        ("http://169.254.169.254/latest", Failure.FORBIDDEN_ADDRESS, "169.254.169.254"),
        ("http://[::ffff:10.0.0.1]/", Failure.FORBIDDEN_ADDRESS, "::ffff:a00:1"),
        ("http://[fe80::1]:8080/", Failure.FORBIDDEN_ADDRESS, "fe80::1"),
        ("https://10.0.0.1/", Failure.FORBIDDEN_ADDRESS, "10.0.0.1"),
        ("http://2130706434/", Failure.REFUSED, "127.0.0.2"),  # where the tests may go and nobody is
        ("http://127.0.0.1:25/", Failure.FORBIDDEN_PORT, "25"),
        ("http://127.0.0.1:6667/", Failure.FORBIDDEN_PORT, "6667"),
        ("http://" + "a" * 64 + ".example/", Failure.PROTOCOL, "not sent"),
        ("http://127.0.0.1:99999/", Failure.PROTOCOL, "not sent"),
        ("http://127.0.0.1\\@10.0.0.1/", Failure.REFUSED, "127.0.0.1"),  # as a browser reads it, gate and socket alike
        ("http://127.0.0.1:80/a\r\nX-Injected: 1", Failure.PROTOCOL, "not sent"),
        ("http://127.0.0.1:80/a b", Failure.PROTOCOL, "not sent"),
        ("http:///nothing", Failure.PROTOCOL, "not sent"),
        ("http://127.0.0.1:80/\u00e9", Failure.PROTOCOL, "not sent"),
        ("ftp://127.0.0.1/", Failure.PROTOCOL, "not sent"),
    ],
)
def test_what_is_never_connected(url, failure, words):
    async def run():
        async with handler() as made:
            return await ask(made, url)

    _, outcome = asyncio.run(run())
    assert outcome.failure is failure
    assert words in outcome.error
    assert outcome.error.isprintable()


@pytest.mark.parametrize("read", [True, False])
@pytest.mark.parametrize("path", ["/a%2Fb%23/|[x]?q=%20a+b&&c=%zz'", "/?", "//a/"])
def test_a_url_that_needs_no_repair_is_sent_as_given(path, read):
    """A link's, whose target comes with the request, and another component's."""

    async def run():
        async with serve(answers(EMPTY)) as peer, handler() as made:
            url = f"http://127.0.0.1:{peer.port}{path}"
            await ask(made, url, target=urls.read(url) if read else None)
            return peer

    assert asyncio.run(run()).requests[0].startswith(f"HEAD {path} HTTP/1.1\r\n".encode())


def test_the_request_is_sent_as_its_target_has_it():
    sent = {"User-Agent": "linkcrawl/1 (+https://x)", "From": "a@b", "accept": "*/*", "Cookie": "a=b; c=d"}
    path = "/a%2Fb%23/|[x]<>?q=%20a+b&&c=%zz"

    async def run():
        async with serve(answers(EMPTY)) as peer, handler() as made:
            authority = f"http://127.0.0.1:{peer.port}"
            target = evolve(urls.read(authority), url=authority + path)
            _, outcome = await ask(made, "http://other.example/#fragment", headers=sent, target=target)
            return outcome, peer

    outcome, peer = asyncio.run(run())
    assert outcome.status == 200
    lines = peer.requests[0].decode().split("\r\n")
    assert lines == [
        f"HEAD {path} HTTP/1.1",
        f"Host: 127.0.0.1:{peer.port}",
        "User-Agent: linkcrawl/1 (+https://x)",
        "From: a@b",
        "Accept: */*",
        "Cookie: a=b; c=d",
        "Accept-Encoding: identity",
        "Connection: keep-alive",
        "",
        "",
    ]


@pytest.mark.parametrize("value", ["a\r\nX-Injected: 1", "a\nb", "a\rb", "a\tb", "a\x00b", "a\x7fb"])
@pytest.mark.parametrize("name", ["Cookie", "User-Agent"])
def test_nothing_sneaks_in_a_line(name, value):
    _, outcome, peer = one(answers(EMPTY), headers={name: value})
    assert outcome.failure is Failure.PROTOCOL
    assert name in outcome.error
    assert "not sent" in outcome.error
    assert peer.requests == []


@pytest.mark.parametrize(
    ("changes", "unsent"),
    [
        ({}, False),
        ({"may_send": lambda: False}, True),
        ({"headers": {"Cookie": "a\nb"}}, True),
        ({"url": "http://10.0.0.1/"}, True),
        ({"url": "http://nowhere.example/"}, True),
        ({"url": "http://127.0.0.2:9/"}, True),  # a forbidden port
        ({"url": "http://127.0.0.2/"}, False),  # refused: the attempt reached the server
    ],
)
def test_what_was_never_sent_says_so(changes, unsent):
    async def run():
        async with serve(answers(EMPTY)) as peer, handler() as made:
            context = Transport(may_send=changes.get("may_send", lambda: True))
            url = changes.get("url", f"http://127.0.0.1:{peer.port}/")
            request = Request(url, method="HEAD", headers=changes.get("headers"), meta={CONTEXT: context})
            with contextlib.suppress(RequestFailed):
                await made.download_request(request)
            return context, peer

    context, peer = asyncio.run(run())
    assert context.unsent is unsent
    assert len(peer.requests) == (not unsent and "url" not in changes)


def test_userinfo_is_neither_sent_nor_told():
    async def run():
        async with serve(answers(then="close")) as peer, handler() as made:
            _, outcome = await ask(made, f"http://user:hush@127.0.0.1:{peer.port}/")
            return outcome, peer

    outcome, peer = asyncio.run(run())
    assert b"hush" not in peer.requests[0]
    assert "hush" not in outcome.error
    assert "user" not in outcome.error


def test_headers_come_out_in_both_forms():
    answer = (
        b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1, b\r\nset-cookie: c=2\r\nVary: A\r\nVary: B\r\nLocation: /1\r\n"
        b"Location: /2\r\nX-Caf\xc3\xa9: skipped\r\nX-Raw: \xe9\x1b[0m\r\n\r\n"
    )
    result, outcome, _ = one(answers(answer))
    assert outcome.headers == {"vary": "A, B", "location": "/1", "x-raw": "é\ufffd[0m"}
    assert outcome.set_cookie == ("a=1, b", "c=2")
    assert result.headers.getlist("Set-Cookie") == [b"a=1, b", b"c=2"]
    assert result.headers.getlist("Vary") == [b"A", b"B"]
    assert result.protocol == "HTTP/1.1"
    assert result.request.meta[CONTEXT].outcome is outcome


def test_a_cookie_comes_and_goes_back_as_its_octets():
    utf8, other = "ü中".encode(), b"\xe9\xff"
    answer = b"HTTP/1.1 200 OK\r\nSet-Cookie: a=" + utf8 + b"\r\nSet-Cookie: b=" + other + b"\x01\r\n\r\n"
    result, outcome, _ = one(answers(answer))
    assert outcome.set_cookie == ("a=ü中", "b=\udce9\udcff\ufffd")
    assert result.headers.getlist("Set-Cookie")[0] == b"a=" + utf8
    _, _, peer = one(answers(EMPTY), headers={"Cookie": octets("a=ü中; b=\udce9\udcff")})
    assert b"Cookie: a=" + utf8 + b"; b=" + other + b"\r\n" in peer.requests[0]


def has_ipv6():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


def test_ipv6_is_asked_too():
    """Where the machine has none, it is tried, and told as a network that can't be reached."""

    async def run(here):
        async with serve(always(EMPTY), host="::1" if here else "127.0.0.1") as peer, handler() as made:
            _, outcome = await ask(made, f"http://[::1]:{peer.port}/")
            return outcome, peer

    here = has_ipv6()
    outcome, peer = asyncio.run(run(here))
    assert outcome.ip == "::1"
    assert (outcome.status, outcome.failure) == ((200, None) if here else (None, Failure.UNREACHABLE))
    if here:
        assert f"Host: [::1]:{peer.port}".encode() in peer.requests[0]


@pytest.mark.parametrize(
    ("found", "ip", "failure"),
    [
        (["::1", "127.0.0.1"], "127.0.0.1", None),  # nobody on IPv6: refused at once
        (["127.0.0.2", "127.0.0.1"], "127.0.0.1", None),
        (["10.0.0.1", "127.0.0.1"], "127.0.0.1", None),  # the forbidden one is left out
        (["127.0.0.2", "127.0.0.3"], "127.0.0.2", Failure.REFUSED),
        (["127.0.0.2", "::1"], "127.0.0.2", Failure.REFUSED),
    ],
)
def test_the_addresses_of_a_name(found, ip, failure):
    async def run():
        async with serve(always(EMPTY)) as peer, handler() as made:
            made._resolver._lookup = lambda host: found
            return await ask(made, f"http://name.example:{peer.port}/")

    _, outcome = asyncio.run(run())
    assert (outcome.ip, outcome.failure) == (ip, failure)


def test_nothing_is_logged_of_what_servers_do(caplog):
    with caplog.at_level(logging.DEBUG):
        for script in (answers(then="reset"), answers(OK, then="reset"), answers(b"\x00"), resets_at_once):
            one(script)
    assert [record for record in caplog.records if record.name != "asyncio" or record.levelno > logging.DEBUG] == []


@pytest.mark.parametrize(
    ("address", "asked", "ip"),
    [
        (None, 1, "127.0.0.1"),
        ("127.0.0.1", 1, "127.0.0.1"),  # the second of the name: the one that its gate is of goes first
        ("127.0.0.3", 0, None),  # the name has left it
        ("", 0, None),  # the name had none when its gate was chosen
    ],
)
def test_a_request_goes_to_the_address_that_its_gate_is_of_or_nowhere(address, asked, ip):
    async def run():
        async with serve(always(EMPTY), host="0.0.0.0") as peer, handler() as made:
            found = ["127.0.0.1"] if address is None else ["127.0.0.2", "127.0.0.1"]
            made._resolver._lookup = lambda host: found
            context = Transport(address=address)
            request = Request(f"http://name.example:{peer.port}/", meta={CONTEXT: context})
            if asked:
                await made.download_request(request)
            else:
                with pytest.raises(NameMoved) as moved:
                    await made.download_request(request)
                assert (moved.value.addresses, context.unsent) == (tuple(found), True)
            return context.outcome, len(peer.requests)

    outcome, requests = asyncio.run(run())
    assert requests == asked
    assert (None if outcome is None else outcome.ip) == ip


def test_a_kept_connection_to_another_server_is_not_used_for_a_gate_that_has_moved():
    async def run():
        async with serve(always(EMPTY), host="0.0.0.0") as peer, handler() as made:
            made._resolver._lookup = lambda host: ["127.0.0.1", "127.0.0.2"]
            found = []
            for address in ("127.0.0.1", "127.0.0.1", "127.0.0.2"):
                context = Transport(address=address)
                await made.download_request(
                    Request(f"http://name.example:{peer.port}/", meta={CONTEXT: context}, method="HEAD")
                )
                found.append(context.outcome.ip)
            return found, peer.connections

    assert asyncio.run(run()) == (["127.0.0.1", "127.0.0.1", "127.0.0.2"], 2)
