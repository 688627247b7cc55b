"""Every misbehaviour does on the wire what its name says, seen through plain sockets."""

from __future__ import annotations

import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.site.client import ROOT, RunningSite, running_site
from tests.site.shown import CUT_SHORT, GET, HEAD, ROBOTS, SILENT, TLS_FAULTS, Seen, has_status, status_in_name
from tests.site.table import MISBEHAVIOURS, connections, headers, heads, redirects, robots, statuses, walls

#: Seconds to wait for what must come, and for what must not.
PATIENCE, SILENCE = 20.0, 0.8
MOST = 400_000


def ask(
    url: str,
    method: str = "GET",
    *,
    first: float = PATIENCE,
    rest: float = PATIENCE,
    keep: bool = False,
    trusted: str | None = None,
) -> Seen:
    """One request through a plain socket, read until the end or MOST bytes; at most `first` seconds until the first
    byte comes, and `rest` seconds after it."""
    parts = urlsplit(url)
    assert parts.hostname
    assert parts.port
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    connection = "" if keep else "Connection: close\r\n"
    request = f"{method} {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n{connection}\r\n".encode()
    data, stop = b"", time.monotonic() + first
    try:
        with _connect(parts.hostname, parts.port, first, trusted) as stream:
            stream.sendall(request)
            while len(data) < MOST:
                stream.settimeout(max(stop - time.monotonic(), 0.001))
                more = stream.recv(65536)
                if not more:
                    return Seen(data, "closed")
                stop = stop if data else time.monotonic() + rest
                data += more
            return Seen(data, "more")
    except TimeoutError:
        return Seen(data, "silent")
    except ConnectionRefusedError:
        return Seen(data, "refused")
    except (ConnectionResetError, BrokenPipeError):
        return Seen(data, "reset")


def _connect(host: str, port: int, wait: float, trusted: str | None) -> socket.socket:
    if trusted is None:
        return socket.create_connection((host, port), wait)
    context = ssl.create_default_context(cafile=trusted)
    # Wrapped before it connects: around a connection that was reset already, wrap_socket raises and leaks the socket.
    secure = context.wrap_socket(socket.socket(), server_hostname=host, do_handshake_on_connect=False)
    try:
        secure.settimeout(wait)
        secure.connect((host, port))
        secure.do_handshake()
    except OSError:
        secure.close()
        raise
    return secure


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSite]:
    with running_site(tmp_path_factory.mktemp("site")) as running:
        yield running


def _look(name: str, url: str, method: str = "GET") -> Seen:
    """One request, with the patience that this misbehaviour deserves."""
    first, rest = (SILENCE if name in known else PATIENCE for known in (SILENT, CUT_SHORT))
    return ask(url, method, first=first, rest=rest)


def _rows(*rooms: object) -> list[str]:
    return [row.name for room in rooms for row in room.ROWS]  # type: ignore[attr-defined]


def _link(site: RunningSite, name: str) -> str:
    row = next(row for row in MISBEHAVIOURS if row.name == name)
    return row.link(site.place(name))


PLAIN = [
    row.name
    for row in MISBEHAVIOURS
    if not row.name.startswith(("robots-", "tls-")) and row.name != "wall-500-then-200"
]


@pytest.mark.parametrize("name", PLAIN)
def test_head_shows_what_the_name_says(site: RunningSite, name: str) -> None:
    check = HEAD.get(name) or status_in_name(name)
    assert check, f"{name} has no row in HEAD, and its name says nothing"
    seen = _look(name, _link(site, name), "HEAD")
    assert check(seen), seen


@pytest.mark.parametrize("name", [*_rows(heads), *(name for name in PLAIN if name.startswith("body-"))])
def test_get_differs_from_head(site: RunningSite, name: str) -> None:
    seen = _look(name, _link(site, name))
    assert GET.get(name, has_status(200))(seen), seen


@pytest.mark.parametrize("name", _rows(robots))
def test_robots_files(site: RunningSite, name: str) -> None:
    seen = _look(name, site.place(name).url("/robots.txt"))
    check = ROBOTS.get(name) or (lambda seen: seen.status == 200 and b"User-agent: " in seen.data)
    assert check(seen), seen
    assert ask(_link(site, name)).status in {200, 302}


@pytest.mark.parametrize("name", sorted(TLS_FAULTS))
def test_bad_certificates_and_protocols(site: RunningSite, name: str) -> None:
    with pytest.raises(ssl.SSLError) as caught:
        ask(_link(site, name), trusted=site.trusted)
    assert re.search(TLS_FAULTS[name], str(caught.value)), caught.value


