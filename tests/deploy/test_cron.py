"""The line for cron, run as cron runs it, and again while it runs."""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from linkcrawl.stores.contract import Query
from linkcrawl.stores.opening import open_store
from tests.contract.mongodb import database, server_url
from tests.crawl.harness import LIMIT, environment, until
from tests.site.client import ROOT, running_site
from tests.site.crowds import healthy

CRONTAB = (ROOT / "deploy" / "cron" / "crontab").read_text()
DOCS = (ROOT / "docs" / "deployment.md").read_text()
#: What each test of an overlap is told, besides the table's own settings.
SETTINGS = {"LINKCRAWL_ALLOWED_NETWORKS": "127.0.0.0/8", "DOWNLOAD_DELAY": "0.3"}


def the_line() -> str:
    """What the table has run every night; % would mean a line break to cron."""
    (line,) = [line for line in CRONTAB.splitlines() if re.match(r"[\d*]", line)]
    command = re.split(r"\s+", line, maxsplit=5)[5]
    assert "%" not in command
    return command


def at(folder: Path) -> str:
    """The same, with this folder in place of /srv and of the root of its store."""
    options = " ".join(f"-s {name}={value}" for name, value in SETTINGS.items())
    return f"{the_line().replace('/srv/', f'{shlex.quote(str(folder))}/')} {options}"


def cron(folder: Path, **store: str) -> subprocess.Popen[str]:
    """Start it as cron does: /bin/sh, a home, hardly any environment but the table's own."""
    told = dict(line.split("=", 1) for line in CRONTAB.splitlines() if re.match(r"[A-Z_]+=", line))
    python = {"PYTHONPATH": environment()["PYTHONPATH"]}  # as if it were installed
    given = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "SHELL": "/bin/sh", **told, **python, **store}
    return subprocess.Popen(
        ["/bin/sh", "-c", at(folder)], cwd=folder, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.fixture
def server(tmp_path: Path) -> Path:
    """What the line speaks of: a folder with an environment, and a catalogue."""
    bin = tmp_path / "linkcrawl" / ".venv" / "bin"
    bin.mkdir(parents=True)
    scrapy = bin / "scrapy"
    scrapy.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m scrapy "$@"\n')
    scrapy.chmod(0o755)
    (tmp_path / "catalogue").mkdir()
    return tmp_path


def test_the_documented_line_is_the_tables() -> None:
    assert f"```crontab\n{CRONTAB.splitlines()[-1]}\n```" in DOCS


@pytest.mark.parametrize("kind", ["sqlite", "mongodb"])
def test_an_overlapping_start_is_refused_in_one_line(server: Path, kind: str) -> None:
    if kind == "sqlite":
        _overlap(server, f"sqlite:///{server}/linkcrawl/linkcrawl.db", {})  # the default, in the line's folder
    else:
        with database(server_url()) as store:
            _overlap(server, store, {"LINKCRAWL_STORE": store})


def _overlap(server: Path, store: str, told: dict[str, str]) -> None:
    with running_site(server, hosts=3) as site:
        urls = [site.url(healthy(host), f"/{page}") for host in range(3) for page in range(40)]
        (server / "catalogue" / "links.txt").write_text("\n".join(urls))
        first = cron(server, **told)
        try:
            until(lambda: site.count() > 3 or first.poll() is not None, "the first start asks")
            second = cron(server, **told)
            out, err = second.communicate(timeout=LIMIT)
            assert first.poll() is None, "it was over too soon to overlap"
            assert (second.returncode, out) == (2, "")
            expected = _documented(store.partition(":")[0], _running_under(first.pid))
            assert re.fullmatch(expected, err), f"{err} is not {expected}"
            assert err in (server / "linkcrawl" / "crawl.log").read_text()
            assert first.communicate(timeout=LIMIT) == ("", "")  # cron mails nothing
            assert first.returncode == 0
        finally:
            first.kill()
            first.wait()
    with closing(open_store(store)) as opened:
        assert Counter(record.url for record in opened.records(Query(history=True))) == Counter(urls)


def _documented(kind: str, process: int) -> str:
    """The line that the docs show, as an expression: the store is each case's own."""
    (shown,) = re.findall(r"^linkcrawl: LINKCRAWL_STORE: another crawl .*$", DOCS, re.MULTILINE)
    alone, (holder,) = "process 4711", re.findall(r"With MongoDB .* \(`(process 4711 .*)`\)", DOCS)
    holder = (alone if kind == "sqlite" else holder).replace("4711", str(process))
    told = shown.replace(alone, holder.replace("crawler", socket.gethostname()))
    return re.escape(told).replace("…", ".+") + "\n"


def _running_under(shell: int) -> int:
    """The crawl that a shell has started; the shell itself, where it has become the crawl."""
    children = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
    return int(children[0]) if children else shell
