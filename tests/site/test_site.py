"""Every misbehaviour does on the wire what its name says, seen through plain sockets."""

from __future__ import annotations

import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.site.client import ROOT, RunningSite, running_site
from tests.site.table import MISBEHAVIOURS, connections, headers, heads, redirects, robots, statuses, walls

#: Seconds for one request of a server that answers at all, and of one that is known not to.
PATIENCE, SILENCE = 20.0, 0.8
MOST = 400_000


class Seen(NamedTuple):
    """What a client sees: the bytes (the first MOST), and how it ended: closed, reset, refused, silent, or more."""

    data: bytes
    end: str

    @property
    def status(self) -> int | None:
        found = re.match(rb"HTTP/\S+ (\d{3})\b", self.data)
        return int(found[1]) if found else None


def ask(url: str, method: str = "GET", *, wait: float = PATIENCE, keep: bool = False, **tls: str | None) -> Seen:
    """One request through a plain socket, read until the end, MOST bytes, or `wait` seconds in all."""
    parts = urlsplit(url)
    assert parts.hostname
    assert parts.port
    target = parts.path + (f"?{parts.query}" if parts.query else "")
    connection = "" if keep else "Connection: close\r\n"
    request = f"{method} {target} HTTP/1.1\r\nHost: {parts.netloc}\r\n{connection}\r\n".encode()
    data, stop = b"", time.monotonic() + wait
    try:
        with _connect(parts.hostname, parts.port, wait, **tls) as stream:
            stream.sendall(request)
            while len(data) < MOST:
                stream.settimeout(max(stop - time.monotonic(), 0.001))
                more = stream.recv(65536)
                if not more:
                    return Seen(data, "closed")
                data += more
            return Seen(data, "more")
    except TimeoutError:
        return Seen(data, "silent")
    except ConnectionRefusedError:
        return Seen(data, "refused")
    except (ConnectionResetError, BrokenPipeError):
        return Seen(data, "reset")


def _connect(host: str, port: int, wait: float, **tls: str | None) -> socket.socket:
    plain = socket.create_connection((host, port), wait)
    if not tls:
        return plain
    try:
        return ssl.create_default_context(cafile=tls["trusted"]).wrap_socket(plain, server_hostname=host)
    except OSError:
        plain.close()
        raise


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSite]:
    with running_site(tmp_path_factory.mktemp("site")) as running:
        yield running


Check = Callable[[Seen], object]


def _status(status: int) -> Check:
    return lambda seen: seen.status == status


def _starts(data: bytes, end: str) -> Check:
    return lambda seen: seen.data.startswith(data) and seen.end == end


def _holds(data: bytes) -> Check:
    return lambda seen: data in seen.data


def _ends(end: str) -> Check:
    return lambda seen: seen == Seen(b"", end)


_OK = b"HTTP/1.1 200 OK\r\n"
_DRIPPED: Check = lambda seen: len(seen.data) > 0 and seen.data in _OK and seen.end == "silent"  # noqa: E731

