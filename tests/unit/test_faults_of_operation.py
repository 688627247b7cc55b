"""Small faults of operation, each with one line and its exit status: full disks, locks, early signals, Kubernetes."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import io
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scrapy.extensions import feedexport
from scrapy.settings import Settings
from scrapy.statscollectors import MemoryStatsCollector

from linkcrawl.cli.log_file import LogFileHandler, install_log_file
from linkcrawl.commands.crawl import EXIT
from linkcrawl.config import KNOWN, environment_value, read_config
from linkcrawl.errors import ConfigError, StoreBusy, StoreError, StoreLost
from linkcrawl.extensions.feeds import FeedExporter, feed_failed
from linkcrawl.stores.opening import open_existing, open_store
from linkcrawl.stores.sqlite.file import hold
from tests.contract.making import entry

ROOT = Path(__file__).parents[2]
NO_SPACE = OSError(errno.ENOSPC, "No space left on device")


def settings(**changes: object) -> Settings:
    made = Settings()
    made.setmodule("linkcrawl.settings")
    made.update(changes)
    return made


def test_seeds_that_can_not_be_ingested_are_unusable_input() -> None:
    assert EXIT["unusable_input"] == 2


# The log file.


@pytest.fixture
def root_handlers() -> Iterator[None]:
    handlers, level = list(logging.root.handlers), logging.root.level
    yield
    for handler in set(logging.root.handlers) - set(handlers):
        logging.root.removeHandler(handler)
        handler.close()
    logging.root.setLevel(level)


def test_a_log_on_a_full_disk_ends_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    handler = LogFileHandler(Path("/dev/full"), "utf-8")
    for number in range(9):
        handler.handle(logging.makeLogRecord({"msg": f"line {number}"}))
    handler.close()
    handler.handle(logging.makeLogRecord({"msg": "late"}))
    handler.close()
    told = capsys.readouterr()
    assert told.err == "linkcrawl: LOG_FILE: '/dev/full' can't be written, lines are missing: No space left on device\n"
    assert told.out == ""


@pytest.mark.parametrize(("append", "before"), [(True, "old\n"), (False, "")])
def test_the_log_file_is_as_scrapys_settings_want_it(
    tmp_path: Path, root_handlers: None, append: bool, before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # pytest's own handlers would put the lone surrogate into a report, which can't be sent between its processes
    ours = [handler for handler in logging.getLogger().handlers if not type(handler).__module__.startswith("_pytest")]
    monkeypatch.setattr(logging.getLogger(), "handlers", ours)
    path = tmp_path / "crawl.log"
    path.write_text("old\n")
    told = settings(
        LOG_FILE=str(path), LOG_LEVEL="INFO", LOG_FORMAT="%(levelname)s %(message)s", LOG_FILE_APPEND=append
    )
    install_log_file(told)
    logging.getLogger("linkcrawl.test").info("büchse \udc80")
    logging.getLogger("linkcrawl.test").debug("hidden")
    assert path.read_text() == f"{before}INFO büchse \\udc80\n"
    assert not told.getbool("LOG_INSTALL_ROOT_HANDLER")


# Feeds.


class FullFile(io.BytesIO):
    """A buffered file: what it holds can't be written, however it is flushed."""

    def flush(self) -> None:
        raise NO_SPACE

    def close(self) -> None:
        raise NO_SPACE


def test_a_feed_whose_end_can_not_be_written_ends_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    stats = MemoryStatsCollector(SimpleNamespace(settings=Settings()))  # type: ignore[arg-type]
    feed = FeedExporter.__new__(FeedExporter)
    feed.crawler = SimpleNamespace(stats=stats)  # type: ignore[assignment]
    slot: Any = SimpleNamespace(file=FullFile(), finish_exporting=lambda: None)
    asyncio.run(feed._close_slot(slot, None))  # type: ignore[arg-type]
    asyncio.run(feed._close_slot(slot, None))  # type: ignore[arg-type]
    (line,) = caplog.records
    assert line.getMessage().startswith("The feed can't be written and ends here: No space left on device.")
    assert line.exc_info is None
    assert feed_failed(stats)
    assert isinstance(feed, feedexport.FeedExporter)


# Locks.


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EOPNOTSUPP, errno.EIO, errno.ESTALE])
def test_a_lock_that_can_not_be_had_is_not_another_crawls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def flock(lock: int, operation: int) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(StoreError, match=rf"store\.lock can't be locked: {os.strerror(code)}; .* would work") as told:
        hold(str(tmp_path / "store.lock"))
    assert not isinstance(told.value, StoreBusy)


def test_a_lock_that_is_held_is_another_crawls(tmp_path: Path) -> None:
    lock = hold(str(tmp_path / "store.lock"))
    with pytest.raises(StoreBusy, match=rf"another crawl \(process {os.getpid()}\) holds this store"):
        hold(str(tmp_path / "store.lock"))
    os.close(lock)


# Signals while a command starts.

