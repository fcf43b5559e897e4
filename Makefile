# Two commands for a newcomer: `make reproduce` and `make test`. Both set up .venv by themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready

.PHONY: reproduce test demo check browser bench clean

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)

reproduce: $(READY)  ## the paper's complete study, every number beside the published one
	$(BIN)/c4b reproduce

check: $(READY)  ## formatting, lint, types, import directions
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check browser  ## every check and every test
	$(BIN)/pytest -n 2 --dist loadfile

browser:  ## Debian's Chromium, for the tests of the dashboard
	command -v chromium >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium fonts-dejavu-core >/dev/null; } \
	  || { echo "The dashboard's tests need Chromium: install Debian's package chromium as root." >&2; exit 1; }

demo: $(READY)  ## the service and its dashboard with a simulated shop; open the address it prints
	$(BIN)/c4b demo

bench: $(READY)  ## speed, as ratios measured side by side
	$(BIN)/python benchmarks/online.py
	$(BIN)/python benchmarks/study.py
	$(BIN)/python benchmarks/deployment.py
	$(BIN)/python benchmarks/service.py

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