def test_other_tls_hosts(site: RunningSite) -> None:
    assert ask(_link(site, "tls-good"), trusted=site.trusted).status == 200
    assert ask(_link(site, "tls-silence"), first=SILENCE, trusted=site.trusted) == Seen(b"", "silent")
    assert ask(_link(site, "tls-reset"), trusted=site.trusted) == Seen(b"", "reset")


def test_every_misbehaviour_is_looked_at() -> None:
    seen = {*PLAIN, *_rows(robots), *TLS_FAULTS, "tls-good", "tls-silence", "tls-reset", "wall-500-then-200"}
    assert {row.name for row in MISBEHAVIOURS} == seen
    assert len(MISBEHAVIOURS) == len(seen), "a name stands twice"
    assert all(_rows(room) for room in (connections, headers, heads, redirects, robots, statuses, walls))
    assert set(HEAD) | set(GET) | set(ROBOTS) <= seen


def test_answers_in_turn(site: RunningSite) -> None:
    link = _link(site, "wall-500-then-200")
    assert [ask(link).status for _ in range(3)] == [500, 200, 200]


def test_cookie_ends_the_loop(site: RunningSite) -> None:
    place = site.place("redirect-cookie")
    with socket.create_connection((place.here, site.ports.plain), 5) as plain:
        plain.sendall(b"HEAD /doc HTTP/1.1\r\nHost: x\r\nCookie: seen=1\r\n\r\n")
        assert plain.recv(100).startswith(b"HTTP/1.1 200 OK\r\n")


def test_redirect_targets_are_there(site: RunningSite) -> None:
    assert ask(site.place("redirect-latin-1").url("/stra%DFe")).status == 200
    assert ask(site.place("redirect-cross-host").other_url("/to")).status == 200
    assert ask(site.place("redirect-404").other_url("/gone")).status == 404
    assert ask(site.place("redirect-404").other_url("/nothing-of-the-kind")).status == 404


def test_the_log_says_who_closed(site: RunningSite) -> None:
    before = time.time()
    ask(_link(site, "connect-silence"), "HEAD", first=0.2, keep=True)
    ask(_link(site, "header-half"), "HEAD", keep=True)
    ask(_link(site, "status-404"), "HEAD", rest=0.2, keep=True)
    wanted = {site.place(name).here: name for name in ("connect-silence", "header-half", "status-404")}
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        new = [row for row in site.connections() if row["host"] in wanted and row["opened"] >= before]
        ended = {wanted[row["host"]]: row["closed_by"] for row in new}
        if len(ended) == 3:
            break
        time.sleep(0.02)
    assert ended == {"connect-silence": "client", "header-half": "server", "status-404": "client"}


def test_the_log_tells_a_request(site: RunningSite) -> None:
    place, before = site.place("status-206"), time.time()
    assert ask(place.url(), "GET").status == 206
    request = next(request for request in reversed(site.requests()) if request.host == place.here)
    assert request.line == "GET /doc"
    assert request.header("Host") == f"{place.here}:{site.ports.plain}"
    assert before <= request.started <= request.ended <= time.time()
    assert request.sent > 60


def test_a_crowd(tmp_path: Path) -> None:
    with running_site(tmp_path, hosts=2, silent=1, pages=3) as crowd:
        assert ask(crowd.url("127.31.1.1", "/anything")).status == 200
        assert ask(crowd.url("127.41.0.1", "/anything"), first=0.2).end == "silent"
        assert f"Location: http://127.31.0.1:{crowd.ports.plain}/2".encode() in ask(crowd.url("127.51.0.1", "/2")).data


def test_the_site_ends_with_the_process_that_started_it(tmp_path: Path) -> None:
    starter = (
        "import pathlib, sys, time\nfrom tests.site.client import running_site\n"
        "with running_site(pathlib.Path(sys.argv[1]), hosts=1) as site:\n"
        "    print(site.ports.plain, flush=True)\n    time.sleep(60)\n"
    )
    command = [sys.executable, "-c", starter, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        url = f"http://127.31.0.1:{int(process.stdout.readline())}/"
        assert ask(url).status == 200
        process.send_signal(signal.SIGKILL)
        process.wait(10)
    deadline = time.monotonic() + 10
    while ask(url).end != "refused":
        assert time.monotonic() < deadline, "the site lives on"
        time.sleep(0.05)


def test_the_site_ends_after_its_time(tmp_path: Path) -> None:
    with running_site(tmp_path, seconds=0.5, hosts=1) as crowd:
        url, deadline = crowd.url("127.31.0.1"), time.monotonic() + 10
        while ask(url).end != "refused":
            assert time.monotonic() < deadline, "the site lives on"
            time.sleep(0.05)
