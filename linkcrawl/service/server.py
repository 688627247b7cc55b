"""HTTP: makes calls of the table out of requests, answers out of replies, and problems out of errors. On aiohttp's
low-level server, so that the table is the only router."""

from __future__ import annotations

import asyncio
import gzip
import json
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from hashlib import blake2b
from typing import Any
from urllib.parse import parse_qsl, unquote_to_bytes, urlsplit

from aiohttp import web
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler

from linkcrawl.errors import StoreError
from linkcrawl.service import problems
from linkcrawl.service.admission import refuse_foreign_host
from linkcrawl.service.openapi import LINES
from linkcrawl.service.problems import Problem
from linkcrawl.service.reading import Reply
from linkcrawl.service.table import Call, Route, body_of
from linkcrawl.stores.rows import text

logger = logging.getLogger(__name__)

#: Bytes of the longest body: 10,000 URLs of a kilobyte and a half.
LONGEST_BODY = 16 * 1024 * 1024
#: Bytes of the longest request line, and of one header: a URL of 8,000 characters, percent-encoded.
LONGEST_LINE = 32 * 1024
#: Seconds in which a body must have come, and in which a reader must take some of an answer.
BODY_SECONDS = 60.0
WRITE_SECONDS = 60.0
#: Bytes from which an answer is compressed.
COMPRESSED_FROM = 1000
#: Parameters of a query: more are a mistake, or an attack.
MOST_PARAMETERS = 50

_JSON = "application/json"
#: `Server` instead of aiohttp's own, which names versions.
_COMMON = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache", "Server": "linkcrawl"}

#: Decides who may make a call: gets the request and its route, returns who asks, or raises Problem.
Admission = Callable[[web.BaseRequest, Route], Awaitable[str | None]]


async def admit_local(request: web.BaseRequest, route: Route) -> str | None:
    """The admission of a service that only this machine reaches: anybody who asks by a name of it."""
    refuse_foreign_host(request.headers.getall("Host", []))
    return None


class Api:
    """Answers requests by a table of routes. `service`: what the routes' functions are called on."""

    def __init__(self, service: Any, routes: Sequence[Route], admit: Admission = admit_local):
        self._service = service
        self._routes = [(route, _segments(route.path)) for route in routes]
        self._admit = admit

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer of a request, whatever happens. Only the log describes a fault of the program."""
        try:
            return await self._answer(request)
        except Problem as problem:
            return problem_response(problem, closes=_is_unread(request))
        except web.HTTPException as fault:
            return problem_response(Problem(fault.status, fault.reason), closes=True)
        except StoreError as fault:
            logger.warning("%s", fault)
            said = "the store can't be read now; the service goes on by itself when it can"
            return problem_response(Problem(503, said, {"Retry-After": "10"}))
        except ConnectionError:  # the client has gone, and reads no answer any more
            return problem_response(Problem(400, "the connection was lost"), closes=True)
        except asyncio.CancelledError:
            raise
        except Exception:
            logger.exception("%s %s", request.method, text(urlsplit(request.raw_path).path))
            return problem_response(Problem(500, "a fault of the service, which its log describes"))

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path, query = _split(request.raw_path)
        route, in_path = self._route(request.method, path)
        by = await self._admit(request, route)
        given = _query(query)
        values = {**in_path, **route.values(given)}
        call = Call(
            path=path,
            values=values,
            given=given,
            body=await _body(request, route),
            wants_lines=route.items is not None and _accepts(request, LINES),
            by=by,
        )
        reply: Reply = await route.answer(self._service, call)
        if reply.lines is not None:
            return await _stream(request, reply)
        return await _whole(request, reply, route)

    def _route(self, method: str, path: str) -> tuple[Route, dict[str, Any]]:
        """The route of a request and its path's values. Raises Problem."""
        asked = [_unquoted(segment) for segment in path.split("/")]
        allowed: set[str] = set()
        for route, segments in self._routes:
            if (found := _matched(segments, asked)) is None:
                continue
            if route.method in (method, "GET" if method == "HEAD" else method):
                return route, {
                    parameter.name: parameter.value(found[parameter.name]) for parameter in route.path_parameters
                }
            allowed |= {route.method, "HEAD"} if route.method == "GET" else {route.method}
        if allowed:
            able = ", ".join(sorted(allowed))
            raise Problem(405, f"{method[:20]} doesn't go here; {able} would work", {"Allow": able})
        raise Problem(404, "nothing is here; /v1/openapi.json names every call")


