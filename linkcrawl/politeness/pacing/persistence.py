"""A gate's pace over restarts, clock changes, orders of people, and when hosts come together. PURE."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any

from attrs import asdict, evolve, fields_dict

from linkcrawl.politeness.pacing.delay import WINDOW, WORKED
from linkcrawl.politeness.pacing.state import Pace
from linkcrawl.politeness.policy.limits import DAYS, merge_counts, recount

#: The only key in the row of a host that shares a gate: the gate's name, under which its pace is kept.
GATE = "gate"

_FIELDS = frozenset(fields_dict(Pace))
#: Names in rows of stores that a version before 0.1 wrote; their `day` and `sent` are the count of the day.
_FORMER = {"strain": "slowdown", "calm": "good_streak", "timed": "samples"}


def gate_of_row(row: Mapping[str, Any]) -> str | None:
    """The gate that a stored row names, where it is of a host that shares another's; None where it is a pace."""
    gate: str | None = row.get(GATE)
    return gate


def pace_to_row(pace: Pace) -> dict[str, Any]:
    """The pace as a store keeps it: JSON values only."""
    return asdict(pace)


def pace_from_row(row: Mapping[str, Any]) -> Pace:
    """The pace of a stored row. An empty row, or one that names another gate, gives a pace without knowledge."""
    if not row or gate_of_row(row) is not None:
        return Pace()
    values = {_FORMER.get(name, name): value for name, value in row.items()}
    values["recent"] = tuple((at, good, refused) for at, good, refused in row["recent"])
    values["refused_links"] = tuple(row.get("refused_links", ()))
    values["strangers"] = {name: pace_from_row(stranger) for name, stranger in row.get("strangers", {}).items()}
    counts = {DAYS.name: (row["day"], row["sent"])} if "day" in row else row.get("counts", {})
    values["counts"] = {name: (number, requests) for name, (number, requests) in counts.items()}
    return Pace(**{name: value for name, value in values.items() if name in _FIELDS})


def unsettled_bans(row: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int | str, ...], float]]:
    """Of a gate with this row the tenants that have turned us away ("": its own), the links whose refusals are still to
    be taken back, and since when (Unix seconds)."""
    for tenant, asked in {**row.get("strangers", {}), "": row}.items():
        links, since = tuple(asked.get("refused_links") or ()), asked.get("blocked_since")
        if links and since is not None:
            yield tenant, links, since


def with_refusal(pace: Pace, link_id: int | str) -> Pace:
    """The pace after a refusal of a link. As many are kept as a ban can concern, and some that were good in between."""
    return evolve(pace, refused_links=_latest((*pace.refused_links, link_id)))


def without_refusals(pace: Pace, link_ids: Container[int | str]) -> Pace:
    """The pace after the records of these links were taken back."""
    return evolve(pace, refused_links=tuple(each for each in pace.refused_links if each not in link_ids))


def _latest(link_ids: Iterable[int | str]) -> tuple[int | str, ...]:
    return tuple(dict.fromkeys(link_ids))[-2 * WINDOW :]


def assume_just_requested(pace: Pace, now: float) -> Pace:
    """The pace after a crash: as if a request had ended just now, for one may have that was not stored."""
    strangers = {name: assume_just_requested(stranger, now) for name, stranger in pace.strangers.items()}
    return evolve(pace, last_end=now, own_end=None, strangers=strangers)


def unblocked(pace: Pace) -> Pace:
    """The pace after a person has re-opened the gate: the ban circuit starts anew, the rest stays."""
    return evolve(pace, blocked_since=None, recent=(), good=pace.good + WORKED)


def shifted(pace: Pace, seconds: float) -> Pace:
    """The pace on a clock that was moved by `seconds`: no wait gets longer or shorter."""
    return evolve(
        pace,
        silent_until=pace.silent_until and pace.silent_until + seconds,
        last_end=None if pace.last_end is None else pace.last_end + seconds,
        recent=tuple((at + seconds, good, refused) for at, good, refused in pace.recent),
        blocked_since=None if pace.blocked_since is None else pace.blocked_since + seconds,
        asked_at=None if pace.asked_at is None else pace.asked_at + seconds,
        counts=pace.counts if pace.last_end is None else recount(pace.counts, pace.last_end + seconds),
        own_end=pace.own_end and pace.own_end + seconds,
        strangers={name: shifted(stranger, seconds) for name, stranger in pace.strangers.items()},
    )


def in_flight(pace: Pace, now: float, longest: float) -> bool:
    """True where a request is on its way, as far as was stored. None takes longer than `longest` seconds: an earlier
    one has ended, or its crawl has."""
    asked, ended = pace.asked_at, pace.last_end
    return asked is not None and (ended is None or ended < asked) and now - asked < longest


def merge(one: Pace, other: Pace) -> Pace:
    """One pace for hosts that come to share a gate: whatever either still has to keep holds for both. Merging the same
    pace twice changes nothing."""
    last = max(one, other, key=lambda pace: pace.last_end or 0.0)
    known = max(one, other, key=lambda pace: pace.samples)
    blocks = [pace.blocked_since for pace in (one, other) if pace.blocked_since is not None]
    return evolve(
        known,
        answer_time=max(one.answer_time or 0.0, other.answer_time or 0.0) or None,
        back_off=max(one.back_off, other.back_off),
        silent_until=max(one.silent_until, other.silent_until),
        shut_ends=max(one.shut_ends, other.shut_ends),
        last_end=last.last_end,
        last_cost=last.last_cost,
        blocked_since=min(blocks, default=None),
        counts=merge_counts(one.counts, other.counts),
        asked_at=max(one.asked_at or 0.0, other.asked_at or 0.0) or None,
        refused_links=_latest((*one.refused_links, *other.refused_links)),
    )
