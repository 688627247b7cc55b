# The verbs of this project. CI runs the same ones (.ci/run), nothing else.

VENV := .venv
PYTHON := $(VENV)/bin/python
# Written when an installation has succeeded; older than pyproject.toml means: install again.
INSTALLED := $(VENV)/.installed

.PHONY: help demo test lint format clean
.DEFAULT_GOAL := help

help:  ## show these verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(INSTALLED)  ## check a small sample web site on this machine and show what came of it
	@$(PYTHON) demo/run.py

test: $(INSTALLED)  ## run all tests, with every server that they need; ARGS="-k robots" goes to pytest
	@$(PYTHON) scripts/servers.py $(PYTHON) -m pytest $(ARGS)

lint: $(INSTALLED)  ## style, format and types, as CI wants them
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	$(PYTHON) -m mypy --strict demo scripts

format: $(INSTALLED)  ## let ruff mend style and format
	$(PYTHON) -m ruff check --fix .
	$(PYTHON) -m ruff format .

clean:  ## remove the environment, the servers, caches and what the demo wrote
	rm -rf $(VENV) .servers .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info demo/out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml scripts/environment
	@scripts/environment $(VENV)
	@touch $@
