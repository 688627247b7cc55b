"""Headers made in a short way are those that Scrapy would make."""

from hypothesis import given
from hypothesis import strategies as st
from scrapy.http import Headers

from linkcrawl.network.headers import scrapy_headers

names = st.sampled_from(["server", "set-cookie", "x-a-b", "etag", "www-authenticate"]) | st.from_regex(
    r"[!#$%&'*+\-.^_`|~0-9a-z]{1,12}", fullmatch=True
)
values = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=20)


@given(st.lists(st.tuples(names, values), max_size=12))
def test_they_are_the_same(fields: list[tuple[str, str]]) -> None:
    assert scrapy_headers(fields) == Headers(fields)
