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
    assert {addresses.leader(host) for host in few} == {few[0]}
    assert addresses.learn("www.another.org", ["192.0.2.1"]) == (*few[1:], "www.another.org")
    assert [addresses.leader(host) for host in [*few, "www.another.org"]] == [*few, "www.another.org"]
    assert addresses.learn("www.more.org", ["192.0.2.1"]) == ()


def test_an_address_is_learned_once() -> None:
    addresses = Addresses()
    addresses.learn("a.org", ["192.0.2.1"])
    addresses.learn("b.org", ["192.0.2.2"])
    assert addresses.learn("b.org", ["192.0.2.1"]) == ()
    assert addresses.leader("b.org") == "b.org", "a gate that changes with every look at DNS would keep no delay"


@pytest.mark.parametrize("v4", ["192.0.2.1", "203.0.113.5", "8.8.8.8", "31.0.0.1"])
@pytest.mark.parametrize("v6", ["2001:db8::1", "2a00::1", "fe80::1"])
def test_names_of_one_server_share_a_gate_where_only_some_have_ipv6(v4: str, v6: str) -> None:
    addresses = Addresses()
    addresses.learn("old.site.org", [v4])
    addresses.learn("new.site.org", [v6, v4])
    assert addresses.leader("new.site.org") == "old.site.org"
    assert server_address([]) == ""


HOSTS = [f"{name}.site{site}.org" for site in range(7) for name in ("a", "b")]


@given(st.lists(st.tuples(st.sampled_from(HOSTS), st.sampled_from(["192.0.2.1", "192.0.2.2"])), max_size=40))
def test_who_shares_a_gate_is_always_one_group_with_one_leader(met: list[tuple[str, str]]) -> None:
    addresses = Addresses()
    at: dict[str, str] = {}
    for host, address in met:
        addresses.learn(host, [address])
        at.setdefault(host, address)
    for address in set(at.values()):
        mine = [host for host in at if at[host] == address]
        crowded = len({registered_domain(host) for host in mine}) > FEW
        leaders = [addresses.leader(host) for host in mine]
        assert leaders == (mine if crowded else [mine[0]] * len(mine))
