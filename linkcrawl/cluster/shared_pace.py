"""Settings that pace requests, over all workers: where they differ, the strictest of each holds for all."""

from __future__ import annotations

import json
import logging
import math

from attrs import asdict, evolve, frozen

from linkcrawl.cluster.coordinator import HeartbeatReply
from linkcrawl.config import Config
from linkcrawl.session import Session

logger = logging.getLogger(__name__)


@frozen(kw_only=True)
class PaceSettings:
    """Settings of one worker. `delay`, `max_adaptive_delay`, `probation`: seconds (None: a host that has turned us away
    is never tried again)."""

    delay: float
    target_concurrency: float
    max_adaptive_delay: float
    probation: float | None

    @classmethod
    def of(cls, config: Config) -> PaceSettings:
        """Those of a configuration."""
        return cls(
            delay=config.delay,
            target_concurrency=config.target_concurrency,
            max_adaptive_delay=config.max_adaptive_delay,
            probation=config.probation,
        )

    @property
    def text(self) -> str:
        """The settings as JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    def strictest(self, other: PaceSettings) -> PaceSettings:
        """The stricter of each."""
        probations = [math.inf if each is None else each for each in (self.probation, other.probation)]
        probation = max(probations)
        return PaceSettings(
            delay=max(self.delay, other.delay),
            target_concurrency=min(self.target_concurrency, other.target_concurrency),
            max_adaptive_delay=max(self.max_adaptive_delay, other.max_adaptive_delay),
            probation=None if math.isinf(probation) else probation,
        )


def read_pace(text: str) -> PaceSettings:
    """The settings that `PaceSettings.text` gave. Raises ValueError, TypeError."""
    return PaceSettings(**json.loads(text))


class SharedPace:
    """Has the crawl's configuration hold the strictest settings of all workers alive."""

    def __init__(self, session: Session):
        self._session = session
        self.own = PaceSettings.of(session.config)

    def observe(self, heartbeat: HeartbeatReply) -> bool:
        """Take in what the others have published. True where the settings in force have changed."""
        before = PaceSettings.of(self._session.config)
        now = self.own
        for text in heartbeat.paces:
            now = now.strictest(read_pace(text))
        if now == before:
            return False
        self._session.config = evolve(self._session.config, **asdict(now))
        if now == self.own:
            logger.info("This worker's own settings pace its requests again")
        else:
            logger.warning(
                "Workers have different settings that pace requests; the strictest hold: DOWNLOAD_DELAY %g, "
                "AUTOTHROTTLE_TARGET_CONCURRENCY %g, AUTOTHROTTLE_MAX_DELAY %g, LINKCRAWL_PROBATION %g",
                now.delay,
                now.target_concurrency,
                now.max_adaptive_delay,
                now.probation or 0,
            )
        return True