SLOW_SETTINGS = """
from linkcrawl.settings import *
import time
print("loading", flush=True)
for _ in range(600):  # a signal that comes just before a sleep begins is handled when that sleep ends
    time.sleep(0.1)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
@pytest.mark.parametrize("command", [["crawl", "resourceproxies"], ["seed", "x.txt"]], ids=["crawl", "seed"])
def test_a_signal_while_a_command_starts_is_status_130(tmp_path: Path, command: list[str], number: int) -> None:
    (tmp_path / "slow_settings.py").write_text(SLOW_SETTINGS)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{ROOT}:{tmp_path}"}
    with subprocess.Popen(
        [sys.executable, "-m", "scrapy", *command],
        cwd=tmp_path,
        env={**environment, "SCRAPY_SETTINGS_MODULE": "slow_settings"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "loading\n"
        process.send_signal(number)
        assert process.communicate(timeout=30) == ("", "")
    assert process.returncode == 130


def test_other_programs_keep_their_signals() -> None:
    program = "import signal, linkcrawl.settings as s; print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)"
    done = subprocess.run(
        [sys.executable, "-c", program, "crawl"],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "True\n"


# Passwords.


@pytest.mark.parametrize(
    "url",
    [
        "mongodb://me:s3/cret@localhost/db",
        "mongodb://me:s3?cret@localhost/db",
        "mongodb://me:12?s3cret@localhost:port/db",
        "mongodb://me:s3cret@localhost:port/db",
        "mongodb://me:s3cret@localhost/db?nonsense=s3cret",
        "mongodb://me:s3cret@localhost/",
        "mongodb://me:s3%zzcret@localhost/db",
        "sqlite://me:s3cret@localhost/links.db",
        "postgres://me:12?s3cret@localhost/db",
        "me:s3cret@localhost",
    ],
)
@pytest.mark.parametrize("opened", [open_store, open_existing])
def test_a_malformed_store_url_is_one_line_without_a_password(url: str, opened: Any) -> None:
    with pytest.raises(StoreError, match=r"^LINKCRAWL_STORE: .* would work$") as told:
        opened(url)
    assert "s3" not in str(told.value)


@pytest.mark.parametrize(
    "url", ["me:s3cret@localhost", "rdis://me:12?s3cret@localhost/0", "redis:/me:s3/cret@localhost"]
)
def test_a_malformed_frontier_is_one_line_without_a_password(url: str) -> None:
    with pytest.raises(ConfigError, match=r"^LINKCRAWL_FRONTIER: .* would work$") as told:
        read_config(settings(LINKCRAWL_FRONTIER=url), need_contact=False)
    assert "s3" not in str(told.value)


# Kubernetes' variables of services named linkcrawl, linkcrawl-store and linkcrawl-metrics.

KUBERNETES = {
    "LINKCRAWL_SERVICE_HOST": "10.96.0.7",
    "LINKCRAWL_SERVICE_PORT": "8765",
    "LINKCRAWL_SERVICE_PORT_HTTP_API": "8765",
    "LINKCRAWL_PORT": "tcp://10.96.0.7:8765",
    "LINKCRAWL_PORT_8765_TCP": "tcp://10.96.0.7:8765",
    "LINKCRAWL_PORT_8765_TCP_PROTO": "tcp",
    "LINKCRAWL_PORT_8765_TCP_PORT": "8765",
    "LINKCRAWL_PORT_8765_TCP_ADDR": "10.96.0.7",
    "LINKCRAWL_STORE_PORT_53_UDP_ADDR": "10.96.0.8",
    "LINKCRAWL_STORE_SERVICE_HOST": "10.96.0.8",
    "LINKCRAWL_METRICS_PORT": "tcp://10.96.0.9:9100",
}


@pytest.mark.parametrize("name", KUBERNETES)
def test_variables_of_a_kubernetes_service_stop_nothing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, KUBERNETES[name])
    assert environment_value("LINKCRAWL_METRICS_PORT") == KNOWN["LINKCRAWL_METRICS_PORT"].default
    assert read_config(settings(), need_contact=False).metrics_port == 0


@pytest.mark.parametrize("name", ["LINKCRAWL_STOER", "LINKCRAWL_PORT", "LINKCRAWL_SERVICE"])
def test_other_unknown_variables_are_refused_still(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "8765")
    with pytest.raises(ConfigError, match=f"{name}: no such setting"):
        read_config(settings(), need_contact=False)
    monkeypatch.setenv("LINKCRAWL_METRICS_PORT", "9100")
    assert environment_value("LINKCRAWL_METRICS_PORT") == "9100"


def test_as_a_setting_such_a_name_is_unknown() -> None:
    with pytest.raises(ConfigError, match="LINKCRAWL_SERVICE_HOST: no such setting"):
        read_config(settings(LINKCRAWL_SERVICE_HOST="10.96.0.7"), need_contact=False)


# A WAL that is deleted under a crawl.


@pytest.mark.parametrize("suffixes", [["-wal", "-shm"], ["-wal"]])
def test_a_deleted_wal_is_noticed_and_what_it_holds_is_kept(tmp_path: Path, suffixes: list[str]) -> None:
    path = tmp_path / "links.db"
    with closing(open_store(f"sqlite:///{path}")) as store:
        for number in range(3):
            store.add([entry(number)])
        for suffix in suffixes:
            Path(f"{path}{suffix}").unlink()
        for _ in range(2):  # it is tried again, until patience ends
            with pytest.raises(StoreLost, match=r"links\.db-wal was deleted or replaced while in use"):
                store.add([entry(3)])
        if len(suffixes) == 2:  # as after kill -9: the file alone is left
            (tmp_path / "copy.db").write_bytes(path.read_bytes())
            with closing(open_store(f"sqlite:///{tmp_path}/copy.db")) as copy:
                assert copy.books(0).links == 3


def test_a_wal_of_another_process_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "links.db"
    with closing(open_store(f"sqlite:///{path}")) as store:
        store.add([entry(0)])
        before = path.read_bytes()
        Path(f"{path}-wal").unlink()
        Path(f"{path}-wal").write_bytes(b"")
        with pytest.raises(StoreLost):
            store.add([entry(1)])
        assert path.read_bytes() == before
