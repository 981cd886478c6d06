"""Every constant of the solvers has an ablation, and changing one leaves nothing behind."""

import sys
from pathlib import Path

import pytest

from contrica import ContrastiveICA
from contrica.datasets import make_synthetic

FOLDER = str(Path(__file__).parents[2] / "benchmarks")
sys.path.append(FOLDER)  # last, and only as long as needed: no other test finds its modules there
try:
    import ablation_list
    from ablation_list import ABLATIONS, BY_KEY, Rule, check_complete, module_of, patched, value_of
finally:
    sys.path.remove(FOLDER)


def test_every_constant_has_an_ablation(monkeypatch):
    check_complete()
    others = [each for each in ABLATIONS if each.key != "negentropy.N_STARTS"]
    monkeypatch.setattr(ablation_list, "ABLATIONS", others)
    with pytest.raises(LookupError, match="no ablation for N_STARTS of negentropy"):
        check_complete()


def test_a_constant_that_is_not_there_is_an_error():
    with pytest.raises(LookupError, match="NO_SUCH is in 0 of the modules"):
        module_of("spm", "NO_SUCH")


@pytest.mark.parametrize("ablation", ABLATIONS, ids=lambda ablation: ablation.key)
def test_values_are_changed_and_restored(ablation):
    before = [value_of(ablation.place, name) for name in ablation.names]
    for values in ablation.tried.values():
        with patched(ablation, values):
            now = [value_of(ablation.place, name) for name in ablation.names]
        for own, value, old in zip(now, values, before, strict=True):
            assert own != old, "the default itself is tried"
            assert isinstance(value, Rule) or own == value
    assert [value_of(ablation.place, name) for name in ablation.names] == before


def test_defaults_of_functions_and_imported_names_change_too():
    search = value_of("negentropy", "farthest_from_gaussian")
    for name, parameter in (("N_STARTS", "n_starts"), ("SKEWNESS_WEIGHT", "skewness_weight")):
        before = dict(search.__kwdefaults__)
        with patched(BY_KEY[f"negentropy.{name}"], (3,)):
            assert search.__kwdefaults__ == before | {parameter: 3}
        assert search.__kwdefaults__ == before
    data = make_synthetic(4, n_samples=500, random_state=0)
    model = ContrastiveICA(2, solver="subspace", random_state=0)
    plain = model.fit(data.foreground, background=data.background).components_
    with patched(BY_KEY["negentropy.SKEWNESS_WEIGHT"], (4.0,)):
        other = model.fit(data.foreground, background=data.background).components_
    again = model.fit(data.foreground, background=data.background).components_
    assert (plain == again).all()
    assert abs(plain - other).max() > 1e-4
