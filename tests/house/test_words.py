"""Words that the house has retired, and what a statistician writes instead.

None of them may return to README, docs and sources. The table that ``contrica reproduce`` writes has the
words that the sources had when it was written.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
GENERATED = ROOT / "docs" / "reproduction.md"
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted({*(ROOT / "docs").rglob("*.md")} - {GENERATED}),
]
SOURCES = sorted((ROOT / "src").rglob("*.py"))

# By name: how it is recognised, in any case, and what to write.
RETIRED = {
    "dealt out": (r"\bdealt\b|\bdeals\b|\bdealing\b", "permuted, permutations"),
    "packs of rows": (r"\bpacks? of rows\b", "batches"),
    "score of a weight": (
        r"\bscores? of (an? |the |all )?weights?\b|\bweight_scores?\b",
        "t-value",
    ),
    "sure": (r"\b(is|are|was|were|be|how|not) sure\b|\bsure of\b", "significant"),
    "doubt": (r"\bdoubts?\b", "rank selection, or what is uncertain"),
    "lopsided": (r"\blopsided", "skewed, skewness"),
    "leans": (r"\blean(s|ing)?\b", "skewness"),
    "bells": (r"\bbells?\b", "Gaussian kernel"),
    "drawn in": (r"\bdraw_in\b|\bdrawn? in\b(?! (grey|black|colour))", "winsorized"),
    "fan": (r"\bfans?\b", "dependent components that share an amplitude"),
    "trusted": (r"\btrusted\b", "preferred start"),
    "home": (r"(?<![./])\bhome\b", "preferred start"),
    "other knowledge": (r"\bother knowledge\b", "independent evidence"),
    "seen": (r"\bseen\b", "projected, observed, read"),
    "looked at": (r"\blooked at\b", "sampled, used, checked"),
    "at hand": (r"\bat hand\b", "in memory, known"),
    # rows that are held out are those that a fit leaves for a test
    "held": (
        r"\bheld\b(?![- ]out)|\bheld_(?!out)|_held_?\b",
        "in memory, cached, kept, stored",
    ),
    "colour of whitening": (r"\bre-?colou?r|\.colou?r\(", "dewhiten"),
    "came": (r"\bcame\b", "got"),
    "is no table": (
        r"(?<!here) is no (table|figure|tensor|number|row|file|matrix|array)\b",
        "is not a table",
    ),
    "mend": (r"\bmend(s|ed|ing)?\b", "fix"),
    "refuse_": (r"\b_?refuse_\w+", "check_"),
    "foresee": (r"foresee", "check the memory budget"),
    "not even small fits": (r"\bnot even small\b", "minimum budget"),
    "a word in time": (r"\bword in time\b|\bend in time\b", "a warning; within a limit"),
    "made data": (r"\bmade data\b", "simulated data"),
    "planted": (r"\bplanted\b", "ground truth"),
    "gather": (r"(?<![.\w])gather(s|ed|ing)?\b|\b_gather", "concentrate, collect"),
    "hangs on": (r"\bhang(s|ing)? on\b|\bhung on\b", "depends on"),
    "dear": (r"\bdear\b", "expensive"),
    "taken off": (r"\b(take|takes|taken|took) off\b", "subtracted"),
    "to be had": (r"\bto be had\b", "available"),
    "most_, least_ in names": (
        r"\b(most|least|fewest)_(?!squares)\w|\b(most|least|fewest)=|(?-i:\b(MOST|LEAST)\b)"
        r"|\b(most|least|fewest): (int|float|Annot)",
        "max_, min_",
    ),
}
# A saved model of an older version has its attributes under their old names.
OLD_NAMES = {"src/contrica/models.py": "n_rows_held_"}


def places(paths, pattern, root=ROOT):
    """``file:line: text`` of every match; a phrase may go over the end of a line."""
    for path in paths:
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for match in re.finditer(pattern.replace(" ", " +"), text.replace("\n", " "), re.I):
            number = text.count("\n", 0, match.start()) + 1
            yield f"{path.relative_to(root)}:{number}: {lines[number - 1].strip()}"


@pytest.mark.parametrize("word", RETIRED)
def test_documents_do_not_use_retired_words(word):
    pattern, instead = RETIRED[word]
    found = list(places(DOCUMENTS, pattern))
    assert not found, f"write {instead!r}:\n" + "\n".join(found)


@pytest.mark.parametrize("word", RETIRED)
def test_sources_do_not_use_retired_words(word):
    pattern, instead = RETIRED[word]
    found = [
        place
        for place in places(SOURCES, pattern)
        if OLD_NAMES.get(place.partition(":")[0], "?") not in place
    ]
    assert not found, f"write {instead!r}:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("word", "guilty", "innocent"),
    [
        ("sure", "the data are sure of it", "make sure that it exists"),
        ("drawn in", "rows were drawn in", "drawn in grey beneath"),
        ("is no table", "it is no table", "there is no table"),
        ("gather", "it gathers the shift", "client.gather(futures)"),
        ("most_, least_ in names", "MOST_HELD, fewest_rows, least=2", 'at most 5, "least_squares"'),
        (
            "held",
            "n_rows_held_, held_in_memory",
            "withheld, upheld, held-out rows, held out in turn",
        ),
        ("looked at", "rows that are looked\n    at", "look at the contrast ratio"),
    ],
)
def test_words_are_told_from_innocent_ones(word, guilty, innocent, tmp_path):
    for name, text in (("guilty", guilty), ("innocent", innocent)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = places(sorted(tmp_path.iterdir()), RETIRED[word][0], tmp_path)
    assert {place.partition(":")[0] for place in found} == {"guilty"}
