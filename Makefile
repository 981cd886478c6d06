# Two commands do everything: `make demo` and `make test`.
# Both work on a bare machine that has python3 (3.11 or later) and make.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed

.PHONY: demo test lint types unit bench clean

demo: $(STAMP)-cli
	$(BIN)/contrica demo --out demo --overwrite

test: lint types unit

lint: $(STAMP)-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell

types: $(STAMP)-test
	$(BIN)/mypy

unit: $(STAMP)-test
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal -m 'not timing'
	$(BIN)/python -m pytest -m timing tests

bench: $(STAMP)-test
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/memory.py --limits 200
	$(BIN)/python benchmarks/spm_recovery.py
	$(BIN)/python benchmarks/recovery_paper_solver.py
	$(BIN)/python benchmarks/proportionality.py
	$(BIN)/python benchmarks/seed_agreement.py
	$(BIN)/python benchmarks/accuracy.py --quick

# An unfinished installation leaves no stamp, so the next call repeats it.
$(STAMP)-%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	touch $@

clean:
	rm -rf .venv demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
