"""`contrica.tl`: contrastive ICA from an AnnData object, and into it."""

import warnings

import anndata
import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from contrica import ContrastiveICA, inference, tl
from contrica.datasets import kang_anndata
from contrica.errors import (
    DataError,
    DataTypeError,
    DelicateDataWarning,
    FeaturesError,
    GroupsError,
    GroupWarning,
    ParameterError,
    PatternWarning,
    collected,
)
from contrica.rows import Rows
from contrica.rows.selected import select

GENES, USED, DONORS, PER_DONOR = 40, 35, 6, 40
RESPONDING = np.arange(5)


def counts_of(rng, stimulated, donors):
    """Counts of cells of two types; some of the stimulated cells express the first genes more."""
    rates = rng.gamma(2.0, 1.0, GENES)[None, :] * rng.gamma(20, 1 / 20, (donors.size, 1))
    rates = rates * np.where(rng.random((donors.size, 1)) < 0.5, 1.0, np.linspace(0.5, 2, GENES))
    responds = stimulated & (rng.random(donors.size) < 0.5)
    rates[np.ix_(responds, RESPONDING)] *= 15
    return rng.poisson(rates)


@pytest.fixture(scope="module")
def made():
    """Cells of six donors, each with control and stimulated ones, in random order."""
    rng = np.random.default_rng(0)
    donors = np.tile(np.repeat(np.arange(DONORS), PER_DONOR), 2)
    stimulated = np.repeat([False, True], DONORS * PER_DONOR)
    order = rng.permutation(donors.size)
    donors, stimulated = donors[order], stimulated[order]
    counts = counts_of(rng, stimulated, donors)
    values = np.log1p(1e4 * counts / counts.sum(axis=1, keepdims=True))
    values[counts == 0] = 0
    adata = anndata.AnnData(
        values,
        obs=pd.DataFrame(
            {
                "condition": pd.Categorical(np.where(stimulated, "stim", "ctrl")),
                "origin": [f"d{i}" for i in donors],  # tl.cica would ask about a column "donor"
                "batch": donors % 2,
            },
            index=[f"cell{i}" for i in range(donors.size)],
        ),
        var=pd.DataFrame(
            {"highly_variable": np.arange(GENES) < USED}, index=[f"g{i}" for i in range(GENES)]
        ),
    )
    adata.layers["counts"] = counts.astype(float)
    adata.obsm["X_first"] = values[:, :12]
    return adata


@pytest.fixture
def adata(made):
    return made.copy()


@pytest.fixture(scope="module")
def fitted(made):
    return tl.cica(made, "condition", "ctrl", groups="origin", n_comps=2, copy=True)


def model_of(adata, **options):
    """The same fit by hand."""
    stimulated = (adata.obs["condition"] == "stim").to_numpy()
    rows = pd.DataFrame(adata.X[:, :USED], columns=adata.var_names[:USED])
    return ContrastiveICA(random_state=0, **options), rows, stimulated


# --- what is written ---


def test_results_are_those_of_a_fit_by_hand(made, fitted):
    model, rows, stimulated = model_of(made, n_components=2)
    donors = made.obs["origin"].to_numpy()
    model.fit(
        rows[stimulated],
        background=rows[~stimulated],
        groups=donors[stimulated],
        background_groups=donors[~stimulated],
    )
    assert "cica" not in made.uns
    assert_allclose(fitted.obsm["X_cica"], model.transform(rows), atol=1e-10)
    assert_allclose(fitted.varm["cica"][:USED], model.components_.T, atol=1e-12)
    assert_array_equal(fitted.varm["cica"][USED:], 0)
    found = fitted.uns["cica"]
    assert_array_equal(found["variables"], made.var_names[:USED])
    assert_allclose(found["ratios"], model.source_ratio_)
    assert_allclose(found["contrast_ratios"], model.contrast_ratio_)
    assert_allclose(found["weights"], model.foreground_weights_)
    assert_allclose(found["effects"], model.effects_)
    assert_allclose(found["p_values"][0], model.scree_.p_values[0])
    assert (found["n_foreground"], found["n_background"]) == (
        model.n_foreground_,
        model.n_background_,
    )
    assert_array_equal(found["groups"], model.groups_)
    assert_allclose(found["group_share"], model.group_share_)
    assert found["summary"] == model.summary()
    assert_array_equal(found["n_cells"], [stimulated.sum(), (~stimulated).sum()])
    asked = found["params"]
    assert (asked["foreground"], asked["background"]) == (["stim"], ["ctrl"])
    assert (asked["groups"], asked["layer"], asked["mask_var"]) == ("origin", "", "highly_variable")
    assert (asked["solver"], asked["random_state"]) == (model.solver_, 0)