#: Name -> what a HEAD of the link shows, where the name alone does not say it.
HEAD: dict[str, Check] = {
    "head-reset": _ends("reset"),
    "head-empty": _ends("closed"),
    "head-hang": _ends("silent"),
    "head-garbage": _starts(b"\x00", "closed"),
    "head-loop": _holds(b"Location: /doc\r\n"),
    "head-body": _holds(b"\r\n\r\n<!doctype"),
    "head-mime": _holds(b"Content-Type: application/x-odd\r\n"),
    "head-404-get-404": _status(404),
    "head-404-get-reset": _status(404),
    "status-1000": _holds(b" 1000 "),
    "line-no-reason": _holds(b"HTTP/1.1 200\r\n"),
    "line-reason-escapes": _holds(b" 200 \x1b[31m"),
    "line-http-1.0": _starts(b"HTTP/1.0 200 OK\r\n\r\n", "closed"),
    "line-http-2": _starts(b"HTTP/2 200\r\n", "closed"),
    "line-http-0.9": _starts(b"<!doctype", "closed"),
    "line-garbage": _starts(b"\x15\x03", "closed"),
    "line-ssh": _starts(b"SSH-", "closed"),
    "line-blank-first": _holds(b"\r\n\r\nHTTP/1.1 200"),
    "interim-100": _holds(b"100 Continue\r\n\r\nHTTP/1.1 200"),
    "interim-103": _holds(b"</x>\r\n\r\nHTTP/1.1 200"),
    "interim-endless": lambda seen: seen.data.count(b" 100 ") == 1000,
    "interim-101": _starts(b"HTTP/1.1 101 Switching", "silent"),
    "header-no-colon": _holds(b"\r\nthis is no header\r\n"),
    "header-obs-fold": _holds(b"one\r\n  two\r\n"),
    "header-bare-lf": lambda seen: b"\n\n" in seen.data and b"\r" not in seen.data,
    "header-latin-1": _holds(b"Universit\xe4t"),
    "header-utf-8": _holds("Universität 🐘".encode()),
    "header-nul": _holds(b"a\x00b\x1b[2Jc"),
    "header-twice": lambda seen: seen.data.count(b"Content-Type") == 2,
    "header-empty-name": _holds(b"\r\n: nothing\r\n"),
    "header-bad-mime": _holds(b"html; ;;="),
    "header-mime-capitals": _holds(b"Text/HTML; Charset"),
    "header-bad-length": _holds(b"Length: lots"),
    "header-negative-length": _holds(b"Length: -5"),
    "header-huge-length": _holds(b"Length: 99999999999999999999\r"),
    "header-many": lambda seen: seen.data.count(b"X-A: b\r\n") > 10_000 and seen.end == "more",
    "header-long": lambda seen: seen.data.count(b"\r\n") == 1 and seen.end == "more",
    "header-endless": lambda seen: seen.data.count(b"\r\n") == 1 and seen.end == "more",
    "header-drip": _DRIPPED,
    "header-half": _starts(_OK + b"Content-Type: te", "closed"),
    "header-half-silence": _starts(_OK + b"Content-Type: te", "silent"),
    "header-half-reset": lambda seen: seen.end == "reset",
    "slow-good": _status(200),
    "slow-late": _ends("silent"),
    "slow-never": _ends("silent"),
    "slow-first-byte": _starts(b"H", "silent"),
    "redirect-relative": _holds(b"Location: to/there\r\n"),
    "redirect-dots": _holds(b"Location: ../to\r\n"),
    "redirect-query": _holds(b"Location: ?page=2\r\n"),
    "redirect-network-path": _holds(b"Location: //127."),
    "redirect-scheme-capitals": _holds(b"Location: HTTP://"),
    "redirect-percent": _holds(b"/a%2Fb%23c%3Fd\r\n"),
    "redirect-utf-8": _holds("/straße/é\r\n".encode()),
    "redirect-latin-1": _holds(b"/stra\xdfe\r\n"),
    "redirect-space": _holds(b"/two words\r\n"),
    "redirect-fragment": _holds(b"/to#part\r\n"),
    "redirect-padded": _holds(b"Location:   /to  \r\n"),
    "redirect-two-locations": lambda seen: seen.data.count(b"Location: ") == 2,
    "redirect-userinfo": _holds(b"//u:secret@127."),
    "redirect-https-refused": _holds(b"Location: https://"),
    "redirect-ftp": _holds(b"Location: ftp:"),
    "redirect-mailto": _holds(b"Location: mailto:"),
    "redirect-javascript": _holds(b"Location: javascript:"),
    "redirect-file": _holds(b"Location: file:"),
    "redirect-data": _holds(b"Location: data:"),
    "redirect-broken-url": _holds(b"http://[::1\r\n"),
    "redirect-private": _holds(b"http://10.0.0.1/"),
    "redirect-metadata": _holds(b"http://169.254.169.254/"),
    "redirect-mapped": _holds(b"http://[::ffff:10.0.0.1]/"),
    "redirect-decimal": _holds(b"http://167772161/"),
    "redirect-bad-port": _holds(b":25/\r\n"),
    "redirect-no-port": _holds(b":99999/\r\n"),
    "redirect-cookie": _holds(b"Location: /doc\r\nSet-Cookie: seen=1"),
    "redirect-cookie-never": _holds(b"Location: /doc\r\nSet-Cookie: a=1"),
    "redirect-cookie-elsewhere": _holds(b"Set-Cookie: secret=1"),
    "redirect-cross-host": _holds(b"Location: http://127.22."),
    "status-302-nowhere": lambda seen: seen.status == 302 and b"Location" not in seen.data,
    "status-301-empty": _holds(b"Location: \r\n"),
    "login-itself": _status(200),
    "login-403": _holds(b"/idp/profile/SAML2/"),
    "login-saml": _holds(b"/idp/profile/SAML2/"),
    "login-shibboleth": _holds(b"/Shibboleth.sso/Login"),
    "login-cas": _holds(b"/cas/login"),
    "login-adfs": _holds(b"/adfs/ls/"),
    "login-oidc": _holds(b"response_type=code"),
    "wall-ray": lambda seen: seen.status == 404 and b"cf-mitigated" not in seen.data,
    "wall-aws": _holds(b"x-amzn-waf-action: challenge"),
    "wall-429-seconds": _holds(b"Retry-After: 3600\r\n"),
    "wall-429-date": _holds(b" GMT\r\nRetry-After: "),
    "wall-429-odd": _holds(b"Retry-After: 1m30s"),
    "wall-429-malformed": _holds(b"Retry-After: soon"),
    "wall-429-years": _holds(b"Retry-After: 999999999"),
    "wall-503-seconds": _holds(b"Retry-After: 3600\r\n"),
    "wall-503-then-200": _status(503),
    "connect-refused": _ends("refused"),
    "connect-reset": _ends("reset"),
    "connect-close": lambda seen: seen.data == b"" and seen.end in {"closed", "reset"},
    "connect-silence": _ends("silent"),
    "connect-greeting": _starts(b"220 mail", "silent"),
}
#: A GET where it differs from what HEAD shows, and is no plain 200.
GET: dict[str, Check] = {
    "head-404-get-404": _status(404),
    "head-404-get-reset": _ends("reset"),
    "body-endless": lambda seen: seen.status == 200 and seen.end == "more",
    "body-terabyte": lambda seen: b"Length: 1000000000000\r" in seen.data and seen.end == "more",
    "body-short": lambda seen: b"Length: 5000\r" in seen.data and seen.data.endswith(b"short"),
    "body-broken-chunks": _holds(b"\r\n\r\nzz\r\n"),
    "body-cut-chunk": lambda seen: seen.end == "reset",
    "body-gzip-bomb": lambda seen: b"gzip\r\n\r\n\x1f\x8b" in seen.data and seen.end == "more",
    "body-not-gzip": _holds(b"gzip\r\n\r\nplain"),
    "body-drip": lambda seen: re.search(rb"\r\n\r\nx{1,4}$", seen.data) and seen.end == "silent",
    "body-silence": lambda seen: seen.data.endswith(b"\r\n\r\n") and seen.end == "silent",
    "body-empty": lambda seen: b"Length: 0\r\n" in seen.data and seen.end == "closed",
}
#: robots.txt, where it is not simply a file with the rules of its name.
ROBOTS: dict[str, Check] = {
    "robots-bom": _holds(b"\r\n\r\n\xef\xbb\xbfUser-agent"),
    "robots-cr": _holds(b"*\rDisallow: /\r"),
    "robots-html": _holds(b"<!doctype"),
    "robots-404": lambda seen: seen.status == 404 and b"Disallow: /" in seen.data,
    "robots-403": _status(403),
    "robots-410": _status(410),
    "robots-500": _status(500),
    "robots-503": _status(503),
    "robots-429": _status(429),
    "robots-hang": _ends("silent"),
    "robots-reset": _ends("reset"),
    "robots-redirect-loop": _holds(b"Location: /robots.txt\r\n"),
    "robots-redirect": _holds(b"Location: /rules.txt\r\n"),
    "robots-redirect-host": _holds(b"Location: http://127.22."),
    "robots-long": lambda seen: b"Disallow: /\n# more" in seen.data and seen.end == "more",
    "robots-cut": lambda seen: b"Length: 999\r\n" in seen.data and seen.end == "closed",
    "robots-delay": _holds(b"Crawl-delay: 1\n"),
}
TLS_FAULTS = {
    "tls-self-signed": "self-signed certificate",
    "tls-expired": "expired",
    "tls-other-host": "IP address mismatch",
    "tls-untrusted": "unable to get local issuer",
    "tls-old-protocol": "ALERT_PROTOCOL_VERSION|alert protocol version",
    "tls-no-cipher": "ALERT_HANDSHAKE_FAILURE|alert handshake failure",
    "tls-plain": "WRONG_VERSION_NUMBER|wrong version number",
}


