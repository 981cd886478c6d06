import os
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from contrica.datasets import load_mouse_protein

# No test needs a display.
os.environ["MPLBACKEND"] = "agg"

# Machines that run tests are shared: a slow moment is no failure.
settings.register_profile("shared", deadline=None)
settings.load_profile("shared")


@pytest.fixture(autouse=True)
def _no_lost_cluster(request):
    """A client that was lost stays dask's scheduler, and would be waited for without end.

    So tests that ask for no cluster use threads, whatever ran before them in this process; a client that
    a test opens itself takes over meanwhile.
    """
    if "distributed" not in sys.modules or "client" in request.fixturenames:
        yield
    else:
        import dask

        with dask.config.set(scheduler="threads"):
            yield
    if "distributed" in sys.modules:
        import dask
        import distributed

        try:
            distributed.default_client()
        except ValueError:
            dask.config.set(scheduler=None)


@pytest.fixture(autouse=True)
def _figures_are_closed():
    """Figures of pyplot stay open until somebody closes them."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.fixture
def rng():
    return np.random.default_rng(20240)


@pytest.fixture
def unit_columns(rng):
    def draw(p, k, generator=rng):
        vectors = generator.standard_normal((p, k))
        return vectors / np.linalg.norm(vectors, axis=0)

    return draw


@pytest.fixture
def real_data():
    """Folder of real datasets, or a skip where there is none."""
    folder = os.environ.get("CONTRICA_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("CONTRICA_DATA names no folder of real datasets")
    return Path(folder)


@pytest.fixture
def mouse(real_data):
    """Foreground, background and whether a row is of a mouse with Down syndrome."""
    data = load_mouse_protein(real_data)
    return data.foreground, data.background, data.labels == 1
