"""`contrica.pl`: plots of what `contrica.tl` has left in an AnnData object."""

import sys
import warnings
from pathlib import Path

import anndata
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from matplotlib import pyplot
from matplotlib.colors import to_rgb
from numpy.testing import assert_allclose

from contrica import pl, tl
from contrica.errors import ParameterError, collected
from tests.said import raises

GENES, DONORS, PER_DONOR = 12, 4, 50


@pytest.fixture(scope="module")
def made():
    """Cells of four donors; in some stimulated ones gene 0 rises and gene 1 falls."""
    rng = np.random.default_rng(0)
    n = 2 * DONORS * PER_DONOR
    values = rng.laplace(size=(n, GENES))
    stimulated = np.arange(n) % 2 == 1
    responds = stimulated & (rng.random(n) < 0.5)
    values[responds, 0] += 8
    values[responds, 1] -= 5
    adata = anndata.AnnData(
        sp.csr_matrix(values),
        obs=pd.DataFrame(
            {
                "condition": pd.Categorical(np.where(stimulated, "stim", "ctrl")),
                "donor": pd.Categorical([f"d{i // (2 * PER_DONOR)}" for i in range(n)]),
                "type": pd.Categorical([f"t{i % 9}" for i in range(n)]),
                "depth": rng.random(n),
            },
            index=[f"c{i}" for i in range(n)],
        ),
        var=pd.DataFrame(index=[f"g{i}" for i in range(GENES)]),
    )
    adata.layers["twice"] = adata.X * 2
    with collected():
        tl.cica(adata, "condition", "ctrl", groups="donor", n_comps=2)
        tl.stability(adata, n_resamples=2)
    return adata


@pytest.fixture
def adata(made):
    return made.copy()


@pytest.fixture
def cells(made):
    stimulated = (made.obs["condition"] == "stim").to_numpy()
    return stimulated, made.obsm["X_cica"]


def drawn(ax):
    """Points drawn, without those of the legend, in order."""
    return [np.asarray(part.get_offsets()) for part in ax.collections if len(part.get_offsets())]


def same_rows(one, other):
    assert_allclose(np.sort(one, axis=0), np.sort(other, axis=0))


def test_cells_are_drawn_by_dataset_and_coloured_by_a_column(adata, cells):
    stimulated, scores = cells
    ax = pl.cica(adata, color="donor", show=False)
    under, above = drawn(ax)
    same_rows(under, scores[~stimulated])
    same_rows(above, scores[stimulated])
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title()) == ("cica 1", "cica 2", "donor")
    shown = [text.get_text() for text in ax.get_legend().texts]
    assert shown == ["background", "d0", "d1", "d2", "d3"]
    bare = pl.cica(adata, components="2,1", background=False, show=False)
    (above,) = drawn(bare)
    same_rows(above, scores[stimulated][:, ::-1])
    assert bare.get_xlabel() == "cica 2"


def test_genes_and_numbers_are_on_a_scale_and_several_colours_are_panels(adata, cells):
    stimulated, _ = cells
    axes = pl.cica(adata, color=["g0", "depth"], layer="twice", show=False)
    assert [ax.get_title() for ax in axes] == ["g0", "depth"]
    gene, depth = (
        next(part for part in ax.collections if part.get_array() is not None) for ax in axes
    )
    assert_allclose(gene.get_array(), 2 * adata[stimulated, "g0"].X.toarray()[:, 0])
    assert_allclose(depth.get_array(), adata.obs["depth"][stimulated])


def test_one_pattern_is_a_histogram(adata):
    ax = pl.cica(adata, components=[2], show=False)
    assert ax.patches
    assert ax.get_xlabel() == "cica 2"


# --- palettes as scanpy has them ---


def test_stored_colours_are_used_and_stay(adata):
    adata.uns["donor_colors"] = ["#112233", "red", "#445566", "#778899"]
    ax = pl.cica(adata, color="donor", show=False)
    shown = {part.get_label(): part.get_facecolor()[0, :3] for part in ax.collections}
    assert_allclose(shown["d1"], to_rgb("red"))
    assert list(adata.uns["donor_colors"])[1] == "red"


