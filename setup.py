"""Only for scrapyd-deploy, which builds an egg; everything that is to be said stands in pyproject.toml."""

from setuptools import setup

setup()