class ApiServer(web.Server):
    """aiohttp's server, with bounds of ours, and with problems instead of its own pages."""

    def __init__(self, api: Api):
        super().__init__(api.handle, request_factory=_request)

    def __call__(self) -> RequestHandler:
        return _Connection(
            self,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]  # aiohttp's own way of saying: none
            logger=logger,
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_LINE,
        )


class _Connection(RequestHandler):
    __slots__ = ()

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The answer to what is no HTTP, and to a fault of aiohttp's own."""
        if status >= 500:
            logger.error("A connection was answered with %d", status, exc_info=exc)
            return problem_response(Problem(500, "a fault of the service, which its log describes"), closes=True)
        return problem_response(Problem(status, "not a request by RFC 9112 that is read here"), closes=True)


def _request(
    message: RawRequestMessage, payload: StreamReader, protocol: Any, writer: Any, task: asyncio.Task[None]
) -> web.BaseRequest:
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=LONGEST_BODY)


# -- requests ---------------------------------------------------------------------------------------------------


def _segments(template: str) -> list[str]:
    return template.split("/")


def _matched(segments: list[str], asked: list[str]) -> dict[str, str] | None:
    """The values of a path's parameters; None for a path that doesn't match."""
    if len(segments) != len(asked):
        return None
    found = {}
    for segment, given in zip(segments, asked, strict=True):
        if segment.startswith("{"):
            found[segment[1:-1]] = given
        elif segment != given:
            return None
    return found


def _split(target: str) -> tuple[str, str]:
    """Path and query of a request's target, as they came, with bytes above ASCII read as UTF-8."""
    told = target.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    if not told.startswith("/"):  # the absolute form (RFC 9112, 3.2.2)
        told = re.sub(r"^[A-Za-z][A-Za-z0-9+.-]*://[^/?#]*", "", told) or "/"
    path, _, query = told.partition("?")
    return path, query.partition("#")[0]


def _unquoted(segment: str) -> str:
    try:
        return unquote_to_bytes(segment).decode()
    except UnicodeDecodeError:
        raise Problem(400, "the path: not UTF-8 behind its percent signs; UTF-8 would work") from None


def _query(query: str) -> dict[str, str]:
    """The query's parameters. Raises Problem."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=MOST_PARAMETERS, errors="replace")
    except ValueError:
        raise Problem(400, f"the query: too many parameters; up to {MOST_PARAMETERS} would work") from None
    given: dict[str, str] = {}
    for name, value in pairs:
        if name in given:
            raise Problem(400, f"{name[:60]}: given twice; once would work")
        given[text(name)] = text(value)
    return given


async def _body(request: web.BaseRequest, route: Route) -> Any:
    """The body of a call that has one. Raises Problem."""
    if route.body is None:
        return None
    if request.headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        raise Problem(415, "Content-Encoding: not read here; a body that is not compressed would work")
    length = request.content_length
    too_large = Problem(413, f"the body: too large; up to {LONGEST_BODY} bytes would work")
    if length is not None and length > LONGEST_BODY:
        raise too_large
    try:
        content = await asyncio.wait_for(request.read(), BODY_SECONDS)
    except TimeoutError:
        raise Problem(408, f"the body: didn't come within {BODY_SECONDS:.0f} seconds") from None
    except web.HTTPRequestEntityTooLarge:
        raise too_large from None
    except web.RequestPayloadError:
        raise Problem(400, "the body: broken off or wrongly framed") from None
    # aiohttp says application/octet-stream where there is none
    media_type = request.content_type if "Content-Type" in request.headers else ""
    return body_of(route.body, media_type, content)


def _is_unread(request: web.BaseRequest) -> bool:
    return request.can_read_body and not request.content.at_eof()


def _accepts(request: web.BaseRequest, media_type: str, header: str = "Accept") -> bool:
    """True where the header names this media type or coding, and not with q=0 (RFC 9110, 12.4.2)."""
    for part in ",".join(request.headers.getall(header, [])).split(","):
        name, *parameters = (piece.strip().lower() for piece in part.split(";"))
        if name == media_type:
            return not any(re.fullmatch(r"q\s*=\s*0(\.0*)?", parameter) for parameter in parameters)
    return False


# -- answers ----------------------------------------------------------------------------------------------------


def encoded(data: Any) -> bytes:
    """JSON in UTF-8; times and texts of strangers are storable already."""
    return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")


def problem_response(problem: Problem, *, closes: bool = False) -> web.Response:
    """The answer of a problem. `closes`: the connection too, where the rest of the request wasn't read."""
    response = web.Response(
        status=problem.status,
        body=encoded(problem.row()),
        headers={**_COMMON, "Content-Type": problems.MEDIA_TYPE, **problem.headers},
    )
    if closes:
        response.force_close()
    return response


