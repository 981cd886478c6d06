from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from contrica.datasets import make_synthetic
from contrica.decompositions import htd
from contrica.metrics import pattern_similarity
from contrica.moments.fourth import cumulants
from contrica.moments.operators import RankOneSum
from contrica.moments.symmetric import n_packed
from contrica.moments.third import ThirdCongruence, ThirdTensor
from contrica.solvers import residuals, selection
from contrica.solvers.joint import JointFit, JointProblem, Term, Terms, as_terms, fit_weights
from contrica.solvers.ranks import choose_ranks
from contrica.solvers.residuals import strongest_left, what_is_left
from contrica.solvers.selection import by_significance, choose_by_significance
from contrica.solvers.weights import RowGroups, WeightEstimates, critical_t_value
from tests import naive


def posed(data):
    """The problem of a dataset, its groups of rows, and the ranks of the scree to start from."""
    rows = [data.foreground, data.background]
    fore, back = map(cumulants, rows)
    problem = JointProblem.of(fore, back, rows=rows)
    scree = choose_ranks(fore, back)
    start = (scree.n_background, max(scree.n_foreground, 1))
    return problem, [RowGroups(part, problem.whiten) for part in rows], start


def choose(data, **options):
    return choose_by_significance(*posed(data), rng=np.random.default_rng(0), **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("p", "sources"),
    [(6, "exponential"), (6, "mixed"), (6, "laplace"), (8, "exponential")],
)
def test_ranks_are_exact_on_the_papers_design(p, sources):
    """Where the scree, its start, is not; in at least four of five draws."""
    exact, by_scree = [], []
    for seed in range(5):
        problem, groups, start = posed(make_synthetic(p, sources=sources, random_state=seed))
        found = choose_by_significance(problem, groups, start, rng=np.random.default_rng(0))
        exact.append(found[:2] == (p, p - 1))
        by_scree.append(start == (p, p - 1))
    assert sum(exact) >= 4
    assert sum(by_scree) <= 1


@pytest.mark.slow
def test_asking_for_fewer_patterns_does_not_change_the_ranks():
    """True ones are not given to the background for being more than two."""
    found = [choose(make_synthetic(6, random_state=seed), wanted=2)[:2] for seed in range(4)]
    assert found.count((6, 5)) >= 3


@pytest.mark.slow
def test_gaussian_sources_are_no_patterns():
    """They vary, and κ₄ does not see them; the background is found all the same."""
    found = [choose(make_synthetic(6, sources="gaussian", random_state=seed)) for seed in range(5)]
    assert np.median([choice.n_foreground for choice in found]) == 0
    assert np.median([choice.n_background for choice in found]) == 6


@pytest.fixture(scope="module")
def example():
    """A draw in which the ranks are found, and what was found."""
    data = make_synthetic(6, random_state=1)
    problem, groups, start = posed(data)
    found = choose_by_significance(problem, groups, start, rng=np.random.default_rng(0))
    assert found[:2] == (6, 5)
    return data, problem, groups, start, found


def test_a_choice_says_what_it_rests_on(example):
    data, problem, _, _, found = example
    patterns = problem.dewhiten @ found.vectors
    patterns /= np.linalg.norm(patterns, axis=0)
    assert pattern_similarity(patterns[:, 6:], data.B) > 0.99
    assert pattern_similarity(patterns[:, :6], data.A) > 0.97
    assert_allclose(np.linalg.norm(found.vectors, axis=0), 1)
    assert found.t_values.shape == (4, 11)
    assert found.critical == critical_t_value(44, 40, selection.LEVEL)
    assert np.abs(found.t_values).max(axis=0).min() > found.critical > found.rejected > 0
    # those of the background are significant there and the others are not
    needed = critical_t_value(22, 40, selection.LEVEL)
    behind = np.abs(found.t_values[[1, 3]]).max(axis=0)
    assert behind[:6].min() > needed > behind[6:].max()
    # the true patterns leave noise only, of which two datasets of 10⁵ rows have little
    assert found.left.shape == (2,)
    assert (found.left < 0.01).all()
    assert found.complete


@pytest.mark.slow
@pytest.mark.parametrize("start", [(3, 8), (1, 1), (9, 9)])
def test_the_start_does_not_decide(example, start):
    _, problem, groups, _, _ = example
    found = choose_by_significance(problem, groups, start, rng=np.random.default_rng(1))
    assert found[:2] == (6, 5)


def test_the_same_generator_gives_the_same_choice(example):
    _, problem, groups, start, found = example
    again = choose_by_significance(problem, groups, start, rng=np.random.default_rng(0))
    for one, two in zip(found, again, strict=True):
        assert np.array_equal(one, two)


