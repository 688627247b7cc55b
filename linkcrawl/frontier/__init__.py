"""What may be asked now, and what next: gates, the queue of due links, and Scrapy's scheduler over both."""