def test_colours_are_stored_as_scanpy_reads_them(adata):
    pl.cica(adata, color=["donor", "type"], show=False)
    assert adata.uns["donor_colors"] == ["#D55E00", "#009E73", "#CC79A7", "#E69F00"]
    scanpy = pytest.importorskip("scanpy")
    assert adata.uns["type_colors"] == list(scanpy.pl.palettes.default_20[:9])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scanpy's own
        ax = scanpy.pl.embedding(adata, "X_cica", color="donor", show=False)
    used = {tuple(np.round(colour[:3], 3)) for colour in ax.collections[0].get_facecolor()}
    assert used == {tuple(np.round(to_rgb(each), 3)) for each in adata.uns["donor_colors"]}


def test_too_few_stored_colours_are_replaced_and_a_view_is_left_alone(adata):
    adata.uns["donor_colors"] = ["red"]
    part = adata[:, :5]
    pl.cica(part, color="donor", show=False)
    assert part.is_view
    assert list(adata.uns["donor_colors"]) == ["red"]
    pl.cica(adata, color="donor", show=False)
    assert len(adata.uns["donor_colors"]) == 4


# --- patterns ---


def test_loadings_are_effects_by_gene(adata):
    axes = pl.loadings(adata, n_genes=3, show=False)
    assert len(axes) == 2
    effects = dict(zip(adata.var_names, adata.uns["cica"]["effects"][0], strict=True))
    names = [label.get_text() for label in axes[0].get_yticklabels()]
    assert_allclose([bar.get_width() for bar in axes[0].patches], [effects[n] for n in names])
    assert {"g0", "g1"} <= set(names)


def test_ratios_and_stability_draw_what_is_stored(adata):
    entry = adata.uns["cica"]
    ax = pl.ratios(adata, show=False)
    points = np.vstack([part for part in drawn(ax) if part.shape[1] == 2])
    assert set(np.round(entry["ratios"], 6)) <= set(np.round(points[:, 0], 6))
    (first, *_) = pl.stability(adata, show=False)
    assert_allclose(drawn(first)[-1][:, 0], entry["stability"]["index"])
    names = [text.get_text() for text in first.texts]
    assert names[0].startswith("without d")


# --- cells by donor, and by gene ---


