import numpy as np
import pytest
from numpy.testing import assert_allclose

from contrica import ContrastiveICA, DelicateDataWarning, IdentifiabilityWarning
from contrica.datasets import make_four_clusters, make_synthetic
from contrica.errors import DataError, ParameterError
from contrica.estimators import report_ranks
from contrica.moments.estimates import Cumulants
from contrica.moments.fourth import cumulants
from contrica.moments.operators import RankOneSum
from contrica.solvers.permutation_null import choose_dimension
from contrica.solvers.ranks import (
    algorithm_identifiable,
    check_ranks,
    choose_ranks,
    elbow,
    joint_identifiable,
    proportional_identifiable,
    scree,
    spm_identifiable,
    tensor_identifiable,
)
from tests.said import raises, warns


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ([5, -4, 3, 0.01, -0.01, 0.01, 0.0], 3),
        ([1.0], 1),
        ([0.0, 0.0], 0),
        ([], 0),
        ([2.0, 2.0, 2.0], 3),
        ([1e6, 10, 9, 8, 7, 0.01, 0.01, 0.01, 0.01, 0.01], 1),
    ],
)
def test_elbow_counts_what_stands_above_the_bend(values, count):
    assert elbow(np.array(values, dtype=float)) == count


def population(p, r, l, seed):  # noqa: E741 - the paper's ℓ
    rng = np.random.default_rng(seed)
    vectors = rng.standard_normal((p, r + l))
    vectors /= np.linalg.norm(vectors, axis=0)
    fore = Cumulants(np.zeros(p), np.eye(p), RankOneSum(np.ones(r + l), vectors), 10**5)
    back = Cumulants(np.zeros(p), np.eye(p), RankOneSum(np.ones(r), vectors[:, :r]), 10**5)
    return fore, back


def test_scree_lists_both_spectra_by_magnitude():
    fore, back = population(4, 3, 2, 0)
    values = scree(fore, back)
    assert values.foreground.size == values.background.size == 10
    assert np.sum(np.abs(values.foreground) > 1e-10) == 5
    assert np.sum(np.abs(values.background) > 1e-10) == 3
    assert scree(fore).background is None
    assert scree(fore, back, n_values=4).foreground.size == 4


def test_ranks_of_the_four_clusters_are_found():
    """The truth is r = 3, l = 2; the elbow takes a term too many in some draws, never one too few."""
    chosen = []
    for seed in range(20):
        data = make_four_clusters(1000, random_state=seed)
        chosen.append(choose_ranks(cumulants(data.foreground), cumulants(data.background)))
    assert chosen.count((3, 2)) >= 10
    assert min(r for r, _ in chosen) == 3
    assert min(n for _, n in chosen) == 2


def test_ranks_of_the_papers_design_are_near_the_truth():
    """A first choice: within two of r = 8 and within three of l = 7 for most draws."""
    near = 0
    for seed in range(6):
        data = make_synthetic(8, random_state=seed)
        r, l = choose_ranks(cumulants(data.foreground), cumulants(data.background))  # noqa: E741
        near += abs(r - 8) <= 2 and abs(l - 7) <= 3
    assert near >= 4


def test_given_ranks_are_kept_and_the_other_is_chosen():
    data = make_four_clusters(1000, random_state=0)
    fore, back = cumulants(data.foreground), cumulants(data.background)
    assert choose_ranks(fore, back, n_foreground=1).n_foreground == 1
    assert choose_ranks(fore, back, n_background=4).n_background == 4
    assert choose_ranks(fore, back, 6, 5) == (6, 5)


def test_without_a_background_there_is_no_background_rank():
    fore, _ = population(5, 3, 0, 0)
    assert choose_ranks(fore, None) == (0, 3)
    assert choose_ranks(fore, None, n_foreground=2) == (0, 2)


def test_nothing_is_found_in_the_background_itself():
    """Exact tensors; on samples the rule is lenient and errs on the side of candidates."""
    fore, back = population(5, 4, 0, 0)
    assert choose_ranks(back, back).n_foreground == 0
    assert choose_ranks(fore, back).n_foreground == 0


