"""Estimators with scikit-learn's contract: ``fit(X, background=Y)``, ``transform(X)``."""

from contrica.estimators._background import Background
from contrica.estimators._contrastive_ica import ContrastiveICA
from contrica.estimators._contrastive_pca import ContrastivePCA, contrastive_pca_path
from contrica.estimators._generalized_pca import GeneralizedContrastivePCA
from contrica.estimators._plain import PlainICA, PlainPCA
from contrica.estimators._probabilistic_pca import (
    ProbabilisticContrastivePCA,
    ProbabilisticPath,
    probabilistic_pca_path,
)
from contrica.estimators._proportional import ProportionalContrastiveICA
from contrica.estimators._rank_report import report_ranks
from contrica.estimators._ranking import ranking_ratio
from contrica.estimators._refitting import ReadOnce
from contrica.estimators._summary import evidence_lines, leading_in_words

__all__ = [
    "Background",
    "ContrastiveICA",
    "ContrastivePCA",
    "GeneralizedContrastivePCA",
    "PlainICA",
    "PlainPCA",
    "ProbabilisticContrastivePCA",
    "ProbabilisticPath",
    "ProportionalContrastiveICA",
    "ReadOnce",
    "contrastive_pca_path",
    "evidence_lines",
    "leading_in_words",
    "probabilistic_pca_path",
    "ranking_ratio",
    "report_ranks",
]
