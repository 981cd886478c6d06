"""What a fit may take, what it takes, and what it refuses."""

import resource
import subprocess
import sys
import textwrap
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose

from contrica import ContrastiveICA
from contrica.errors import MemoryBudgetError, ParameterError
from contrica.moments import working
from contrica.moments.fourth import cumulants, fits_packed
from contrica.moments.grouped import group_bytes
from contrica.moments.matrix_free import CumulantOperator
from contrica.moments.operators import PackedTensor
from contrica.moments.projection import survey
from contrica.rows.dataset import Dataset
from contrica.rows.memory import free_memory, memory_budget, readable_bytes
from contrica.solvers.weights import RowGroups
from tests.said import raises


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(10**9, 10**9), ("2GB", 2 * 10**9), (" 500 mb ", 5 * 10**8), ("1.5e", None), (1e9, 10**9)],
)
def test_limits_are_read(limit, expected):
    if expected is None:
        with raises(ParameterError, "unknown-size", "memory_limit"):
            memory_budget(limit)
    else:
        assert memory_budget(limit) == expected


@pytest.mark.parametrize("limit", [0, -1, "many", True, "1kB", float("nan"), "1.2.3 GB"])
def test_limits_that_are_none_are_refused(limit, rng):
    code = "too-small" if limit == "1kB" else "unknown-size"
    with raises(ParameterError, code, "memory_limit") as caught:
        ContrastiveICA(2, memory_limit=limit).fit(rng.random((9, 3)), background=rng.random((9, 3)))
    assert '"500MB" or "2GB", at least 50 MB' in str(caught.value)


def test_the_default_is_a_quarter_of_what_is_free():
    assert 10**8 < free_memory() < 10**14
    assert 0.2 * free_memory() < memory_budget() < 0.3 * free_memory()
    assert readable_bytes(1234) == "1.23 kB"


