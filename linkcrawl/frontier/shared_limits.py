"""Shared limits: the delays that collections, providers and groups keep from start to start over any number of
gates."""

from __future__ import annotations

from scrapy.http import Request

from linkcrawl.frontier.gates.gatekeeper import Gatekeeper
from linkcrawl.frontier.gates.workbench import Workbench
from linkcrawl.frontier.ports import Ownership, RequestContext, Task, context_of
from linkcrawl.items import DueLink
from linkcrawl.politeness.policy.limits import SharedLimit
from linkcrawl.politeness.policy.rules import Policies
from linkcrawl.session import Session


def limits_of(policies: Policies, task: Task) -> tuple[SharedLimit, ...]:
    """The limits that a task has to clear: those of its check's collections and providers where the check begins with
    it (also where it has not gone yet for want of robots.txt), and those of its host."""
    if isinstance(task, DueLink):
        return policies.of_link(task.host, task.collections, task.providers).limits
    return _limits_of_request(policies, context_of(task))


def _limits_of_request(policies: Policies, context: RequestContext) -> tuple[SharedLimit, ...]:
    link = context.link
    if not context.starts_limits or link is None:
        return policies.of_host(context.target.host).limits
    # the first request of a check goes to the link's own host
    return policies.of_link(link.host, link.collections, link.providers).limits


class SharedLimits:
    """Has the workbench keep them, and remembers when they were started."""

    def __init__(self, session: Session, bench: Workbench[Task], keeper: Gatekeeper, ownership: Ownership):
        self._session = session
        self._bench = bench
        self._keeper = keeper
        self._ownership = ownership

    def names(self, task: Task) -> tuple[str, ...]:
        """The names of the limits that a task has to clear."""
        return tuple(limit.name for limit in limits_of(self._session.policies, task))

    def prepare(self, task: Task) -> tuple[str, ...]:
        """Make sure that the workbench knows a task's limits; their names."""
        limits = limits_of(self._session.policies, task)
        for limit in limits:
            self._bench.set_limit(limit.name, limit.delay, self._keeper.limit_opens(limit))
        return tuple(limit.name for limit in limits)

    def start(self, request: Request) -> None:
        """A request is handed out. It counts for the day at once: others may be handed out before it is sent."""
        context = context_of(request)
        limits = _limits_of_request(self._session.policies, context)
        if not limits and not context.starts_limits:  # where policies have changed, it had some
            return
        for limit in limits:
            self._keeper.limit_started(limit.name)
            self._bench.set_limit(limit.name, limit.delay, self._keeper.limit_opens(limit))
        context.spaced_by = limits
        context.on_sent = lambda: self._sent(request)

    def refund(self, task: Task) -> None:
        """A task that the workbench gave out isn't sent for now: it starts none of its limits."""
        self._bench.refund(self.names(task), self._session.now())

    def _sent(self, request: Request) -> None:
        """What the limits space has begun: what comes next counts from now, however late a busy machine has sent it."""
        names = tuple(limit.name for limit in context_of(request).spaced_by)
        self._bench.commit(names, self._session.now())
        for name in names:
            self._keeper.limit_started(name, counts=False)
        self._ownership.started(request)
