"""The audit: what it finds is what anybody finds who looks at every pair of requests."""

from __future__ import annotations

import errno
import json
import os
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.audit.log import AuditEntry, AuditLimit, AuditLog, read_line
from linkcrawl.audit.verify import (
    LET_GO_BEFORE,
    TOLERANCE,
    AuditVerifier,
    HostRules,
    ScopeResult,
    Unreadable,
    read_lines,
)


def line(
    sent: float, ended: float, host: str = "a", gate: str = "a", required: float = 1.0, **more: object
) -> AuditEntry:
    fields = {"origin": "DOWNLOAD_DELAY", "limits": (), "method": "HEAD", "status": 200, **more}
    return AuditEntry(sent, ended, host, gate, required, **fields)  # type: ignore[arg-type]


def proved(*lines: AuditEntry, **floors: float) -> dict[tuple[str, str], ScopeResult]:
    proof = AuditVerifier(lambda host: HostRules(gap=floors.get(host, 0.0), origin="floor"))
    for each in lines:
        proof.add(each)
    return {(scope.kind, scope.name): scope for scope in proof.scopes()}


# Times are quarters of a second, which floats hold exactly: the brute force needs no tolerance of its own.
QUARTERS = st.integers(0, 80).map(lambda number: number / 4)
LINES = st.builds(
    lambda sent, took, host, gate, required, limit, delay: line(
        sent, sent + took, host, gate, required, limits=(AuditLimit(limit, delay),) if limit else ()
    ),
    QUARTERS,
    st.integers(1, 12).map(lambda number: number / 4),
    st.sampled_from("abc"),
    st.sampled_from(["a", "b", "c", "policy p"]),
    st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    st.sampled_from(["", "collection x", "collection y"]),
    st.sampled_from([0.5, 2.0]),
)


@given(st.lists(LINES, max_size=25), st.randoms(use_true_random=False))
def test_every_violation_is_found_in_whatever_order_lines_come(lines: list[AuditEntry], random: object) -> None:
    expected = by_brute_force(lines)
    random.shuffle(lines)  # type: ignore[attr-defined]
    found = {key: scope.violations > 0 for key, scope in proved(*lines).items()}
    assert found == expected


def by_brute_force(lines: list[AuditEntry]) -> dict[tuple[str, str], bool]:
    """By scope, whether any two of its requests were too close: the later one (by its start) began before the earlier
    one had ended and its delay had passed."""
    scopes: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    for each in lines:
        scopes["host", each.host].append((each.sent, each.ended, each.required))
        if any(other.gate == each.gate and other.host != each.gate for other in lines):
            scopes["gate", each.gate].append((each.sent, each.ended, each.required))
        for limit in each.limits:
            scopes["limit", limit.name].append((each.sent, each.sent, limit.delay))
    return {
        key: any(
            second[0] - first[1] < second[2]
            for first in rows
            for second in rows
            if first is not second and (first[0], first[1], first[2]) <= (second[0], second[1], second[2])
        )
        for key, rows in scopes.items()
    }


def test_the_tightest_gap_is_told_with_what_was_required() -> None:
    found = proved(line(0, 1), line(3, 4, required=1.5), line(14, 15, required=9.9, origin="Crawl-delay"))["host", "a"]
    assert (found.requests, found.violations, found.gap, found.required) == (3, 0, 10.0, 9.9)
    assert found.origin == "Crawl-delay"


def test_one_request_proves_nothing_and_breaks_nothing() -> None:
    assert proved(line(0, 1))["host", "a"] == ScopeResult(kind="host", name="a", requests=1, violations=0)


@pytest.mark.parametrize(("gap", "violations"), [(1.0 - TOLERANCE * 0.9, 0), (1.0 - TOLERANCE * 1.1, 1)])
def test_the_resolution_of_the_log_is_no_violation(gap: float, violations: int) -> None:
    assert proved(line(0, 0), line(gap, gap))["host", "a"].violations == violations


def test_two_requests_at_once_are_a_violation_even_without_a_delay() -> None:
    assert proved(line(0, 10, required=0.0), line(5, 6, required=0.0))["host", "a"].violations == 1


def test_a_gate_is_judged_over_its_hosts_and_named_only_where_it_has_several() -> None:
    apart = proved(line(0, 1, "a", "a"), line(1.2, 2, "b", "b"))
    shared = proved(line(0, 1, "a", "a"), line(1.2, 2, "b", "a"))
    assert set(apart) == {("host", "a"), ("host", "b")}
    assert shared["gate", "a"].violations == 1
    assert (shared["gate", "a"].requests, shared["host", "a"].requests) == (2, 1)


