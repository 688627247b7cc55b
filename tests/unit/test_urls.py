"""URLs: what is sent, what is kept, what is the same. U and D numbers name the users' reports that a case is from."""

from urllib.parse import quote, unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from linkcrawl import urls
from linkcrawl.urls import Refused, Target


def sent(text: str) -> str:
    target = urls.read(text)
    assert isinstance(target, Target), target
    return target.url


@pytest.mark.parametrize(
    "text",
    [
        "http://example.org/a%28b%29",  # U01
        "http://example.org/a%23b%3Fc",  # U03
        "http://example.org/a%2Fb%2Bc%2fd",  # U04
        "http://example.org/?b=1&a=2&a=1",  # U12
        "http://example.org/a,b|c[d]e;f=1!$&'()*+:@",  # U15
        "http://example.org/?q='a'&r=|[]",
        "http://example.org//a//b/",
        "http://example.org/%41%zz%",
        "http://example.org/?",
        "https://doi.org/10.1002/(SICI)1097-4571(199806)49:8",  # D27
        "http://example.org/" + "a" * 3000,  # U13
        "http://example.org:8080/~x",
    ],
)
def test_what_is_legal_is_sent_as_given(text: str) -> None:
    assert sent(text) == text


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("http://example.org/straße/é", "http://example.org/stra%C3%9Fe/%C3%A9"),  # U06
        ("http://example.org/?q=é", "http://example.org/?q=%C3%A9"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),  # U07
        ("http://例え.テスト/", "http://xn--r8jz45g.xn--zckzah/"),
        ("  http://example.org/a \n", "http://example.org/a"),  # U10
        ("\ufeffhttp://example.org/a\u200b\xa0", "http://example.org/a"),
        ("http://example.org/a b", "http://example.org/a%20b"),
        ("http://example.org/a\tb\nc", "http://example.org/abc"),
        ("http://example.org/<a>", "http://example.org/%3Ca%3E"),  # D27
        ("http://example.org/a\\b", "http://example.org/a/b"),
        ("http://example.org/a#b", "http://example.org/a"),
        ("http://example.org/?a='b'#'", "http://example.org/?a='b'"),
        ("http://example.org/?a='b'&c=%27 \u00e9\t", "http://example.org/?a='b'&c=%27%20%C3%A9"),
        ("http://example.org", "http://example.org/"),
        ("HTTP://EXAMPLE.org:80/A", "http://example.org/A"),
        ("http://user:secret@example.org/", "http://example.org/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        ("http://0177.0.0.1/", "http://127.0.0.1/"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://\uff11\uff12\uff17.0.0.1/", "http://127.0.0.1/"),
        ("http://[::FFFF:127.0.0.1]/", "http://[::ffff:7f00:1]/"),
        ("http://example.org/\ud800\ud83d\ude00", "http://example.org/%EF%BF%BD%F0%9F%98%80"),
        ("http://example.org/\x00b", "http://example.org/%00b"),
    ],
)
def test_what_is_not_legal_is_repaired(text: str, url: str) -> None:
    assert sent(text) == url