@pytest.mark.parametrize("p", [2, 3, 4])
def test_chosen_ranks_always_fit(p, rng):
    for seed in range(5):
        draw = np.random.default_rng(seed)
        fore, back = (cumulants(draw.laplace(size=(30, p))) for _ in range(2))
        r, l = choose_ranks(fore, back)  # noqa: E741
        assert 1 <= r <= max(p * (p - 1) // 2, 1)
        assert 0 <= l <= p * (p + 1) // 2 - r
        assert l < 2 or joint_identifiable(r, l, p)


# --- identifiability, tabulated by hand from the paper's statements ---


@pytest.mark.parametrize(("p", "bound"), [(2, 2), (3, 5), (5, 14), (6, 20), (7, 29), (10, 71)])
def test_lemma_on_unique_decompositions(p, bound):
    """C(p+3, 4)/p is 2.5, 5, 14, 21, 30, 71.5: lem:rankq, with its exceptions p = 3, 4, 5."""
    assert tensor_identifiable(bound, p)
    assert not tensor_identifiable(bound + 1, p)
    assert joint_identifiable(bound - 1, 1, p)
    assert not joint_identifiable(bound, 1, p)


def test_lemma_with_four_variables():
    verdicts = [bool(tensor_identifiable(q, 4)) for q in range(6, 11)]
    assert verdicts == [True, True, False, True, False]
    assert [bool(joint_identifiable(q, 2, 4)) for q in (5, 6, 7)] == [True, False, True]


@pytest.mark.parametrize("p", [2, 3, 5, 6, 12])
def test_algorithm_2_is_identifiable_up_to_all_symmetric_matrices(p):
    packed = p * (p + 1) // 2
    assert algorithm_identifiable(packed - 1, 1, p)
    assert not algorithm_identifiable(packed, 1, p)


def test_algorithm_2_with_four_variables():
    assert algorithm_identifiable(5, 4, 4)
    assert algorithm_identifiable(7, 1, 4)
    assert not algorithm_identifiable(8, 1, 4)
    assert not algorithm_identifiable(1, 8, 4)
    assert not algorithm_identifiable(5, 5, 4)


def test_proportional_identifiability_allows_more_than_two_free_sets_of_weights():
    # p = 6: C(9, 4) = 126; r·6 < 126 and ⌈r/l⌉ + 6l < 126
    assert proportional_identifiable(20, 20, 6)
    assert not joint_identifiable(20, 20, 6)
    assert not proportional_identifiable(21, 5, 6)
    assert not proportional_identifiable(20, 21, 6)


def test_proportional_fits_are_judged_by_their_own_statement():
    """p = 6, r = 15, l = 6: prop: new identifiability holds where prop:iden_cica_tensor does not."""
    check_ranks(15, 6, 6, proportional=True)  # warnings are errors here
    with pytest.warns(IdentifiabilityWarning, match="prop:iden_cica_tensor"):
        check_ranks(15, 6, 6)


def test_the_subspace_power_method_has_its_own_limit():
    assert spm_identifiable(10, 5)
    verdict = spm_identifiable(11, 5)
    assert not verdict
    assert "subspace power method" in verdict.statement
    assert verdict.bound == "r ≤ p(p−1)/2 = 10"
    assert verdict.value == "r = 11"


def test_verdicts_say_which_statement_gave_them():
    labels = {
        "lem:rankq": tensor_identifiable(3, 5),
        "prop:iden_cica_tensor": joint_identifiable(3, 2, 5),
        "prop: new identifiability": proportional_identifiable(3, 2, 5),
        "prop:iden_alg2": algorithm_identifiable(3, 2, 5),
    }
    for label, verdict in labels.items():
        assert label in verdict.statement
        assert verdict.identifiable


def test_the_first_rank_rule_is_invariant_to_rotation(rng):
    data = make_four_clusters(500, random_state=1)
    Q = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    here = choose_ranks(cumulants(data.foreground), cumulants(data.background))
    there = choose_ranks(cumulants(data.foreground @ Q), cumulants(data.background @ Q))
    assert here == there
    values = scree(cumulants(data.foreground)).foreground
    turned = scree(cumulants(data.foreground @ Q)).foreground
    assert_allclose(turned, values, rtol=1e-8, atol=1e-10)


# --- the report of all rules ---


def laplace(n, p, scales=(), seed=0):
    rows = np.random.default_rng(seed).laplace(size=(n, p))
    rows[:, : len(scales)] *= scales
    return rows


def four_clusters():
    data = make_four_clusters(300, random_state=0)
    return data.foreground, data.background


# By name: data, the solver that a default fit takes, and whether ranks by significance are tested.
PAIRS = {
    "patterns that a joint fit finds": (four_clusters, "joint", True),
    "many dimensions": (
        lambda: (laplace(400, 20, [5, 4]), laplace(400, 20, seed=1)),
        "subspace",
        False,
    ),
    "few rows": (lambda: (laplace(200, 8, [5, 4]), laplace(200, 8, seed=1)), "subspace", True),
    "nothing new": (lambda: (laplace(500, 4), laplace(500, 4, seed=1)), "subspace", True),
    "a constant background": (lambda: (laplace(50, 4), np.eye(4)[[0] * 50]), "subspace", False),
    "one direction": (
        lambda: tuple(laplace(50, 1, seed=seed) @ np.ones((1, 4)) for seed in (0, 1)),
        "subspace",
        False,
    ),
}


@pytest.mark.filterwarnings("ignore::contrica.errors.ContricaWarning")
@pytest.mark.parametrize("name", PAIRS)
def test_a_report_says_what_a_default_fit_does(name):
    make, solver, tested = PAIRS[name]
    X, Y = make()
    report = report_ranks(X, Y, rng=np.random.default_rng(0))
    model = ContrastiveICA(random_state=0).fit(X, background=Y)
    assert report.solver == model.solver_ == solver
    assert report.reason == model.reason_
    assert report.ranks == (model.n_background_, model.n_foreground_)
    assert (report.significant is not None) == tested
    if solver == "joint":
        assert report.rule == "significance"
        assert report.ranks == report.significant[:2] == model.rank_choice_[:2]
    else:
        assert report.rule == "contrast ratio"
        assert report.ranks == (0, report.contrast.chosen)
        assert_allclose(report.contrast.ratios, model.scree_.ratios)


def test_contrast_ratios_are_counted_whatever_solver_a_fit_takes():
    data = make_synthetic(4, n_samples=5000, random_state=0)
    X, Y = data.foreground, data.background
    report = report_ranks(X, Y, rng=np.random.default_rng(0))
    assert report.solver == "joint"
    found = report.contrast
    expected = choose_dimension(X, Y, rng=np.random.default_rng(0))
    assert found[1:4] == expected[1:4]
    assert_allclose(found[4:6], expected[4:6])
    assert_allclose(found.ratios, expected.ratios)
    assert_allclose(found.p_values, expected.p_values)
    for limit, count in ((0.025, found.n_clear), (0.05, found.chosen), (0.1, found.n_possible)):
        assert np.sum(found.p_values <= limit) == count
    assert np.sum(found.ratios > found.null_quantile) >= found.chosen


def test_several_backgrounds_are_pooled_for_contrast_ratios():
    X, Y = laplace(400, 20, [5, 4]), laplace(400, 20, seed=1)
    parts = [Y[:150], Y[150:] + 3.0]
    found = report_ranks(X, parts, rng=np.random.default_rng(0))
    model = ContrastiveICA(random_state=0).fit(X, background=parts)
    assert found.contrast[1:4] == model.scree_[1:4]
    assert_allclose(found.contrast[4:6], model.scree_[4:6])
    assert found.contrast.chosen == 2


@pytest.mark.parametrize(
    ("X", "options", "cls", "code", "parameter"),
    [
        (np.ones((50, 4)), {}, DataError, "constant", "X"),
        (1e40 * laplace(50, 4), {}, DataError, "range", "X"),
        (laplace(50, 4), {"n_pcs": 5}, ParameterError, "too-large", "n_pcs"),
        (laplace(50, 4), {"n_pcs": 1}, DataError, "one-direction", None),
        (laplace(50, 4), {"cumulant": "magic"}, ParameterError, "unknown-choice", "cumulant"),
        (laplace(50, 4), {"memory_limit": 99}, ParameterError, "too-small", "memory_limit"),
    ],
)
def test_a_report_refuses_what_a_fit_refuses(X, options, cls, code, parameter):
    Y = laplace(50, 4, seed=1)
    for call in (
        lambda: report_ranks(X, Y, rng=np.random.default_rng(0), **options),
        lambda: ContrastiveICA(**options).fit(X, background=Y),
    ):
        with raises(cls, code) as told:
            call()
        assert told.value.parameter == parameter


def test_a_report_warns_of_delicate_data_and_not_of_patterns():
    X, Y = laplace(300, 4), laplace(300, 4, seed=1)
    X[:, 2] = 7.0
    with warns(DelicateDataWarning, "constant-variables") as told:
        report = report_ranks(X, Y, rng=np.random.default_rng(0))
    assert len(told) == 1  # a fit would also say that nothing was found
    assert report.ranks.n_foreground == 0


def test_a_report_needs_a_background():
    with raises(DataError, "no-background", "background"):
        report_ranks(laplace(50, 4), None, rng=np.random.default_rng(0))
