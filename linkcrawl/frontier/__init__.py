"""Decides which request may go now: gates, the queue of due links, and Scrapy's scheduler over both."""
