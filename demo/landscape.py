"""A small landscape of repositories on loopback, for the demo: each address is a host with habits of its own.

    python demo/landscape.py LOG

Prints one JSON line with the port that all hosts listen on, serves until its standard input ends, and writes one
JSON line per request to LOG: host, method, path, and when the request came and its answer ended (Unix seconds).
Hosts are 127.0.10.x: on Linux the whole of 127.0.0.0/8 is loopback.
"""

from __future__ import annotations

import errno
import json
import select
import sys
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from attrs import field, frozen

HTML = "text/html; charset=utf-8"
PDF = "application/pdf"


@frozen(kw_only=True)
class Reply:
    """An answer; status None closes the connection without one, after `wait` seconds or when the client leaves."""

    status: int | None = 200
    headers: Mapping[str, str] = field(factory=dict)
    body: bytes = b"<!doctype html><title>demo</title>"
    wait: float = 0.0


@frozen(kw_only=True)
class Host:
    """A host: what it is called, what it is like, and what it answers to a method and a path."""

    address: str
    name: str
    about: str
    reply: Callable[[str, str], Reply]
    robots: str | None = None


def page(media_type: str = HTML, *, wait: float = 0.0) -> Reply:
    return Reply(headers={"Content-Type": media_type}, wait=wait)


def error(status: int, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status=status, headers={"Content-Type": HTML, **named})


def redirect(location: str, status: int = 302, **headers: str) -> Reply:
    return error(status, Location=location, **headers)


def resolver(method: str, path: str) -> Reply:
    """A handle resolver: `/20.500.1/10.2/files/3.pdf` is kept at `127.0.10.2`, under `/files/3.pdf`."""
    _, _, target, *rest = path.split("/")
    return redirect(f"//127.0.{target}:{{port}}/{'/'.join(rest)}")


def archive(method: str, path: str) -> Reply:
    return page(PDF if path.endswith(".pdf") else HTML)


def corpora(method: str, path: str) -> Reply:
    if path.startswith("/idp/"):
        return page()
    if path.startswith("/licence/"):
        return error(403)
    if path.startswith("/members/"):
        return error(401, WWW_Authenticate='Basic realm="members"')
    return redirect("/idp/profile/SAML2/Redirect/SSO?SAMLRequest=demo")


def museum(method: str, path: str) -> Reply:
    return page("image/jpeg" if path.startswith("/iiif/") else HTML)


def university(method: str, path: str) -> Reply:
    if path.startswith("/~"):
        return error(404)
    return error(410) if path.startswith("/projects/2009/") else page()


def slow(method: str, path: str) -> Reply:
    return Reply(status=None, wait=30) if path == "/search/everything" else page(wait=0.25)


def flaky(method: str, path: str) -> Reply:
    if path.startswith("/db/"):
        return error(500)
    if path.startswith("/api/"):
        return error(429, Retry_After="2")
    return page()


def no_head(method: str, path: str) -> Reply:
    if method == "HEAD":
        return Reply(status=None) if path.startswith("/cgi-bin/") else error(405, Allow="GET")
    return page("application/xml")


def moved(method: str, path: str) -> Reply:
    if path.startswith("/old/"):
        return redirect(path.replace("/old/", "/new/"), 301)
    if path.startswith("/loop/"):
        return redirect(path)
    step = path.removeprefix("/step/")
    if step != path and int(step):
        return redirect(f"/step/{int(step) - 1}", 307)
    return error(404) if path == "/new/lost.html" else page()


def publisher(method: str, path: str) -> Reply:
    return error(403, cf_mitigated="challenge") if path.startswith("/article/") else page()


