"""The process that holds a claim or has begun a batch, described so that another process can see whether it runs."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def this_process() -> dict[str, Any]:
    """This process as a document: `host` and `pid` for people, `machine` and `started` for `is_alive`.

    `machine` names the running kernel and the process namespace (two containers of one machine count pids apart).
    `started` distinguishes a process from a later one with the same pid. Both are None where there is no Linux /proc.
    """
    return {
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "machine": _machine(),
        "started": _started(os.getpid()),
    }


def is_alive(holder: Mapping[str, Any]) -> bool | None:
    """True where the process that `this_process` described still runs; None where it runs on another machine."""
    machine = _machine()
    if machine is None or holder.get("machine") != machine:
        return None
    return bool(_started(holder["pid"]) == holder["started"])


def _machine() -> str | None:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return None


def _started(pid: int) -> int | None:
    """When a process started, in clock ticks since the machine did (proc(5), stat, field 22); None where it has
    ended, a zombie included."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
