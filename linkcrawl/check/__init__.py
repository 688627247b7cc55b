"""PURE. A check's next request, its verdict, the time of the next check: no Scrapy, I/O, clock or random numbers."""
