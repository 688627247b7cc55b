"""Host keys: the name that is looked up, and the registered domain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl import urls
from linkcrawl.urls import Target
from linkcrawl.urls.domains import hostname_of, is_public_suffix, registered_domain


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("a.org", "a.org"),
        ("a.org:8080", "a.org"),
        ("192.0.2.1:80", "192.0.2.1"),
        ("[2001:db8::1]", "2001:db8::1"),
        ("[2001:db8::1]:8080", "2001:db8::1"),
    ],
)
def test_hostname_of(host: str, name: str) -> None:
    assert hostname_of(host) == name


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("www.museum.nl", "museum.nl"),
        ("museum.nl:8080", "museum.nl"),
        ("a.b.ac.uk", "b.ac.uk"),
        ("one.github.io", "one.github.io"),
        ("github.io", "github.io"),
        ("a.b.corp", "b.corp"),
        ("deep.er.lib.internal", "lib.internal"),
        ("localhost", "localhost"),
        ("192.0.2.1", "192.0.2.1"),
        ("192.0.2.1:8080", "192.0.2.1"),
        ("[2001:db8::1]:8080", "[2001:db8::1]"),
        ("xn--bcher-kva.example.de", "example.de"),
    ],
)
def test_registered_domain(host: str, domain: str) -> None:
    assert registered_domain(host) == domain


@given(
    st.sampled_from(["a.org", "a.b.co.uk", "192.0.2.1", "[2001:db8::1]", "x", "b\u00fccher.de"]), st.integers(80, 90)
)
def test_a_key_gives_the_hostname_that_its_url_gave(host: str, port: int) -> None:
    target = urls.read(f"http://{host}:{port}/")
    assert isinstance(target, Target) or port == 87  # a bad port
    if isinstance(target, Target):
        assert hostname_of(target.host) == target.hostname


@pytest.mark.parametrize("name", ["org", "co.uk", "github.io", "corp", "localhost"])
def test_public_suffixes(name: str) -> None:
    assert is_public_suffix(name)
    assert not is_public_suffix(f"a.{name}")


@pytest.mark.parametrize("name", ["192.0.2.1", "2001:db8::1"])
def test_an_address_is_no_public_suffix(name: str) -> None:
    assert not is_public_suffix(name)
