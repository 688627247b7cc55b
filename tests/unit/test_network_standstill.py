"""A process that stood still for longer than LINKCRAWL_TIMEOUT reads what has come before it says that nothing has."""

import asyncio

import pytest
from network_kit import Line, ask, handler, serve
from scrapy.http import Response

from linkcrawl.check.outcome import Failure
from linkcrawl.network.deadline import GRACE, TICK, Deadline, StandstillMonitor

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


class StoppableLoop(asyncio.SelectorEventLoop):
    """An event loop whose process can be stopped: its clock goes on, and nothing else."""

    stopped = 0.0

    def time(self):
        return super().time() + self.stopped


def run(main):
    with asyncio.Runner(loop_factory=StoppableLoop) as runner:
        return runner.run(main)


def stop(seconds):
    asyncio.get_running_loop().stopped += seconds


@pytest.mark.parametrize("method", ["HEAD", "GET"])
def test_an_answer_that_has_come_meanwhile_is_no_timeout(method):
    async def script(line: Line):
        await line.request()
        await line.say(OK)
        stop(40)

    async def main():
        async with serve(script) as peer, handler(LINKCRAWL_TIMEOUT=30) as made:
            return await ask(made, f"http://127.0.0.1:{peer.port}/", method)

    result, outcome = run(main())
    assert isinstance(result, Response)
    assert outcome.duration_ms is None  # nobody can say how long it took


def test_an_answer_that_comes_after_it_is_waited_for():
    async def script(line: Line):
        await line.request()
        stop(40)
        await asyncio.sleep(0.05)
        stop(40)
        await asyncio.sleep(0.05)
        await line.say(OK)
        await line.hold()

    async def main():
        async with serve(script) as peer, handler(LINKCRAWL_TIMEOUT=30) as made:
            return await ask(made, f"http://127.0.0.1:{peer.port}/")

    result, _ = run(main())
    assert isinstance(result, Response)


def test_a_server_that_says_nothing_is_a_timeout_all_the_same():
    async def script(line: Line):
        await line.request()
        stop(2)  # which is added to the limit
        await line.hold()

    async def main():
        async with serve(script) as peer, handler(LINKCRAWL_TIMEOUT=0.3) as made:
            return await ask(made, f"http://127.0.0.1:{peer.port}/")

    _, outcome = run(main())
    assert outcome.failure is Failure.TIMEOUT_ANSWER
    assert outcome.duration_ms is None


def test_a_deadline_without_a_standstill_is_as_long_as_it_says():
    async def main():
        loop = asyncio.get_running_loop()
        began = loop.time()
        with pytest.raises(TimeoutError):
            async with Deadline(StandstillMonitor(), 0.2):
                await asyncio.sleep(60)
        return loop.time() - began

    assert 0.2 <= run(main()) < 30


def test_a_deadline_can_be_cut_short():
    async def main():
        async with Deadline(StandstillMonitor(), 60) as limit:
            limit.reschedule(asyncio.get_running_loop().time())
            await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        run(main())


def test_standstills_are_added_up_and_hiccups_are_not():
    async def main():
        monitor = StandstillMonitor()
        monitor.begin()
        stop(TICK + GRACE - 0.1)
        hiccup = monitor.seconds()
        await asyncio.sleep(0)
        stop(100)
        during = monitor.seconds()
        await asyncio.sleep(0.01)
        after = monitor.seconds()
        monitor.end()
        return hiccup, during, after

    hiccup, during, after = run(main())
    assert hiccup == 0
    assert 99 < during <= after < 102


def test_the_monitor_rests_while_nothing_runs():
    async def main():
        monitor = StandstillMonitor()
        monitor.begin()
        monitor.end()
        stop(TICK)
        await asyncio.sleep(0.01)
        return monitor._timer

    assert run(main()) is None