def test_a_minimum_that_is_known_is_not_gone_on_from_again(example, monkeypatch):
    """The starts lead to one minimum: with one start, or with all of them, it is grown once."""
    _, problem, groups, start, found = example
    tries = []
    whole = selection._Search.try_out
    monkeypatch.setattr(
        selection._Search, "try_out", lambda self, *some: tries.append(1) or whole(self, *some)
    )
    again = choose_by_significance(problem, groups, start, rng=np.random.default_rng(0))
    few = len(tries)
    monkeypatch.setattr(selection, "SAME_OBJECTIVE", -1.0)
    slow = choose_by_significance(problem, groups, start, rng=np.random.default_rng(0))
    assert few < len(tries) - few
    assert again[:2] == slow[:2] == found[:2]
    assert_allclose(again.t_values, slow.t_values, rtol=1e-6)  # fits end at a gradient of 1e-12
    # what is not significant may be tried from more places, and the strongest of it is told
    assert again.rejected <= slow.rejected < slow.critical


def ended_with(scores):
    """A search that has ended with these scores of orthonormal patterns, every error being one."""
    scores = np.array(scores, dtype=float)
    vectors = np.eye(6)[:, : scores.shape[1]]
    tensors = [RankOneSum(W, vectors) for W in scores]
    problem = SimpleNamespace(terms=as_terms(tensors), whiten=np.eye(6))
    groups = [SimpleNamespace(n_groups=40)] * len(scores)
    search = selection._Search(problem, groups, np.random.default_rng(0))
    search.best = tried(scores, vectors)
    return search


def tried(scores, vectors):
    """A fit whose every t-value is the weight itself, and of which third cumulants are all allowed."""
    scores = np.array(scores, dtype=float)
    fit = JointFit(vectors, scores, 0.0, 0, 0.0)
    estimates = WeightEstimates(scores, np.ones_like(scores))
    return selection._Tried(fit, estimates, np.ones(scores.shape[1], dtype=bool))


# Of five, 3.8 is significant at the level of one per cent and 2.8 at that of five:
# shared, weak there, weaker, salient, and nobody's.
SCORES = [[9, 20, 20, 20, 1], [9, 3.3, -2.9, 2.5, 1]]


@pytest.mark.parametrize(
    ("wanted", "ranks"), [(None, (1, 3)), (4, (1, 3)), (3, (1, 3)), (2, (2, 2)), (1, (3, 1))]
)
def test_doubtful_patterns_are_shared_ones_where_fewer_are_wanted(wanted, ranks):
    choice = ended_with(SCORES).choice(wanted)
    assert choice[:2] == ranks
    assert_allclose(choice.t_values, np.array(SCORES)[:, :4])  # less what is in no dataset surely
    assert_allclose(choice.vectors, np.eye(6)[:, :4])


def test_a_pattern_without_weight_in_the_background_is_not_given_away():
    assert ended_with([[20, 20, 20], [0.1, 2.3, -1.0]]).choice(1)[:2] == (0, 3)


def test_a_pattern_of_any_background_is_a_shared_one_and_comes_first():
    choice = ended_with([[8, 9, 7], [0, 9, 0], [0, 0, -9]]).choice(None)
    assert choice[:2] == (2, 1)
    assert_allclose(choice.t_values[0], [9, 7, 8])


def test_a_pattern_no_larger_in_the_foreground_is_none_of_it():
    """Neither weight in the background is significant, but one is as large as in the foreground."""
    assert ended_with([[9, 4.5], [0, 3.0]]).choice(None)[:2] == (1, 1)


@pytest.mark.parametrize(
    ("scores", "rejected", "told"),
    [
        ([[9, 20], [9, 0]], 0.0, []),
        ([[9, 3.5], [9, 0]], 0.0, ["the weakest pattern has t = 3.50; 3.39 is needed"]),
        ([[9, 20], [9, 0]], 3.3, ["a pattern with t = 3.30 was left out; 3.39 was needed"]),
        (
            [[9, 20], [9, 3.0]],
            0.0,
            ["a pattern has t = 3.00 in a background; 3.10 would make it a background pattern"],
        ),
    ],
)
def test_what_is_near_a_tie_is_told(scores, rejected, told):
    search = ended_with(scores)
    search.rejected, search.needed = rejected, search.critical(2)
    assert list(search.choice(None).near_ties) == told


# --- symmetric patterns beside skewed ones ---


def mixed(seed):
    """Ten thousand rows of exponential and uniform sources, and the truth in whitened coordinates."""
    rng = np.random.default_rng([8, seed, 97])
    data = make_synthetic(8, n_samples=10_000, sources="mixed", random_state=rng)
    problem, groups, start = posed(data)
    true = problem.whiten.T @ np.column_stack([data.A, data.B])
    return problem, groups, start, true / np.linalg.norm(true, axis=0)