async def _whole(request: web.BaseRequest, reply: Reply, route: Route) -> web.StreamResponse:
    """An answer at once, encoded on a thread: a report of megabytes would hold up all others."""
    compress = _accepts(request, "gzip", "Accept-Encoding")
    body, coding, tag = await asyncio.to_thread(_rendered, reply, compress)
    headers = {**_COMMON, "Vary": "Accept, Accept-Encoding" if route.items else "Accept-Encoding", **reply.headers}
    if request.method in ("GET", "HEAD") and reply.status == 200:
        headers["ETag"] = tag
        if _names_tag(request.headers.get("If-None-Match", ""), tag):
            return web.Response(status=304, headers=headers)
    headers["Content-Type"] = _JSON
    if coding:
        headers["Content-Encoding"] = coding
    return web.Response(status=reply.status, body=body, headers=headers)


def _rendered(reply: Reply, compress: bool) -> tuple[bytes, str, str]:
    """Body, coding and ETag. The tag is weak: it is the same whatever the coding (RFC 9110, 8.8.3.3)."""
    body = encoded(reply.data)
    tagged = body
    if reply.untagged:
        tagged = encoded({name: value for name, value in reply.data.items() if name not in reply.untagged})
    tag = f'W/"{blake2b(tagged, digest_size=16).hexdigest()}"'
    if compress and len(body) >= COMPRESSED_FROM:
        return gzip.compress(body, 5, mtime=0), "gzip", tag
    return body, "", tag


def _names_tag(header: str, tag: str) -> bool:
    """True where If-None-Match names the tag, by weak comparison (RFC 9110, 13.1.2)."""
    if header.strip() == "*":
        return True
    return tag.removeprefix("W/") in re.findall(r'"[^"]*"', header)


async def _stream(request: web.BaseRequest, reply: Reply) -> web.StreamResponse:
    """An answer line by line. A fault on the way breaks the connection: the status has gone out already, and an end
    without a fault would pass for the whole list."""
    assert reply.lines is not None
    lines = reply.lines
    first = b"" if request.method == "HEAD" else await anext(lines, b"")
    response = web.StreamResponse(headers={**_COMMON, "Content-Type": LINES, "Vary": "Accept, Accept-Encoding"})
    if _accepts(request, "gzip", "Accept-Encoding"):
        response.enable_compression(web.ContentCoding.gzip)
    await response.prepare(request)
    if request.method == "HEAD":
        return response
    try:
        await asyncio.wait_for(response.write(first), WRITE_SECONDS)
        async for part in lines:
            await asyncio.wait_for(response.write(part), WRITE_SECONDS)
        await asyncio.wait_for(response.write_eof(), WRITE_SECONDS)
    except (TimeoutError, ConnectionError):  # the reader has gone, or takes nothing
        _break_off(request)
    except (StoreError, Problem) as fault:
        logger.warning("A stream was broken off: %s", fault)
        _break_off(request)
    except Exception:
        logger.exception("A stream was broken off")
        _break_off(request)
    return response


def _break_off(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()