def test_a_host_is_judged_over_all_its_gates_and_workers() -> None:
    assert proved(line(0, 1, "a", "a"), line(1.2, 2, "a", "policy p"))["host", "a"].violations == 1


def test_limits_run_from_start_to_start() -> None:
    limit = (AuditLimit("collection x", 2.0),)
    fine = proved(line(0, 5, "a", "a", limits=limit), line(2, 3, "b", "b", limits=limit))
    close = proved(line(0, 5, "a", "a", limits=limit), line(1.9, 3, "b", "b", limits=limit))
    assert fine["limit", "collection x"].violations == 0
    assert close["limit", "collection x"].violations == 1


def test_a_floor_from_elsewhere_is_held_against_the_log() -> None:
    """The log says that half a second was enough; the settings say a second."""
    lines = line(0, 1), line(1.6, 2, required=0.5)
    assert proved(*lines)["host", "a"].violations == 0
    found = proved(*lines, a=1.0)["host", "a"]
    assert (found.violations, found.required, found.origin) == (1, 1.0, "floor")


HOUR = 3600.0
MINUTES = st.integers(0, 60 * 6).map(lambda number: number * 60.0 + 30.0)


@given(st.lists(st.tuples(MINUTES, st.integers(1, 4)), max_size=30), st.randoms(use_true_random=False))
def test_a_quota_is_counted_in_windows_of_the_day(requests: list[tuple[float, int]], random: object) -> None:
    """Each request may be at most the `most`th of its hour; hours are those of a clock on the wall (UTC)."""
    lines = [line(sent, sent + 1, required=0.0, quotas=((HOUR, most),)) for sent, most in requests]
    random.shuffle(lines)  # type: ignore[attr-defined]
    requests.sort()
    expected = sum(
        sum(other // HOUR == sent // HOUR for other, _ in requests[: index + 1]) > most
        for index, (sent, most) in enumerate(requests)
    )
    found = proved(*lines)
    assert sum(scope.violations for (kind, _), scope in found.items() if kind == "gate quota") == expected
    assert (("gate quota", "a") in found) == bool(requests)


def test_a_full_quota_says_how_full_it_was() -> None:
    times = [HOUR * hour + 60 * number for hour in (1, 2) for number in (1, 2, 3)]
    lines = [line(at, at, quotas=((HOUR, 3),)) for at in times]
    assert proved(*lines)["gate quota", "a"] == ScopeResult(
        kind="gate quota", name="a", requests=6, violations=0, origin="3 in each 3600 s (UTC), 3 in the fullest"
    )
    assert proved(*lines, line(HOUR * 1.5, HOUR * 1.5, quotas=((HOUR, 3),)))["gate quota", "a"].violations == 1


def test_what_was_let_go_in_one_window_may_be_sent_in_the_next() -> None:
    limit = AuditLimit("collection x", 0.0, ((HOUR, 1),))
    times = [HOUR + at for at in (0.5, 1.5, LET_GO_BEFORE + 1)]
    early = [line(at, at, str(at), str(at), limits=(limit,)) for at in times]
    assert proved(*early)["limit quota", "collection x"].violations == 0
    late = line(HOUR + LET_GO_BEFORE + 2, HOUR + LET_GO_BEFORE + 2, limits=(limit,))
    assert proved(*early, late)["limit quota", "collection x"].violations == 1
    assert proved(*(line(at, at, quotas=((HOUR, 1),)) for at in times))["gate quota", "a"].violations == 2


def test_the_quota_of_a_limit_is_counted_over_its_gates_and_apart_from_a_gate_of_its_name() -> None:
    def start(at: float, gate: str) -> AuditEntry:
        limit = AuditLimit("policy g", 0.0, ((HOUR, 2),))
        return line(at, at, "h", gate, required=0.0, limits=(limit,), quotas=((HOUR, 3),))

    found = proved(start(60, "policy g"), start(70, "policy g"), start(80, "other"))
    assert found["limit quota", "policy g"].violations == 1
    assert found["gate quota", "policy g"].violations == 0


def test_quotas_of_now_are_held_against_hosts() -> None:
    proof = AuditVerifier(lambda host: HostRules(quotas=((HOUR, 1),)))
    for at in (60.0, 70.0, HOUR + 60.0):
        proof.add(line(at, at))
    (found,) = [scope for scope in proof.scopes() if scope.kind == "host quota"]
    assert (found.requests, found.violations) == (3, 1)


QUOTAS = st.lists(st.tuples(st.sampled_from([3600.0, 86400.0]), st.integers(1, 10**6)), max_size=2).map(tuple)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)


