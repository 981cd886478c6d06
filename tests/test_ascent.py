"""The search for maxima of a function of rotations, on functions that are known."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from contrica.solvers import ascent
from contrica.solvers.ascent import Heights, climb


def fourth_powers(vectors):
    """``Σ_jk w_k (v_k · r_j)⁴`` of rotations r, largest where these are the orthonormal v."""
    weights = np.arange(1.0, len(vectors) + 1)

    def measure(turns):
        along = vectors.T @ turns
        values = np.einsum("k,skj->s", weights, along**4)
        by_turn = 4 * vectors @ (weights[:, None] * along**3)
        slopes = turns.transpose(0, 2, 1) @ by_turn
        return Heights(values, slopes, -4 * np.einsum("k,skj->sj", weights, along**4))

    return measure


@pytest.fixture
def vectors(rng):
    return np.linalg.qr(rng.standard_normal((5, 5)))[0]


@pytest.fixture
def starts(rng):
    return np.linalg.qr(rng.standard_normal((6, 5, 5)))[0]


def test_every_start_leads_to_a_maximum(vectors, starts):
    before = starts.copy()
    for top in climb(fourth_powers(vectors), starts, max_iter=200, tol=1e-7):
        assert_allclose(top.value, 15.0, rtol=1e-12)
        assert_allclose(np.sort(np.abs(vectors.T @ top.turn), axis=0)[-1], 1.0, atol=1e-8)
        assert_allclose(top.turn.T @ top.turn, np.eye(5), atol=1e-12)
        assert top.gradient_norm <= 1e-7
        assert top.n_iter < 40
    assert (starts == before).all()


def test_each_start_goes_as_it_would_alone(vectors, starts):
    measure = fourth_powers(vectors)
    together = climb(measure, starts, max_iter=200, tol=1e-6)
    for start, top in zip(starts, together, strict=True):
        alone = climb(measure, start[None], max_iter=200, tol=1e-6)[0]
        assert_allclose(alone.turn, top.turn, atol=1e-10)
        assert alone.n_iter == top.n_iter


def test_no_step_goes_down(vectors, starts, monkeypatch):
    monkeypatch.setattr(ascent, "MAX_ANGLE", 3.0)  # so that first steps are too long
    values = [
        [top.value for top in climb(fourth_powers(vectors), starts, max_iter=steps, tol=1e-9)]
        for steps in range(1, 12)
    ]
    assert (np.diff(values, axis=0) >= -1e-13).all()
    assert [top.n_iter for top in climb(fourth_powers(vectors), starts, max_iter=3, tol=1e-9)] == [
        3
    ] * 6


def test_wrong_second_derivatives_cost_steps_only(vectors, starts):
    measure, rng = fourth_powers(vectors), np.random.default_rng(0)

    def wrong(turns):
        found = measure(turns)
        return found._replace(curvatures=rng.standard_normal(found.curvatures.shape))

    for top in climb(wrong, starts, max_iter=500, tol=1e-7):
        assert_allclose(top.value, 15.0, rtol=1e-12)


def test_a_slope_that_leads_down_ends_the_search(vectors, starts):
    """As of a function that rounding alone changes."""
    measure = fourth_powers(vectors)

    def reversed_slopes(turns):
        found = measure(turns)
        return found._replace(slopes=-found.slopes)

    tops = climb(reversed_slopes, starts, max_iter=500, tol=1e-9)
    assert_allclose([top.value for top in tops], measure(starts).values)
    assert {top.n_iter for top in tops} == {0}


def test_a_constant_is_at_its_top():
    def flat(turns):
        return Heights(np.zeros(len(turns)), np.zeros(turns.shape), np.zeros(turns.shape[:2]))

    top = climb(flat, np.eye(3)[None], max_iter=10, tol=1e-3)[0]
    assert (top.n_iter, top.gradient_norm) == (0, 0.0)
