"""The handler against a server that does, byte for byte, what servers do."""

import asyncio
import contextlib
import logging
import socket
import time

import pytest
from network_kit import always, answers, ask, handler, serve
from scrapy.http import Response

from linkcrawl.check.outcome import Failure
from linkcrawl.network.handler import RequestFailed
from linkcrawl.network.head import MAX_HEAD

OK = b"HTTP/1.1 200 OK\r\n"
EMPTY = OK + b"Content-Length: 0\r\n\r\n"


def one(script, method="HEAD", *, path="/", headers=None, settings=None, **meta):
    """What came of one request to a server with this script; and the server."""

    async def run():
        async with serve(script) as peer, handler(**settings or {}) as made:
            result, outcome = await ask(made, f"http://127.0.0.1:{peer.port}{path}", method, headers, **meta)
            return result, outcome, peer

    return asyncio.run(run())


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
        ("http://[::ffff:10.0.0.1]/", Failure.FORBIDDEN_ADDRESS, "10.0.0.1"),
        ("http://[fe80::1]:8080/", Failure.FORBIDDEN_ADDRESS, "fe80::1"),
        ("https://10.0.0.1/", Failure.FORBIDDEN_ADDRESS, "10.0.0.1"),
        ("http://2130706434/", Failure.REFUSED, "2130706434"),  # 127.0.0.2, where the tests may go and nobody is
        ("http://127.0.0.1:25/", Failure.FORBIDDEN_PORT, "25"),
        ("http://127.0.0.1:6667/", Failure.FORBIDDEN_PORT, "6667"),
        ("http://" + "a" * 64 + ".example/", Failure.DNS_NOT_FOUND, "DNS"),
        ("http://127.0.0.1:99999/", Failure.PROTOCOL, "port"),
        ("http://127.0.0.1:80/a\r\nX-Injected: 1", Failure.PROTOCOL, "not sent"),
        ("http://127.0.0.1:80/a b", Failure.PROTOCOL, "not sent"),
        ("http:///nothing", Failure.PROTOCOL, "not sent"),
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


def test_the_request_is_sent_as_given():
    sent = {"User-Agent": "linkcrawl/1 (+https://x)", "From": "a@b", "accept": "*/*", "Cookie": "a=b; c=d"}
    path = "/a%2Fb%23/|[x]<>?q=%20a+b&&c=%zz"
    _, outcome, peer = one(answers(EMPTY), headers=sent, path=path + "#fragment")
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


def test_userinfo_is_neither_sent_nor_told():
    async def run():
        async with serve(answers(then="close")) as peer, handler() as made:
            _, outcome = await ask(made, f"http://user:hush@127.0.0.1:{peer.port}/")
            return outcome, peer

    outcome, peer = asyncio.run(run())
    assert b"hush" not in peer.requests[0]
    assert "hush" not in outcome.error
    assert "user" not in outcome.error


async def silent(line):
    await line.hold()


async def drips_status(line):
    await line.request()
    for byte in OK * 1000:
        await line.say(bytes([byte]))
        await asyncio.sleep(0.02)


async def drips_lines(line):
    await line.request()
    await line.say(OK)
    for _ in range(1000):
        await line.say(b"A: b\r\n")
        await asyncio.sleep(0.02)


async def drips_interim(line):
    await line.request()
    for _ in range(8):
        await line.say(b"HTTP/1.1 100 Continue\r\n\r\n")
        await asyncio.sleep(0.1)
    await line.hold()


@pytest.mark.parametrize("script", [silent, drips_status, drips_lines, drips_interim])
def test_one_deadline_holds_whatever_drips(script):
    began = time.monotonic()
    _, outcome, peer = one(script, settings={"LINKCRAWL_TIMEOUT": 0.4})
    assert outcome.failure is Failure.TIMEOUT_ANSWER
    assert outcome.error == f"timed out after 0.4 s waiting for the answer of 127.0.0.1:{peer.port}"
    assert outcome.duration_ms >= 400
    assert time.monotonic() - began < 10  # the drips go on for twenty seconds
    assert peer.sent < 1000


def test_a_request_may_have_its_own_deadline():
    _, outcome, _ = one(silent, download_timeout=0.2)
    assert outcome.failure is Failure.TIMEOUT_ANSWER