def test_scores_by_donor_and_condition(adata, cells):
    stimulated, scores = cells
    ax = pl.groups(adata, show=False)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["d0", "d1", "d2", "d3"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("donor", "cica 1")
    assert [text.get_text() for text in ax.get_legend().texts] == ["ctrl", "stim"]
    medians = [line.get_ydata()[0] for line in ax.lines if line.get_color() == "black"]
    first = (adata.obs["donor"] == "d0").to_numpy()
    assert_allclose(medians[0], np.median(scores[first & ~stimulated, 0]))
    assert_allclose(medians[4], np.median(scores[first & stimulated, 0]))
    other = pl.groups(adata, groups="type", condition="donor", component=2, show=False)
    assert len(other.get_xticklabels()) == 9
    assert other.get_ylabel() == "cica 2"


def test_a_heatmap_has_cells_by_score_and_genes_by_effect(adata, cells):
    _, scores = cells
    ax = pl.heatmap(adata, n_genes=4, show=False)
    names = [label.get_text() for label in ax.get_yticklabels()]
    effects = dict(zip(adata.var_names, adata.uns["cica"]["effects"][0], strict=True))
    assert [effects[name] for name in names] == sorted(map(effects.get, names), reverse=True)
    values = adata[:, names].X.toarray()[np.argsort(scores[:, 0], kind="stable")]
    expected = (values - values.mean(axis=0)) / values.std(axis=0)
    assert_allclose(ax.images[0].get_array(), expected.T)
    assert ax.get_xlabel() == "400 of 400 cells, by score"


def test_a_heatmap_by_level_has_means(adata):
    ax = pl.heatmap(adata, n_genes=2, groupby="donor", layer="twice", show=False)
    names = [label.get_text() for label in ax.get_yticklabels()]
    values = adata[:, names].X.toarray()
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    first = (adata.obs["donor"] == "d0").to_numpy()
    assert_allclose(np.asarray(ax.images[0].get_array())[:, 0], values[first].mean(axis=0))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["d0", "d1", "d2", "d3"]


# --- show and save ---


def test_given_axes_are_used_and_pyplot_is_left_alone(adata):
    from contrica.plots import new_figure

    figure = new_figure()
    axes = figure.subplots(1, 2)
    assert pl.cica(adata, ax=axes[0]) is axes[0]
    assert pl.groups(adata, ax=axes[1]) is axes[1]
    assert pl.heatmap(adata, ax=new_figure().subplots()).images
    assert not pyplot.get_fignums()


@pytest.fixture
def settings():
    """Of scanpy, put back after the test: pytest cannot, as they are a class with properties."""
    found = pytest.importorskip("scanpy").settings
    before = found.autoshow, found.figdir
    yield found
    found.autoshow, found.figdir = before


def test_a_figure_that_is_shown_returns_nothing(adata, monkeypatch, settings):
    shown = []
    monkeypatch.setattr(pyplot, "show", lambda: shown.append(True))
    assert pl.ratios(adata, show=True) is None
    assert shown == [True]
    assert pl.ratios(adata) is not None  # without a display there is nothing to show
    import matplotlib

    monkeypatch.setattr(matplotlib, "get_backend", lambda: "module://matplotlib_inline")
    assert pl.ratios(adata) is None
    settings.autoshow = False
    assert pl.ratios(adata) is not None


def test_figures_are_saved_where_scanpy_saves_its_own(adata, tmp_path, monkeypatch, settings):
    settings.figdir = tmp_path
    pl.ratios(adata, save="_mine.png", show=False)
    pl.ratios(adata, save=True, show=False)
    pl.ratios(adata, save=tmp_path / "exact.svg", show=False)
    found = sorted(path.name for path in tmp_path.iterdir())
    assert found == ["cica_ratios.pdf", "cica_ratios_mine.png", "exact.svg"]
    monkeypatch.delitem(sys.modules, "scanpy")
    monkeypatch.chdir(tmp_path)
    pl.ratios(adata, save="_other.png", show=False)
    assert Path("figures/cica_ratios_other.png").is_file()


@pytest.mark.parametrize(
    ("draw", "code", "parameter"),
    [
        (lambda a: pl.cica(a, key="none"), "no-result", "key"),
        (lambda a: pl.cica(a, color="donr"), "not-there", "color"),
        (lambda a: pl.cica(a, color="g0", layer="none"), "not-there", "layer"),
        (lambda a: pl.cica(a, components="a,b"), "components", "components"),
        (lambda a: pl.cica(a, components=(1, 3)), "components", "components"),
        (lambda a: pl.cica(a, color=["donor", "type"], ax=[None]), "n-axes", "axes"),
        (lambda a: pl.groups(a, groups="none"), "not-there", "groups"),
        (lambda a: pl.groups(a, condition="none"), "not-there", "condition"),
        (lambda a: pl.heatmap(a, groupby="none"), "not-there", "groupby"),
        (lambda a: pl.heatmap(a, component=9), "components", "components"),
    ],
)
def test_what_is_not_there_is_told_in_words_and_leaves_no_figure(draw, code, parameter, adata):
    with raises(ParameterError, code, parameter):
        draw(adata)
    assert not pyplot.get_fignums()


def test_a_near_name_is_proposed(adata):
    with raises(ParameterError, "not-there", "color") as said:
        pl.cica(adata, color="donr")
    assert "Did you mean 'donor'?" in str(said.value)


def test_stability_and_groups_that_were_not_asked_for_are_told(adata):
    with collected():
        tl.cica(adata, "condition", "ctrl", n_comps=1, key_added="bare")
    with raises(ParameterError, "no-stability", "key"):
        pl.stability(adata, key="bare")
    with raises(ParameterError, "no-groups", "groups"):
        pl.groups(adata, key="bare")
    assert pl.cica(adata, key="bare", color="donor", show=False).get_xlabel() == "bare 1"


def test_results_that_were_written_to_a_file_are_drawn_alike(adata, tmp_path):
    adata.write_h5ad(tmp_path / "a.h5ad")
    again = anndata.read_h5ad(tmp_path / "a.h5ad")
    for one, other in zip(drawn(pl.cica(adata)), drawn(pl.cica(again)), strict=True):
        assert_allclose(one, other)
    assert [ax.get_title() for ax in pl.loadings(adata)] == [
        ax.get_title() for ax in pl.loadings(again)
    ]
    assert pl.groups(again).get_xlabel() == "donor"
    assert pl.stability(again)[0].texts