@pytest.mark.parametrize(
    ("text", "scheme", "host", "authority"),
    [
        ("https://Example.ORG:443/", "https", "example.org", "https://example.org"),
        ("https://example.org:80/", "https", "example.org:80", "https://example.org:80"),
        ("http://example.org./", "http", "example.org", "http://example.org."),
        ("http://example.org.:81/", "http", "example.org:81", "http://example.org.:81"),
        ("http://[2001:DB8::1]/", "http", "[2001:db8::1]", "http://[2001:db8::1]"),
        ("http://[2001:db8::1]:81/", "http", "[2001:db8::1]:81", "http://[2001:db8::1]:81"),
        ("http://a_b.example.org/", "http", "a_b.example.org", "http://a_b.example.org"),
    ],
)
def test_host_and_authority(text: str, scheme: str, host: str, authority: str) -> None:
    target = urls.read(text)
    assert isinstance(target, Target)
    assert (target.scheme, target.host, target.authority) == (scheme, host, authority)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "invalid_url"),
        ("example.org/x", "invalid_url"),
        ("//example.org/x", "invalid_url"),
        ("http://", "invalid_url"),
        ("http://a b/", "invalid_url"),
        ("http://[::1/", "invalid_url"),
        ("http://a..b/", "invalid_url"),  # U08
        ("http://.a/", "invalid_url"),
        ("http://./", "invalid_url"),
        (f"http://{'a' * 64}.org/", "invalid_url"),  # U08
        (f"http://{'ü' * 60}.org/", "invalid_url"),
        (f"http://{'.'.join(['a' * 63] * 4)}/", "invalid_url"),
        ("http://example.org:65536/", "invalid_url"),
        ("http://example.org:x/", "invalid_url"),
        ("http://1.2.3.256/", "invalid_url"),
        ("http://me:a/b@host/", "invalid_url"),
        ("http://example.org/" + "a" * 16_366, "url_too_long"),
        ("http://example.org/?q=" + "\u00fc" * 3000, "url_too_long"),
        ("http://example.org/?q='" + "'" * 6000 + " " * 4000 + "x", "url_too_long"),
        ("http://" + "a" * 1_000_000, "url_too_long"),
        ("data:text/plain," + "a" * 100_000, "unsupported_scheme"),
        ("a" * 100_000, "invalid_url"),
        ("http://example.org:25/", "forbidden_port"),
        ("http://example.org:0/", "forbidden_port"),
        ("https://[::1]:6000/", "forbidden_port"),
        ("ftp://example.org/x", "unsupported_scheme"),
        ("file:///etc/passwd", "unsupported_scheme"),
        ("mailto:me@example.org", "unsupported_scheme"),
        ("javascript:alert(1)", "unsupported_scheme"),
        ("data:text/html,x", "unsupported_scheme"),
        ("foo://[bad", "unsupported_scheme"),
        ("hdl:", "unsupported_scheme"),
        ("doi: ", "unsupported_scheme"),
    ],
)
def test_refused_with_a_printable_reason(text: str, reason: str) -> None:
    refused = urls.read(text)
    assert isinstance(refused, Refused)
    assert refused.reason == reason
    assert refused.error.isprintable()
    assert refused.error.isascii()


def test_the_longest_url_is_sent() -> None:
    longest = "http://example.org/" + "a" * 16_365
    assert len(longest) == urls.MAX_URL
    assert sent(longest) == longest
    assert sent(f"{longest}#{'fragment' * 1000}") == longest


