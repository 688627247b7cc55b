"""The service as a process: it listens until it is told to end."""

from __future__ import annotations

import asyncio
import logging
import signal

from aiohttp import web

from linkcrawl.config import Config
from linkcrawl.errors import ConfigError
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.service.admission import is_loopback
from linkcrawl.service.openapi import openapi
from linkcrawl.service.reading import Reading
from linkcrawl.service.routes import ROUTES
from linkcrawl.service.server import Api, ApiServer

logger = logging.getLogger(__name__)

#: Seconds that open connections have left when the service ends.
GRACE = 2.0


async def serve(config: Config, policies: Policies, address: str, port: int) -> None:
    """Serve until SIGINT or SIGTERM. Raises ConfigError for an address that can't be listened at."""
    _refuse_foreign(address)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    reading = Reading(config, policies, openapi(ROUTES))
    runner = web.ServerRunner(ApiServer(Api(reading, ROUTES)), shutdown_timeout=GRACE)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, address, port).start()
        except OSError as fault:
            raise ConfigError(
                f"LINKCRAWL_API_PORT: {address} port {port} can't be listened at: {fault.strerror}; "
                "another --port would work"
            ) from None
        logger.info("Serving at http://%s:%d/v1/", f"[{address}]" if ":" in address else address, port)
        await stop.wait()
    finally:
        await runner.cleanup()
        await asyncio.to_thread(reading.close)


def _refuse_foreign(address: str) -> None:
    """Raise ConfigError for an address that other machines reach."""
    if not is_loopback(address):
        raise ConfigError(
            f"LINKCRAWL_API_ADDRESS: {address!r} isn't loopback, and anybody who reaches it could read the store; "
            "127.0.0.1 behind a proxy that asks for a password would work"
        )
