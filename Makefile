# Two commands do everything: `make demo` and `make test`.
# Both work on a bare machine that has python3 (3.11 or later) and make.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/installed

# The build of torch that `make torch` installs; others work too.
TORCH ?= torch==2.13.0
# What hangs on rounding most, and ways of rounding: kernels of OpenBLAS that every x86-64 with AVX2 runs
# (others ignore them), and threads.
SENSITIVE := $(addprefix tests/test_,joint.py sums.py selection.py subspace.py auto.py blocks.py documents.py)
QUICK := tests/house $(addprefix tests/test_,joint.py ranks.py significance.py passes.py cumulants.py operators.py \
	symmetric.py eigen.py metrics.py negentropy.py contrast.py)
WAYS := Nehalem-1 Sandybridge-2 Haswell-1
# Tests on all cores, so BLAS with one thread each: threads that are more than cores wait for one another,
# and took most of the time. Tests of threads ask for theirs, and a kernel is tested with two.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses auto --dist worksteal

.PHONY: demo test quick slow lint types unit kernels torch test-oldest bench docs wheel-test clean

demo: $(STAMP)-cli
	$(BIN)/contrica demo --out demo --overwrite

test: lint types unit

lint: $(STAMP)-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell

# The package itself, and what a user's type checker makes of it.
types: $(STAMP)-test
	$(BIN)/mypy
	$(BIN)/mypy --strict tests/typing

unit: $(STAMP)-test
	$(PYTEST) -m 'not timing and not slow'
	$(BIN)/python -m pytest -m timing tests

# Under a minute, for the inner loop: what is quick of the core.
quick: $(STAMP)-test
	$(PYTEST) -m 'not timing and not slow' -q -x $(QUICK)

# Statistics over many draws, and what takes long for other reasons; CI runs it too.
slow: $(STAMP)-test
	$(PYTEST) -m 'slow and not timing'

kernels: $(addprefix kernel-,$(WAYS))

# One process where BLAS has two threads.
kernel-%: $(STAMP)-test
	OPENBLAS_CORETYPE=$(word 1,$(subst -, ,$*)) OPENBLAS_NUM_THREADS=$(word 2,$(subst -, ,$*)) \
	$(BIN)/python -m pytest --numprocesses $(if $(filter %-1,$*),auto --dist worksteal,0) \
	-m 'not timing and not slow' -q $(SENSITIVE)

torch: $(STAMP)-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check '$(TORCH)'
	$(PYTEST) tests/test_devices.py tests/test_card.py tests/test_blocks.py tests/test_sums.py

# The suite with the oldest versions that pyproject.toml allows, for which it takes Python 3.11; their own
# warnings are not ours.
test-oldest:
	test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --disable-pip-version-check -c tests/oldest.txt --editable '.[test]'
	.venv-oldest/bin/python -m pytest --numprocesses auto --dist worksteal -m 'not timing' -o filterwarnings=default

# The site, with tutorials that run; a warning is an error. Real data are used where CONTRICA_DATA names their folder.
docs: $(STAMP)-docs
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

# What the README shows, from the wheel that the sdist gives, in an environment with the extras that it names.
wheel-test: $(STAMP)-test
	rm -rf dist .venv-wheel
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv .venv-wheel
	.venv-wheel/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls $(CURDIR)/dist/*.whl)[cli,disk]"
	.venv-wheel/bin/python -P tests/from_wheel.py

bench: $(STAMP)-test
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/memory.py --limits 200
	$(BIN)/python benchmarks/spm_recovery.py
	$(BIN)/python benchmarks/recovery_paper_solver.py
	$(BIN)/python benchmarks/proportionality.py
	$(BIN)/python benchmarks/seed_agreement.py
	$(BIN)/python benchmarks/rounding.py
	$(BIN)/python benchmarks/accuracy.py --quick

# An unfinished installation leaves no stamp, so the next call repeats it.
$(STAMP)-%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[$*]"
	touch $@

clean:
	rm -rf .venv .venv-oldest .venv-wheel dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis docs/_build docs/api docs/tutorials