def test_longest_legal_host_is_read() -> None:
    name = ".".join(["a" * 63] * 3 + ["b" * 61])
    assert len(name) == 253
    assert sent(f"http://{name}./") == f"http://{name}./"


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("hdl:11022/0000-0007-ED19-C", "https://hdl.handle.net/11022/0000-0007-ED19-C"),
        ("HDL:11022/a@format=cmdi", "https://hdl.handle.net/11022/a@format=cmdi"),
        ("hdl://11022/1", "https://hdl.handle.net/11022/1"),
        (" doi: 10.1000/182 ", "https://doi.org/10.1000/182"),
        ("DOI:10.1002/(SICI)1<693::AID>3.0.CO;2-O", "https://doi.org/10.1002/(SICI)1<693::AID>3.0.CO;2-O"),
        ("doi:10.1/a#b%zz%41\\c", "https://doi.org/10.1/a%23b%25zz%2541%5Cc"),
        ("doi:10.1000/456?789", "https://doi.org/10.1000/456%3F789"),
        ("doi:10.1000/./abc", "https://doi.org/10.1000/.%2Fabc"),
        ("doi:10.1000/a/./../b/..", "https://doi.org/10.1000/a/.%2F..%2Fb%2F.."),
        ("doi:10.1000/../abc", "https://doi.org/10.1000/..%2Fabc"),
        ("doi:10.1000/%2e/abc", "https://doi.org/10.1000/%252e/abc"),
        ("doi:10.1000/.../abc", "https://doi.org/10.1000/.../abc"),
        ("doi:10.1000%2F182", "https://doi.org/10.1000/182"),  # no name is without a slash: it was encoded
        ("doi:10.1021/x?urlappend=%3Fref%3DPDF&jav=VoR", "https://doi.org/10.1021/x?urlappend=%3Fref%3DPDF&jav=VoR"),
        ("hdl:11858/1?urlappend=/TEI#a", "https://hdl.handle.net/11858/1?urlappend=/TEI%23a"),
        ("hdl:11858/1?noredirect", "https://hdl.handle.net/11858/1?noredirect"),
        ("hdl:11858/a?b?noredirect", "https://hdl.handle.net/11858/a%3Fb?noredirect"),
        ("hdl:11858/a?noredirection=1", "https://hdl.handle.net/11858/a%3Fnoredirection=1"),
        ("doi:\u200b\u202a10.1000/182\u202c", "https://doi.org/10.1000/182"),
        ("hdl:1/a%", "https://hdl.handle.net/1/a%25"),
        ("hdl:2381/1?locatt=view:pdf", "https://hdl.handle.net/2381/1?locatt=view:pdf"),
        ("urn:nbn:fi:lb-1", "https://urn.fi/urn:nbn:fi:lb-1"),
        ("URN:NBN:FI-fe1", "https://urn.fi/URN:NBN:FI-fe1"),
        ("urn:nbn:nl:ui:13-x", "https://persistent-identifier.nl/urn:nbn:nl:ui:13-x"),
        ("urn:nbn:se:uu:diva-1", "https://urn.kb.se/resolve?urn=urn:nbn:se:uu:diva-1"),
        ("urn:nbn:se:a&b+c", "https://urn.kb.se/resolve?urn=urn:nbn:se:a%26b%2Bc"),
        ("urn:nbn:fi:a/../b", "https://urn.fi/urn:nbn:fi:a/..%2Fb"),
        ("ark:/12345/./x", "https://n2t.net/ark:/12345/.%2Fx"),
        ("ark:/12345/x?info", "https://n2t.net/ark:/12345/x?info"),
        ("urn:nbn:no-1", "https://urn.nb.no/urn:nbn:no-1"),
        ("urn:nbn:de:101:1-2", "https://nbn-resolving.org/urn:nbn:de:101:1-2"),
        ("ark:/12345/x", "https://n2t.net/ark:/12345/x"),
        ("ARK:12345/x", "https://n2t.net/ark:12345/x"),
    ],
)
def test_pids_become_actionable(text: str, url: str) -> None:
    assert urls.tidy(text) == url
    assert isinstance(urls.read(text), Target)


@pytest.mark.parametrize(
    "text",
    [
        "hdl:",
        "doi:/ ",
        "doi:..",
        "hdl:/./",
        "hdl:?noredirect",
        "urn:nbn:",
        "urn:nbn:fi",
        "urn:isbn:1",
        "ark:",
        "ark:/",
        "hdlx:1/2",
    ],
)
def test_what_names_nothing_stays_as_given(text: str) -> None:
    assert urls.tidy(text) == text


NAMES = st.text(st.sampled_from("ab10./%?#\\ &=+;:<>()[]'\"~é漢"), min_size=1, max_size=12)


@given(st.sampled_from(["doi", "hdl"]), NAMES.filter(lambda name: name == name.strip() and "noredirect" not in name))
@example("doi", "10.1/../a")
@example("doi", "a/b?type")
def test_no_name_becomes_anothers(scheme: str, suffix: str) -> None:
    """What the proxy gets, decoded, is the name that was written."""
    name = f"10.1/x{suffix}"
    target = urls.read(f"{scheme}:{name}")
    assert isinstance(target, Target)
    assert unquote(target.request_target.removeprefix("/")) == name


# fmt: off
LEFT_BY_COPYING = [
    "\u202a", "\u202b", "\u202c", "\u202d", "\u202e", "\u2066", "\u2067", "\u2068", "\u2069", "\u061c", "\ufffc",
    "\u200b", "\u200e", "\u200f", "\u2060", "\u2061", "\u206f", "\ufeff", "\u00ad", "\u034f", "\u180e", "\ufff9",
    "\u2028", "\u3000", "\x1b",
]
# fmt: on


