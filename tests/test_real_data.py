"""Facts about real datasets, where a folder of them is named by CONTRICA_DATA."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import silhouette_score

from contrica import ContrastiveICA
from contrica.moments.fourth import cumulants
from contrica.moments.projection import common_basis
from contrica.solvers.ranks import scree


def test_mouse_eigenvalues_are_those_the_paper_plots(mouse):
    """Figure fig:mice_r_l, values read from its source; the plots count from 0."""
    X, Y, labels = mouse
    assert X.shape == (270, 77)
    assert Y.shape == (135, 77)
    basis = common_basis([X, Y], 15)
    fore, back = (cumulants(rows @ basis, "unbiased") for rows in (X, Y))
    values = scree(fore, back)
    assert_allclose(
        np.abs(values.background[[10, 20, 27]]), [129.868872, 60.676320, 36.228458], rtol=1e-3
    )
    assert labels.sum() == 135


@pytest.mark.filterwarnings("ignore::contrica.PatternWarning")
def test_plain_ica_separates_the_mice_as_in_the_paper(mouse):
    """ICA by HTD with 53 terms ranked by k(b): silhouette 0.604."""
    from contrica.decompositions import htd
    from contrica.solvers.ratio import contrast_ratio

    X, Y, labels = mouse
    basis = common_basis([X, Y], 15)
    fore, back = (cumulants(rows @ basis, "unbiased") for rows in (X, Y))
    found = htd(fore.fourth, 53, tie_gap=0)
    order = np.argsort(-contrast_ratio(found.vectors, fore, back))[:2]
    score = silhouette_score(X @ basis @ found.vectors[:, order], labels)
    assert_allclose(score, 0.604, atol=0.005)


@pytest.mark.filterwarnings("ignore::contrica.PatternWarning")
@pytest.mark.filterwarnings("ignore::contrica.errors.GroupWarning")  # rows of a mouse are alike
def test_cica_of_the_mice_does_not_hang_on_the_seed(mouse):
    X, Y, labels = mouse
    scores = []
    for seed in range(5):
        model = ContrastiveICA(
            2,
            n_pcs=15,
            n_background=27,
            n_foreground=26,
            solver="paper",
            cumulant="unbiased",
            random_state=seed,
        )
        scores.append(silhouette_score(model.fit_transform(X, background=Y), labels))
    assert np.ptp(scores) < 0.05
