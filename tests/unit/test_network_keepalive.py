"""When a connection is used again, and when it must not be."""

import asyncio

import pytest
from network_kit import always, answers, ask, everywhere, handler, serve

from linkcrawl.check.outcome import Failure

OK = b"HTTP/1.1 200 OK\r\n"
EMPTY = OK + b"Content-Length: 0\r\n\r\n"


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


@pytest.mark.parametrize(
    "crossing",
    [
        b"<html>the body that nobody wanted</html>",
        b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\n\r\n",
        b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n",
    ],
)
def test_bytes_that_cross_the_next_request_make_the_connection_stale(crossing):
    async def script(line):
        await line.request()
        await line.say(OK + b"Content-Length: 22\r\n\r\n")
        await line.request()
        await line.say(crossing)
        await line.hold()

    (first, second), peer = series(script, "HEAD", "HEAD")
    assert first.status == 200
    assert (second.failure, second.stale) == (Failure.RESET, True)
    assert peer.connections == 1


@pytest.mark.parametrize(
    ("ending", "failure"), [("close", Failure.EMPTY_REPLY), ("reset", Failure.RESET)], ids=["close", "reset"]
)
def test_a_kept_connection_that_dies_is_stale_and_not_retried_in_secret(ending, failure):
    """The same request goes again through its gate: the server may have seen it."""

    async def script(line):
        await line.request()
        await line.say(EMPTY)
        await line.request()
        if ending == "reset":
            line.reset()

    (first, second), peer = series(script, "HEAD", "HEAD")
    assert first.status == 200
    assert (second.failure, second.stale) == (failure, True)
    assert second.error.endswith("a kept connection had gone stale")
    assert len(peer.requests) == 2


@pytest.mark.parametrize("ending", ["close", "reset"])
def test_a_server_that_breaks_kept_connections_is_asked_on_new_ones_from_then_on(ending):
    async def script(line):
        await line.request()
        await line.say(EMPTY)
        await line.request()
        if ending == "reset":
            line.reset()

    outcomes, peer = series(script, *["HEAD"] * 5)
    assert [outcome.stale for outcome in outcomes] == [False, True, False, False, False]
    assert [outcome.status for outcome in outcomes] == [200, None, 200, 200, 200]
    assert (peer.connections, len(peer.requests)) == (4, 5)


@pytest.mark.parametrize("begun", [b"H", b"HTTP/1.1 200 OK\r\n"])
def test_a_kept_connection_that_breaks_within_an_answer_is_not_stale(begun):
    async def script(line):
        await line.request()
        await line.say(EMPTY)
        await line.request()
        await line.say(begun)
        line.reset()

    (_, second), _ = series(script, "HEAD", "HEAD")
    assert (second.failure, second.stale) == (Failure.RESET, False)


@pytest.mark.parametrize("ending", ["close", "reset"])
def test_a_new_connection_that_breaks_is_not_stale(ending):
    (only,), _ = series(answers(then=ending), "HEAD")
    assert only.failure in (Failure.RESET, Failure.EMPTY_REPLY)
    assert not only.stale


def test_a_connection_that_the_server_closed_meanwhile_is_not_used():
    outcomes, peer = series(answers(EMPTY, then="close"), *["HEAD"] * 3)
    assert [outcome.status for outcome in outcomes] == [200] * 3
    assert peer.connections == 3


def test_many_hosts_hold_a_bounded_number_of_connections():
    async def run():
        async with serve(always(EMPTY)) as peer, handler() as made:
            made._pool._limit = 3
            made._resolver._lookup = everywhere("127.0.0.1")
            for number in range(8):
                _, outcome = await ask(made, f"http://h{number}.example:{peer.port}/")
                assert outcome.status == 200
            return len(made._pool), peer.connections

    assert asyncio.run(run()) == (3, 8)
