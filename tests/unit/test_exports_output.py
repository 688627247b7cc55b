"""Where an export goes: whole files under their names or nothing, files of so many lines, streams."""

from __future__ import annotations

import gzip
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from linkcrawl.errors import ConfigError
from linkcrawl.exports.output import chunk_name, write, written


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_has_its_name_only_once_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b"before")
    with written(str(path)) as sink:
        sink.write(b"after")
        assert path.read_bytes() == b"before"
    assert path.read_bytes() == b"after"
    assert names(tmp_path) == ["x.jsonl"]


@pytest.mark.parametrize("fault", [ValueError, KeyboardInterrupt, OSError, BrokenPipeError])
def test_a_failure_leaves_what_was_there(tmp_path: Path, fault: type[BaseException]) -> None:
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(b"before")

    def failing() -> Iterator[bytes]:
        yield b"half"
        raise fault

    with pytest.raises(ConfigError if fault is OSError else fault):
        write(str(path), failing(), None)
    assert path.read_bytes() == b"before"
    assert names(tmp_path) == ["x.jsonl.gz"]


def test_gzip_by_suffix_and_the_same_bytes_every_time(tmp_path: Path) -> None:
    one, two = tmp_path / "one.csv.gz", tmp_path / "two.csv.gz"
    for path in (one, two):
        write(str(path), [b"a\n", b"b\n"], None)
    assert gzip.decompress(one.read_bytes()) == b"a\nb\n"
    assert one.read_bytes() == two.read_bytes()


def test_a_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "x.jsonl").symlink_to(tmp_path / "there" / "y.jsonl")
    write(str(tmp_path / "x.jsonl"), [b"a"], None)
    assert (tmp_path / "x.jsonl").is_symlink()
    assert (tmp_path / "there" / "y.jsonl").read_bytes() == b"a"


def test_others_may_read_it_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write(str(tmp_path / "x"), [], None)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "x").stat().st_mode) == 0o640


def test_a_pipe_is_written_to_as_it_stands(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    write(str(pipe), [b"a\n", b"b\n"], 1)
    reader.join(10)
    assert read == [b"a\nb\n"]
    assert names(tmp_path) == ["pipe"]


@pytest.mark.parametrize("output", ["absent/x.jsonl", "file/x.jsonl", "folder"])
def test_what_cannot_be_written_is_said_in_one_line(tmp_path: Path, output: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    with pytest.raises(ConfigError, match=f"^-o .*{output}: .* would work$"):
        write(str(tmp_path / output), [b"a"], None)
    assert names(tmp_path) == ["file", "folder"]


@pytest.mark.parametrize(
    ("lines", "files"),
    [(0, [0]), (1, [1]), (3, [3]), (4, [3, 1]), (6, [3, 3]), (7, [3, 3, 1])],
)
def test_a_chunked_export_is_several_files(tmp_path: Path, lines: int, files: list[int]) -> None:
    output = str(tmp_path / "x.jsonl")
    told = [b"%d\n" % n for n in range(lines)]
    write(output, iter(told), 3)
    paths = [Path(chunk_name(output, n)) for n in range(1, len(files) + 1)]
    assert [path.read_bytes().count(b"\n") for path in paths] == files
    assert b"".join(path.read_bytes() for path in paths) == b"".join(told)
    assert names(tmp_path) == sorted(path.name for path in paths)


def test_a_shorter_export_removes_the_files_of_a_longer_one(tmp_path: Path) -> None:
    output, others = str(tmp_path / "x.jsonl"), ["x-12.jsonl", "x-0009.csv", "xx-0009.jsonl", "x-0009.jsonl.gz"]
    for other in others:
        (tmp_path / other).write_bytes(b"")
    write(output, [b"\n"] * 7, 3)
    write(output, [b"\n"] * 4, 3)
    assert names(tmp_path) == sorted(["x.jsonl", "x-0002.jsonl", *others])


def test_the_first_file_comes_last(tmp_path: Path) -> None:
    """Where it stands, the others do: whoever finds the hour's file needn't wait."""
    output = str(tmp_path / "x.jsonl")

    def lines() -> Iterator[bytes]:
        for _ in range(9):
            assert not Path(output).exists()
            yield b"\n"

    write(output, lines(), 2)
    assert len(names(tmp_path)) == 5


@pytest.mark.parametrize(
    ("name", "second"),
    [
        ("x.jsonl", "x-0002.jsonl"),
        ("x.jsonl.gz", "x-0002.jsonl.gz"),
        ("x", "x-0002"),
        ("x.gz", "x-0002.gz"),
        ("a.b/x.y.edgi", "a.b/x.y-0002.edgi"),
    ],
)
def test_names_of_chunks(name: str, second: str) -> None:
    assert chunk_name(name, 1) == name
    assert chunk_name(name, 2) == second