@pytest.mark.parametrize("mark", LEFT_BY_COPYING)
def test_what_copying_leaves_at_both_ends_is_not_sent(mark: str) -> None:
    for text in (f"{mark}http://example.org/a", f"http://example.org/a{mark}", f" {mark}http://example.org/a{mark}\n"):
        assert sent(text) == "http://example.org/a"
        assert urls.identity(text) == urls.identity("http://example.org/a")
        assert urls.has_scheme(text)
    assert sent(f"http://example.org/a{mark}b") != "http://example.org/ab", "within a URL it is the server's"
    location = urls.join("http://example.org/", f"/a{mark}")
    assert isinstance(location, Target)
    assert location.url == "http://example.org/a"


@pytest.mark.parametrize("end", ["❤\ufe0f", "\u0301", "é", "\ufffd", "…"])
def test_what_may_belong_to_a_path_stays(end: str) -> None:
    assert sent(f"http://example.org/{end}") == f"http://example.org/{quote(end)}"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("http://me:secret@host/x@y", "http://host/x@y"),
        ("http://secret@host", "http://host"),
        ("http:@/me:secret@host", "http:/host"),
        ("http://me:se@cret@host/", "http://host/"),
        (" HTTP:\\\\me:secret@host/ ", " HTTP:\\\\host/ "),
        ("http:me:secret@host/", "http:host/"),
        ("ht\ttp:/\n/me:secret@host/", "ht\ttp:/\n/host/"),
        ("http://me:secret@a b/", "http://a b/"),
        ("http://me:secret@[::1/", "http://[::1/"),
        ("http://me:secret@host:99999/", "http://host:99999/"),
        ("http://me:sec/ret@host/", "http://:host/"),
        ("http://me:sec#r@et@host/", "http://:host/"),
        ("http://me:123456/secret@host/", "http://:host/"),
        ("ftp://me:secret@host/", "ftp://host/"),
        ("foo+bar://me:secret@host/", "foo+bar://host/"),
        ("//me:secret@host/", "//host/"),
        ("me:secret@host/x", "host/x"),
        ("a:secret@http://b:secret@host/", "http://host/"),
    ],
)
def test_logins_are_not_kept(text: str, kept: str) -> None:
    assert urls.tidy(text) == kept


@pytest.mark.parametrize(
    "text",
    [
        " http://example.org/a b#c ",
        "http://example.org/@me/x",
        "http://example.org/?mail=a@b",
        "http://example.org:8080/a@b",
        "http://[::1]:80/a@b",
        "http://https://example.org/@me",
        "mailto:me@example.org",
        "urn:x:a@b",
        "doi+x/a@b",
        "not a url",
    ],
)
def test_nothing_else_is_changed(text: str) -> None:
    assert urls.tidy(text) == text