def test_the_genes_that_respond_lead_the_first_pattern(fitted):
    first = fitted.uns["cica"]["effects"][0]
    assert set(np.argsort(-np.abs(first))[: RESPONDING.size]) == set(RESPONDING)
    responders = fitted.obsm["X_cica"][:, 0]
    spread = pd.Series(responders).groupby(fitted.obs["condition"].to_numpy()).var()
    assert spread["stim"] > 3 * spread["ctrl"]


def test_the_model_is_made_again(fitted):
    model = tl.get_model(fitted)
    assert model.summary() == fitted.uns["cica"]["summary"]
    rows = pd.DataFrame(fitted.X[:, :USED], columns=fitted.var_names[:USED])
    assert_allclose(model.transform(rows), fitted.obsm["X_cica"], atol=1e-10)


def test_an_entry_that_was_changed_is_no_model(fitted):
    changed = fitted.copy()
    changed.uns["cica"]["model"] = {"header": "{}", "arrays": {}}
    with pytest.raises(DataError) as told:
        tl.get_model(changed)
    assert told.value.code == "not-a-model"


def read_back(adata, how, path):
    if how == "h5ad":
        adata.write_h5ad(path)
        return anndata.read_h5ad(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # anndata tells of defaults to come
        adata.write_zarr(path)
    return anndata.read_zarr(path)


@pytest.mark.parametrize("how", ["h5ad", "zarr"])
def test_results_survive_files(fitted, how, tmp_path):
    adata = tl.stability(fitted, n_resamples=2, copy=True)
    tl.significance(adata)
    back = read_back(adata, how, tmp_path / f"cells.{how}")
    ours, theirs = adata.uns["cica"], back.uns["cica"]
    assert set(ours) == set(theirs)
    for key in ("ratios", "p_values", "effects", "filters", "mean", "group_share"):
        assert_array_equal(ours[key], theirs[key])
    assert list(theirs["params"]["background"]) == ["ctrl"]
    assert theirs["stability"]["summary"] == ours["stability"]["summary"]
    assert_array_equal(theirs["significance"]["p_values"], ours["significance"]["p_values"])
    assert tl.get_model(back).summary() == ours["summary"]
    scored = tl.score(back[::3].copy(), back, key_added="again", copy=True)
    assert_allclose(scored.obsm["X_again"], adata.obsm["X_cica"][::3], atol=1e-10)


# --- containers ---


def as_container(adata, kind, tmp_path):
    if kind == "view":
        return adata[:, :].copy()[np.arange(adata.n_obs)]
    if kind in ("csr", "csc"):
        adata.X = sp.csr_matrix(adata.X) if kind == "csr" else sp.csc_matrix(adata.X)
    elif kind == "sparse view":
        adata.X = sp.csr_array(adata.X)
        return adata[np.arange(adata.n_obs)]
    elif kind in ("dask", "dask view"):
        adata.X = da.from_array(adata.X, chunks=(100, 17))
        return adata[np.arange(adata.n_obs)] if kind == "dask view" else adata
    elif kind == "sparse dask":
        adata.X = da.from_array(adata.X, chunks=(100, GENES)).map_blocks(sp.csr_matrix)
    elif kind.startswith("backed"):
        adata.X = sp.csr_matrix(adata.X) if kind == "backed csr" else adata.X
        adata.write_h5ad(tmp_path / "cells.h5ad")
        return anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    return adata


KINDS = ["view", "csr", "csc", "sparse view", "dask", "dask view", "sparse dask"]
KINDS += ["backed dense", "backed csr"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_container_gives_the_same_patterns(made, fitted, kind, tmp_path):
    adata = as_container(made.copy(), kind, tmp_path)
    tl.cica(adata, "condition", "ctrl", groups="origin", n_comps=2)
    assert_allclose(adata.varm["cica"], fitted.varm["cica"], atol=1e-8)
    assert_allclose(adata.obsm["X_cica"], fitted.obsm["X_cica"], atol=1e-8)
    assert not adata.is_view
    tl.significance(adata)
    assert_allclose(
        adata.uns["cica"]["significance"]["p_values"],
        tl.significance(fitted, copy=True).uns["cica"]["significance"]["p_values"],
    )
    if adata.isbacked:
        adata.file.close()


@pytest.mark.parametrize("kind", ["csr", "sparse dask", "backed csr"])
def test_what_takes_cells_by_number_takes_every_container(made, kind, tmp_path):
    adata = as_container(made.copy(), kind, tmp_path)
    tl.cica(adata, "condition", "ctrl", n_comps=1)
    tl.stability(adata, n_resamples=3)
    plain = tl.cica(made, "condition", "ctrl", n_comps=1, copy=True)
    tl.stability(plain, n_resamples=3)
    assert_allclose(
        adata.uns["cica"]["stability"]["index"],
        plain.uns["cica"]["stability"]["index"],
        atol=1e-6,  # refits of sparse rows round otherwise
    )
    if adata.isbacked:
        adata.file.close()


@pytest.mark.parametrize("lazily", [False, True])
@pytest.mark.parametrize("kind", ["array", "csr", "csc", "dask", "memmap"])
def test_rows_and_variables_are_picked(kind, lazily, tmp_path):
    values = np.arange(60.0).reshape(12, 5)
    kept, columns = np.arange(12) % 3 == 1, np.array([4, 0])
    data = {
        "array": lambda: values,
        "csr": lambda: sp.csr_array(values),
        "csc": lambda: sp.csc_matrix(values),
        "dask": lambda: da.from_array(values, chunks=(5, 2)),
        "memmap": lambda: np.memmap(tmp_path / "rows", dtype=float, mode="w+", shape=(12, 5)),
    }[kind]()
    if kind == "memmap":
        data[:] = values
    found = select(data, kept, columns, lazily=lazily)
    if isinstance(found, Rows):
        assert found.shape == (4, 2)
        blocks = list(found.blocks(2))
        assert max(map(len, blocks)) <= 2
        found = np.vstack(blocks)
    assert_array_equal(found, values[kept][:, columns])


# --- choices ---


def test_cells_of_other_levels_are_scored_too(adata):
    adata.obs["arm"] = np.where(adata.obs["batch"] == 1, adata.obs["condition"], np.nan)
    tl.cica(adata, "arm", "ctrl", "stim", n_comps=1, key_added="one")
    scores = adata.obsm["X_one"]
    assert scores.shape == (adata.n_obs, 1)
    assert np.isfinite(scores).all()
    assert list(adata.uns["one"]["n_cells"]) == [120, 120]


def test_several_levels_are_one_background_and_numbers_are_levels(adata):
    stimulated = (adata.obs["condition"] == "stim").to_numpy()
    adata.obs["number"] = 10.0 * stimulated + adata.obs["batch"]
    tl.cica(adata, "number", [0, 1.0], n_comps=1)
    asked = adata.uns["cica"]["params"]
    assert asked["background"] == ["0", "1"]
    assert sorted(asked["foreground"]) == ["10", "11"]
    assert list(adata.uns["cica"]["n_cells"]) == [240, 240]


def test_masks_layers_and_options(adata, fitted):
    adata.layers["log"], adata.X = adata.X, np.zeros_like(adata.X)
    options = {"groups": "origin", "n_comps": 2, "layer": "log"}
    for mask in ("highly_variable", np.arange(GENES) < USED):
        tl.cica(adata, "condition", "ctrl", mask_var=mask, **options)
        assert_allclose(adata.varm["cica"], fitted.varm["cica"], atol=1e-10)
    tl.cica(adata, "condition", "ctrl", mask_var=False, **options)
    assert len(adata.uns["cica"]["variables"]) == GENES
    tl.cica(adata, "condition", "ctrl", n_comps=1, layer="log", n_pcs=5, solver="subspace")
    model = tl.get_model(adata)
    assert (model.n_pcs_, model.solver_) == (5, "subspace")


def test_a_representation_has_patterns_over_its_coordinates(adata):
    tl.cica(adata, "condition", "ctrl", use_rep="X_first", n_comps=1)
    found = adata.uns["cica"]
    assert "cica" not in adata.varm
    assert found["patterns"].shape == (1, 12)
    assert list(found["variables"][:2]) == ["X_first_1", "X_first_2"]
    again = tl.score(adata, adata, key_added="again", copy=True)
    assert_allclose(again.obsm["X_again"], adata.obsm["X_cica"], atol=1e-12)
    with pytest.raises(ParameterError) as told:
        tl.remove_background(adata)
    assert told.value.code == "no-genes"


def test_missing_values_are_filled_where_that_is_asked_for(adata):
    holes = np.random.default_rng(4).random(adata.shape) < 0.02
    adata.X[holes] = np.nan
    with pytest.raises(DataError) as told:
        tl.cica(adata, "condition", "ctrl")
    assert told.value.code == "not-finite"
    tl.cica(adata, "condition", "ctrl", n_comps=1, missing="impute")
    assert np.isfinite(adata.obsm["X_cica"]).all()
    assert_array_equal(tl.get_model(adata).n_missing_.sum(), holes[:, :USED].sum())


def test_with_own_scales_the_background_is_scored_on_its_own(adata):
    back = (adata.obs["condition"] == "ctrl").to_numpy()
    adata.X[back] = 3 * adata.X[back] + 1  # as if on another scale
    tl.cica(adata, "condition", "ctrl", n_comps=1, scale="each")
    scores, model = adata.obsm["X_cica"], tl.get_model(adata)
    own = inference._data.source_scores(model, *rows_of(adata))
    assert_allclose(scores[~back], own.fore, atol=1e-8)
    assert_allclose(scores[back], own.back, atol=1e-8)


def rows_of(adata):
    back = (adata.obs["condition"] == "ctrl").to_numpy()
    rows = pd.DataFrame(adata.X[:, :USED], columns=adata.var_names[:USED])
    return rows[~back], rows[back]


# --- what comes after a fit ---


def test_new_cells_are_scored_by_name(fitted):
    new = fitted[::2, ::-1].copy()
    new.obsm.clear()
    tl.score(new, fitted)
    assert_allclose(new.obsm["X_cica"], fitted.obsm["X_cica"][::2], atol=1e-10)
    tl.score(new, tl.get_model(fitted), key_added="other")
    assert_allclose(new.obsm["X_other"], new.obsm["X_cica"], atol=1e-12)
    with pytest.raises(FeaturesError) as told:
        tl.score(fitted[:, 3:].copy(), fitted)
    assert "lacks 3 of the 35" in str(told.value)


def test_the_layer_without_background_is_mean_and_patterns(fitted):
    adata = tl.remove_background(fitted, copy=True)
    layer, model = adata.layers["cica"], tl.get_model(fitted)
    expected = model.mean_ + fitted.obsm["X_cica"] @ model.components_
    assert_allclose(layer[:, :USED], expected, rtol=1e-5)
    assert np.isnan(layer[:, USED:]).all()
    assert np.linalg.matrix_rank(layer[:, :USED] - layer[:, :USED].mean(axis=0), tol=1e-2) == 2


def test_stability_and_significance_are_those_of_inference(fitted):
    adata = tl.stability(fitted, n_resamples=3, random_state=1, copy=True)
    tl.significance(adata)
    fore, back = rows_of(fitted)
    donors = fitted.obs["origin"].to_numpy()
    stimulated = (fitted.obs["condition"] == "stim").to_numpy()
    groups = {"groups": donors[stimulated], "background_groups": donors[~stimulated]}
    model = tl.get_model(fitted)
    stable = inference.stability(
        model, fore, background=back, **groups, n_resamples=3, random_state=1
    )
    assert adata.uns["cica"]["stability"]["summary"] == str(stable)
    assert list(adata.uns["cica"]["stability"]["left_out"]) == [f"d{i}" for i in range(DONORS)]
    tested = inference.significance(model, fore, background=back, **groups)
    assert_array_equal(adata.uns["cica"]["significance"]["p_values"], tested.p_values)
    assert adata.uns["cica"]["significance"]["unit"] == "groups"


def test_cells_that_left_are_told(fitted):
    with pytest.raises(DataError) as told:
        tl.significance(fitted[1:].copy())
    assert told.value.code == "other-cells"


def test_methods_are_compared(adata, tmp_path):
    tl.compare(adata, "condition", "ctrl", methods=["auto", "pca"], labels="batch")
    table = adata.uns["compare"]["table"]
    assert list(table["method"]) == ["auto", "pca"]
    assert table["silhouette_uses_labels"].notna().all()
    tl.cica(adata, "condition", "ctrl", n_comps=2)
    assert_allclose(adata.obsm["X_compare_auto"], adata.obsm["X_cica"], atol=1e-8)
    back = read_back(adata, "h5ad", tmp_path / "cells.h5ad")
    assert_array_equal(back.uns["compare"]["table"]["method"], table["method"])


# --- bad input ---


@pytest.mark.parametrize(
    ("options", "kind", "code", "words"),
    [
        ({"groupby": "conditions"}, ParameterError, "not-there", "Did you mean 'condition'?"),
        ({"groupby": None}, ParameterError, "not-there", "condition, origin, batch"),
        ({"background": "ctrls"}, ParameterError, "not-there", "There are"),
        ({"background": []}, ParameterError, "empty", "empty"),
        ({"foreground": "stin"}, ParameterError, "not-there", "Did you mean 'stim'?"),
        ({"foreground": ["stim", "ctrl"]}, ParameterError, "overlap", "ctrl is named in both"),
        ({"groups": "origins"}, ParameterError, "not-there", "Did you mean 'origin'?"),
        ({"layer": "log"}, ParameterError, "not-there", "There are counts"),
        ({"use_rep": "X_pca"}, ParameterError, "not-there", "There are X_first"),
        ({"use_rep": "X_first", "layer": "counts"}, ParameterError, "not-together", "layer"),
        ({"use_rep": "X_first", "mask_var": "a"}, ParameterError, "not-together", "mask_var"),
        ({"mask_var": "hvg"}, ParameterError, "not-there", "highly_variable"),
        ({"mask_var": np.ones(3, dtype=bool)}, ParameterError, "not-a-mask", "40 variables"),
        ({"mask_var": np.arange(GENES)}, ParameterError, "not-a-mask", "True or False"),
        ({"mask_var": np.arange(GENES) < 1}, ParameterError, "too-few-variables", "1 variable"),
        ({"n_components": 2}, ParameterError, "other-name", "n_comps"),
        ({"solvr": "joint"}, ParameterError, "unknown-option", "Did you mean solver?"),
        ({"solver": "fast"}, ParameterError, "unknown-choice", "solver"),
        ({"key_added": "a/b"}, ParameterError, "bad-key", "slash"),
        ({"random_state": -1}, ParameterError, "bad-seed", "random_state"),
    ],
)
def test_bad_parameters_are_told_in_words(made, options, kind, code, words):
    with pytest.raises(kind) as told:
        tl.cica(made, **({"groupby": "condition", "background": "ctrl"} | options))
    assert told.value.code == code
    assert words in str(told.value)
    assert "cica" not in made.uns
    assert "X_cica" not in made.obsm


def without_labels(adata):
    adata.obs["condition"] = adata.obs["condition"].where(adata.obs["origin"] != "d1")


def without_donors(adata):
    adata.obs["origin"] = adata.obs["origin"].where(adata.obs["origin"] != "d1")


def with_few(adata):
    few = np.flatnonzero(adata.obs["condition"] == "ctrl")[:12]
    adata.obs["condition"] = np.where(np.isin(np.arange(adata.n_obs), few), "ctrl", "stim")


def with_names_twice(adata):
    adata.var_names = ["g0", *adata.var_names[:-1]]


def without_matrix(adata):
    adata.X = None


@pytest.mark.parametrize(
    ("spoil", "kind", "code", "words"),
    [
        (without_labels, DataError, "labels-missing", "80 cells have no value"),
        (without_donors, GroupsError, "groups-missing", "80 cells"),
        (with_few, DataError, "few-cells", "the background has 12 cells"),
        (with_names_twice, FeaturesError, "same-names", "var_names_make_unique"),
        (without_matrix, DataError, "no-matrix", "There are counts"),
    ],
)
def test_bad_cells_are_told_in_words(adata, spoil, kind, code, words):
    spoil(adata)
    with pytest.raises(kind) as told:
        tl.cica(adata, "condition", "ctrl", groups="origin")
    assert told.value.code == code
    assert words in str(told.value)


def test_raw_counts_are_warned_of(adata):
    with pytest.warns(DelicateDataWarning, match=r"normalize_total.*log1p") as told:
        tl.cica(adata, "condition", "ctrl", layer="counts", groups="origin", n_comps=1)
    assert [each.message.code for each in told] == ["raw-counts"]
    adata.layers["counts"] = sp.csr_matrix(adata.layers["counts"])
    with pytest.warns(DelicateDataWarning, match="raw counts"):
        tl.cica(adata, "condition", "ctrl", layer="counts", n_comps=1)


def test_what_is_not_anndata_and_what_has_no_result_is_told(made, fitted):
    with pytest.raises(DataTypeError) as told:
        tl.cica(made.to_df(), "condition", "ctrl")
    assert told.value.code == "not-anndata"
    for call in (tl.get_model, tl.stability, tl.significance, tl.remove_background):
        with pytest.raises(ParameterError) as missing:
            call(fitted, key="other")
        assert "There are cica" in str(missing.value)
    with pytest.raises(ParameterError) as missing:
        tl.score(fitted, made)
    assert missing.value.code == "no-result"


def test_what_would_copy_a_file_is_refused(made, tmp_path):
    made.write_h5ad(tmp_path / "cells.h5ad")
    adata = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    for given, copy in ((adata, True), (adata[:400], False)):
        with pytest.raises(ParameterError) as told:
            tl.cica(given, "condition", "ctrl", n_comps=1, copy=copy)
        assert told.value.code == "backed"
    adata.file.close()


def test_a_file_by_columns_is_told(made, tmp_path):
    adata = made.copy()
    adata.X = sp.csc_matrix(adata.X)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    adata = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    with pytest.raises(DataError) as told:
        tl.cica(adata, "condition", "ctrl")
    assert told.value.code == "stored-by-columns"
    adata.file.close()


@pytest.mark.slow
def test_stimulated_blood_cells_have_two_interferon_programmes(real_data):
    """Of all cells, and of myeloid cells, by the 2000 genes of largest variance."""
    adata = kang_anndata(real_data)
    mean = np.asarray(adata.X.mean(axis=0)).ravel()
    variance = np.asarray(adata.X.multiply(adata.X).mean(axis=0)).ravel() - mean**2
    adata.var["varies"] = np.argsort(np.argsort(-variance)) < 2000
    tl.cica(adata, "condition", "ctrl", groups="donor", mask_var="varies", n_comps=2)
    genes = tl.rank_genes(adata, test=False, n_genes=20)
    leading = [set(own) for _, own in genes.groupby("pattern")["gene"]]
    common, myeloid = {"IFIT1", "IFIT3", "ISG15", "MX1"}, {"CXCL10", "CXCL11", "APOBEC3A", "IDO1"}
    assert any(common <= own for own in leading)
    assert any(myeloid <= own for own in leading)
    assert adata.uns["cica"]["p_values"][0] <= 0.005


def test_the_estimator_points_to_this_room(made):
    with pytest.raises(DataError, match=r"contrica\.tl\.cica") as told:
        ContrastiveICA().fit(made)
    assert told.value.code == "anndata"


# --- genes ---


def test_genes_are_ranked_by_effect_and_tested_over_donors(made, tmp_path):
    adata = tl.cica(made, "condition", "ctrl", groups="origin", n_comps=2, copy=True)
    table = tl.rank_genes(adata)
    first = table[table["pattern"] == 1]
    assert set(first["gene"][: RESPONDING.size]) == {f"g{i}" for i in RESPONDING}
    assert first["effect"].abs().is_monotonic_decreasing
    model = tl.get_model(adata)
    assert_allclose(
        first.set_index("gene")["loading"].loc[list(made.var_names[:USED])], model.components_[0]
    )
    assert (first["n_donors"] == DONORS).all()
    assert (first["q_value"][: RESPONDING.size] < 0.05).all()
    assert len(tl.rank_genes(adata, test=False, n_genes=3)) == 6
    assert len(adata.uns["cica"]["genes"]) == 2 * USED
    back = read_back(adata, "h5ad", tmp_path / "cells.h5ad")
    assert_array_equal(back.uns["cica"]["genes"]["gene"], adata.uns["cica"]["genes"]["gene"])


def test_without_donors_there_are_effects_only(made):
    adata = tl.cica(made, "condition", "ctrl", n_comps=1, copy=True)
    assert list(tl.rank_genes(adata)) == ["pattern", "gene", "loading", "effect"]
    with pytest.raises(ParameterError) as told:
        tl.rank_genes(adata, test=True)
    assert told.value.code == "no-groups"
    with pytest.raises(ParameterError):
        tl.rank_genes(adata, n_genes=0)


def test_too_few_donors_are_told(made):
    adata = made[made.obs["origin"].isin(["d0", "d1"])].copy()
    few, nothing = "smallest attainable p", "no direction"
    with pytest.warns(GroupWarning, match=few), pytest.warns(PatternWarning, match=nothing):
        tl.cica(adata, "condition", "ctrl", groups="origin", n_comps=1)
    with pytest.warns(GroupWarning, match="donors could be tested"):
        table = tl.rank_genes(adata)
    assert table["p_value"].isna().all()


@pytest.mark.slow
def test_scanpy_goes_on_from_the_scores(made):
    scanpy = pytest.importorskip("scanpy")
    adata = tl.cica(made, "condition", "ctrl", n_comps=2, copy=True)
    scanpy.pp.neighbors(adata, use_rep="X_cica", transformer="sklearn")
    assert adata.obsp["distances"].shape == (adata.n_obs, adata.n_obs)
    assert adata.uns["neighbors"]["params"]["use_rep"] == "X_cica"


# --- donors that were not given ---


def told_of_donors(adata, **column):
    """What is said of a column that is not given as groups."""
    adata.obs[next(iter(column))] = next(iter(column.values()))
    with collected() as found:
        tl.cica(adata, "condition", "ctrl", n_comps=1)
    return [each for each in found if each.code == "donors-not-given"]


@pytest.mark.parametrize(
    "name",
    [
        *("donor", "donor-id", "Donor ID", "donors", "donor_name", "DonorID", "participant"),
        *("replicate", "orig.ident", "library_id", "Patient_no", "Mouse", "sample.ids"),
    ],
)
def test_a_column_of_donors_is_asked_about(adata, name):
    (told,) = told_of_donors(adata, **{name: adata.obs["origin"]})
    assert type(told) is GroupWarning
    assert f"adata.obs has a column {name} with 6 values" in told.got
    assert told.remedy.startswith(f"Pass `groups={name}`")
    assert "pair" in told.remedy
    tl.cica(adata, "condition", "ctrl", groups=name, n_comps=1)


def test_what_does_not_name_donors_is_not_asked_about(adata):
    n = adata.n_obs
    assert told_of_donors(adata, sample_size=adata.obs["origin"].to_numpy()) == []
    assert told_of_donors(adata, sample=np.arange(n) // 2) == []  # nearly every cell has its own
    assert told_of_donors(adata, donor=np.arange(n) % 2) == []
    twice = adata.copy()
    twice.obs["sample_id"] = twice.obs_names  # names cells
    twice.obs["extra"] = 1
    twice.obs.columns = [*twice.obs.columns[:-1], "sample_id"]
    assert told_of_donors(twice, other=1) == []
    adata.obs["donor"] = adata.obs["condition"].cat.rename_categories({"ctrl": "d0"})
    adata.obs.loc[adata.obs_names[::3], "donor"] = "stim"
    with collected() as found:
        tl.cica(adata, "donor", "d0", n_comps=1)
    assert "donors-not-given" not in [each.code for each in found]


def test_with_one_donor_on_a_side_no_groups_are_advised_that_would_be_refused(adata):
    donors = np.where(adata.obs["condition"] == "ctrl", "d9", adata.obs["origin"])
    (told,) = told_of_donors(adata, donor=donors)
    assert "groups" not in told.remedy
    assert "no test between them is possible" in told.remedy
    with pytest.raises(GroupsError, match="of the background have one value") as caught:
        tl.cica(adata, "condition", "ctrl", groups="donor")
    assert caught.value.code == "one-group"
    assert "background_groups" not in str(caught.value)


def test_cells_without_a_donor_are_to_be_left_out_first(adata):
    donors = adata.obs["origin"].where(adata.obs["origin"] != "d1")
    (told,) = told_of_donors(adata, donor=donors)
    assert "5 values" in told.got
    assert told.remedy.startswith("Leave out 80 cells without one, and pass `groups=donor`")
