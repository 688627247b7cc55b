"""The network room: sends one request, reads the head of its answer, or says exactly why no answer came.

guard and head and body are pure; resolver, tls and connection do one step each and return a `Fault` where it fails;
handler is what Scrapy calls, the only file that knows Scrapy.
"""
