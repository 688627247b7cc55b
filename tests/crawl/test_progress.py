"""What an operator sees of a running crawl: in a log, on a terminal, and when he asks with a signal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.crawl.harness import LIMIT, Crawler, environment, until
from tests.site.client import running_site
from tests.site.crowds import hanging, healthy

HOSTS, LINKS = 3, 4


def test_a_log_gets_a_last_line_and_a_line_for_each_outcome(crawler: Crawler) -> None:
    with running_site(crawler.folder, hosts=HOSTS) as site:
        urls = [site.url(healthy(host), f"/{page}") for host in range(HOSTS) for page in range(LINKS)]
        crawl = crawler.run("-a", f"seeds={crawler.seeds([*urls, 'ftp://a.example/'])}")
    assert crawl.status == 0
    (line,) = re.findall(r"INFO: progress (.*)", crawl.stderr)
    told = dict(pair.split("=") for pair in line.split())
    assert told["checked"] == str(len(crawl.records)) == str(len(urls) + 1)
    assert (told["due"], told["requests"], told["Ok"], told["Invalid_URL"]) == ("0", "0", str(len(urls)), "1")
    outcomes = [
        dict(pair.split("=") for pair in row.split()) for row in re.findall(r"INFO: outcome (.*)", crawl.stderr)
    ]
    assert [(row["reason"], row["links"]) for row in outcomes] == [("unsupported_scheme", "1"), ("ok", str(len(urls)))]
    assert int(outcomes[1]["mean_ms"]) <= int(outcomes[1]["max_ms"])
    assert "\x1b" not in crawl.stderr


def test_a_log_gets_a_line_now_and_then(crawler: Crawler) -> None:
    """The minute is made shorter; all else is the command's own."""
    shorter = "from linkcrawl.extensions import progress; progress.LOG_SECONDS = 0.2; "
    scrapy = "import sys; from scrapy.cmdline import execute; execute(sys.argv)"
    with running_site(crawler.folder, hosts=1) as site:
        seeds = crawler.seeds([site.url(healthy(0), f"/{page}") for page in range(20)])
        arguments = crawler.command("crawl", "resourceproxies", "-a", f"seeds={seeds}")[3:]
        done = subprocess.run(
            [sys.executable, "-c", shorter + scrapy, *arguments],
            cwd=crawler.folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT,
        )
    checked = [int(count) for count in re.findall(r"INFO: progress checked=(\d+)", done.stderr)]
    assert len(checked) >= 4
    assert checked == sorted(checked)
    assert checked[0] < checked[-1] == 20
    due = [int(count) for count in re.findall(r"INFO: progress .* due=(\d+)", done.stderr)]
    assert due[-1] == 0
    assert max(due) >= 5


def test_a_signal_lists_what_is_in_flight_and_since_when(crawler: Crawler) -> None:
    with running_site(crawler.folder, hosts=1, silent=2) as site:
        urls = [site.url(hanging(host), "/x") for host in range(2)]
        with crawler.running("-a", f"seeds={crawler.seeds(urls)}", settings={"LINKCRAWL_TIMEOUT": "5"}) as running:
            until(lambda: len(site.log.read_text()) >= 0 and "Spider opened" in running.stderr, "the crawl's start")
            told: list[tuple[str, str]] = []

            def asked() -> bool:
                running.signal(signal.SIGUSR1)
                told[:] = re.findall(r"in flight for ([0-9.]+) s: \w+ (\S+) ", running.stderr)
                return len({url.partition("/robots")[0] for _, url in told}) >= 2

            until(asked, "two requests in flight")
            crawl = running.wait()
    assert crawl.status == 0
    assert len(crawl.records) == 2
    assert all(0 <= float(seconds) < 10 for seconds, _ in told)
    hosts = {url.split("/")[2].split(":")[0] for _, url in told}
    assert hosts == {hanging(0), hanging(1)}


@contextmanager
def terminal() -> Iterator[tuple[int, list[bytes]]]:
    """A terminal of 100 columns to write to, and what was written there, growing."""
    ours, theirs = os.openpty()
    seen: list[bytes] = []

    def read() -> None:
        while True:
            try:
                seen.append(os.read(ours, 65536))
            except OSError:  # all who wrote are gone
                return

    reader = threading.Thread(target=read)
    reader.start()
    try:
        yield theirs, seen
    finally:
        os.close(theirs)
        reader.join(10)
        os.close(ours)


@pytest.mark.parametrize("log", [True, False], ids=["log on the terminal", "log in a file"])
def test_a_terminal_gets_a_panel_and_whole_log_lines_above_it(crawler: Crawler, log: bool) -> None:
    settings = {} if log else {"LOG_FILE": "crawl.log"}
    with running_site(crawler.folder, hosts=HOSTS) as site, terminal() as (screen, seen):
        urls = [site.url(healthy(host), f"/{page}") for host in range(HOSTS) for page in range(LINKS)]
        command = crawler.command("crawl", "resourceproxies", "-a", f"seeds={crawler.seeds(urls)}", settings=settings)
        done = subprocess.run(
            command,
            cwd=crawler.folder,
            env=environment() | {"TERM": "xterm-256color", "COLUMNS": "160", "LINES": "40"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=screen,
            timeout=LIMIT,
        )
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", b"".join(seen).decode())
    assert done.returncode == 0
    assert "linkcrawl" in text
    assert f"checked  {len(urls)} (" in text
    assert "What came of the links" in text
    logged = text if log else Path(crawler.folder, "crawl.log").read_text()
    assert re.search(r"^[-0-9 :]+ \[scrapy\.core\.engine\] INFO: Spider closed \(finished\)", logged, re.MULTILINE)
    assert ("[scrapy.core.engine]" in text) == log
    assert "INFO: progress" not in logged
    assert "Traceback" not in text
