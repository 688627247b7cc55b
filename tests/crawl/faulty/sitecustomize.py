"""Faults of a worker's own machine, for tests: Python imports this at its start where it is on the path.

TEST_CLOCK_OFF: seconds that its clock is wrong by. TEST_POISON: a path whose answer kills the worker. TEST_STOP_WRITE:
the number of the batch, from 1, with which the worker stops between its look at the lease and MongoDB's taking records.
TEST_REPEAT: seconds in place of the minute between two lines that Redis can't be asked.
"""

from __future__ import annotations

import os
import signal
import time

_off = float(os.environ.get("TEST_CLOCK_OFF", "0"))
_poison = os.environ.get("TEST_POISON")
_stop_write = int(os.environ.get("TEST_STOP_WRITE", "0"))
_repeat = os.environ.get("TEST_REPEAT")

if _off:
    _right = time.time
    time.time = lambda: _right() + _off

if _poison:
    import asyncio

    from linkcrawl.network.answer import AnswerReader, ReceivedAnswer
    from linkcrawl.network.connection import Connection, Fault

    _ask = Connection.ask

    async def _die_of_poison(self: Connection, request: bytes, reader: AnswerReader) -> ReceivedAnswer | Fault:
        answer = await _ask(self, request, reader)
        if _poison.encode() in request:
            await asyncio.sleep(0.1)  # as a parser that eats up all memory would take
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    Connection.ask = _die_of_poison  # type: ignore[method-assign]

if _stop_write:
    from typing import Any

    from linkcrawl.stores.mongo.writing import Writer

    _finish, _left = Writer.finish, iter(range(_stop_write - 1, -1, -1))

    def _finish_late(self: Writer, finished: Any) -> Any:
        if next(_left, -1) == 0:
            os.kill(os.getpid(), signal.SIGSTOP)
        return _finish(self, finished)

    Writer.finish = _finish_late  # type: ignore[method-assign]

if _repeat:
    from linkcrawl.cluster import worker

    worker.REPEAT = float(_repeat)