@given(
    st.builds(
        AuditEntry,
        st.integers(0, 10**13).map(lambda n: n / 10**4),
        st.integers(0, 10**13).map(lambda n: n / 10**4),
        TEXTS,
        TEXTS,
        st.integers(0, 10**6).map(float),
        TEXTS,
        st.lists(st.builds(AuditLimit, TEXTS, st.integers(0, 1000).map(float), QUOTAS), max_size=3).map(tuple),
        st.sampled_from(["HEAD", "GET"]),
        st.integers(0, 999),
        QUOTAS,
    )
)
def test_a_line_is_read_as_it_was_written(written: AuditEntry) -> None:
    assert "\n" not in written.text()
    assert read_line(written.text()) == written


def test_logs_of_several_workers_and_a_crash(tmp_path: Path) -> None:
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl"
    for path, hosts in ((one, "ab"), (two, "c")):
        log = AuditLog(path)
        for host in hosts:
            log.add(line(1, 2, host, host))
        log.close()
    one.write_text(one.read_text() + '[1,2,"half')
    assert [told(each) for each in read_lines([one, two])] == ["a", "b", 3, "c"]
    log = AuditLog(one)
    log.add(line(3, 4, "d", "d"))
    log.close()
    assert [told(each) for each in read_lines([one])] == ["a", "b", 3, "d"]


NO_LINES = [
    "x",
    "[]",
    "{}",
    "[1,2,3]",
    '["x",1,"a","a",1,"o",[],"HEAD",200]',
    '[1,1,"a","a",1,"o",5,"HEAD",200]',
    '[1,1,"a","a",1,"o",[["x"]],"HEAD",200]',
    '[1,1,"a","a",1,"o",[["x","y"]],"HEAD",200]',
    '[1,1,null,"a",1,"o",[],"HEAD",200]',
    '[1,1,"a","a",1,"o",[],"HEAD",200,5]',
    '[1,1,"a","a",1,"o",[],"HEAD",200,[[3600]]]',
    '[1,1,"a","a",1,"o",[],"HEAD",200,[[0,5]]]',
    '[1,1,"a","a",1,"o",[],"HEAD",200,[],[]]',
    '[1,1,"a","a",1,"o",[["x",1,[["hour",5]]]],"HEAD",200]',
    "[1,1" + "0" * 400 + ',"a","a",1,"o",[],"HEAD",200]',
    '[1,NaN,"a","a",1,"o",[],"HEAD",200]',
    '[1,2,"half' + AuditEntry(1, 2, "a", "a", 1, "o", (), "HEAD", 200).text(),
    "\0" * 100 + AuditEntry(1, 2, "a", "a", 1, "o", (), "HEAD", 200).text(),
    "[" * 100_000,
    "\xff",
]


def told(each: AuditEntry | Unreadable) -> str | int:
    """The host of a line, or the number of one that is none."""
    return each.number if isinstance(each, Unreadable) else each.host


@pytest.mark.parametrize("text", NO_LINES)
def test_a_torn_line_is_told_and_passed_over(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(f"{line(1, 2, 'a').text()}\n{text}\n\n{line(3, 4, 'b').text()}\n")
    found = list(read_lines([path]))
    assert [told(each) for each in found] == ["a", 2, "b"]
    assert str(found[1]).startswith(f"{path}:2: not a line of an audit log: ")
    assert str(found[1]).isprintable()


@pytest.mark.parametrize("text", NO_LINES)
def test_what_is_no_log_is_told_with_its_line(tmp_path: Path, text: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(f"\n{text}\n{text}\n")
    with pytest.raises(ValueError, match=r"log.jsonl:2: not a line of an audit log"):
        list(read_lines([path]))


def test_a_log_that_can_not_be_written_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    log = AuditLog(tmp_path / "log.jsonl")
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        log.add(line(1, 2))
        log.add(line(3, 4))
    log.add(line(5, 6))
    log.close()
    assert [record.message for record in caplog.records] == ["Lines of the audit log are lost: No space left on device"]
    assert [each.sent for each in read_lines([tmp_path / "log.jsonl"]) if isinstance(each, AuditEntry)] == [5.0]


def test_without_a_path_nothing_is_written() -> None:
    log = AuditLog(None)
    log.add(line(1, 2))
    log.close()


def test_rows_are_json() -> None:
    rows = [scope.row() for scope in proved(line(0, 1), line(3, 4)).values()]
    assert json.loads(json.dumps(rows)) == [
        {
            "kind": "host",
            "name": "a",
            "requests": 2,
            "smallest_gap": 2.0,
            "required_gap": 1.0,
            "origin": "DOWNLOAD_DELAY",
            "violations": 0,
        }
    ]