UNIFORM = np.concatenate([np.arange(8), np.arange(7)]) // 2 % 2 == 1


@pytest.mark.slow
def test_ranks_of_mixed_sources_are_found_within_one():
    """Where all patterns may have third cumulants, symmetric ones are missed in half of the draws."""
    near = []
    for seed in range(500, 508):
        problem, groups, start, _ = mixed(seed)
        found = choose_by_significance(problem, groups, start, rng=np.random.default_rng(0))
        near.append(max(abs(found.n_background - 8), abs(found.n_foreground - 7)) <= 1)
    assert np.mean(near) >= 0.75


@pytest.mark.parametrize("kind", ["missing", "doubled", "noise"])
def test_patterns_that_start_wrong_are_found_by_what_is_most_significant(kind):
    problem, groups, _, true = mixed(508)
    start = true[:, 2:]  # a skewed one less, which has weight in both datasets, and a symmetric one
    if kind == "doubled":
        start = np.column_stack([true[:, [8, 14]] + 1e-3, start])
    if kind == "noise":
        start = np.column_stack([np.random.default_rng(0).standard_normal((8, 2)), start])
    found = by_significance(problem, groups, start, (8, 7), rng=np.random.default_rng(0))
    cosines = np.abs(true.T @ found.vectors)
    right = cosines.max(axis=0) > 0.95
    assert right.sum() >= 14  # one of the background is nearly lost in noise
    each = cosines.argmax(axis=0)[right]
    assert len(set(each)) == each.size
    assert ((each < 8) == (np.arange(15)[right] < 8)).all()  # those of the background first
    assert (found.skewed[right] == ~UNIFORM[each]).all()


def test_a_significant_pattern_is_added_though_it_lowers_the_objective_by_little():
    """Third cumulants make up most of the objective, and a symmetric pattern has none."""
    data = make_synthetic(
        5, n_samples=2000, sources="mixed", random_state=np.random.default_rng([5, 4, 2000])
    )
    found = choose(data)
    assert found.n_background + found.n_foreground >= 4
    assert found.t_values.max(axis=0).size == found.vectors.shape[1]


def test_what_becomes_insignificant_last_is_taken_out_too():
    """Where a pattern is found to be symmetric, and not to be, in turn, without end."""
    search = ended_with([[9, 9, 9], [9, 9, 9]])
    tensors = [RankOneSum(np.ones(3), np.eye(6)[:, :3])] * 2
    thirds = [ThirdTensor.of_terms(np.ones(3), np.eye(6)[:, :3])] * 2
    search.terms = Terms(Term(tensor, 1.0, t % 2) for t, tensor in enumerate([*tensors, *thirds]))
    calls = []

    def tried(skewed, weak):
        t_values = np.zeros((4, skewed.size))
        t_values[0] = t_values[2, :2] = 20.0
        t_values[2, -1] = 0.0 if skewed[-1] else 20.0
        if weak:
            t_values[:, 1] = 0.5
        fit = JointFit(np.eye(6)[:, : skewed.size], t_values, 0.0, 0, 0.0)
        return selection._Tried(fit, WeightEstimates(t_values, np.ones_like(t_values)), skewed)

    def try_out(vectors, skewed):
        calls.append(vectors)
        return tried(skewed, len(calls) == selection.MAX_TURNS)

    search.try_out = try_out
    found = search.without_insignificant(tried(np.ones(3, dtype=bool), False))
    assert len(calls) == selection.MAX_TURNS + 1
    assert len(found) == 2
    assert (found.strength >= search.critical(2)).all()


def test_as_many_patterns_as_are_asked_for_are_found_though_they_are_not_significant():
    problem, groups, _, true = mixed(508)
    found = by_significance(problem, groups, true, (9, 9), rng=np.random.default_rng(0))
    assert found.vectors.shape == (8, 18)
    assert_allclose(np.linalg.norm(found.vectors, axis=0), 1)


@pytest.mark.parametrize(
    ("scores", "ranks", "order"),
    [
        # three of the background, by their t-values there; the last is nobody's
        ([[9, 9, 9, 9, 1], [5, 0, 20, 9, 1]], (3, 2), [2, 3, 0, 1, 4]),
        ([[9, 9, 9, 9, 1], [5, 0, 20, 9, 1]], (4, 1), [2, 3, 0, 4, 1]),
        # more or fewer than there are
        ([[9, 9, 9, 9, 1], [5, 0, 20, 9, 1]], (2, 3), [2, 3, 0, 1, 4]),
        ([[9, 9, 9, 9, 9], [0, 1, 0, 0, 0]], (2, 3), [1, 0, 2, 3, 4]),
    ],
)
def test_roles_follow_t_values_in_the_background(scores, ranks, order):
    search = ended_with(scores)
    assert search.by_role(search.best, *ranks).tolist() == order


