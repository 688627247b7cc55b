"""Holds root to the permissions of files, so that tests of them test something whoever runs them.

Root may read and write everything by two of its capabilities. A test that is marked `@held_to_permissions`, or a
command that is run by `python -m tests.rights COMMAND [ARGUMENT…]`, does without them. Root stays the owner of its
files, so nothing else changes. Whoever is not root is held to permissions anyway. (capset is Linux's: elsewhere, as
root, this fails.)
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from typing import ParamSpec

#: linux/capability.h: version 3 of the call; CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH.
_VERSION, _OVERRIDE = 0x20080522, (1 << 1) | (1 << 2)
#: linux/prctl.h: whoever has set it gets no rights by starting a program, which root otherwise does.
_NO_NEW_PRIVILEGES = 38

Arguments = ParamSpec("Arguments")


def held_to_permissions(test: Callable[Arguments, None]) -> Callable[Arguments, None]:
    """Run a test in a thread of its own, which gives the rights up: a thread has its own, and can't have them back."""

    @wraps(test)
    def run(*arguments: Arguments.args, **named: Arguments.kwargs) -> None:
        with ThreadPoolExecutor(1, initializer=_give_up) as thread:
            thread.submit(test, *arguments, **named).result()

    return run


def _give_up() -> None:
    if os.geteuid() != 0:
        return
    words = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable: the lower 32 rights, then the upper ones
    _call("capget", words)
    for index in range(3):
        words[index] &= ~_OVERRIDE
    _call("capset", words)


def _call(name: str, words: ctypes.Array[ctypes.c_uint32]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)((ctypes.c_uint32 * 2)(_VERSION, 0), words) != 0:
        raise OSError(ctypes.get_errno(), f"{name}: {os.strerror(ctypes.get_errno())}")


def main(command: list[str]) -> None:
    """Become the command."""
    _give_up()
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
