"""How a command ends that its operator, the store, a signal or its reader has stopped: one line, an exit status, and no
traceback."""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from scrapy.commands import ScrapyCommand

from linkcrawl.errors import ConfigError, SourceLost, StoreError, StoreLost

# Exit statuses (docs/operator.md).
STORE_LOST = 1
UNUSABLE = 2
INTERRUPTED = 130

#: What writing ends in where there is no room, or the disk is damaged.
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


@contextmanager
def one_line(command: ScrapyCommand) -> Iterator[None]:
    """Around what a command does: a fault that isn't ours goes to standard error, on one line; sets `exitcode`.

    SIGTERM is as Ctrl-C, so that a file half written is removed. A reader that has seen enough (`| head`) is no fault.
    """
    try:
        with _terminated_as_interrupted():
            yield
            sys.stdout.flush()
    except (ConfigError, StoreError, SourceLost) as fault:
        print(f"linkcrawl: {fault}", file=sys.stderr)
        command.exitcode = STORE_LOST if isinstance(fault, StoreLost) else UNUSABLE
    except KeyboardInterrupt:
        command.exitcode = INTERRUPTED
    except BrokenPipeError:
        _write_no_more()
    except OSError as fault:
        if fault.errno not in FULL or fault.filename is not None:
            raise
        _write_no_more()
        print(f"linkcrawl: standard output: {fault.strerror}; a place with room would work", file=sys.stderr)
        command.exitcode = UNUSABLE


def _write_no_more() -> None:
    """What Python still holds for the reader must not fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # which alone may say what signals do
        yield
        return
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
