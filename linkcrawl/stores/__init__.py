"""Stores: links, resource proxies, records with their history, and host memory. `contract` is the face."""
