"""The file of a SQLite store: its path, its identity on disk, and the lock file that one crawl holds."""

from __future__ import annotations

import fcntl
import os
import time

from linkcrawl.errors import StoreBusy, StoreError
from linkcrawl.urls.servers import shown

#: Tries to lock the lock file, and seconds between them: somebody may just be looking whether it is locked.
TRIES, RETRY = 4, 0.02


def path_of(url: str) -> str:
    """The absolute path, symbolic links resolved, so that one file has one lock whatever name it goes by."""
    path = url.removeprefix("sqlite:///")
    if path == url or not path or path.startswith(":memory:") or any(char in path for char in "?#\0"):
        raise StoreError(
            f"LINKCRAWL_STORE: {shown(url)!r} is not understood; sqlite:///relative.db or sqlite:////absolute.db would "
            "work"
        )
    return os.path.realpath(path)


def identity(path: str) -> tuple[int, int] | None:
    """Device and inode of the file at a path; None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def is_held(path: str) -> bool:
    """True where a process has locked the lock file. For a moment nobody else can lock it, which `hold` waits for."""
    try:
        lock = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(lock)
    return False


def hold(path: str) -> int:
    """Lock the lock file until this process ends; returns its file descriptor. Raises StoreError, and StoreBusy where
    another process has locked it. The file stays: removing it could free a lock that another process holds."""
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as fault:
        raise StoreError(f"LINKCRAWL_STORE: the lock file {path} can't be opened: {fault.strerror}") from fault
    try:
        _lock(lock)
    except BlockingIOError as fault:
        holder = os.read(lock, 32).decode("ascii", "replace").strip() or "unknown"
        os.close(lock)
        raise StoreBusy(
            f"LINKCRAWL_STORE: another crawl (process {holder}) holds this store ({path}): wait for its end, or stop it"
        ) from fault
    except OSError as fault:
        os.close(lock)
        raise StoreError(
            f"LINKCRAWL_STORE: the lock file {path} can't be locked: {fault.strerror}; a store on a local disk would "
            "work"
        ) from fault
    os.ftruncate(lock, 0)
    os.pwrite(lock, f"{os.getpid()}\n".encode(), 0)
    return lock


def _lock(lock: int) -> None:
    for tries_left in reversed(range(TRIES)):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if not tries_left:
                raise
            time.sleep(RETRY)
