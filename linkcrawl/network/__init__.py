"""The network room: one request out, the head of one answer in, and exactly why not where none came.

guard and head and body are pure; resolver, tls and connection do one step each and return a `Fault` where it fails;
handler is what Scrapy calls, the only file that knows Scrapy.
"""
