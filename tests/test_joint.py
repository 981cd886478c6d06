import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from contrica import ContrastiveICA
from contrica.datasets import make_synthetic
from contrica.errors import ConvergenceWarning, DataError, ParameterError, PatternWarning
from contrica.metrics import pattern_similarity
from contrica.moments.estimates import Cumulants, pooled
from contrica.moments.fourth import cumulants
from contrica.moments.operators import Congruence, PackedTensor, RankOneSum, as_operator
from contrica.moments.third import ThirdTensor
from contrica.solvers import joint
from contrica.solvers.algorithm2 import cica
from contrica.solvers.joint import (
    JointProblem,
    PreferredStart,
    Term,
    Terms,
    algorithm_2_starts,
    as_terms,
    contrast_mask,
    descend,
    fit_weights,
    joint_contrast,
    joint_fit,
    joint_search,
    nearest_pair,
    objective_and_gradient,
    polish,
    reduced_hessian,
    removal_losses,
    third_starts,
    without_twins,
)
from contrica.solvers.joint.search import min_gain
from contrica.solvers.joint.twins import warn_cancelling
from tests import naive
from tests.said import raises, warns


def unit(matrix):
    return matrix / np.linalg.norm(matrix, axis=0)


def draw(p, r, l, seed):  # noqa: E741 - the paper's ℓ
    """Vectors, weights of foreground and background, and their two tensors."""
    rng = np.random.default_rng([p, r, l, seed])
    vectors = unit(rng.standard_normal((p, r + l)))
    mask = contrast_mask(r, l)
    weights = rng.uniform(1, 3, mask.shape) * rng.choice([-1, 1], mask.shape) * mask
    return vectors, weights, [RankOneSum(W, vectors) for W in weights], mask


def draw_terms(p, r, l, seed, kind):  # noqa: E741
    """Terms of order 4, or of 4 and 3 with denominators of their own; written out, or as they are.

    "symmetric": every other vector has no third cumulant, and may have none.
    """
    vectors, weights, tensors, mask = draw(p, r, l, seed)
    if kind == "fourth":
        return vectors, weights, as_terms(tensors), mask
    rng = np.random.default_rng([p, r, l, seed, 3])
    weights = np.vstack([weights, weights * rng.uniform(-1, 1, weights.shape)])
    if kind == "symmetric":
        mask = np.vstack([mask, mask])
        mask[2:, ::2] = False
        weights *= mask
    thirds = [ThirdTensor.of_terms(W, vectors) for W in weights[2:]]
    if kind == "packed":
        tensors = [PackedTensor(tensor.flatten(), p) for tensor in tensors]
    sizes = rng.uniform(1, 5, 4)
    whole = enumerate(zip([*tensors, *thirds], sizes, strict=True))
    return vectors, weights, Terms(Term(T, size, t % 2) for t, (T, size) in whole), mask


KINDS = ["fourth", "both", "packed", "symmetric"]


def naive_objective(terms, weights, truth, vectors, mask):
    """Dense tensors, weights by least squares over their entries and the ridge's."""
    total = 0.0
    for t, (term, own) in enumerate(zip(terms, weights, strict=True)):
        allowed = mask[t if len(mask) == 4 else term.dataset]
        made = naive.rank_one_sum if term.tensor.order == 4 else naive.third_rank_one_sum
        parts = [made([1.0], u[:, None]).ravel() for u in vectors.T[allowed]]
        dense = made(own, truth).ravel()
        design = np.vstack([np.array(parts).T, joint.objective.RIDGE**0.5 * np.eye(len(parts))])
        padded = np.concatenate([dense, np.zeros(len(parts))])
        fitted = np.linalg.lstsq(design, padded, rcond=None)[0]
        rest = padded - design @ fitted
        total += rest @ rest / term.denominator
    return total


