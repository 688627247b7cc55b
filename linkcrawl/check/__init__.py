"""PURE. What is asked next, what it means, when it is asked again: no Scrapy, no I/O, no clock, no chance."""
