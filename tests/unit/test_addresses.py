"""Which names share a server, and which only share a front end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl.frontier.gates.addresses import FEW, Addresses, server_address
from linkcrawl.urls.domains import registered_domain


def test_few_domains_share_and_one_more_lets_all_go() -> None:
    addresses = Addresses()
    few = [f"www.site{number}.org" for number in range(FEW)]
    assert [addresses.learn(host, ["192.0.2.1"]) for host in few] == [()] * FEW
    assert {addresses.representative(host) for host in few} == {few[0]}
    assert addresses.learn("www.another.org", ["192.0.2.1"]) == (*few[1:], "www.another.org")
    assert [addresses.representative(host) for host in [*few, "www.another.org"]] == [*few, "www.another.org"]
    assert addresses.learn("www.more.org", ["192.0.2.1"]) == ()


def test_a_host_stays_at_its_address_for_as_long_as_its_name_has_it() -> None:
    addresses = Addresses()
    addresses.learn("a.org", ["192.0.2.1"])
    addresses.learn("b.org", ["192.0.2.2"])
    assert addresses.learn("b.org", ["192.0.2.1", "192.0.2.2"]) == ()
    assert addresses.learn("b.org", []) == (), "a name that can't be looked up just now has not moved"
    assert addresses.representative("b.org") == "b.org", (
        "a gate that changes with every look at DNS would keep no delay"
    )


def test_a_host_that_moves_leaves_its_gate_to_the_others_under_another_name() -> None:
    addresses = Addresses()
    for host in ("a.org", "b.org", "c.org"):
        addresses.learn(host, ["192.0.2.1"])
    assert addresses.learn("a.org", ["192.0.2.2"]) == ("b.org", "c.org"), "its own gate keeps its name"
    assert [addresses.representative(host) for host in ("a.org", "b.org", "c.org")] == ["a.org", "b.org", "b.org"]
    assert addresses.learn("c.org", ["192.0.2.2"]) == ("c.org",)
    assert addresses.representative("c.org") == "a.org"
    assert addresses.address("c.org") == "192.0.2.2"


def test_a_name_that_is_looked_up_late_comes_to_its_server() -> None:
    addresses = Addresses()
    assert addresses.address("late.org") is None
    addresses.learn("late.org", [])
    assert addresses.address("late.org") == ""
    addresses.learn("a.org", ["192.0.2.1"])
    assert addresses.learn("late.org", ["192.0.2.1"]) == ("late.org",)
    assert addresses.representative("late.org") == "a.org"


def test_the_address_that_answers_is_the_one_that_counts() -> None:
    """Sets of addresses that overlap: hosts share a gate while they are asked at one address."""
    addresses = Addresses()
    addresses.learn("a.org", ["192.0.2.1", "192.0.2.2"])
    addresses.learn("b.org", ["192.0.2.2", "192.0.2.3"])
    assert addresses.representative("b.org") == "b.org"
    assert addresses.learn("a.org", ["192.0.2.2"]) == ("a.org",), "the second answered"
    assert addresses.representative("a.org") == "b.org"
    assert addresses.learn("a.org", ["192.0.2.1", "192.0.2.2"]) == (), "it goes on being asked there"
    assert addresses.learn("b.org", ["192.0.2.3"]) == ("a.org",)
    assert [addresses.representative(host) for host in ("a.org", "b.org")] == ["a.org", "b.org"]


def test_an_address_that_was_crowded_stays_so() -> None:
    addresses = Addresses()
    hosts = [f"www.site{number}.org" for number in range(FEW + 1)]
    for host in hosts:
        addresses.learn(host, ["192.0.2.1"])
    for host in hosts[2:]:
        assert addresses.learn(host, ["192.0.2.2"]) in ((), (host,))
    assert [addresses.representative(host) for host in hosts[:2]] == hosts[:2]
    assert {addresses.representative(host) for host in hosts[2:]} == {hosts[2]}


@pytest.mark.parametrize("v4", ["192.0.2.1", "203.0.113.5", "8.8.8.8", "31.0.0.1"])
@pytest.mark.parametrize("v6", ["2001:db8::1", "2a00::1", "fe80::1"])
def test_names_of_one_server_share_a_gate_where_only_some_have_ipv6(v4: str, v6: str) -> None:
    addresses = Addresses()
    addresses.learn("old.site.org", [v4])
    addresses.learn("new.site.org", [v6, v4])
    assert addresses.representative("new.site.org") == "old.site.org"
    assert server_address([]) == ""


HOSTS = [f"{name}.site{site}.org" for site in range(7) for name in ("a", "b")]


@given(st.lists(st.tuples(st.sampled_from(HOSTS), st.sampled_from(["192.0.2.1", "192.0.2.2"])), max_size=40))
def test_who_shares_a_gate_is_always_one_group_with_one_representative(met: list[tuple[str, str]]) -> None:
    """Whatever moves where: whoever has another representative than before was named, and so can be moved."""
    addresses = Addresses()
    at: dict[str, str] = {}
    crowds = set()
    for host, address in met:
        before = {known: addresses.representative(known) for known in at}
        moved = addresses.learn(host, [address])
        assert {known for known in before if addresses.representative(known) != before[known]} <= set(moved)
        if at.get(host) != address:
            at.pop(host, None)
            at[host] = address
        if len({registered_domain(known) for known in at if at[known] == address}) > FEW:
            crowds.add(address)
    for address in set(at.values()):
        mine = [host for host in at if at[host] == address]
        crowded = address in crowds
        represented = [addresses.representative(host) for host in mine]
        assert represented == (mine if crowded else [mine[0]] * len(mine))
