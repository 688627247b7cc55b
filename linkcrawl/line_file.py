"""A file that lines are added to, whole or not at all, whatever the disk does."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


class LineFile:
    """Adds lines at the end of a file, which is made where there is none. Raises OSError.

    What is added at a time is one write, so that several processes may share the file, and a log may be rotated by
    copying. Where the file ends within a line, as a crash or another program may leave it, the next line begins behind
    it: what is torn stays to be seen.
    """

    def __init__(self, path: Path):
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._is_regular = stat.S_ISREG(os.fstat(self._file).st_mode)  # of a pipe or device nothing is taken back
        self._torn = self._is_regular and _ends_within_a_line(path)

    def add(self, lines: bytes) -> None:
        """Add lines, with their ends. Raises OSError where there is no room: then none of them is there, but for half a
        line where the file system lets nothing be taken back."""
        data = b"\n" + lines if self._torn else lines
        written = os.write(self._file, data)
        try:
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError:
            self._take_back(written)
            raise
        self._torn = False

    def close(self) -> None:
        os.close(self._file)

    def _take_back(self, written: int) -> None:
        """Cut off what a short write has left, unless another process has added to it meanwhile."""
        was_torn, self._torn = self._torn, True  # an empty line more does no harm
        with contextlib.suppress(OSError):  # the fault that is under way says it
            end = os.lseek(self._file, 0, os.SEEK_CUR)
            if self._is_regular and os.fstat(self._file).st_size == end:
                os.ftruncate(self._file, end - written)
                self._torn = was_torn


def _ends_within_a_line(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - 1, 0))
            return file.read(1) not in (b"", b"\n")
    except OSError:  # it may be for writing only
        return True
