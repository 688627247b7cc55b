"""A workload crawled on the virtual clock under some policies: what `scrapy simulate` compares."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from attrs import frozen

from linkcrawl.config import Config
from linkcrawl.items import Order
from linkcrawl.politeness.host_state import HostStateCache
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.simulation.engine import MinimumTime, SimulationResult, minimum_times, simulate
from linkcrawl.simulation.workload import LoadBuilder, Workload
from linkcrawl.status.snapshot import StoreSnapshot

#: Seconds of an answer from a host that was never asked: the mean of a whole catalogue (4 million checks).
DEFAULT_ANSWER_TIME = 0.44
#: The slowest gates and limits that a row holds.
SLOWEST = 15


@frozen(kw_only=True)
class Scenario:
    """A simulated crawl. `times`: of every gate and shared limit, the longest first. `origins`: where the delay of each
    gate comes from; limits have none, as theirs are a policy's."""

    result: SimulationResult
    times: tuple[MinimumTime, ...]
    origins: Mapping[str, str]

    def origin(self, time: MinimumTime) -> str:
        """Where a delay comes from."""
        return self.origins.get(time.name, "policy")

    def row(self) -> dict[str, Any]:
        """The scenario for JSON; seconds where a name ends with `_s`."""
        result = self.result
        return {
            "requests": result.requests,
            "left": result.left,
            "makespan_s": result.makespan,
            "bound_s": result.bound,
            "ratio": result.makespan / result.bound if result.bound else None,
            "slowest": [
                {
                    "name": time.name,
                    "requests": time.requests,
                    "delay_s": time.delay,
                    "because": self.origin(time),
                    "alone_s": time.seconds,
                    "ends_s": result.ends.get(time.name),
                }
                for time in self.times[:SLOWEST]
            ],
        }


def run_scenario(
    work: Workload,
    config: Config,
    policies: Policies,
    hosts: HostStateCache,
    began: float,
    *,
    orders: Mapping[str, Order] = MappingProxyType({}),
    answer_times: Mapping[str, float] = MappingProxyType({}),
) -> Scenario:
    """Crawl a workload from `began` (Unix seconds) on. `hosts`: host memory. `orders`: people's, by host.
    `answer_times`: seconds by host, where they are known better than from host memory."""
    snapshot = StoreSnapshot.remembered(config, policies, hosts, began, orders=orders, due={})
    builder = LoadBuilder(snapshot, answer_times, DEFAULT_ANSWER_TIME)
    loads = builder.loads(work)
    return Scenario(
        result=simulate(loads, builder.limits, config.concurrent_requests or sys.maxsize, began=began),
        times=tuple(minimum_times(loads, builder.limits)),
        origins=builder.origins,
    )
