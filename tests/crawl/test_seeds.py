"""Seeds of every quality: a bad line stops nothing, and whatever has a scheme gets a record."""

from __future__ import annotations

import gzip
import json

import pytest

from tests.crawl.harness import Crawler
from tests.crawl.measures import pages
from tests.site.client import running_site
from tests.site.crowds import healthy

BAD_LINES: dict[str, bytes] = {
    "no JSON": b"this is no JSON",
    "half an object": b'{"url": "http://127.31.0.1/half"',
    "no object": b'["http://127.31.0.1/"]',
    "a number": b"5",
    "nothing": b"null",
    "no URL": b'{"collection": "x"}',
    "an empty URL": b'{"url": ""}',
    "a blank URL": b'{"url": "  \\t "}',
    "a URL that is a number": b'{"url": 5}',
    "a URL that is a list": b'{"url": ["http://127.31.0.1/"]}',
    "no scheme": b'{"url": "www.example.org/page"}',
    "a path": b'{"url": "/etc/passwd"}',
    "bytes that are no UTF-8": b"\xff\xfe\x00\x01",
    "very deep": b"[" * 20_000,
}

#: Texts that have a scheme and can't be requested, with the reason that their record gives.
INVALID = {
    "http://": "invalid_url",
    "https://[::1": "invalid_url",
    "http://a..b/": "invalid_url",
    f"http://{'a' * 64}.org/": "invalid_url",
    "http://127.31.0.1:99999/": "invalid_url",
    "mailto:someone@example.org": "unsupported_scheme",
    "ftp://example.org/file": "unsupported_scheme",
    "javascript:alert(1)": "unsupported_scheme",
    "file:///etc/passwd": "unsupported_scheme",
    "data:text/plain,hello": "unsupported_scheme",
    "urn:isbn:9783161484100": "unsupported_scheme",
    "http://127.31.0.1:25/": "forbidden_port",
    "http://10.0.0.1/": "forbidden_address",
    "http://[fd00::1]/": "forbidden_address",
    "http://169.254.169.254/latest/": "forbidden_address",
    "http://0x0a000002/": "forbidden_address",
}


def test_bad_lines_stop_nothing(crawler: Crawler) -> None:
    seeds = crawler.folder / "seeds.jsonl"
    with running_site(crawler.folder, hosts=1) as site:
        good = [site.url(healthy(0), f"/{number}") for number in range(len(BAD_LINES))]
        rows = zip(BAD_LINES.values(), good, strict=True)
        seeds.write_bytes(b"".join(bad + b"\n" + json.dumps({"url": url}).encode() + b"\n" for bad, url in rows))
        crawl = crawler.run("-a", f"seeds={seeds}", settings={"DOWNLOAD_DELAY": "0.05"})
    assert crawl.status == 0
    assert sorted(record["url"] for record in crawl.records) == sorted(good)
    assert "Traceback" not in crawl.stderr
    assert f"{len(BAD_LINES)} rejected" in crawl.stderr
    rejects = [json.loads(line) for line in (crawler.folder / "rejects.jsonl").read_text().splitlines()]
    assert [row["line"] for row in rejects] == list(range(1, 2 * len(BAD_LINES), 2))
    assert all(row["source"].endswith("seeds.jsonl") and row["why"] for row in rejects)


def test_what_has_a_scheme_gets_a_record(crawler: Crawler) -> None:
    crawl = crawler.run("-a", f"seeds={crawler.seeds(INVALID)}")
    assert crawl.status == 0
    assert {url: crawl.record(url)["reason"] for url in INVALID} == INVALID
    assert {record["category"] for record in crawl.records} == {"Invalid_URL"}
    assert all(record["hops"] == [] and record["status"] is None for record in crawl.records)


def test_passwords_go_nowhere(crawler: Crawler) -> None:
    with running_site(crawler.folder, hosts=1) as site:
        url = site.url(healthy(0), "/doc")
        hidden = [url.replace("//", "//someone:hunter2@"), "ftp://someone:hunter2@example.org/", "http://a:hunter2@[x/"]
        crawl = crawler.run("-a", f"seeds={crawler.seeds([*hidden, '//someone:hunter2@example.org/x'])}")
        asked = pages(site.requests())
    assert crawl.record(url)["category"] == "Ok"
    assert len(crawl.records) == len(hidden)
    assert [request.header("Authorization") for request in asked] == [None]
    kept = b"".join(
        path.read_bytes() for path in crawler.folder.iterdir() if path.is_file() and "seeds" not in path.name
    )
    assert b"hunter2" not in kept


def test_one_link_in_many_records(crawler: Crawler) -> None:
    with running_site(crawler.folder, hosts=1) as site:
        url = site.url(healthy(0), "/doc")
        rows = [("zeta", "r1"), ("alpha", "r2"), ("zeta", "r3")]
        mentions = [{"url": url, "collection": collection, "record": record} for collection, record in rows]
        mentions.append({"url": url.replace("http", "HTTP"), "collection": "mu"})
        crawl = crawler.run("-a", f"seeds={crawler.seeds(mentions)}")
        asked = pages(site.requests())
    assert [request.line for request in asked] == ["HEAD /doc"]
    assert [record["collections"] for record in crawl.records] == [["alpha", "mu", "zeta"]]
    assert crawler.books().proxies == 4


@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson", ".csv", ".tsv", ".txt", ".xml", ".jsonl.gz"])
def test_every_format(crawler: Crawler, suffix: str) -> None:
    with running_site(crawler.folder, hosts=1) as site:
        url = site.url(healthy(0), "/doc")
        text = _as_format(suffix.removesuffix(".gz"), url)
        seeds = crawler.folder / f"seeds{suffix}"
        seeds.write_bytes(gzip.compress(text.encode()) if suffix.endswith(".gz") else text.encode())
        crawl = crawler.run("-a", f"seeds={seeds}")
    assert [(record["url"], record["category"]) for record in crawl.records] == [(url, "Ok")]


def _as_format(suffix: str, url: str) -> str:
    match suffix:
        case ".csv":
            return f"url,collection\n{url},one\n"
        case ".tsv":
            return f"collection\turl\none\t{url}\n"
        case ".txt":
            return f"# a comment\n\n{url}\n"
        case ".xml":
            return (
                '<CMD xmlns="http://www.clarin.eu/cmd/1"><Resources><ResourceProxyList><ResourceProxy id="p1">'
                f"<ResourceType>Resource</ResourceType><ResourceRef>{url}</ResourceRef>"
                "</ResourceProxy></ResourceProxyList></Resources></CMD>"
            )
        case _:
            return json.dumps({"url": url}) + "\n"
