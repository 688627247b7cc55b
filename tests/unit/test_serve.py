"""The service as a process: where it listens, and how it ends."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import urllib.request
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from linkcrawl.config import KNOWN, Config, read_config
from linkcrawl.errors import ConfigError
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.service.serve import serve
from linkcrawl.stores.opening import open_store


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """The settings of an empty store."""
    settings: dict[str, Any] = {name: setting.default for name, setting in KNOWN.items()}
    settings |= {"DOWNLOAD_DELAY": 1, "AUTOTHROTTLE_TARGET_CONCURRENCY": 0.2, "AUTOTHROTTLE_MAX_DELAY": 60}
    url = f"sqlite:///{tmp_path}/store.db"
    open_store(url).close()
    return read_config({**settings, "CONCURRENT_REQUESTS": 8, "LINKCRAWL_STORE": url}, need_contact=False)


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_an_address_that_others_reach_is_refused(config: Config, address: str) -> None:
    with pytest.raises(ConfigError, match=r"^LINKCRAWL_API_ADDRESS: .*127\.0\.0\.1 .*would work") as caught:
        asyncio.run(serve(config, Policies(), address, 8765))
    assert address in str(caught.value)


def test_a_port_that_is_taken_is_told_in_one_line(config: Config) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    with closing(taken), pytest.raises(ConfigError, match="another --port would work") as caught:
        asyncio.run(serve(config, Policies(), "127.0.0.1", taken.getsockname()[1]))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_until_a_signal_and_then_ends(config: Config, number: signal.Signals) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    before = signal.getsignal(number)

    def health() -> int:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/health") as answer:
            return int(answer.status)

    async def run() -> None:
        served = asyncio.create_task(serve(config, Policies(), "127.0.0.1", port))
        for _ in range(200):
            await asyncio.sleep(0.02)
            try:
                assert await asyncio.to_thread(health) == 200
                break
            except OSError:
                assert not served.done()
        else:
            pytest.fail("it doesn't answer")
        os.kill(os.getpid(), number)
        await asyncio.wait_for(served, 10)

    try:
        asyncio.run(run())
    finally:
        signal.signal(number, before)
    with pytest.raises(OSError, match="refused"):
        health()
