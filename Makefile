# The verbs of this project. CI runs the same ones (.ci/run), nothing else.

VENV := .venv
PY := $(VENV)/bin/python
# Written when an installation has succeeded; older than pyproject.toml means: install again.
INSTALLED := $(VENV)/.installed

# Most tests wait for a crawl's delays, so more of them than there are processors may run at once.
WORKERS ?= 6

.PHONY: help demo test lint format clean
.DEFAULT_GOAL := help

help:  ## show these verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(INSTALLED)  ## check a small sample web site on this machine and show what came of it
	@$(PY) demo/run.py

test: $(INSTALLED)  ## run all tests, with every server and program that they need; ARGS="-k robots" goes to pytest
	@$(PY) scripts/programs.py
	@PYTHONDONTWRITEBYTECODE= $(PY) scripts/servers.py $(PY) -m pytest -n $(WORKERS) $(ARGS)

lint: $(INSTALLED)  ## style, format and types, as CI wants them
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -m mypy --strict demo scripts

format: $(INSTALLED)  ## let ruff mend style and format
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

clean:  ## remove the environment, the servers, caches and what the demo wrote
	rm -rf $(VENV) .servers .mypy_cache .ruff_cache .pytest_cache .hypothesis build *.egg-info demo/out
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml scripts/environment
	@scripts/environment $(VENV)
	@touch $@
