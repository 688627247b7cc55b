"""A web server that misbehaves on purpose, in a process of its own, on loopback.

Each misbehaviour has an address of its own (127.x.y.z), so that what a crawler learns of one host never touches
another. The server knows nothing of crawlers: `table` says what is on the wire, tests/crawl what a crawler is to make
of it. `python -m tests.site --help` runs it by hand.
"""
