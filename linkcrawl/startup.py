"""Signals while a command starts. This file imports nothing of linkcrawl, so that it acts before the rest is loaded.

Loading takes a second or more. Until a command handles signals itself, Ctrl-C would end in a traceback and SIGTERM
without our exit status. Nothing is open by then that an abrupt end could harm.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

INTERRUPTED = 130


def exit_on_signals() -> None:
    """End with status 130 on SIGINT and SIGTERM from now on. Does nothing in another program than Scrapy's command line
    with a command of ours, such as a test or scrapyd."""
    if threading.current_thread() is threading.main_thread() and _is_command_of_ours():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _exit)


def _is_command_of_ours() -> bool:
    names = {path.stem for path in Path(__file__).with_name("commands").glob("*.py")}
    return bool(names & set(sys.argv[1:])) and _called_by("scrapy.cmdline")


def _called_by(module: str) -> bool:
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_globals.get("__name__") != module:
        frame = frame.f_back
    return frame is not None


def _exit(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)
