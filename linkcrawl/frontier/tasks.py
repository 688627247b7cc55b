"""Background tasks whose faults are logged: asyncio reports a task's exception only when the task is
garbage-collected."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

logger = logging.getLogger(__name__)

T = TypeVar("T")

#: The finish reason of a crawl that can't go on without a task that has ended by a fault of ours.
INTERNAL_ERROR = "internal_error"


def start_task(
    name: str, work: Coroutine[Any, Any, T], *, on_fault: Callable[[], None] | None = None
) -> asyncio.Task[T]:
    """Run a coroutine in the background. An exception that ends it is logged under `name` with its traceback, then
    `on_fault` is called: where the crawl can't go on without the task, it ends the crawl. Cancelling is no fault."""
    task = asyncio.get_running_loop().create_task(work, name=name)
    task.add_done_callback(partial(_log_fault, name, on_fault))
    return task


def _log_fault(name: str, on_fault: Callable[[], None] | None, task: asyncio.Task[Any]) -> None:
    fault = None if task.cancelled() else task.exception()
    if fault is None:
        return
    logger.error("A fault of ours ended the task %r", name, exc_info=fault)
    if on_fault is not None:
        on_fault()
