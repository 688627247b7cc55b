"""How a command ends that its operator, the store or Ctrl-C has stopped: one line, an exit status, and no traceback."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from scrapy.commands import ScrapyCommand

from linkcrawl.config import ConfigError
from linkcrawl.stores import StoreError, StoreLost

# Exit statuses (docs/operator.md).
STORE_LOST = 1
UNUSABLE = 2
INTERRUPTED = 130


@contextmanager
def one_line(command: ScrapyCommand) -> Iterator[None]:
    """Around what a command does: a fault that isn't ours goes to standard error, on one line; sets `exitcode`."""
    try:
        yield
    except (ConfigError, StoreError) as fault:
        print(f"linkcrawl: {fault}", file=sys.stderr)
        command.exitcode = STORE_LOST if isinstance(fault, StoreLost) else UNUSABLE
    except KeyboardInterrupt:
        command.exitcode = INTERRUPTED
