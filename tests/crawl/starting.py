"""Starts `scrapy` in processes of their own that needn't import anything any more: they are forked from one that has.

Imports are two thirds of what a short crawl costs. In all that a test can see such a process is a new one: its folder,
environment, output, signals and exit status are its own.
"""

from __future__ import annotations

import atexit
import importlib
import io
import multiprocessing
import os
import runpy
import signal
import sys
from collections.abc import Mapping, Sequence
from multiprocessing.forkserver import set_forkserver_preload
from pathlib import Path

from scrapy.cmdline import execute

#: What the process that all others are forked from imports.
PRELOADED = "tests.crawl.preloaded"


class ForkedProcess:
    """`scrapy` with these arguments, by the part of subprocess.Popen that crawls need."""

    def __init__(self, arguments: Sequence[str], folder: Path, environment: Mapping[str, str], out: Path, err: Path):
        set_forkserver_preload([PRELOADED])
        context = multiprocessing.get_context("forkserver")
        self._process = context.Process(target=run, args=(list(arguments), folder, dict(environment), out, err))
        self._process.start()
        assert self._process.pid is not None
        self.pid: int = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self.returncode

    def wait(self) -> int | None:
        self._process.join()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def run(arguments: list[str], folder: Path, environment: Mapping[str, str], out: Path, err: Path) -> None:
    """In the new process: what `python -m scrapy` does there."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, path in ((0, Path(os.devnull)), (1, out), (2, err)):
        opened = os.open(path, os.O_RDWR)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - for as long as the process runs
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding="utf-8", write_through=True)
    sys.stderr = io.TextIOWrapper(
        io.FileIO(2, "w", closefd=False), encoding="utf-8", errors="backslashreplace", write_through=True
    )
    importlib.reload(sys.modules["linkcrawl.settings"])  # it reads the environment
    for place in environment["PYTHONPATH"].split(os.pathsep):
        customized = Path(place) / "sitecustomize.py"  # as Python does at its start
        if customized.exists():
            runpy.run_path(str(customized))
    sys.argv = ["scrapy", *arguments]
    try:
        execute()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