def test_a_full_backlog_is_a_timeout_of_connecting():
    """Linux leaves a connection unanswered once the backlog of the listener is full."""

    async def run():
        with socket.socket() as listener, contextlib.ExitStack() as stack:
            listener.bind(("127.0.0.1", 0))
            listener.listen(0)
            for _ in range(4):
                filler = stack.enter_context(socket.socket())
                filler.setblocking(False)
                filler.connect_ex(listener.getsockname())
            await asyncio.sleep(0.1)
            async with handler() as made:
                port = listener.getsockname()[1]
                return port, await ask(made, f"http://127.0.0.1:{port}/", download_timeout=0.3)

    port, (_, outcome) = asyncio.run(run())
    assert outcome.failure is Failure.TIMEOUT_CONNECT
    assert outcome.error == f"timed out after 0.3 s connecting to 127.0.0.1:{port}"


@pytest.mark.parametrize("head", [OK + b"\r\n", OK + b"Content-Length: 5000000000\r\n\r\n"])
def test_an_endless_body_is_left_after_the_head(head):
    async def floods(line):
        await line.request()
        await line.say(head)
        while True:
            await line.say(b"x" * 65536)

    async def run():
        async with serve(floods) as peer, handler() as made:
            _, outcome = await ask(made, f"http://127.0.0.1:{peer.port}/", "GET")
            await asyncio.wait_for(peer.gone.wait(), 5)
            return outcome, peer

    outcome, peer = asyncio.run(run())
    assert outcome.status == 200
    assert peer.sent < 20_000_000  # what the kernel's buffers hold


def test_an_endless_head_is_left_at_its_bound():
    async def floods(line):
        await line.request()
        await line.say(OK)
        while True:
            await line.say(b"A: " + b"b" * 60_000 + b"\r\n")

    _, outcome, peer = one(floods)
    assert outcome.failure is Failure.TOO_LARGE
    assert str(MAX_HEAD) in outcome.error
    assert peer.sent < 20_000_000


ROBOTS = b"User-agent: *\nDisallow: /x\n"


@pytest.mark.parametrize(
    ("script", "body", "flags"),
    [
        (answers(OK + b"Content-Length: %d\r\n\r\n" % len(ROBOTS) + ROBOTS), ROBOTS, []),
        (answers(OK + b"\r\n" + ROBOTS[:9], ROBOTS[9:], then="close"), ROBOTS, []),
        (answers(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"5\r\nhello\r\n", b"0\r\n\r\n"), b"hello", []),
        (answers(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"5\r\nhello\r\nzz\r\n"), b"hello", ["dataloss"]),
        (answers(OK + b"Content-Length: 99\r\n\r\n" + ROBOTS, then="close"), ROBOTS, ["dataloss"]),
        (answers(OK + b"\r\n" + b"x" * 200_000), b"x" * 1000, []),
        (answers(b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnope"), b"nope", []),
        (answers(b"HTTP/1.1 204 No Content\r\n\r\n"), b"", []),
    ],
)
def test_robots_txt_is_read_up_to_its_limit(script, body, flags):
    result, outcome, _ = one(script, "GET", path="/robots.txt", body_limit=1000)
    assert isinstance(result, Response)
    assert outcome.status == result.status
    assert (result.body, result.flags) == (body, flags)


def test_a_robots_txt_that_is_reset_is_marked():
    result, _, _ = one(answers(OK + b"Content-Length: 99\r\n\r\n", ROBOTS, then="reset"), "GET", body_limit=1000)
    assert isinstance(result, Response)
    assert result.body in (ROBOTS, b"")  # a reset may overtake what was sent before it
    assert result.flags == ["dataloss"]


def test_a_dripping_robots_txt_is_left_at_the_deadline():
    async def drips(line):
        await line.request()
        await line.say(OK + b"\r\n")
        for _ in range(1000):
            await line.say(b"#")
            await asyncio.sleep(0.02)

    _, outcome, _ = one(drips, "GET", body_limit=500_000, download_timeout=0.3)
    assert outcome.failure is Failure.TIMEOUT_ANSWER


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
    assert result.request.meta["outcome"] is outcome


def series(script, *methods, pause=0.05, path="/", **meta):
    """Several requests, one after the other, to one server."""

    async def run():
        async with serve(script) as peer, handler() as made:
            outcomes = []
            for method in methods:
                _, outcome = await ask(made, f"http://127.0.0.1:{peer.port}{path}", method, **meta)
                outcomes.append(outcome)
                await asyncio.sleep(pause)
            return outcomes, peer

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("answer", "methods", "connections"),
    [
        (EMPTY, ["HEAD"] * 5, 1),
        (EMPTY, ["HEAD", "GET", "HEAD"], 1),
        (OK + b"Content-Length: 5\r\n\r\n", ["HEAD"] * 3, 1),
        (OK + b"Content-Length: 5\r\n\r\nhello", ["GET"] * 3, 1),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", ["GET"] * 3, 1),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", ["GET"] * 3, 1),
        (OK + b"Content-Length: 5\r\n\r\nhel", ["GET"] * 3, 3),
        (OK + b"Content-Length: 5\r\n\r\nhello", ["HEAD"] * 3, 3),
        (OK + b"Content-Length: 0\r\n\r\nx", ["GET"] * 3, 3),
        (OK + b"Connection: close\r\n\r\n", ["HEAD"] * 3, 3),
        (b"HTTP/1.0 200 OK\r\n\r\n", ["HEAD"] * 3, 3),
        (b"HTTP/1.1 204 No Content\r\n\r\nx", ["GET"] * 3, 3),
    ],
)
def test_a_connection_is_used_again_only_while_it_is_clean(answer, methods, connections):
    outcomes, peer = series(always(answer), *methods)
    assert len({outcome.status for outcome in outcomes}) == 1
    assert all(outcome.ip == "127.0.0.1" for outcome in outcomes)
    assert peer.connections == connections