@pytest.mark.parametrize("kind", KINDS)
def test_the_objective_is_the_dense_one_at_the_best_weights(kind, rng):
    truth, weights, terms, mask = draw_terms(3, 2, 2, 0, kind)
    vectors = unit(rng.standard_normal((3, 4)))
    value = objective_and_gradient(terms, vectors, mask)[0]
    assert_allclose(value, naive_objective(terms, weights, truth, vectors, mask), rtol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_is_that_of_finite_differences(kind, rng):
    _, _, terms, mask = draw_terms(4, 3, 2, 1, kind)
    vectors = unit(rng.standard_normal((4, 5)))
    gradient = objective_and_gradient(terms, vectors, mask)[1]
    for _ in range(5):
        # along the sphere, where the vectors stay
        step = rng.standard_normal(vectors.shape)
        step -= vectors * np.sum(vectors * step, axis=0)
        ahead, behind = (
            objective_and_gradient(terms, unit(vectors + t * step), mask)[0] for t in (1e-5, -1e-5)
        )
        assert_allclose(np.sum(gradient * step), (ahead - behind) / 2e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_second_derivatives_are_those_of_finite_differences(kind, rng):
    _, _, terms, mask = draw_terms(4, 3, 2, 1, kind)
    p, k = 4, 5
    vectors = unit(rng.standard_normal((p, k)))

    def slope(flat):
        loose = flat.reshape(k, p).T
        lengths = np.linalg.norm(loose, axis=0)
        gradient = objective_and_gradient(terms, loose / lengths, mask)[1]
        across = gradient - loose * np.sum(loose * gradient, axis=0) / lengths**2
        return (across / lengths).T.ravel()

    weights = objective_and_gradient(terms, vectors, mask)[2]
    found = reduced_hessian(terms, vectors, weights, mask)
    at = vectors.T.ravel()
    expected = np.array([(slope(at + d) - slope(at - d)) / 2e-5 for d in 1e-5 * np.eye(k * p)])
    along = np.zeros((k * p, k * p))
    for j in range(k):
        along[j * p : (j + 1) * p, j * p : (j + 1) * p] = np.outer(vectors[:, j], vectors[:, j])
    across = np.eye(k * p) - along
    assert_allclose(found, across @ expected @ across + along, atol=1e-7)


def test_terms_that_are_written_out_are_contracted_together(rng):
    (_, _, one, _), (_, _, two, _) = (draw_terms(4, 3, 2, 1, kind) for kind in ("both", "packed"))
    vectors, factors = unit(rng.standard_normal((4, 5))), rng.standard_normal((4, 5))
    assert_allclose(two.images(vectors), one.images(vectors), atol=1e-12)
    assert_allclose(two.slices(vectors, factors), one.slices(vectors, factors), atol=1e-12)


def test_one_fit_explains_both_orders():
    vectors, weights, terms, mask = draw_terms(5, 4, 3, 2, "packed")
    start = vectors + 0.05 * np.random.default_rng(0).standard_normal(vectors.shape)
    fit = joint_fit(terms, start, mask)
    assert_allclose(np.abs(np.sum(fit.vectors * vectors, axis=0)), 1, atol=1e-6)
    signs = np.sign(np.sum(fit.vectors * vectors, axis=0))
    assert_allclose(fit.weights[:2], weights[:2], atol=1e-3)
    assert_allclose(fit.weights[2:] * signs, weights[2:], atol=1e-3)  # odd orders know a sign


def test_polish_reaches_the_minimum_where_a_descent_is_cut_short(rng):
    vectors, _, tensors, mask = draw(5, 4, 3, 2)
    noisy = [tensor + RankOneSum([0.05], unit(rng.standard_normal((5, 1)))) for tensor in tensors]
    noisy = as_terms(noisy)
    rough = descend(
        noisy, unit(vectors + 0.02 * rng.standard_normal(vectors.shape)), mask, 10, 1e-12
    )
    assert rough.gradient_norm > 1e-6
    fit = polish(noisy, rough, mask)
    assert fit.gradient_norm < 1e-11
    assert fit.objective < rough.objective
    assert 2 <= fit.n_iter - rough.n_iter <= 20
    slow = descend(noisy, rough.vectors, mask, 5000, 1e-9)
    assert_allclose(np.abs(np.sum(fit.vectors * slow.vectors, axis=0)), 1, atol=1e-10)


def test_a_fit_follows_rounding_by_rounding_only(rng):
    A, B = rng.standard_normal((6, 6)), rng.standard_normal((6, 2))
    X = rng.laplace(size=(3000, 6)) @ A.T + 2 * rng.laplace(size=(3000, 2)) @ B.T
    Y = rng.laplace(size=(3000, 6)) @ A.T
    found = [
        ContrastiveICA(2, solver="joint", n_background=6, n_foreground=2, random_state=0)
        .fit(X * scale, background=Y * scale)
        .components_
        for scale in (1.0, 2.0**-0.5, 1 / 3)
    ]
    assert_allclose(found[1], found[0], atol=1e-10)
    assert_allclose(found[2], found[0], atol=1e-10)


def test_weights_are_exact_where_the_vectors_are():
    vectors, weights, tensors, mask = draw(5, 4, 3, 2)
    # the ridge takes a millionth off, more where vectors are near one another
    assert_allclose(fit_weights(as_terms(tensors), vectors, mask), weights, rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_losses_are_what_removal_costs(kind, rng):
    """Against fitting again without the weight."""
    _, _, terms, mask = draw_terms(4, 2, 2, 3, kind)
    vectors = unit(rng.standard_normal((4, 4)))
    whole, _, weights = objective_and_gradient(terms, vectors, mask)
    losses = removal_losses(terms, vectors, weights, mask)
    roles = mask[:2]
    for dataset, position in zip(*np.nonzero(roles), strict=True):
        fewer = mask.copy()
        fewer[dataset::2, position] = False
        without = objective_and_gradient(terms, vectors, fewer)[0]
        assert_allclose(losses[dataset, position], without - whole, rtol=1e-6, atol=1e-9)
    assert np.all(losses[~roles] == 0)


@pytest.mark.parametrize(("p", "r", "l"), [(4, 4, 3), (6, 5, 4), (8, 8, 7)])
def test_a_fit_near_the_truth_finds_it(p, r, l, rng):  # noqa: E741
    vectors, weights, tensors, mask = draw(p, r, l, 0)
    start = vectors + 0.1 * rng.standard_normal(vectors.shape) / np.sqrt(p)
    fit = joint_fit(tensors, start, mask, max_iter=2000, tol=1e-9)
    assert fit.objective < 1e-5  # the ridge
    assert_allclose(np.abs(np.sum(fit.vectors * vectors, axis=0)), 1, atol=1e-6)
    assert_allclose(fit.weights, weights, atol=1e-3)
    assert np.all(fit.weights[~mask] == 0)


def test_vectors_in_the_wrong_role_are_put_right():
    """Background and foreground vectors exchanged: a plain descent stays, the search does not."""
    vectors, _, tensors, mask = draw(6, 3, 3, 1)
    wrong = vectors[:, ::-1]
    assert joint_fit(tensors, wrong, mask).objective > 1e-3
    found = joint_search(tensors, [wrong], mask)
    assert found.objective < 1e-5  # the ridge
    assert pattern_similarity(found.vectors[:, 3:], vectors[:, 3:]) > 1 - 1e-5
    assert found.weights[1, 3:].tolist() == [0, 0, 0]


def test_a_vector_found_twice_is_swapped_for_the_missing_one():
    vectors, _, tensors, mask = draw(6, 3, 3, 2)
    twice = vectors.copy()
    twice[:, 5] = unit(vectors[:, 4:5] + 0.01)[:, 0]
    found = joint_search(tensors, [twice], mask)
    assert found.objective < 1e-5  # the ridge


def test_swaps_leave_minima_that_new_roles_do_not(monkeypatch):
    _, _, tensors, mask = draw(6, 3, 3, 0)
    start = np.random.default_rng(0).standard_normal((6, 6))
    assert joint_search(tensors, [start], mask).objective < 1e-5  # the ridge
    monkeypatch.setattr(joint.search, "ROUNDS", 0)
    assert joint_search(tensors, [start], mask).objective > 1e-3


def test_several_backgrounds_are_rows_of_the_mask(rng):
    vectors = unit(rng.standard_normal((5, 6)))
    mask = contrast_mask(4, 2, n_backgrounds=2)
    assert mask.shape == (3, 6)
    weights = rng.uniform(1, 2, mask.shape) * mask
    tensors = [RankOneSum(W, vectors) for W in weights]
    fit = joint_fit(tensors, vectors + 0.05 * rng.standard_normal(vectors.shape), mask, tol=1e-9)
    assert_allclose(fit.weights, weights, atol=1e-3)


def test_one_dataset_with_all_weights_is_ica(rng):
    vectors = unit(rng.standard_normal((4, 6)))
    T = as_operator(naive.rank_one_sum([3.0, -2.0, 1.0, 2.0, 1.5, -1.0], vectors))
    start = vectors + 0.05 * rng.standard_normal(vectors.shape)
    fit = joint_fit([T], start, np.ones((1, 6), dtype=bool), max_iter=3000, tol=1e-10)
    assert_allclose(np.abs(np.sum(fit.vectors * vectors, axis=0)), 1, atol=1e-5)


@pytest.mark.parametrize(("constant", "value"), [("NEWTON_SIZE", 0), ("NEWTON_STEPS", 1)])
def test_non_convergence_is_told_with_both_tolerances(constant, value, rng, monkeypatch):
    """Of fits that are too large for Newton's method, and where its steps do not lead to the end."""
    monkeypatch.setattr(joint.descent, constant, value)
    _, _, tensors, mask = draw(5, 4, 3, 0)
    with warns(ConvergenceWarning, "not-converged") as told:
        joint_fit(tensors, rng.standard_normal((5, 7)), mask, max_iter=2)
    assert "max_iter=2 steps" in str(told[0].message)
    assert "tol=1e-06 was asked" in str(told[0].message)


def test_a_zero_tensor_is_refused():
    tensors = [RankOneSum(np.zeros(1), np.eye(3)[:, :1])]
    with raises(DataError, "zero-cumulant"):
        joint_fit(tensors, np.eye(3)[:, :1], np.ones((1, 1), dtype=bool))


@pytest.mark.slow
@pytest.mark.parametrize("orthonormal", [True, False])
def test_joint_patterns_are_far_nearer_to_the_truth_than_algorithm_2(orthonormal):
    """The paper's design; ten draws, medians."""
    ours, paper = [], []
    for seed in range(10):
        rng = np.random.default_rng([seed, 5])
        data = make_synthetic(6, orthonormal=orthonormal, random_state=rng)
        fore, back = cumulants(data.foreground), cumulants(data.background)
        found = joint_contrast(fore, back, 6, 5, rng=np.random.default_rng(0))
        ours.append(pattern_similarity(found.foreground.vectors, data.B))
        other = cica(fore, back, 6, 5, rng=np.random.default_rng(0), deflation="sequential")
        paper.append(pattern_similarity(other.foreground.vectors, data.B))
        assert found.background.vectors.shape == (6, 6)
        assert np.all(np.diff(np.abs(found.background.weights)) <= 0)
    assert np.median(ours) > 0.998
    assert np.sum(np.array(ours) > paper) >= 9


def test_the_units_of_the_variables_do_not_matter(rng):
    data = make_synthetic(5, n_samples=20_000, random_state=3)
    M = rng.standard_normal((5, 5))
    found = []
    for change in (np.eye(5), M):
        fore, back = (cumulants(rows @ change.T) for rows in (data.foreground, data.background))
        split = joint_contrast(fore, back, 5, 4, rng=np.random.default_rng(0))
        found.append(unit(np.linalg.solve(change, split.foreground.vectors)))
    assert pattern_similarity(found[0], found[1]) > 1 - 1e-5


def test_directions_without_variance_are_left_out(rng):
    vectors, _, tensors, _ = draw(4, 3, 2, 5)
    lifted = [RankOneSum(T.weights, np.vstack([T.vectors, np.zeros((1, 5))])) for T in tensors]
    covariance = np.diag([1.0, 1.0, 1.0, 1.0, 0.0])
    fore, back = (Cumulants(np.zeros(5), covariance, T, 1000) for T in lifted)
    found = joint_contrast(fore, back, 3, 2, rng=rng)
    assert pattern_similarity(found.foreground.vectors[:4], vectors[:, 3:]) > 1 - 1e-5
    assert_allclose(found.foreground.vectors[4], 0, atol=1e-12)


def test_a_spent_budget_ends_the_tries(monkeypatch):
    _, _, tensors, mask = draw(5, 4, 3, 6)
    calls = []
    whole = joint.descend
    monkeypatch.setattr(joint.descent, "descend", lambda *args: calls.append(1) or whole(*args))
    monkeypatch.setattr(joint.search, "BUDGET", 0.0)
    starts = (np.random.default_rng(seed).standard_normal((5, 7)) for seed in range(3))
    joint_search(tensors, starts, mask)
    assert len(calls) == 2  # one try, and the answer
    calls.clear()
    home = np.random.default_rng(9).standard_normal((5, 7))
    found = joint_search(tensors, iter([]), mask, preferred=PreferredStart(home, None))
    assert len(calls) == 2  # the preferred start, and the answer
    assert_allclose(
        found.objective, whole(as_terms(tensors), home, mask, 100, 1e-6).objective, rtol=0.1
    )


def test_a_minimum_that_is_known_is_not_searched_from_again(monkeypatch):
    """Two starts lead to one: its roles are tried anew once, and the answer is the same."""
    vectors, _, tensors, mask = draw(6, 3, 3, 1)
    starts = [vectors + 0.01, vectors + 0.02]
    calls = []
    whole = joint.search.converge
    monkeypatch.setattr(joint.search, "ROUNDS", 0)
    monkeypatch.setattr(joint.search, "converge", lambda *args: calls.append(1) or whole(*args))
    known = joint_search(tensors, starts, mask)
    assert len(calls) == 4  # both starts, all weights free, and new roles
    calls.clear()
    monkeypatch.setattr(joint.search, "SAME_MINIMUM", -1.0)
    assert_allclose(joint_search(tensors, starts, mask).vectors, known.vectors, atol=1e-9)
    assert len(calls) == 6


def test_no_start_is_worked_out_that_cannot_be_afforded(monkeypatch):
    _, _, tensors, mask = draw(5, 4, 3, 6)
    monkeypatch.setattr(joint.search, "BUDGET", 1.0)
    drawn = iter([np.random.default_rng(0).standard_normal((5, 7))] * 3)
    home = np.random.default_rng(9).standard_normal((5, 7))
    joint_search(tensors, drawn, mask, preferred=PreferredStart(home, None))
    assert len(list(drawn)) == 3
    joint_search(tensors, drawn := iter([home] * 3), mask)
    assert len(list(drawn)) == 2  # one is needed


def noise(p, seed):
    """A symmetric tensor of no structure: many minima, none much lower than another."""
    rng = np.random.default_rng(seed)
    return as_operator(naive.symmetrise(rng.standard_normal((p,) * 4)))


def test_a_search_is_believed_sooner_where_third_cumulants_are_fitted(rng):
    tensor, third = noise(3, 0), ThirdTensor.of_terms(np.ones(1), np.eye(3)[:, :1])
    fourths = [Term(tensor, 1.0, d) for d in range(2)]
    assert min_gain(Terms(fourths)) == 2.0
    assert min_gain(Terms([*fourths, *(Term(third, 1.0, d) for d in range(2))])) == 0.5


@pytest.mark.parametrize(("score", "left"), [(-3.0, False), (1.9, False), (2.1, True)])
def test_the_preferred_start_is_left_for_a_minimum_that_is_significantly_lower(score, left):
    tensors, mask = [noise(4, [1, d]) for d in range(2)], contrast_mask(2, 2)
    rng = np.random.default_rng(1)
    starts = [rng.standard_normal((4, 4)) for _ in range(3)]
    start = rng.standard_normal((4, 4))
    home, best = joint_fit(tensors, start, mask), joint_search(tensors, starts, mask)
    assert best.objective < 0.99 * home.objective
    asked = []

    def gain_t_value(first, second):
        asked.append((first.objective, second.objective))
        return score

    found = joint_search(tensors, starts, mask, preferred=PreferredStart(start, gain_t_value))
    expected = best if left else home
    assert_allclose(asked, [(home.objective, best.objective)], rtol=1e-3)
    assert_allclose(found.objective, expected.objective, rtol=1e-4)
    assert pattern_similarity(found.vectors, expected.vectors) > 0.999


def test_a_descent_says_nothing_of_convergence_and_leads_to_the_fit(rng):
    vectors, _, tensors, mask = draw(5, 4, 3, 0)
    start = vectors + 0.1 * rng.standard_normal((5, 7))
    terms = as_terms(tensors)
    short = descend(terms, start, mask, 2, 1e-6)
    assert short.gradient_norm > 1e-6
    assert 2 <= short.n_evaluations <= 6
    longer = descend(terms, start, mask, 500, 1e-9)
    assert longer.gradient_norm < 1e-5 < short.gradient_norm
    assert longer.objective < short.objective
    # to the same minimum as with Newton's method
    assert_allclose(joint_fit(tensors, start, mask).objective, longer.objective, atol=1e-9)


def test_vectors_do_not_run_together_with_weights_that_cancel():
    """Two vectors for one derivative of a rank-one term: no minimum without a ridge."""
    u, v = np.eye(3)[:2]
    term = sum(naive.rank_one_sum([s], unit((u + s * 1e-3 * v)[:, None])) for s in (1.0, -1.0))
    tensor = as_operator(naive.rank_one_sum([1.0], np.eye(3)[:, 2:]) + term / np.linalg.norm(term))
    start = np.random.default_rng(0).standard_normal((3, 3))
    fit = joint_fit([tensor], start, np.ones((1, 3), dtype=bool))
    assert fit.gradient_norm < 1e-10
    assert np.abs(fit.weights).max() < 50


def test_the_estimator_takes_the_solver_by_name():
    data = make_synthetic(5, random_state=0)
    options = {"n_background": 5, "n_foreground": 4, "random_state": 0}
    model = ContrastiveICA(None, solver="joint", **options)
    model.fit(data.foreground, background=data.background)
    assert pattern_similarity(model.components_.T, data.B) > 0.998
    again = ContrastiveICA(None, solver="joint", **options)
    again.fit(data.foreground, background=data.background)
    assert_allclose(again.components_, model.components_, rtol=0, atol=0)
    with raises(ParameterError, "unknown-choice", "solver"):
        ContrastiveICA(solver="magic").fit(data.foreground, background=data.background)


def test_too_many_patterns_for_the_variance_there_is_are_refused(rng):
    X = rng.laplace(size=(500, 2)) @ rng.standard_normal((2, 6))
    fore, back = cumulants(X[:250]), cumulants(X[250:])
    with raises(ParameterError, "rank-too-large") as told:
        joint_contrast(fore, back, 3, 2, rng=rng)
    assert "vary in 2 of 6 directions only, which leaves room for 3" in str(told.value)


def test_max_iter_reaches_the_fit(monkeypatch):
    seen = []
    whole = joint.joint_fit
    monkeypatch.setattr(
        joint.search, "joint_fit", lambda *a, **k: seen.append(k["max_iter"]) or whole(*a, **k)
    )
    data = make_synthetic(4, n_samples=3000, random_state=0)
    options = {"n_background": 4, "n_foreground": 3, "random_state": 0}
    for steps in (None, 200, 700):
        model = ContrastiveICA(2, solver="joint", max_iter=steps, **options)
        model.fit(data.foreground, background=data.background)
    assert seen == [300, 200, 700]


def test_norms_of_tensors_seen_through_axes_are_computed_once(monkeypatch, rng):
    T = Congruence(as_operator(naive.rank_one_sum([1.0], rng.standard_normal((3, 1)))), np.eye(3))
    first = T.squared_norm()
    monkeypatch.setattr(type(T), "flatten", lambda self: pytest.fail("computed again"))
    assert T.squared_norm() == first


# --- the problem, and several backgrounds ---


def test_masks_of_several_foregrounds():
    expected = [[1, 1, 1], [1, 1, 1], [1, 0, 0], [1, 0, 0], [1, 0, 0]]
    found = contrast_mask(1, 2, n_backgrounds=3, n_foregrounds=2)
    assert found.astype(int).tolist() == expected


def test_a_problem_is_whitened_by_the_mean_of_foreground_and_backgrounds(rng):
    rows = [rng.laplace(size=(60, 3)) @ rng.standard_normal((3, 3)) + i for i in range(3)]
    fore, *backs = map(cumulants, rows)
    problem = JointProblem.of(fore, *backs)
    mean = naive.covariance(rows[0]) / 2 + sum(map(naive.covariance, rows[1:])) / 4
    assert_allclose(problem.whiten.T @ mean @ problem.whiten, np.eye(3), atol=1e-10)
    assert_allclose(problem.dewhiten @ problem.whiten.T, np.eye(3), atol=1e-10)
    dense = [naive.fourth_cumulant(part @ problem.whiten) for part in rows]
    for tensor, expected in zip(problem.tensors, dense, strict=True):
        assert_allclose(tensor.flatten(), as_operator(expected).flatten(), atol=1e-9)
    # of several backgrounds none counts more for being larger
    whole = sum(part / np.linalg.norm(part) for part in dense[1:])
    assert_allclose(problem.background.flatten(), as_operator(whole).flatten(), atol=1e-9)
    one = JointProblem.of(fore, backs[0])
    assert one.background is one.tensors[1]


def test_a_background_in_a_list_and_a_problem_at_hand_change_nothing():
    data = make_synthetic(4, n_samples=5000, random_state=0)
    fore, back = cumulants(data.foreground), cumulants(data.background)
    plain, *others = (
        joint_contrast(fore, part, 4, 3, rng=np.random.default_rng(0), **more)
        for part, more in (
            (back, {}),
            ([back], {}),
            (back, {"problem": JointProblem.of(fore, back)}),
        )
    )
    for other in others:
        assert np.array_equal(other.foreground.vectors, plain.foreground.vectors)
        assert np.array_equal(other.ratio, plain.ratio)


def test_several_backgrounds_have_weights_of_their_own():
    """Exact cumulants, one A: the patterns come back, with the weights of the first background."""
    vectors, weights, (fore, back), _ = draw(5, 4, 2, 0)
    other = RankOneSum(weights[1] * [1, -0.5, 2, 0.3, 0, 0], vectors)
    fore, *backs = (Cumulants(np.zeros(5), np.eye(5), T, 1000) for T in (fore, back, other))
    found = joint_contrast(fore, backs, 4, 2, rng=np.random.default_rng(0))
    assert pattern_similarity(found.foreground.vectors, vectors[:, 4:]) > 1 - 1e-4
    assert_allclose(np.sort(found.background.weights), np.sort(weights[1, :4]), rtol=1e-2)
    assert found.residual < 1e-3
    expected = pooled(backs).covariance
    assert_allclose(found.ratio, 1 / np.diag(expected)[:2], rtol=1e-9)


def test_what_is_known_spares_the_power_method(monkeypatch):
    vectors, _, (fore, back), _ = draw(5, 4, 2, 3)
    fore, back = (Cumulants(np.zeros(5), np.eye(5), T, 1000) for T in (fore, back))
    monkeypatch.setattr(joint.contrast, "spm", lambda *a, **k: pytest.fail("was run"))
    rng = np.random.default_rng(0)
    whiten = JointProblem.of(fore, back).whiten
    near = whiten.T @ vectors + 0.05 * rng.standard_normal((5, 6))
    found = joint_contrast(fore, back, 4, 2, rng=rng, known=near)
    assert pattern_similarity(found.foreground.vectors, vectors[:, 4:]) > 1 - 1e-4
    # fewer than are sought are made up from what the foreground has left
    found = joint_contrast(fore, back, 4, 2, rng=rng, known=near[:, :5])
    assert pattern_similarity(found.foreground.vectors, vectors[:, 4:]) > 1 - 1e-4


def test_a_guess_is_a_start_and_the_preferred_one_with_a_score(monkeypatch):
    data = make_synthetic(4, n_samples=20_000, random_state=1)
    fore, back = cumulants(data.foreground), cumulants(data.background)
    seen = []
    whole = joint.joint_search
    monkeypatch.setattr(
        joint.contrast,
        "joint_search",
        lambda t, starts, m, **k: (
            seen.append((list(starts), k["preferred"])) or whole(t, seen[-1][0], m, **k)
        ),
    )
    inside = unit(JointProblem.of(fore, back).whiten.T @ data.B)
    options = {"rng": np.random.default_rng(0), "max_iter": 2000}
    joint_contrast(fore, back, 4, 3, **options)
    joint_contrast(fore, back, 4, 3, guess=data.B, **options)
    joint_contrast(
        fore, back, 4, 3, guess=data.B, gain_t_value=lambda first, second: 0.0, **options
    )
    assert [len(starts) for starts, _ in seen] == [3, 4, 3]
    assert_allclose(seen[1][0][0][:, 4:], inside, atol=1e-12)
    assert seen[0][1] is None
    assert seen[1][1] is None
    assert_allclose(seen[2][1].start[:, 4:], inside, atol=1e-12)


def test_starts_from_third_cumulants_are_near_the_truth_of_exact_ones():
    """Whitened patterns of the background are orthogonal, those of the foreground nearly so."""
    data = make_synthetic(5, n_samples=50_000, random_state=2)
    rows = (data.foreground, data.background)
    problem = JointProblem.of(*map(cumulants, rows), rows=rows)
    guess = problem.whiten.T @ data.B[:, :3]
    starts = list(third_starts(problem, 5, 4, guess, rng=np.random.default_rng(0)))
    assert [start.shape for start in starts] == [(5, 9)] * 2
    assert_allclose(starts[1][:, 5:8], unit(guess), atol=1e-12)
    for start in starts:
        assert pattern_similarity(unit(problem.dewhiten @ start[:, :5]), data.A) > 0.95
    without = JointProblem.of(*map(cumulants, rows))
    assert list(third_starts(without, 5, 4, rng=np.random.default_rng(0))) == []


def test_third_cumulants_count_by_their_noise(rng):
    A = rng.standard_normal((4, 4))
    rows = [rng.exponential(size=(5000, 4)) @ A.T for _ in range(2)]
    terms = JointProblem.of(*map(cumulants, rows), rows=rows).terms
    assert terms.orders.tolist() == [4, 4, 3, 3]
    assert terms.datasets.tolist() == [0, 1, 0, 1]
    each = terms.squared_norms / terms.denominators
    assert_allclose(each.sum(), 2)
    assert 0.5 < each[2:].sum() / 2 < 0.99


@pytest.mark.parametrize("kind", ["laplace", "uniform", "standard_normal"])
def test_third_cumulants_of_symmetric_sources_are_left_out(kind, rng):
    A = rng.standard_normal((4, 4))
    rows = [getattr(rng, kind)(size=(5000, 4)) @ A.T for _ in range(2)]
    problem = JointProblem.of(*map(cumulants, rows), rows=rows)
    assert problem.terms.orders.tolist() == [4, 4]
    assert_allclose(problem.terms.squared_norms, problem.terms.denominators)
    assert list(third_starts(problem, 4, 2, rng=np.random.default_rng(0))) == []


def test_algorithm_2_starts_are_near_the_truth_of_exact_tensors():
    vectors, _, (fore, back), _ = draw(6, 3, 2, 0)
    fore, back = (Cumulants(np.zeros(6), np.eye(6), T, 1000) for T in (fore, back))
    problem = JointProblem.of(fore, back)
    starts = list(algorithm_2_starts(problem, 3, 2, rng=np.random.default_rng(0)))
    assert len(starts) == 3
    for start in starts:
        assert start.shape == (6, 5)
        assert_allclose(np.linalg.norm(start, axis=0), 1)
        patterns = unit(problem.dewhiten @ start)
        assert pattern_similarity(patterns[:, :3], vectors[:, :3]) > 1 - 1e-6


# --- one pattern once ---


def cancelling_pair(position):
    """A fit to noise with a vector doubled, of a role, and the problem it is a fit of."""
    terms, mask = as_terms([noise(4, [1, d]) for d in range(2)]), contrast_mask(2, 3)
    vectors = unit(np.random.default_rng(3).standard_normal((4, 5)))
    vectors[:, 4] = unit(vectors[:, [position]] + 1e-3)[:, 0]
    weights = fit_weights(terms, vectors, mask)
    return terms, joint.JointFit(vectors, weights, 0.0, 1, 0.0, gain=7.0), mask


@pytest.mark.parametrize("position", [0, 1, 3])
def test_of_two_patterns_that_are_one_the_foregrounds_goes_and_the_rest_is_refitted(position):
    terms, twice, mask = cancelling_pair(position)
    assert nearest_pair(twice.vectors) == (position, 4)
    fit, kept = without_twins(terms, twice, mask, 300, 1e-6)
    assert nearest_pair(fit.vectors) is None
    # one went; what is refitted to noise may meet again, which rounding decides
    assert kept.shape[1] <= 4
    assert fit.gradient_norm < 1e-6
    assert fit.gain == 7.0


def test_nothing_takes_a_twins_place_where_no_try_can_be_afforded(monkeypatch):
    terms, twice, mask = cancelling_pair(3)
    monkeypatch.setattr(joint.twins, "_swapped", lambda *_: pytest.fail("a try was made"))
    monkeypatch.setattr(joint.search, "BUDGET", 1.0)
    fit, kept = without_twins(terms, twice, mask, 300, 1e-6)
    assert kept.shape[1] <= 4
    assert nearest_pair(fit.vectors) is None


def test_a_fit_without_twins_goes_to_its_end_in_two_parts(monkeypatch):
    """Too large for Newton's method, a try ends after some steps; what has no twins goes on."""
    monkeypatch.setattr(joint.descent, "NEWTON_SIZE", 0)
    monkeypatch.setattr(joint.twins, "TRY_STEPS", 2)
    terms, twice, mask = cancelling_pair(3)
    fit, _ = without_twins(terms, twice, mask, 300, 1e-6)
    assert nearest_pair(fit.vectors) is None
    assert fit.gradient_norm < 1e-5
    assert fit.n_iter > 3


@pytest.mark.parametrize("seed", [1, 3, 5])
def test_the_last_pair_that_stays_is_fitted_to_the_end_too(seed, monkeypatch):
    """One pattern that three are started at: the pair of both roles that is left had shown as twins."""
    monkeypatch.setattr(joint.descent, "NEWTON_SIZE", 0)
    monkeypatch.setattr(joint.twins, "TRY_STEPS", 3)
    u = unit(np.random.default_rng(seed).standard_normal((4, 1)))
    exact = RankOneSum(np.ones(1), u)
    noisy = [exact + noise(4, [seed, d]) * 1e-2 for d in range(2)]
    terms, mask = as_terms(noisy), contrast_mask(2, 1)
    start = unit(u + 1e-3 * np.random.default_rng(9).standard_normal((4, 3)))
    once = joint.JointFit(start, fit_weights(terms, start, mask), 0.0, 1, 1.0)
    fit, _ = without_twins(terms, once, mask, 300, 1e-6)
    assert fit.gradient_norm < 1e-5


@pytest.mark.parametrize("exponent", [0, 1, 2, 3])
def test_powers_are_those_of_numpy(exponent):
    base = np.random.default_rng(0).standard_normal((3, 3))
    assert_allclose(joint.objective._power(base, exponent), base**exponent, rtol=1e-14)


def test_patterns_that_are_apart_stay_as_they_are():
    vectors, _, tensors, mask = draw(5, 3, 2, 1)
    fit = joint_fit(tensors, vectors, mask)
    again, kept = without_twins(as_terms(tensors), fit, mask, 300, 1e-6)
    assert again is fit
    assert kept is mask


def test_the_last_pattern_of_a_role_stays():
    terms, mask = as_terms([noise(4, [1, d]) for d in range(2)]), contrast_mask(1, 1)
    vectors = np.eye(4)[:, [0, 0]]
    twice = joint.JointFit(vectors, np.zeros((2, 2)), 0.0, 1, 0.0)
    assert without_twins(terms, twice, mask, 300, 1e-6)[0] is twice


def wild(seed, n=8000, p=14):
    """Student t(3) rows, five of them wild."""
    rng = np.random.default_rng([p, seed, 111])
    X, Y = (rng.standard_t(3, size=(n, p)) @ rng.standard_normal((p, p)) for _ in range(2))
    X[:5] *= 30
    return X, Y


@pytest.mark.slow
def test_heavy_tails_make_no_twins():
    """Draws in which a fit of fourth cumulants alone had pairs with weights that cancel."""
    for seed in range(5):
        X, Y = wild(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = ContrastiveICA(None, solver="joint", random_state=0).fit(X, background=Y)
        problem = JointProblem.of(cumulants(X), cumulants(Y))
        patterns = np.vstack([model.components_, model.background_components_]).T
        assert nearest_pair(unit(problem.whiten.T @ patterns)) is None


def test_the_papers_solver_flags_pairs_that_cancel():
    vectors = unit(np.array([[1.0, 1.0, 0.0], [0.0, 1e-3, 1.0]]))
    warn_cancelling(vectors, np.array([5.0, -1.0, 2.0]))  # does not cancel
    with warns(PatternWarning, "cancelling"):
        warn_cancelling(vectors, np.array([5.0, -4.9, 2.0]))
