"""Lines are in a file whole or not at all, whatever the disk does, and whoever else writes to it."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.audit.log import AuditEntry, AuditLog
from linkcrawl.audit.verify import Unreadable, read_lines
from linkcrawl.errors import ConfigError
from linkcrawl.ingest.ingest import read_batches
from linkcrawl.line_file import LineFile

write = os.write


@contextmanager
def disk(room: int, meanwhile: Callable[[], object] = lambda: None) -> Iterator[None]:
    """A disk with room for so many bytes: a write that finds less is short, the next fails. `meanwhile` happens after a
    short write."""
    left = room

    def limited(descriptor: int, data: bytes) -> int:
        nonlocal left
        if left == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = write(descriptor, data[:left])
        left -= written
        if written < len(data):
            meanwhile()
        return written

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", limited)
        yield


@given(st.lists(st.integers(0, 30), min_size=1, max_size=6), st.integers(0, 60))
def test_a_disk_that_fills_up_tears_no_line(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], room: int
) -> None:
    path = tmp_path_factory.mktemp("disk") / "log"
    file, added = LineFile(path), []
    with disk(room):
        for size in sizes:
            data = b"x" * size + b"\n"
            try:
                file.add(data)
            except OSError:
                continue
            added.append(data)
    file.add(b"last\n")
    file.close()
    assert path.read_bytes() == b"".join([*added, b"last\n"])


def test_a_short_write_with_room_for_the_rest_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:3]))
    file = LineFile(tmp_path / "log")
    file.add(b"a long line\n")
    file.close()
    assert (tmp_path / "log").read_bytes() == b"a long line\n"


def test_what_another_process_has_added_is_not_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "log"
    one = LineFile(path)

    def add_other() -> None:
        with path.open("ab") as other:
            other.write(b"other\n")

    with disk(3, meanwhile=add_other), pytest.raises(OSError, match="No space"):
        one.add(b"first\n")
    one.add(b"second\n")
    one.close()
    lines = path.read_bytes().split(b"\n")
    assert b"second" in lines
    assert b"firother" in lines


@pytest.mark.parametrize("left", [b"half", b"line\nhalf", b"x" * 100_000])
def test_half_a_line_of_before_is_left_by_itself(tmp_path: Path, left: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(left)
    for text in (b"one\n", b"two\n"):
        file = LineFile(path)
        file.add(text)
        file.close()
    assert path.read_bytes() == left + b"\none\ntwo\n"


def test_a_pipe_is_written_to_and_not_read(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    file = LineFile(path)
    file.add(b"line\n")
    assert os.read(reader, 100) == b"line\n"
    file.close()
    os.close(reader)


def entry(sent: float) -> AuditEntry:
    return AuditEntry(sent, sent + 1, "a", "a", 1.0, "DOWNLOAD_DELAY", (), "HEAD", 200)


def test_an_audit_log_on_a_full_disk_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    log = AuditLog(path)
    log.add(entry(1))
    with disk(20):
        log.add(entry(3))
        log.add(entry(5))
    log.add(entry(7))
    log.close()
    assert [line.sent for line in read_lines([path]) if isinstance(line, AuditEntry)] == [1, 7]
    assert [line for line in read_lines([path]) if isinstance(line, Unreadable)] == []


def test_rejects_are_whole_lines_or_none(tmp_path: Path) -> None:
    seeds, rejects = tmp_path / "seeds.txt", tmp_path / "rejects.jsonl"
    seeds.write_text("not a url\n" * 5)
    with disk(250), pytest.raises(ConfigError, match=r"LINKCRAWL_REJECTS: .* can't be written: No space left"):
        list(read_batches([str(seeds)], rejects))
    assert rejects.read_bytes() == b""
    assert [batch.rejected for batch in read_batches([str(seeds)], rejects)] == [5]
    assert [json.loads(line)["line"] for line in rejects.read_text().splitlines()] == [1, 2, 3, 4, 5]