def test_cumulants_are_packed_while_they_fit(rng):
    X = rng.laplace(size=(300, 60))
    assert isinstance(cumulants(X, memory_limit=10**10).fourth, PackedTensor)
    assert isinstance(cumulants(X, memory_limit=10**8).fourth, CumulantOperator)
    assert fits_packed(40, 2 * 10**8)
    assert not fits_packed(101, 10**12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::contrica.PatternWarning")
@pytest.mark.parametrize("solver", ["paper", "subspace"])
def test_the_limit_does_not_change_the_patterns(solver, rng):
    X, Y = rng.laplace(size=(2, 3000, 64)) * np.linspace(1, 3, 64)
    X[:, :9] += 6 * rng.choice([-1, 1], (3000, 1)) * rng.random(9)
    options = {"n_pcs": None, "solver": solver, "n_foreground": 2, "random_state": 0}
    options |= {"n_background": 3} if solver == "paper" else {}
    packed, free = (
        ContrastiveICA(1, memory_limit=limit, **options).fit(X, background=Y)
        for limit in ("20GB", "100MB")
    )
    assert_allclose(packed.components_, free.components_, atol=1e-6)
    assert_allclose(packed.residual_, free.residual_, rtol=1e-6)


def test_what_cannot_fit_is_refused_in_time(rng):
    X, Y = rng.laplace(size=(2, 1300, 1200))
    with raises(MemoryBudgetError, "memory", "memory_limit") as caught:
        ContrastiveICA(2, basis=np.eye(1200), memory_limit="60MB").fit(X, background=Y)
    said = "1200 dimensions would take 184 MB, but memory_limit allows 60 MB. Lower n_pcs"
    assert said in str(caught.value)
    X, Y = rng.laplace(size=(2, 40_000, 20))
    with raises(MemoryBudgetError, "memory", "memory_limit") as caught:
        ContrastiveICA(2, cumulant="robust", memory_limit="60MB").fit(X, background=Y)
    assert "all 80000 rows" in str(caught.value)
    assert 'cumulant="plugin"' in str(caught.value)


def test_what_writes_tensors_out_is_refused_in_time(rng):
    X, Y = rng.laplace(size=(2, 1000, 110))
    options = {"n_pcs": None, "memory_limit": "100MB", "n_background": 2, "n_foreground": 2}
    with raises(MemoryBudgetError, "memory", "memory_limit") as caught:
        ContrastiveICA(1, solver="paper", deflation="sequential", **options).fit(X, background=Y)
    assert 'deflation="thin"' in str(caught.value)
    operator = cumulants(X, memory_limit=100 * 10**6).fourth
    with raises(MemoryBudgetError, "memory", "memory_limit"):
        operator.flatten()


def test_norms_are_exact_or_said_not_to_be(rng, monkeypatch):
    from contrica.moments import matrix_free as module
    from contrica.moments.operators import RankOneSum, relative_norm

    X = rng.laplace(size=(5000, 4)) ** 3
    exact = cumulants(X, storage="packed").fourth.squared_norm()
    free = cumulants(X, storage="matrix-free").fourth
    assert free.norm_is_exact
    assert_allclose(free.squared_norm(), exact, rtol=1e-9)
    part = RankOneSum(np.ones(1), np.eye(4)[:, :1])
    assert 0 < relative_norm(free - part, free) < 2
    monkeypatch.setattr(module, "PAIR_PRODUCTS", 10**6)
    rough = cumulants(X, storage="matrix-free").fourth
    assert not rough.norm_is_exact
    assert 0.1 < rough.squared_norm() / exact < 10
    assert np.isnan(relative_norm(rough - part, rough))


SCRIPT = """
    import gc, resource, sys, warnings
    import numpy as np
    from contrica import ContrastiveICA
    warnings.simplefilter("ignore")
    n, p, limit, n_pcs = (int(text) for text in sys.argv[1:])
    rng = np.random.default_rng(0)
    X, Y = (rng.standard_normal((n, p)) for _ in range(2))
    X[:, :3] += 2 * rng.choice([-1, 1], (n, 1))
    small = ContrastiveICA(1, random_state=0).fit(X[:500, :4], background=Y[:500, :4])
    gc.collect()
    def now():
        with open("/proc/self/status") as file:
            text = dict(line.split(":", 1) for line in file)
        return int(text["VmRSS"].split()[0]) * 1024
    before = now()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    ContrastiveICA(2, n_pcs=n_pcs or None, memory_limit=limit, random_state=0).fit(X, background=Y)
    with open("/proc/self/status") as file:
        peak = int(next(line for line in file if line.startswith("VmHWM")).split()[1]) * 1024
    print(peak - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize(
    ("n", "p", "n_pcs", "limit"),
    [
        (60_000, 60, 0, 200),
        (20_000, 400, 30, 200),
        (150_000, 20, 0, 200),
        (5000, 600, 0, 60),
        (20_000, 600, 0, 200),
    ],
)
def test_the_limit_is_obeyed(n, p, n_pcs, limit):
    limit *= 10**6
    script = textwrap.dedent(SCRIPT)
    command = [sys.executable, "-c", script, *map(str, (n, p, limit, n_pcs))]
    done = subprocess.run(command, capture_output=True, text=True)
    if "clear_refs" in done.stderr:
        pytest.skip("the peak cannot be reset here")
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 1.2 * limit
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 0


def test_dimensions_that_are_asked_for_are_refused_before_rows_are_read(rng, monkeypatch):
    monkeypatch.setattr(Dataset, "read", lambda self: pytest.fail("rows were read"))
    X, Y = rng.standard_normal((2, 900, 850))
    with raises(MemoryBudgetError, "memory", "memory_limit") as caught:
        ContrastiveICA(1, n_pcs=800, memory_limit="50MB").fit(X, background=Y)
    assert "working in 800 dimensions" in str(caught.value)


@pytest.mark.parametrize("iterated", [False, True], ids=["rows", "iterators"])
@pytest.mark.parametrize("sampled", [False, True])
def test_free_memory_is_measured_once_in_a_fit(iterated, sampled, rng, monkeypatch):
    measured = []

    def free():
        measured.append(8 * 10**9 // (1 + len(measured)))  # others take it meanwhile
        return measured[-1]

    monkeypatch.setattr("contrica.rows.memory.free_memory", free)
    if sampled:
        monkeypatch.setattr(working, "MANY_ROWS", 2000)
        monkeypatch.setattr(working, "MAX_ENTRIES", 0)
    X, Y = (iter([part]) if iterated else part for part in rng.laplace(size=(2, 3000, 12)))
    model = ContrastiveICA(2, n_pcs=5, n_foreground=3, solver="subspace", random_state=0)
    model.fit(X, background=Y)
    assert len(measured) == 1
    assert not hasattr(model, "_workplace")


@pytest.fixture
def peak():
    """What a function returns, and the bytes that it had allocated at most."""

    def measure(function):
        tracemalloc.start()
        try:
            return function(), tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    return measure


@pytest.mark.filterwarnings("ignore::contrica.errors.ConvergenceWarning")
def test_moments_of_groups_are_taken_where_the_limit_allows_them(peak, rng):
    X, Y = rng.laplace(size=(2, 50_000, 20))
    X[:, :2] += 2 * rng.exponential(size=(50_000, 1))
    ranks = {"n_background": 2, "n_foreground": 1}
    model = ContrastiveICA(1, solver="joint", max_iter=5, random_state=0, memory_limit="50MB")
    _, n_bytes = peak(lambda: model.set_params(**ranks).fit(X, background=Y))
    assert model.n_rows_sampled_[0] < 50_000
    assert n_bytes < 50 * 10**6 < 4 * group_bytes(20, 40)
    data = [Dataset(part, "X").read() for part in (X, Y)]
    for limit, n_groups in (("50MB", None), ("69MB", 40)):
        workplace = working.Workplace(None, None, "plugin", limit, None, "float64")
        taken = workplace.take(data, None, storage="auto", n_groups=[40, 40])
        assert [part and len(part) for part in taken.grouped] == [n_groups, n_groups]


def test_moments_of_groups_are_in_memory_once(peak, rng):
    X = rng.laplace(size=(50_000, 20))

    def groups():
        surveyed = survey(X, "plugin", 2000, n_groups=40)
        return RowGroups.of(surveyed.grouped, np.eye(20))

    found, n_bytes = peak(groups)
    assert found.n_groups == 40
    assert n_bytes < 2.5 * group_bytes(20, 40)  # packed, and as the fit asks for them


def test_a_limit_is_too_little_or_not_known():
    with raises(ParameterError, "too-small", "memory_limit"):
        memory_budget("1MB")
    with raises(ParameterError, "unknown-size", "memory_limit"):
        memory_budget("lots")