def _status_in(name: str) -> Check | None:
    """What the name itself says: `head-405`, `status-404`, `wall-429`, `redirect-301`."""
    if re.match(r"redirect-(loop|chain|404|410)", name):
        return _status(302)
    found = re.fullmatch(r"(head|status|wall|wall-challenge|redirect)-(\d{3})(-then-200)?", name)
    if found:
        return _status(int(found[2]))
    return _status(405) if name.startswith("body-") else None


#: What never comes to an end by itself.
SILENT = {
    *("head-hang", "interim-101", "header-drip", "header-half-silence", "slow-late", "slow-never", "slow-first-byte"),
    *("connect-silence", "connect-greeting", "body-drip", "body-silence", "robots-hang", "tls-silence"),
}


def _patience(name: str) -> float:
    return SILENCE if name in SILENT else PATIENCE


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
    check = HEAD.get(name) or _status_in(name)
    assert check, f"{name} has no row in HEAD, and its name says nothing"
    seen = ask(_link(site, name), "HEAD", wait=_patience(name))
    assert check(seen), seen


@pytest.mark.parametrize("name", [*_rows(heads), *(name for name in PLAIN if name.startswith("body-"))])
def test_get_differs_from_head(site: RunningSite, name: str) -> None:
    seen = ask(_link(site, name), "GET", wait=_patience(name))
    assert GET.get(name, _status(200))(seen), seen


@pytest.mark.parametrize("name", _rows(robots))
def test_robots_files(site: RunningSite, name: str) -> None:
    seen = ask(site.place(name).url("/robots.txt"), wait=_patience(name))
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
    assert ask(_link(site, "tls-silence"), wait=SILENCE, trusted=site.trusted) == Seen(b"", "silent")
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
        assert plain.recv(100).startswith(_OK)


def test_redirect_targets_are_there(site: RunningSite) -> None:
    assert ask(site.place("redirect-latin-1").url("/stra%DFe")).status == 200
    assert ask(site.place("redirect-cross-host").other_url("/to")).status == 200
    assert ask(site.place("redirect-404").other_url("/gone")).status == 404
    assert ask(site.place("redirect-404").other_url("/nothing-of-the-kind")).status == 404


def test_the_log_says_who_closed(site: RunningSite) -> None:
    before = time.time()
    for name, wait in (("connect-silence", 0.2), ("header-half", PATIENCE), ("status-404", 0.2)):
        ask(_link(site, name), "HEAD", wait=wait, keep=True)
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
        assert ask(crowd.url("127.41.0.1", "/anything"), wait=0.2).end == "silent"
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
