"""What an experiment hands back: rows of values beside the paper's, and the table made of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from contrica.errors import FileError

__all__ = ["Result", "Row", "markdown"]


@dataclass(frozen=True)
class Row:
    """One value of ours beside the paper's.

    Parameters
    ----------
    quantity : str
        What is measured, by which method.
    values : sequence of float
        Ours, one per seed or draw.
    paper : float, str or None
        The paper's value, or its claim in words; ``None`` where it gives none.
    tolerance : float
        How far the median may lie from the paper's number and still count as the same.
    holds : bool or None
        For a claim: whether ours agree with it.
    note : str
        What a reader must know to judge the row.
    single : bool
        The paper's value is of one random draw: the question is whether it lies among ours.
    """

    quantity: str
    values: Sequence[float] | np.ndarray
    paper: float | str | None = None
    tolerance: float = 0.005
    holds: bool | None = None
    note: str = ""
    single: bool = False

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """Lower quartile, median and upper quartile of the values that are there."""
        if not len(self.values):
            return (np.nan, np.nan, np.nan)
        values = np.asarray(self.values, dtype=float)
        if np.isnan(values).all():
            return (np.nan, np.nan, np.nan)
        low, median, high = np.nanpercentile(values, [25, 50, 75])
        return float(low), float(median), float(high)

    @property
    def verdict(self) -> str:
        """Whether the paper's value was met: by the median, or by the range of ours if ``single``.

        Examples
        --------
        >>> Row("silhouette", [0.60, 0.603, 0.61], paper=0.604).verdict
        'reproduced'
        >>> Row("silhouette", [0.45], paper=0.606).verdict
        'lower'
        """
        if not len(self.values):
            return "not run"
        if self.holds is not None and self.paper is None:
            return "truth found" if self.holds else "truth not found"
        if self.holds is not None:
            return "holds" if self.holds else "does not hold"
        if not isinstance(self.paper, float | int):
            return "–"
        if not np.isfinite(self.quartiles[1]):
            return "no value"
        if self.single:
            low, high = np.nanpercentile(self.values, [2.5, 97.5])
            if low <= self.paper <= high:
                return "within ours"
            return "higher" if low > self.paper else "lower"
        difference = self.quartiles[1] - self.paper
        # rounding must not decide a value that is given to as many digits as the tolerance
        if abs(difference) <= self.tolerance * (1 + 1e-9):
            return "reproduced"
        return "higher" if difference > 0 else "lower"


@dataclass(frozen=True)
class Result:
    """The rows of one finished experiment and how they were made.

    Parameters
    ----------
    name, title : str
    quick : bool
    version : str
        Of contrica.
    seconds : float
    rows : list of Row
    data : str
        What the experiment was run on.
    missing : str
        Why it was not run, or empty.
    broken : bool
        Not run because of its data, rather than for want of them.
    key : str
        Says what the result depends on: mode, version, source text and data folder.
    n_jobs : int
        Processes.
    files : list of str
        Names of the other files in its folder.
    error : Exception or None
        What ``missing`` says, as it was raised; it is not written to files.
    """

    name: str
    title: str
    quick: bool
    version: str
    seconds: float
    rows: list[Row] = field(default_factory=list)
    data: str = ""
    missing: str = ""
    broken: bool = False
    key: str = ""
    n_jobs: int = 1
    files: list[str] = field(default_factory=list)
    error: Exception | None = None

    def to_json(self) -> str:
        """As text, exact: floats are written as they read back."""
        fields = asdict(replace(self, error=None))
        del fields["error"]
        return json.dumps(fields, indent=1, default=_plain, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Result:
        """Read what `to_json` wrote.

        Raises
        ------
        FileError
            If it is something else.
        """
        try:
            fields = json.loads(text)
            return cls(**{**fields, "rows": [Row(**row) for row in fields["rows"]]})
        except (TypeError, KeyError, ValueError) as error:
            raise FileError(
                "content",
                f"the text is not the result of an experiment: {error}",
                remedy="Run the experiment again.",
            ) from error


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} cannot be written as json")


_HEAD = """\
# Reproduction of the paper's experiments

{how}

*Ours* is the median over seeds or draws, with the quartiles in brackets where they differ; *n* counts
the values. *reproduced*: the median lies within the tolerance in brackets of the paper's number;
*within ours*: the paper's value, of one random draw, lies among the middle 95 % of ours; *higher* and
*lower*: ours lie beyond the one or the other; *holds* and *does not hold*: whether ours agree with a
claim, or lie in a range, that the paper states; *truth found*: the ground truth of simulated data
was found. "–": there is nothing to compare, because the paper gives no value or because the data are
others than its.
Silhouettes and accuracies are computed with labels; where labels also chose a parameter, as the paper
did for its rivals, the note says so.
"""


def markdown(results: Iterable[Result], how: str = "") -> str:
    """The table of all results, ``reproduction.md``.

    Parameters
    ----------
    results : iterable of Result
    how : str
        The commands that made them.
    """
    parts = [_HEAD.format(how=how).replace("\n\n\n", "\n\n")]
    for result in results:
        mode = "quick" if result.quick else "full"
        parts.append(f"\n## {result.name}: {result.title}\n")
        if result.missing:
            parts.append(f"Not run: {result.missing}\n")
            continue
        took = f"{_duration(result.seconds)} with {result.n_jobs} processes"
        parts.append(f"On {result.data}. {mode.capitalize()} run, {took}.\n")
        parts.append("| quantity | paper | ours | n | verdict | note |")
        parts.append("|---|---|---|---|---|---|")
        parts += [_line(row) for row in result.rows]
    return "\n".join(parts) + "\n"


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def _line(row: Row) -> str:
    low, median, high = row.quartiles
    ours = number(median)
    if number(low) != number(high):
        ours += f" [{number(low)}, {number(high)}]"
    paper = "–"
    verdict = row.verdict
    if isinstance(row.paper, str):
        paper = row.paper
    elif row.paper is not None:
        paper = f"{row.paper:.4g}"
        if len(row.values) and not row.single:
            verdict += f" (±{row.tolerance:.2g})"
    cells = (row.quantity, paper, ours, str(len(row.values)), verdict, row.note)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def number(value: float) -> str:
    """Three decimals below 1 where that says enough, three digits elsewhere.

    Examples
    --------
    >>> number(0.60449), number(129.868), number(0.00013), number(27.0)
    ('0.604', '130', '0.00013', '27')
    """
    if not np.isfinite(value):
        return "–"
    if value == int(value) and abs(value) < 1e4:
        return str(int(value))
    return f"{value:.3f}" if 0.01 <= abs(value) < 1 else f"{value:.3g}"
