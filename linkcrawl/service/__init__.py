"""The HTTP service over a store: `scrapy serve`. `routes` has the table that everything else is made of."""
