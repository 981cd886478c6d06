"""contrica: contrastive independent component analysis.

The patterns of a foreground dataset that its background does not have::

    from contrica import ContrastiveICA
    scores = ContrastiveICA(2, random_state=0).fit_transform(X, background=Y)
"""

from contrica._version import __version__
from contrica.errors import (
    DelicateDataWarning,
    IdentifiabilityWarning,
    ParameterWarning,
    PatternWarning,
)
from contrica.estimators import (
    Background,
    ContrastiveICA,
    ContrastivePCA,
    GeneralizedContrastivePCA,
    PlainICA,
    PlainPCA,
    ProbabilisticContrastivePCA,
    ProportionalContrastiveICA,
)
from contrica.models import load, save

__all__ = [
    "Background",
    "ContrastiveICA",
    "ContrastivePCA",
    "DelicateDataWarning",
    "GeneralizedContrastivePCA",
    "IdentifiabilityWarning",
    "ParameterWarning",
    "PatternWarning",
    "PlainICA",
    "PlainPCA",
    "ProbabilisticContrastivePCA",
    "ProportionalContrastiveICA",
    "__version__",
    "load",
    "save",
]
