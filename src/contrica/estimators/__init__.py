"""Estimators with scikit-learn's contract: ``fit(X, background=Y)``, ``transform(X)``."""

from contrica.estimators._background import Background
from contrica.estimators._contrastive_ica import ContrastiveICA
from contrica.estimators._proportional import ProportionalContrastiveICA

__all__ = ["Background", "ContrastiveICA", "ProportionalContrastiveICA"]
