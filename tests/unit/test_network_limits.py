"""One deadline and hard bounds, whatever a server does with its bytes."""

import asyncio
import contextlib
import re
import socket
import time

import pytest
from network_kit import always, answers, ask, handler, one, serve
from scrapy.http import Response

from linkcrawl.check.outcome import Failure
from linkcrawl.network.head import MAX_HEAD

OK = b"HTTP/1.1 200 OK\r\n"
EMPTY = OK + b"Content-Length: 0\r\n\r\n"


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


def seconds(error, doing):
    """After how many seconds an attempt timed out, as its error says: a few more where the machine is busy."""
    said = re.fullmatch(rf"timed out after ([\d.]+) s {re.escape(doing)}", error)
    assert said, error
    return float(said[1])


@pytest.mark.parametrize("script", [silent, drips_status, drips_lines, drips_interim])
def test_one_deadline_holds_whatever_drips(script):
    began = time.monotonic()
    _, outcome, peer = one(script, settings={"LINKCRAWL_TIMEOUT": 0.4})
    assert outcome.failure is Failure.TIMEOUT_ANSWER
    assert seconds(outcome.error, f"waiting for the answer of 127.0.0.1:{peer.port}") >= 0.4
    assert outcome.duration_ms >= 400
    assert time.monotonic() - began < 10  # the drips go on for twenty seconds
    assert peer.sent < 1000


def test_a_request_may_have_its_own_deadline():
    _, outcome, _ = one(silent, download_timeout=0.2)
    assert outcome.failure is Failure.TIMEOUT_ANSWER


@contextlib.contextmanager
def unanswering(address, port=0):
    """A port that leaves connections unanswered: Linux does, once the backlog of the listener is full."""
    with socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.bind((address, port))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        time.sleep(0.1)
        yield listener.getsockname()[1]


def test_an_unanswered_connection_is_a_timeout_of_connecting():
    async def run(port):
        async with handler() as made:
            return await ask(made, f"http://127.0.0.1:{port}/", download_timeout=0.3)

    with unanswering("127.0.0.1") as port:
        _, outcome = asyncio.run(run(port))
    assert outcome.failure is Failure.TIMEOUT_CONNECT
    assert seconds(outcome.error, f"connecting to 127.0.0.1:{port}") >= 0.3
    assert outcome.ip == "127.0.0.1"


def test_a_dead_address_does_not_hide_a_living_one():
    """Such as IPv6 that leads nowhere."""

    async def run():
        async with serve(always(EMPTY)) as peer, handler() as made:
            with unanswering("127.0.0.2", peer.port):
                made._resolver._lookup = lambda host: ["127.0.0.2", "127.0.0.1"]
                return await ask(made, f"http://name.example:{peer.port}/", download_timeout=4)

    _, outcome = asyncio.run(run())
    assert (outcome.status, outcome.ip) == (200, "127.0.0.1")


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
            await asyncio.wait_for(peer.gone.wait(), 60)
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


PAGE_HEAD = OK + b"Content-Type: text/html\r\n"


def test_a_dripping_page_is_judged_by_what_has_come_at_the_deadline():
    async def drips(line):
        await line.request()
        await line.say(PAGE_HEAD + b"\r\n<p>")
        for _ in range(1000):
            await line.say(b"#")
            await asyncio.sleep(0.02)

    result, outcome, peer = one(drips, "GET", page_limit=16384, download_timeout=0.5)
    assert isinstance(result, Response)
    assert (outcome.status, outcome.failure) == (200, None)
    assert outcome.page.startswith(b"<p>#")
    assert outcome.duration_ms is not None
    assert outcome.duration_ms < 400  # up to the head, not to the deadline
    assert peer.sent < 2000


def test_of_an_endless_page_so_much_is_read_as_was_asked_for():
    result, outcome, _ = one(answers(PAGE_HEAD + b"\r\n" + b"x" * 200_000), "GET", page_limit=16384)
    assert isinstance(result, Response)
    assert (outcome.page, result.body) == (b"x" * 16384, b"")


def test_a_page_that_is_reset_is_judged_by_its_head():
    _, outcome, _ = one(answers(PAGE_HEAD + b"Content-Length: 99\r\n\r\n", b"<p>", then="reset"), "GET", page_limit=99)
    assert (outcome.status, outcome.failure) == (200, None)


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
            await asyncio.wait_for(peer.gone.wait(), 60)

    asyncio.run(run())
