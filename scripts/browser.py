"""Sees to it that tests can show a report in Chromium: `python scripts/browser.py`.

Chromium and its driver are taken from PATH; where they are missing, root on Debian or Ubuntu gets them by apt-get.
Where they can't be had, that is said, and with CI=true the exit status is 1: there a skipped test would go unseen.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

#: Program -> names that distributions give it.
PROGRAMS = {"chromium": ("chromium", "chromium-browser", "google-chrome"), "chromedriver": ("chromedriver",)}
PACKAGES = ("chromium", "chromium-driver")


def found() -> dict[str, str]:
    """The programs that are on PATH, by their names in PROGRAMS."""
    paths = {program: next(filter(None, map(shutil.which, names)), None) for program, names in PROGRAMS.items()}
    return {program: path for program, path in paths.items() if path is not None}


def install() -> str | None:
    """Install the packages; why that was not possible, or None."""
    if shutil.which("apt-get") is None:
        return "there is no apt-get"
    if os.geteuid() != 0:
        return "only root may install packages"
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", *PACKAGES]):
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            return f"`{' '.join(command)}` failed: {' '.join(done.stderr.split())[-300:]}"
    return None


def main() -> int:
    if found().keys() == PROGRAMS.keys():
        return 0
    print(f"Installing {' and '.join(PACKAGES)} …", flush=True)
    why = install()
    missing = sorted(PROGRAMS.keys() - found().keys())
    if not missing:
        return 0
    print(
        f"Missing on PATH: {', '.join(missing)} ({why or 'the packages hold no such program'}). "
        f"`apt-get install {' '.join(PACKAGES)}` would work; until then the tests of the report's page are skipped.",
        file=sys.stderr,
    )
    return 1 if os.environ.get("CI") == "true" else 0


if __name__ == "__main__":
    sys.exit(main())
