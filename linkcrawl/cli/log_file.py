"""The log file of a crawl (LOG_FILE, --logfile), which a full disk can't break."""

from __future__ import annotations

import logging
from pathlib import Path

from scrapy.settings import BaseSettings
from scrapy.utils.log import TopLevelFormatter

from linkcrawl.cli.errors import print_fault
from linkcrawl.line_file import LineFile


class LogFileHandler(logging.Handler):
    """Appends whole lines to a file. Lines that can't be written are dropped; one line on standard error says so.
    (Python's own handler prints a traceback for each, and closing it raises.) Raises OSError where the file can't be
    opened."""

    def __init__(self, path: Path, encoding: str):
        super().__init__()
        self._path = path
        self._encoding = encoding
        self._file: LineFile | None = LineFile(path)
        self._has_failed = False

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if self._file is None:  # Scrapy configures logging anew, which closes every handler
                self._file = LineFile(self._path)
            self._file.add(f"{self.format(record)}\n".encode(self._encoding, "backslashreplace"))
        except OSError as fault:
            if not self._has_failed:
                self._has_failed = True
                print_fault(f"LOG_FILE: {str(self._path)!r} can't be written, lines are missing: {fault.strerror}")
        except Exception:
            self.handleError(record)  # of logging: a record that can't be formatted

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
        super().close()


def install_log_file(settings: BaseSettings) -> None:
    """Log to LOG_FILE instead of having Scrapy do so, with Scrapy's settings for it. Raises OSError."""
    path = Path(settings["LOG_FILE"])
    if not settings.getbool("LOG_FILE_APPEND"):
        path.open("wb").close()
    handler = LogFileHandler(path, settings["LOG_ENCODING"])
    handler.setFormatter(logging.Formatter(settings["LOG_FORMAT"], settings["LOG_DATEFORMAT"]))
    handler.setLevel(settings["LOG_LEVEL"])
    if settings.getbool("LOG_SHORT_NAMES"):
        handler.addFilter(TopLevelFormatter(["scrapy"]))
    logging.root.setLevel(logging.NOTSET)
    logging.root.addHandler(handler)
    settings.set("LOG_INSTALL_ROOT_HANDLER", False, priority="cmdline")