@pytest.mark.parametrize("written_out", [True, False])
def test_what_is_most_significant_of_the_rest_is_what_is_missing(written_out):
    """By its t-value; by size, what is left of the strongest source comes first."""
    problem, groups, _, true = mixed(508)
    terms = problem.terms
    if not written_out:
        thirds = [ThirdCongruence(terms.tensors[t], np.eye(8)) for t in (2, 3)]
        changed = zip(terms, [*terms.tensors[:2], *thirds], strict=True)
        terms = Terms(term._replace(tensor=tensor) for term, tensor in changed)
    missing = 11  # symmetric, of the foreground
    vectors = np.delete(true, missing, axis=1)
    weights = fit_weights(terms, vectors, np.ones((2, 14), dtype=bool))
    fit = JointFit(vectors, weights, 0.0, 0, 0.0)
    first, last = strongest_left(terms, groups, fit, rng=np.random.default_rng(0))
    assert abs(first.vector @ true[:, missing]) > 0.9
    assert first.t_value > 10 > 4 > first.third_t_value
    assert first.t_value >= last.t_value
    for rest in what_is_left(terms, fit):
        by_size = htd(rest, 1, tie_gap=0.0).vectors[:, 0]
        assert abs(by_size @ true[:, missing]) < 0.5


def test_t_values_of_residuals_are_those_of_loops(rng):
    rows = [rng.exponential(size=(40, 3)) for _ in range(2)]
    problem = JointProblem.of(*map(cumulants, rows), rows=rows)
    groups = [RowGroups(part, problem.whiten) for part in rows]
    tensors = [*problem.tensors, *problem.thirds]
    terms = Terms(Term(tensor, 1.0, t % 2) for t, tensor in enumerate(tensors))
    vectors, weights = np.eye(3)[:, :2], rng.standard_normal((4, 2))
    fit = JointFit(vectors, weights, 0.0, 0, 0.0)
    v = rng.standard_normal(3)
    v /= np.linalg.norm(v)
    found = residuals._t_values(terms, groups, fit, v[:, None])[:, 0]
    for t, (tensor, own) in enumerate(zip(tensors, weights, strict=True)):
        order, inside = tensor.order, (rows[t % 2] - rows[t % 2].mean(axis=0)) @ problem.whiten
        chances = np.full(40, 1 / 40)
        left = naive.weighted_cumulant(inside, chances, v, order) @ v
        left -= sum(w * (u @ v) ** order for w, u in zip(own, vectors.T, strict=True))
        # what each group says has a twin of its own, in tests/test_significance.py
        said = [change @ v for change in groups[t % 2].influence(v[:, None], order)[:, :, 0]]
        spread = sum((one - sum(said) / 20) ** 2 for one in said) / 19
        assert_allclose(found[t], abs(left) / (spread / 20) ** 0.5)


@pytest.mark.parametrize(
    ("asked", "p", "expected"),
    [
        ((5, 4), 5, (5, 4)),
        ((200, 100), 30, (40, 20)),
        ((30, 30), 30, (30, 30)),
        ((1, 400), 30, (1, 59)),
        ((400, 1), 30, (59, 1)),
        ((10, 10), 3, (3, 3)),  # three dimensions hold six patterns
        ((3, 1), 2000, (1, 1)),
    ],
)
def test_no_more_patterns_than_can_be_judged(asked, p, expected):
    found = selection._affordable(*asked, p)
    assert found == expected
    assert sum(found) <= n_packed(p)


def test_a_spent_budget_still_gives_an_answer(example, monkeypatch):
    _, problem, groups, start, _ = example
    monkeypatch.setattr(selection, "BUDGET", 0.0)
    tried = []
    whole = selection.converge
    monkeypatch.setattr(selection, "converge", lambda *a: tried.append(1) or whole(*a))
    hasty = choose_by_significance(problem, groups, start, rng=np.random.default_rng(0))
    assert 1 <= len(tried) <= 6
    assert 1 <= hasty.n_background + hasty.n_foreground <= sum(start)
    assert not hasty.complete


def test_a_search_is_affordable_up_to_eighteen_dimensions():
    affordable = [p for p in range(2, 40) if selection.searchable(p)]
    assert affordable == list(range(2, 19))
    assert not selection.searchable(18, n_datasets=3)