BASE = "http://example.org/a/b?c=d"


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("e", "http://example.org/a/e"),  # D16
        ("/e", "http://example.org/e"),
        ("../e", "http://example.org/e"),
        ("//other.example/e", "http://other.example/e"),
        ("?e='f'", "http://example.org/a/b?e='f'"),
        ("#e", BASE),
        ("https://other.example/e#f", "https://other.example/e"),
        ("/a%2Fb%23c%3Fd", "http://example.org/a%2Fb%23c%3Fd"),  # D15
        (" /a b ", "http://example.org/a%20b"),
        ("/straße", "http://example.org/stra%C3%9Fe"),
        ("/straße".encode().decode("latin-1"), "http://example.org/stra%C3%9Fe"),
        ("/caf\udce9", "http://example.org/caf%E9"),
        ("/\u4f8b", "http://example.org/%E4%BE%8B"),
        ("/a\r\nSet-Cookie: b", "http://example.org/aSet-Cookie:%20b"),
        ("http://me:secret@other.example/", "http://other.example/"),
        ("//me:secret@other.example/", "http://other.example/"),
        ("www.example.org/e", "http://example.org/a/www.example.org/e"),
    ],
)
def test_location_is_joined(location: str, url: str) -> None:
    target = urls.join(BASE, location)
    assert isinstance(target, Target)
    assert target.url == url


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("", "invalid_url"),  # D12
        (" \t", "invalid_url"),
        ("/" + "a" * 16_366, "url_too_long"),
        ("?" + "\u00fc" * 3000, "url_too_long"),
        ("mailto:" + "a" * 100_000, "unsupported_scheme"),
        ("http://", "invalid_url"),
        ("http://a..b/", "invalid_url"),
        ("//example.org:25/", "forbidden_port"),
        ("ftp://example.org/", "unsupported_scheme"),  # D17
        ("mailto:me@example.org", "unsupported_scheme"),
        ("file:///etc/passwd", "unsupported_scheme"),
        ("doi:10.1000/1", "unsupported_scheme"),
    ],
)
def test_location_is_refused(location: str, reason: str) -> None:
    refused = urls.join(BASE, location)
    assert isinstance(refused, Refused)
    assert refused.reason == reason


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://example.org/", "HTTP://EXAMPLE.ORG:80/"),
        ("http://example.org#b", "http://EXAMPLE.org:80#b"),
        ("http://example.org/%7ea%2f", "http://example.org/~a%2F"),
        ("http://example.org/é", "http://example.org/%c3%A9"),
        ("http://me:secret@example.org/", " http://example.org/"),
        ("hdl:1/2", "https://hdl.handle.net/1/2"),
        ("http://bücher.example/", "http://xn--bcher-kva.example/"),
    ],
)
def test_safely_the_same(one: str, other: str) -> None:
    assert urls.identity(one) == urls.identity(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("http://example.org/a", "http://example.org/a/"),
        ("http://example.org/?a&b", "http://example.org/?b&a"),
        ("http://example.org/a", "http://example.org/A"),
        ("http://example.org/a%2Fb", "http://example.org/a/b"),
        ("http://example.org/", "https://example.org/"),
        ("http://example.org/", "http://example.org/?"),
        ("http://example.org/?a='", "http://example.org/?a=%27"),
        ("ftp://example.org/", "FTP://example.org/"),
    ],
)
def test_not_safely_the_same(one: str, other: str) -> None:
    assert urls.identity(one) != urls.identity(other)


# fmt: off
PIECES = st.sampled_from([
    "http:", "https:", "foo:", "hdl:", "urn:nbn:se:", "//", "/", "\\", "@", ":", "#", "?", "%", "%2f", "[", "]", "..",
    "'", " ", "\t", "\ud800", "\udce9", "\x00", "é", "ü", "example.org", "a", "80", "99999", "127.1", "xn--", "\u200b",
])
# fmt: on
ANY_TEXT = st.one_of(st.text(st.characters(exclude_categories=())), st.lists(PIECES, max_size=12).map("".join))


@given(ANY_TEXT)
@example("http://" + "a:b/@" * 200_000)
@example("http://example.org/" + "%" * 1_000_000)
@example("//" * 500_000 + "@")
def test_any_text_is_read_and_stays_what_it_is(text: str) -> None:
    tidied = urls.tidy(text)
    assert urls.tidy(tidied) == tidied
    assert urls.identity(tidied) == urls.identity(text)
    assert len(urls.identity(text)) == 16
    reading = urls.read(text)
    assert urls.read(tidied) == reading
    if isinstance(reading, Target):
        assert reading.url.isascii()
        assert reading.url.isprintable()
        assert " " not in reading.url
        assert "#" not in reading.url
        assert reading.url.startswith(f"{reading.authority}/")
        assert urls.read(reading.url) == reading
    assert isinstance(urls.has_scheme(text), bool)


@given(ANY_TEXT)
def test_any_location_is_joined_or_refused(text: str) -> None:
    target = urls.join("https://example.org/a?b", text)
    assert isinstance(target, Refused) or urls.read(target.url) == target


@given(st.text(min_size=1).filter(lambda text: "@" not in text), st.sampled_from(["http", "https", "ftp", "foo"]))
@example("]#", "http")
@example("[::1]?", "https")
@example(":?", "http")
def test_no_password_survives(password: str, scheme: str) -> None:
    secret = f"\u2603{password}\u2603"
    assert "\u2603" not in urls.tidy(f"{scheme}://me:{secret}@example.org/x")
