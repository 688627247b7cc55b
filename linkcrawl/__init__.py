"""A polite, truthful link checker for large metadata catalogues. docs/architecture.md shows the way of a link."""

__version__ = "0.1.0"
