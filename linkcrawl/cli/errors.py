"""How a command ends when its operator, the store, a signal or its reader stops it: one line, an exit status, and no
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
from linkcrawl.startup import INTERRUPTED

# Exit statuses (docs/operator.md).
STORE_LOST = NETWORK_LOST = 1
UNUSABLE = 2

#: Errors of writing that mean: no room, or a damaged disk.
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def print_fault(fault: object) -> None:
    """One line on standard error."""
    print(f"linkcrawl: {fault}", file=sys.stderr)


@contextmanager
def reporting_faults(command: ScrapyCommand) -> Iterator[None]:
    """Around the work of a command: prints a fault that isn't ours as one line and sets `exitcode`.

    SIGTERM counts as Ctrl-C, so that half-written files are removed. A reader that stops reading (`| head`) is no
    fault. A fault of ours keeps its traceback.
    """
    try:
        with _signals_as_interrupt():
            yield
            sys.stdout.flush()
    except (ConfigError, StoreError, SourceLost) as fault:
        print_fault(fault)
        command.exitcode = STORE_LOST if isinstance(fault, StoreLost) else UNUSABLE
    except KeyboardInterrupt:
        command.exitcode = INTERRUPTED
    except BrokenPipeError:
        _discard_output()
    except OSError as fault:
        if fault.errno not in FULL or fault.filename is not None:
            raise
        _discard_output()
        print_fault(f"standard output: {fault.strerror}; a place with room would work")
        command.exitcode = UNUSABLE


def _discard_output() -> None:
    """Send what Python still buffers for standard output to nowhere, for writing it would fail again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextmanager
def _signals_as_interrupt() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # only that one may set handlers
        yield
        return
    before = {number: signal.signal(number, _interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
