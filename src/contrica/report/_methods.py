"""A methods paragraph for a paper, true to what was run, with its references."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy
import sklearn

from contrica._version import __version__
from contrica.estimators import ContrastiveICA
from contrica.estimators._ranking import shifted
from contrica.inference._stability import Stability
from contrica.report._material import Material
from contrica.solvers.permutation_null import LEVEL, ContrastScree

__all__ = ["REFERENCES", "Paragraph", "Reference", "methods", "versions"]


class Reference(NamedTuple):
    """A work that is cited.

    Attributes
    ----------
    text, address : str
        The address is empty where there is none.
    """

    text: str
    address: str = ""


REFERENCES = {
    "cica": Reference(
        "K. Wang, A. Maraj and A. Seigal. Contrastive independent component analysis. "
        "arXiv:2407.02357, 2024.",
        "https://arxiv.org/abs/2407.02357",
    ),
    "spm": Reference(
        "J. Kileel and J. M. Pereira. Subspace power method for symmetric tensor decomposition and "
        "generalized PCA. arXiv:1912.04007, 2019.",
        "https://arxiv.org/abs/1912.04007",
    ),
    "negentropy": Reference(
        "A. Hyvärinen. New approximations of differential entropy for independent component analysis and "
        "projection pursuit. Advances in Neural Information Processing Systems 10, 1998.",
    ),
    "sklearn": Reference(
        "F. Pedregosa et al. Scikit-learn: machine learning in Python. Journal of Machine Learning "
        "Research 12:2825–2830, 2011.",
    ),
}

SCALES = {
    "pooled": "Each variable was divided by its standard deviation over all datasets, each about its own "
    "mean.",
    "each": "In each dataset by itself, each variable was centred and divided by its standard deviation.",
}
FILLED = {
    "impute": "were imputed from the observed values of both datasets",
    "pairwise": "were left out of every cumulant that needs them",
}
ESTIMATES = {
    "unbiased": "Cumulants were estimated by k-statistics.",
    "robust": "Before cumulants were taken, the farthest hundredth of the rows was winsorized.",
}


class Paragraph(NamedTuple):
    """A paragraph and what it cites.

    Attributes
    ----------
    text : str
    references : tuple of Reference
        In the order of their numbers.
    """

    text: str
    references: tuple[Reference, ...]


def versions() -> dict[str, str]:
    """Versions of what computes.

    Returns
    -------
    dict of str to str
    """
    return {
        "contrica": __version__,
        "Python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


def methods(material: Material) -> Paragraph:
    """The paragraph, of what the model says was run.

    Parameters
    ----------
    material : Material

    Returns
    -------
    Paragraph
    """
    cited: list[str] = []

    def cite(key: str) -> str:
        if key not in cited:
            cited.append(key)
        return f"[{cited.index(key) + 1}]"

    model = material.model
    n_back = " and ".join(f"{each.n_rows} " for each in material.backgrounds)
    first = (
        f"We looked for patterns of {material.foreground.n_rows} foreground samples that {n_back}"
        f"background samples do not have, over {model.n_features_in_} variables, by contrastive "
        f"independent component analysis {cite('cica')} as implemented in contrica {__version__}."
    )
    sentences = [first, *_prepared(model), *_solved(model, cite), *_kept(model)]
    sentences += _repeated(material.stability)
    others = ", ".join(f"{name} {text}" for name, text in versions().items() if name != "contrica")
    seed = model.random_state
    told = f" (random seed {seed})" if isinstance(seed, int | np.integer) else ""
    sentences.append(f"Computations{told} used {others} {cite('sklearn')}.")
    return Paragraph(" ".join(sentences), tuple(REFERENCES[key] for key in cited))


def _prepared(model: Any) -> Iterator[str]:
    groups = getattr(model, "groups_", None)
    if groups is not None:
        yield (
            f"Samples of one group (the foreground has {len(groups)}) were not taken as independent."
        )
    missing = vars(model).get("n_missing_")
    if missing is not None and missing.any():
        yield f"{int(missing.sum())} missing values {FILLED[model.missing]}."
    if model.scale in SCALES:
        yield SCALES[model.scale]
    if model.basis_ is not None and model.basis is None:
        yield (
            f"All rows were projected on the {model.n_pcs_} leading principal components of both "
            "datasets together."
        )
    elif model.basis_ is not None:
        yield f"All rows were projected on {model.n_pcs_} given orthonormal axes."
    if model.cumulant in ESTIMATES:
        yield ESTIMATES[model.cumulant]


def _solved(model: Any, cite: Any) -> Iterator[str]:
    r, l = model.n_background_, model.n_foreground_  # noqa: E741 - the paper's ℓ
    if not isinstance(model, ContrastiveICA):
        yield (
            f"Patterns were found by Algorithm 3 of {cite('cica')}, with {r} background and {l} "
            "foreground patterns and a common background scale of "
            f"{model.background_scale_:.4g}: background patterns by the subspace power method "
            f"{cite('spm')}, foreground patterns by hierarchical tensor decomposition."
        )
        return
    if model.solver_ == "subspace":
        yield (
            "Directions were ordered by foreground over background variance, where differences of the "
            "means count as variance."
        )
        yield from _counted(model)
        yield (
            "In the span of the leading directions, independent sources were found by the rotation of "
            f"largest approximate negentropy {cite('negentropy')}."
        )
    elif model.solver_ == "joint":
        yield (
            f"{r} background and {l} foreground patterns, with their weights in both datasets, were "
            "fitted together to third and fourth cumulants by least squares, from several starts, the "
            f"subspace power method {cite('spm')} among them."
        )
        if model.rank_choice_ is not None:
            yield (
                "The numbers of patterns are those whose weights were significant (standard errors "
                f"from groups of rows, |t| above {model.rank_choice_.critical:.1f})."
            )
    else:
        yield (
            f"Patterns were found by Algorithm 2 of {cite('cica')}: the background's fourth cumulant was "
            f"decomposed into {r} patterns by the subspace power method {cite('spm')}, their part was "
            f'subtracted from the foreground\'s (deflation "{model.deflation}"), and the rest was '
            f"decomposed into {l} patterns by hierarchical tensor decomposition."
        )


def _counted(model: Any) -> Iterator[str]:
    scree = model.scree_
    if model.n_foreground is not None:
        yield f"The number of directions, {model.n_foreground}, was given."
    elif isinstance(scree, ContrastScree) and scree.n_assignments:
        what = "whole groups" if scree.unit == "groups" else "rows, taken as independent,"
        first = f"; p = {scree.p_values[0]:.2g} for the first" if scree.p_values.size else ""
        verb = "stands" if scree.chosen == 1 else "stand"
        yield (
            f"By a permutation test ({what} assigned to the datasets {scree.n_assignments} times, the "
            f"observed assignment included; directions tested in turn at level {LEVEL:g}), "
            f"{scree.chosen} of {scree.ratios.size} {verb} out{first}."
        )


def _kept(model: Any) -> Iterator[str]:
    kept = len(model.components_)
    by = "variance along the pattern in the foreground over that in the background"
    if getattr(model, "ranked_by_", "") == "source_ratio":
        by = "the source's mean square about the background's mean, over its variance in the background"
    if getattr(model, "robust_ratio_", None) is not None:
        by += ", without the groups in which it is strongest"
    what = "pattern was" if kept == 1 else "patterns were"
    last = int(shifted(model).sum())
    only = (
        "one that only shifts the mean is" if last == 1 else f"{last} that only shift the mean are"
    )
    also = f"; the {only} ranked last" if last else ""
    yield f"{kept} {what} kept, ranked by contrast ratio ({by}){also}."
    left = len(getattr(model, "left_out_shifts_", ()))
    if left:
        more = "pattern that only shifts" if left == 1 else "patterns that only shift"
        yield f"{left} {more} the mean of the foreground {'was' if left == 1 else 'were'} not kept."


def _repeated(repeated: Stability | str) -> Iterator[str]:
    if not isinstance(repeated, Stability):
        return
    if repeated.n_resamples:
        yield (
            f"Stability was assessed by fitting {repeated.n_resamples} bootstrap resamples of "
            f"{repeated.unit} and matching patterns by the correlation of their scores."
        )
    else:
        yield "Stability was assessed by leaving out each group in turn."
