"""The output of an export: a file that gets its name once it is whole, several files, or standard output."""

from __future__ import annotations

import contextlib
import gzip
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

from linkcrawl.errors import ConfigError


def is_stream(output: str) -> bool:
    """True for an output that is written in place: `-`, a device, a pipe."""
    path = Path(output)
    return output == "-" or (path.exists() and not path.is_file() and not path.is_dir())


@contextlib.contextmanager
def written(output: str) -> Iterator[BinaryIO]:
    """A file to write to: standard output for `-`, compressed for `.gz`.

    A file is written under a temporary name beside `output` and moved at the end of the block. Where the block raises,
    an earlier file stays. Raises ConfigError for a path that can't be written.
    """
    try:
        with _opened(output) as file, _compressed(file, output) as sink:
            yield sink
    except BrokenPipeError:
        raise
    except OSError as fault:
        raise ConfigError(
            f"-o {output}: {fault.strerror or fault}; a path in a folder that exists and can be written would work"
        ) from fault


def write(output: str, pieces: Iterable[bytes], chunk: int | None) -> None:
    """Write the pieces to `output`; in several files of at most `chunk` pieces, where it is given.

    The first file is `output` itself, the second NAME-0002.SUFFIX and so on. Numbered files beyond the last, of an
    earlier export, are removed. Standard output is never divided.
    """
    if chunk is None or is_stream(output):
        with written(output) as sink:
            sink.writelines(pieces)
        return
    left = iter(pieces)
    first = list(islice(left, chunk))
    number = 1
    while part := list(islice(left, chunk)):
        number += 1
        with written(chunk_name(output, number)) as sink:
            sink.writelines(part)
    with written(output) as sink:  # last, so that it shows that the others are complete
        sink.writelines(first)
    _remove_beyond(output, number)


def chunk_name(output: str, number: int) -> str:
    """The name of the nth file of an export: FILE, then NAME-0002.SUFFIX, where SUFFIX may be double (`.jsonl.gz`)."""
    if number == 1:
        return output
    path = Path(output)
    plain = path.name.removesuffix(".gz")
    suffix = Path(plain).suffix + path.name[len(plain) :]
    return str(path.with_name(f"{path.name.removesuffix(suffix)}-{number:04d}{suffix}"))


def _remove_beyond(output: str, last: int) -> None:
    stem, _, suffix = chunk_name(Path(output).name, 9999).rpartition("9999")
    numbered = re.compile(rf"{re.escape(stem)}(\d{{4,}}){re.escape(suffix)}")
    for path in Path(output).parent.iterdir():
        found = numbered.fullmatch(path.name)
        if found and int(found[1]) > last:
            path.unlink()


def _opened(output: str) -> contextlib.AbstractContextManager[BinaryIO]:
    if output == "-":
        return contextlib.nullcontext(sys.stdout.buffer)
    return open(output, "wb") if is_stream(output) else _moved(Path(os.path.realpath(output)))


@contextlib.contextmanager
def _moved(path: Path) -> Iterator[BinaryIO]:
    """A new file that is renamed to `path` at the end of the block, and removed where the block raises."""
    if path.is_dir():
        raise IsADirectoryError(None, "is a folder")
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:200]}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # after a power failure the name must not be there without the bytes
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


@contextlib.contextmanager
def _compressed(file: BinaryIO, output: str) -> Iterator[BinaryIO]:
    """The file, or a gzip stream into it. Its header has no time or name: equal contents are equal bytes."""
    if not output.endswith(".gz"):
        yield file
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as sink:
        yield cast(BinaryIO, sink)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
