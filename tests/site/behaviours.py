"""The vocabulary of misbehaviour: each function makes one way to answer a request (or not to)."""

from __future__ import annotations

import time
from collections.abc import Iterable
from http import HTTPStatus

from tests.site.wire import LONGEST, Behaviour, Exchange

PAGE = b"<!doctype html><title>A page</title><p>Text.\n"
HTML = "text/html; charset=utf-8"
Headers = Iterable[tuple[str, str | bytes]]


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def head(status: int, headers: Headers) -> bytes:
    """A status line with the usual reason, and header lines."""
    reason = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Odd"
    lines = [f"HTTP/1.1 {status} {reason}".encode(), *(_bytes(name) + b": " + _bytes(value) for name, value in headers)]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def answer(
    status: int = 200,
    body: bytes = PAGE,
    *,
    mime: str = HTML,
    headers: Headers = (),
    after: float = 0.0,
) -> Behaviour:
    """A correct answer with this status, `after` so many seconds; the connection stays open as the client likes."""
    bodiless = status in (204, 304)
    own = [] if bodiless else [("Content-Type", mime), ("Content-Length", str(len(body)))]
    start = head(status, [*own, *headers])

    async def behave(exchange: Exchange) -> None:
        if after and await exchange.gone(after):
            return
        exchange.keep = not exchange.wants_close
        await exchange.send(start if bodiless or exchange.method == "HEAD" else start + body)

    return behave


def redirect(location: str | bytes | None, status: int = 302, headers: Headers = ()) -> Behaviour:
    """A redirect; with None it has no Location."""
    own = [] if location is None else [("Location", location)]
    return answer(status, b"", headers=[*own, *headers])


def robots(text: str | bytes, status: int = 200, mime: str = "text/plain") -> Behaviour:
    return answer(status, _bytes(text), mime=mime)


def per_method(on_head: Behaviour, on_get: Behaviour) -> Behaviour:
    async def behave(exchange: Exchange) -> None:
        await (on_head if exchange.method == "HEAD" else on_get)(exchange)

    return behave


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """The first for the first request, and so on; the last one for ever."""
    left = list(behaviours)

    async def behave(exchange: Exchange) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(exchange)

    return behave


def raw(data: bytes, then: str = "close") -> Behaviour:
    """These very bytes, then `close`, `reset`, `hold` (silence) or `keep` (await the next request)."""

    async def behave(exchange: Exchange) -> None:
        if data:
            await exchange.send(data)
        if then == "reset":
            exchange.reset()
        elif then == "hold":
            await exchange.hold()
        exchange.keep = then == "keep" and not exchange.wants_close

    return behave


def silence() -> Behaviour:
    return raw(b"", "hold")


def reset() -> Behaviour:
    return raw(b"", "reset")


def hang_up() -> Behaviour:
    return raw(b"", "close")


def drip(data: bytes, every: float = 0.4, start: bytes = b"") -> Behaviour:
    """`start` at once, then a byte every so many seconds."""

    async def behave(exchange: Exchange) -> None:
        if start:
            await exchange.send(start)
        for byte in data:
            if await exchange.gone(every):
                return
            await exchange.send(bytes([byte]))

    return behave


def flood(start: bytes, chunk: bytes, times: int | None = None) -> Behaviour:
    """`start`, then `chunk` so many times, or without end."""

    async def behave(exchange: Exchange) -> None:
        await exchange.send(start)
        stop, done = time.monotonic() + LONGEST, 0
        while time.monotonic() < stop and done != times and not await exchange.gone(0.0001):
            await exchange.send(chunk)
            done += 1

    return behave


def needs_cookie(then: Behaviour, name: str = "seen") -> Behaviour:
    """Redirects to itself and sets a cookie, until the cookie comes back."""

    async def behave(exchange: Exchange) -> None:
        if f"{name}=1" in (exchange.header("cookie") or ""):
            await then(exchange)
        else:
            again = redirect(exchange.target, 302, [("Set-Cookie", f"{name}=1; Path=/")])
            await again(exchange)

    return behave