@pytest.mark.parametrize("pause", [0.0, 0.05])
@pytest.mark.parametrize("late", [b"<html>Not Found</html>", b"HTTP/1.1 404 Not Found\r\n\r\n"])
def test_a_late_body_of_head_is_not_taken_for_the_next_answer(late, pause):
    """The first answer is 200, and then comes what must not become the second one."""

    async def script(line):
        while await line.request():
            await line.say(OK + b"Content-Length: 22\r\n\r\n")
            await line.say(late)

    async def apart(line):
        while await line.request():
            await line.say(OK + b"Content-Length: 22\r\n\r\n")
            await asyncio.sleep(0.01)
            await line.say(late)

    for body in (script, apart):
        outcomes, peer = series(body, *["HEAD"] * 4, pause=max(pause, 0.02 if body is apart else 0))
        assert [outcome.status for outcome in outcomes] == [200] * 4
        assert peer.connections >= 2


def test_bytes_that_cross_the_next_request_break_the_connection_and_no_verdict():
    async def script(line):
        await line.request()
        await line.say(OK + b"Content-Length: 22\r\n\r\n")
        await line.request()
        await line.say(b"<html>the body that nobody wanted</html>")
        await line.hold()

    (first, second), peer = series(script, "HEAD", "HEAD")
    assert first.status == 200
    assert second.failure is Failure.RESET
    assert peer.connections == 1


@pytest.mark.parametrize(
    ("ending", "failure"), [("close", Failure.EMPTY_REPLY), ("reset", Failure.RESET)], ids=["close", "reset"]
)
def test_a_kept_connection_that_dies_is_not_retried_in_secret(ending, failure):
    async def script(line):
        await line.request()
        await line.say(EMPTY)
        await line.request()
        if ending == "reset":
            line.reset()

    (first, second), peer = series(script, "HEAD", "HEAD")
    assert first.status == 200
    assert second.failure is failure
    assert len(peer.requests) == 2


def test_a_connection_that_the_server_closed_meanwhile_is_not_used():
    outcomes, peer = series(answers(EMPTY, then="close"), *["HEAD"] * 3)
    assert [outcome.status for outcome in outcomes] == [200] * 3
    assert peer.connections == 3


def test_ipv6_is_asked_too():
    async def run():
        async with serve(always(EMPTY), host="::1") as peer, handler() as made:
            _, outcome = await ask(made, f"http://[::1]:{peer.port}/")
            return outcome, peer

    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    outcome, peer = asyncio.run(run())
    assert (outcome.status, outcome.ip) == (200, "::1")
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


def test_many_hosts_hold_a_bounded_number_of_connections():
    async def run():
        async with serve(always(EMPTY)) as peer, handler() as made:
            made._pool._limit = 3
            for number in range(1, 9):
                _, outcome = await ask(made, f"http://127.0.0.{number}:{peer.port}/")
                if number == 1:
                    assert outcome.status == 200
            return len(made._pool)

    assert asyncio.run(run()) <= 3


@pytest.mark.parametrize("script", [silent, drips_lines, always(EMPTY)])
def test_cancelling_closes_the_connection(script):
    async def run():
        async with serve(script) as peer, handler() as made:
            asking = asyncio.ensure_future(ask(made, f"http://127.0.0.1:{peer.port}/"))
            await asyncio.sleep(0.1)
            asking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await asking
            await made.close()
            await asyncio.wait_for(peer.gone.wait(), 5)

    asyncio.run(run())


def test_nothing_is_logged_of_what_servers_do(caplog):
    with caplog.at_level(logging.DEBUG):
        for script in (answers(then="reset"), answers(OK, then="reset"), answers(b"\x00"), resets_at_once):
            one(script)
    assert [record for record in caplog.records if record.name != "asyncio" or record.levelno > logging.DEBUG] == []
