"""Statistics over seeds: what is found, not just that something is."""

import numpy as np
import pytest

from contrica import ContrastiveICA
from contrica.datasets import load_digits_on_photos
from contrica.metrics import match_patterns


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::contrica.PatternWarning")  # noisy shared weights
def test_the_demo_data_show_digits_in_most_draws():
    """All defaults, no labels: median |cosine| of the two patterns and the digits, matched one to one.

    Random patterns in the space of the leading components reach about 0.49 one time in a hundred.
    """
    cosines = []
    for draw in range(6):
        data = load_digits_on_photos(random_state=draw)
        model = ContrastiveICA(2, random_state=0).fit(data.foreground, background=data.background)
        cosines.append(match_patterns(model.components_.T, data.patterns.T).cosines)
    assert np.median(cosines) > 0.8