HOSTS = (
    Host(address="127.0.10.1", name="resolver", about="redirects handles to other hosts", reply=resolver),
    Host(
        address="127.0.10.2",
        name="archive",
        about="landing pages and PDF files",
        reply=archive,
        robots="User-agent: *\nDisallow: /private/\n",
    ),
    Host(address="127.0.10.3", name="corpora", about="behind a login", reply=corpora),
    Host(
        address="127.0.10.4",
        name="museum",
        about="robots.txt closes /iiif/",
        reply=museum,
        robots="User-agent: *\nDisallow: /iiif/\n",
    ),
    Host(address="127.0.10.5", name="university", about="old home pages are gone", reply=university),
    Host(address="127.0.10.6", name="slow", about="needs 250 ms, or never answers", reply=slow),
    Host(address="127.0.10.7", name="flaky", about="errors, and asks to wait", reply=flaky),
    Host(address="127.0.10.8", name="no-head", about="answers GET only", reply=no_head),
    Host(address="127.0.10.9", name="moved", about="redirects, chains, a loop", reply=moved),
    Host(
        address="127.0.10.10",
        name="library",
        about="robots.txt asks for Crawl-delay: 1",
        reply=archive,
        robots="User-agent: *\nCrawl-delay: 1\n",
    ),
    Host(address="127.0.10.11", name="publisher", about="keeps robots out by a challenge", reply=publisher),
)
#: An address where nothing listens.
GONE = "127.0.10.12"


class Handler(BaseHTTPRequestHandler):
    """Answers for the host whose address the connection came to."""

    protocol_version = "HTTP/1.1"
    wbufsize = 65536  # an answer leaves in one piece, when it is whole
    server: Site

    def do_GET(self) -> None:
        started = time.time()
        host = self.server.host
        if self.path != "/robots.txt":
            reply = host.reply(self.command, self.path)
        elif host.robots is None:
            reply = error(404)
        else:
            reply = Reply(headers={"Content-Type": "text/plain"}, body=host.robots.encode())
        self._send(reply)
        ended = time.time()  # nothing has left yet: whoever gets the answer can't know it before
        try:
            self.wfile.flush()
        except ConnectionError:  # who reads no body closes as soon as the header section is in
            self.close_connection = True
        self.server.log(host.address, self.command, self.path, started, ended)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _send(self, reply: Reply) -> None:
        if reply.status is None:
            select.select([self.connection], [], [], reply.wait)
            self.close_connection = True
            return
        time.sleep(reply.wait)
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value.replace("{port}", str(self.server.server_port)))
        self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Silence: the log of requests is kept in a file."""


class Site(ThreadingHTTPServer):
    """The web server of one host."""

    daemon_threads = True

    def __init__(self, host: Host, port: int, log: Callable[[str, str, str, float, float], None]) -> None:
        self.host = host
        self.log = log
        super().__init__((host.address, port), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silence for clients that hang up, as a link checker does when it has seen enough."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def listen(log: Callable[[str, str, str, float, float], None]) -> list[Site]:
    """All hosts, listening on one port that was free at each of their addresses."""
    for _ in range(20):
        sites: list[Site] = []
        try:
            for host in HOSTS:
                sites.append(Site(host, sites[0].server_port if sites else 0, log))
        except OSError as fault:
            for site in sites:
                site.server_close()
            if fault.errno == errno.EADDRNOTAVAIL:
                sys.exit("The demo needs addresses such as 127.0.10.2 on loopback, which Linux has by itself.")
            if fault.errno != errno.EADDRINUSE:
                raise
        else:
            return sites
    sys.exit("The demo found no port that is free at all of its addresses.")


def main(log_file: Path) -> None:
    lock = threading.Lock()
    with log_file.open("w") as lines:

        def log(host: str, method: str, path: str, started: float, ended: float) -> None:
            row = {"host": host, "method": method, "path": path, "started": started, "ended": ended}
            with lock:
                print(json.dumps(row), file=lines, flush=True)

        sites = listen(log)
        for site in sites:
            threading.Thread(target=site.serve_forever, args=(0.05,), daemon=True).start()
        print(json.dumps({"port": sites[0].server_port}), flush=True)
        sys.stdin.read()  # ends when the demo does, however it ends
        for site in sites:
            site.shutdown()
            site.server_close()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
