"""CMDI records of both versions, whole, broken and hostile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkcrawl import sources
from linkcrawl.items import Reject, Seed

NAMESPACES = {"1.1": "http://www.clarin.eu/cmd/", "1.2": "http://www.clarin.eu/cmd/1"}
TYPES = ["Resource", "LandingPage", "SearchPage", "SearchService", "Metadata"]


def proxy(url: str, kind: str = "Resource", mime: str | None = None) -> str:
    attribute = f' mimetype="{mime}"' if mime else ""
    return (
        f'<ResourceProxy id="x"><ResourceType{attribute}>{kind}</ResourceType>'
        f"<ResourceRef>\n {url} \n</ResourceRef></ResourceProxy>"
    )


def record(proxies: str, *, version: str = "1.2", header: str = "", components: str = "", doctype: str = "") -> str:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>{doctype}<CMD xmlns="{NAMESPACES[version]}" CMDVersion="{version}">'
        f"<Header>{header}</Header><Resources><ResourceProxyList>{proxies}</ResourceProxyList></Resources>"
        f"<Components>{components}</Components></CMD>"
    )


def read(path: Path, text: str) -> list[Seed | Reject]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return list(sources.read(str(path)))


@pytest.mark.parametrize("version", NAMESPACES)
@pytest.mark.parametrize("suffix", [".xml", ".cmdi", ".CMDI"])
def test_every_proxy_and_the_self_link(tmp_path: Path, version: str, suffix: str) -> None:
    path = tmp_path / f"r{suffix}"
    header = (
        "<MdCreator>x</MdCreator><MdSelfLink>hdl:1/self</MdSelfLink>"
        "<MdCollectionDisplayName>Corpora</MdCollectionDisplayName>"
    )
    proxies = "".join(proxy(f"http://a.example/{kind}?a=1&amp;b=2", kind, "audio/x-wav") for kind in TYPES)
    place: dict[str, Any] = {"collection": "Corpora", "record": str(path)}
    assert read(path, record(proxies, version=version, header=header)) == [
        Seed(url="hdl:1/self", resource_type="SelfLink", **place),
        *(
            Seed(url=f"http://a.example/{kind}?a=1&b=2", resource_type=kind, expected_mime="audio/x-wav", **place)
            for kind in TYPES
        ),
    ]


def test_the_first_folder_level_names_the_collection(tmp_path: Path) -> None:
    header = "<MdCollectionDisplayName>Shown</MdCollectionDisplayName>"
    for name in ("top.xml", "Provider_1/0/deep.cmdi", "Provider_2/flat.xml"):
        read(tmp_path / name, record(proxy(f"http://a.example/{name}"), header=header))
    found = {(row.collection, row.record) for row in sources.read(str(tmp_path)) if isinstance(row, Seed)}
    assert found == {
        ("Shown", "top.xml"),
        ("Provider_1", "Provider_1/0/deep.cmdi"),
        ("Provider_2", "Provider_2/flat.xml"),
    }


def test_only_the_envelope_counts(tmp_path: Path) -> None:
    component = proxy("http://no.example/") + "<MdSelfLink>http://no.example/</MdSelfLink>"
    rows = read(tmp_path / "r.xml", record(proxy("http://a.example/"), version="1.1", components=component))
    assert [row.url for row in rows if isinstance(row, Seed)] == ["http://a.example/"]


def test_records_within_a_harvest_envelope(tmp_path: Path) -> None:
    inner = record(proxy("http://a.example/")).partition("?>")[2]
    text = f'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/"><r>{inner}</r><r>{inner}</r></OAI-PMH>'
    assert [row.url for row in read(tmp_path / "r.xml", text) if isinstance(row, Seed)] == ["http://a.example/"] * 2


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (proxy(""), "no url"),
        (proxy("../data/x.wav"), "url has no scheme"),
        ("<ResourceProxy/>", "no url"),
    ],
)
def test_a_bad_proxy_does_not_stop_the_rest(tmp_path: Path, bad: str, why: str) -> None:
    rows = read(tmp_path / "r.xml", record(bad + proxy("http://a.example/")))
    assert [row.why for row in rows if isinstance(row, Reject)] == [why]
    assert [row.url for row in rows if isinstance(row, Seed)] == ["http://a.example/"]


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        (record(proxy("http://a.example/") + "<a></b>"), ["http://a.example/"]),
        (record(proxy("http://a.example/"))[:-30], ["http://a.example/"]),
        (record(proxy("http://a.example/") + proxy("http://b.example/&nbsp;")), ["http://a.example/"]),
        (record(proxy("http://a.example/") + proxy("http://b.example/\x01")), ["http://a.example/"]),
        ("", []),
        ("no xml", []),
        ("<other/>", []),
        ('<CMD xmlns="http://other.example/"/>', []),
    ],
)
def test_a_fault_is_one_reject_after_what_was_read(tmp_path: Path, text: str, urls: list[str]) -> None:
    rows = read(tmp_path / "r.xml", text)
    assert [row.url for row in rows if isinstance(row, Seed)] == urls
    assert isinstance(rows[-1], Reject)
    assert sum(isinstance(row, Reject) for row in rows) == 1
    assert rows[-1].source == str(tmp_path / "r.xml")


def _laughs() -> str:
    lines = ['<!ENTITY l0 "ha">'] + [f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12)]
    return f"<!DOCTYPE CMD [{''.join(lines)}]>"


@pytest.mark.parametrize("entity", ["file", "http", "laughs", "attribute", "parameter"])
def test_entities_are_refused(tmp_path: Path, entity: str) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("http://secret.example/")
    doctype, reference = {
        "file": (f'<!DOCTYPE CMD [<!ENTITY x SYSTEM "{secret.as_uri()}">]>', "&x;"),
        "http": ('<!DOCTYPE CMD SYSTEM "http://127.0.0.1:9/x.dtd" [<!ENTITY x SYSTEM "http://127.0.0.1:9/">]>', "&x;"),
        "laughs": (_laughs(), "http://a.example/&l11;"),
        "attribute": (_laughs(), 'http://a.example/</ResourceRef><x y="&l11;"/><ResourceRef>'),
        "parameter": (f'<!DOCTYPE CMD [<!ENTITY % x SYSTEM "{secret.as_uri()}"> %x;]>', "http://a.example/"),
    }[entity]
    text = record(proxy(reference), doctype=doctype)
    rows = read(tmp_path / "r.xml", text)
    assert [type(row) for row in rows] == [Reject]
    assert "secret.example" not in str(rows)


# libxml2's memory is not Python's, so the process is asked; not by getrusage, which counts in what pytest had.
MEASURE = r"""
import re, sys
from linkcrawl import sources
peak = lambda: int(re.search(r"VmHWM:\s+(\d+) kB", open("/proc/self/status").read())[1]) * 1024
before = peak()
count = sum(1 for _ in sources.read(sys.argv[1]))
print(count, peak() - before)
"""


def test_memory_stays_flat_over_a_large_record(tmp_path: Path) -> None:
    path = tmp_path / "r.xml"
    components = "<Session><Name>x</Name><Actor ref='y'>z</Actor></Session>" * 150_000
    path.write_text(record(proxy("http://a.example/") * 80_000, components=components))
    assert path.stat().st_size > 15_000_000
    done = subprocess.run([sys.executable, "-c", MEASURE, str(path)], capture_output=True, text=True, check=True)
    count, grown = map(int, done.stdout.split())
    assert count == 80_000
    assert grown < 10_000_000


@given(st.binary())
def test_any_bytes_give_rows(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "r.xml"
    path.write_bytes(data)
    assert all(isinstance(row, Seed | Reject) for row in sources.read(str(path)))
