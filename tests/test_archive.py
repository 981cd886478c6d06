"""Saved models and sums: what was changed on the way is refused, what earlier versions wrote is read."""

import io
import json
import shutil
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from contrica import ContrastiveICA, ContrastivePCA, load, save
from contrica.archive import MAX_DEFLATED, SCHEMA
from contrica.errors import FileError, FileMissingError, ParameterError
from contrica.moments import DataSums
from tests.said import raises

SAVED = Path(__file__).parent / "saved"


@pytest.fixture
def rows():
    rng = np.random.default_rng(5)
    return rng.laplace(size=(300, 4)) * [3, 1, 1, 1], rng.laplace(size=(200, 4))


@pytest.fixture
def model(rows):
    return ContrastivePCA(2, alpha=1.0).fit(rows[0], background=rows[1])


@pytest.fixture
def path(model, tmp_path):
    model.save(tmp_path / "m.npz")
    return tmp_path / "m.npz"


@pytest.fixture
def sums_path(rows, tmp_path):
    DataSums(n_kept=20).update(rows[0]).save(tmp_path / "s.npz")
    return tmp_path / "s.npz"


def members(path):
    with zipfile.ZipFile(path) as zipped:
        return {name: zipped.read(name) for name in zipped.namelist()}


def rebuilt(path, parts):
    """A zip file of these bytes, whose own checksums are right."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in parts.items():
            zipped.writestr(name, content)


def stored(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_a_model_saves_itself_as_save_does(model, path, rows, tmp_path):
    save(model, tmp_path / "other.npz")
    assert members(path) == members(tmp_path / "other.npz")
    assert_allclose(load(path).transform(rows[1]), model.transform(rows[1]), rtol=0, atol=0)


def test_a_derived_model_could_not_be_loaded_and_is_not_saved(rows, tmp_path):
    class Mine(ContrastivePCA):
        pass

    mine = Mine(2, alpha=1.0).fit(rows[0], background=rows[1])
    for write in (mine.save, lambda path: save(mine, path)):
        with raises(ParameterError, "unknown-model", "model"):
            write(tmp_path / "m.npz")


def test_every_flipped_bit_is_refused_or_changes_nothing(model, path, rows):
    content, expected = path.read_bytes(), model.transform(rows[1])
    rng = np.random.default_rng(0)
    refused = 0
    for place in rng.choice(8 * len(content), 400, replace=False):
        other = bytearray(content)
        other[place // 8] ^= 1 << place % 8
        path.write_bytes(other)
        try:
            found = load(path)
        except FileError:
            refused += 1
        else:
            assert_allclose(found.transform(rows[1]), expected, rtol=0, atol=0)
            assert found.get_params() == model.get_params()
    assert refused > 300  # the others are dates, and such, of the zip file


@pytest.mark.parametrize("read", [load, DataSums.load])
def test_files_that_are_cut_short_are_refused(read, path, sums_path):
    where = path if read is load else sums_path
    content = where.read_bytes()
    for size in (0, 1, 30, len(content) // 2, len(content) - 1):
        where.write_bytes(content[:size])
        with pytest.raises(FileError):
            read(where)


def swapped(parts):
    parts["mean_.npy"], parts["contrast_ratio_.npy"] = (
        parts["contrast_ratio_.npy"],
        parts["mean_.npy"],
    )


def swapped_alike(parts):
    parts["alphas_.npy"], parts["contrast_ratio_.npy"] = stored(np.ones(2)), parts["alphas_.npy"]


def lost(parts):
    del parts["components_.npy"]


def added(parts):
    parts["fit.npy"] = stored(np.eye(2))


def in_another_order(parts):
    found = np.load(io.BytesIO(parts["components_.npy"]))
    parts["components_.npy"] = stored(np.asfortranarray(found[::-1]))


def of_another_dtype(parts):
    found = np.load(io.BytesIO(parts["components_.npy"]))
    parts["components_.npy"] = stored(found.astype(np.float32))


def with_another_number(parts):
    header = str(np.load(io.BytesIO(parts["header.npy"])))
    parts["header.npy"] = stored(np.array(header.replace('"alpha": 1.0', '"alpha": 2.0')))


def without_a_seal(parts):
    del parts["seal.npy"]


@pytest.mark.parametrize(
    "change",
    [
        *(swapped, swapped_alike, lost, added, in_another_order, of_another_dtype),
        *(with_another_number, without_a_seal),
    ],
)
def test_files_that_were_put_together_anew_are_refused(change, path):
    parts = members(path)
    change(parts)
    rebuilt(path, parts)
    with raises(FileError, "damaged", "path"):
        load(path)


def test_two_arrays_of_one_name_are_refused(path):
    parts = members(path)
    with (
        pytest.warns(UserWarning, match="Duplicate name"),
        zipfile.ZipFile(path, "a") as zipped,
    ):
        zipped.writestr("mean_.npy", parts["mean_.npy"])
    with raises(FileError, "damaged"):
        load(path)


def unsealed(parts, change):
    """As an earlier version wrote it, with a change in its header."""
    header = json.loads(str(np.load(io.BytesIO(parts["header.npy"]))))
    del header["schema"], header["arrays"], parts["seal.npy"]
    change(header)
    parts["header.npy"] = stored(np.array(json.dumps(header)))


@pytest.mark.parametrize("name", ["fit.npy", "transform.npy", "_axes.npy", "n_components.npy"])
def test_no_array_of_a_file_replaces_a_method(name, path):
    parts = members(path)
    unsealed(parts, lambda header: None)
    parts[name] = stored(np.eye(2))
    rebuilt(path, parts)
    with raises(FileError, "not-a-model"):
        load(path)


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["learnt"].update(fit=1),
        lambda header: header["learnt"].update(__class__=1),
        lambda header: header["learnt"].update(n_features_in_=3),
        lambda header: header["parameters"].update(nonsense=3),
        lambda header: header.update(model="PCA"),
        lambda header: header.update(model=[1]),
        lambda header: header.pop("learnt"),
    ],
)
def test_what_can_be_checked_of_an_earlier_version_is(change, path):
    parts = members(path)
    unsealed(parts, change)
    rebuilt(path, parts)
    with raises(FileError, "not-a-model", "path"):
        load(path)


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("mean_.npy", np.zeros(3)),
        ("components_.npy", np.zeros(4)),
        ("components_.npy", np.full((2, 4), np.nan)),
        ("components_.npy", np.full((2, 4), "a")),
        ("contrast_ratio_.npy", np.zeros((2, 2))),
    ],
)
def test_arrays_of_an_earlier_version_must_fit_together(name, array, path):
    parts = members(path)
    unsealed(parts, lambda header: None)
    parts[name] = stored(array)
    rebuilt(path, parts)
    with raises(FileError, "not-a-model"):
        load(path)


@pytest.mark.parametrize("name", ["filters_.npy", "contrast_ratio_.npy"])
def test_a_model_that_could_not_score_rows_is_refused(name, tmp_path):
    path = tmp_path / "m.npz"
    shutil.copy(SAVED / "model.npz", path)
    parts = members(path)
    del parts[name]
    rebuilt(path, parts)
    with raises(FileError, "not-a-model"):
        load(path)


def test_what_an_earlier_version_saved_is_read():
    """Both files were written before there were checksums."""
    model = load(SAVED / "model.npz")
    assert isinstance(model, ContrastiveICA)
    assert list(model.feature_names_in_) == list("wxyz")
    expected = [
        [-0.406570954991636, 0.742641941560258, -0.5285314487494521, 0.061947662390156644],
        [0.5872006249752291, 0.6346754499946502, 0.48535724130838914, -0.12965665240279392],
    ]
    assert_allclose(model.components_, expected, rtol=0, atol=0)
    sums = DataSums.load(SAVED / "sums.npz")
    assert (sums.n_samples, sums.columns, len(sums.rows())) == (3000, list("wxyz"), 50)


@pytest.mark.parametrize("field", ["n_samples", "n_features"])
def test_sums_that_count_other_rows_than_they_have_are_refused(field, sums_path):
    parts = members(sums_path)
    header = json.loads(str(np.load(io.BytesIO(parts["contrica_sums.npy"]))))
    header[field] = 100
    parts["contrica_sums.npy"] = stored(np.array(json.dumps(header)))
    rebuilt(sums_path, parts)
    with raises(FileError, "damaged"):
        DataSums.load(sums_path)
    del header["schema"], header["arrays"], parts["seal.npy"]  # as an earlier version wrote it
    parts["contrica_sums.npy"] = stored(np.array(json.dumps(header)))
    rebuilt(sums_path, parts)
    with raises(FileError, "not-sums"):
        DataSums.load(sums_path)


def test_a_file_of_a_later_version_says_so(path):
    parts = members(path)
    header = json.loads(str(np.load(io.BytesIO(parts["header.npy"]))))
    header |= {"schema": SCHEMA + 1, "version": "9.1"}
    parts["header.npy"] = stored(np.array(json.dumps(header)))
    rebuilt(path, parts)
    with raises(FileError, "newer") as caught:
        load(path)
    assert "saved by contrica 9.1" in str(caught.value)


def promising(shape):
    """An array that says it has this shape, and has hardly a byte."""
    head = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + bytes(8)


def test_a_shape_that_is_not_there_takes_no_memory(path):
    parts = members(path)
    unsealed(parts, lambda header: None)
    parts["components_.npy"] = promising((10**12, 4))
    rebuilt(path, parts)
    with raises(FileError, "not-a-model"):
        load(path)


def test_a_file_that_would_grow_a_thousandfold_is_refused(path):
    parts = members(path)
    unsealed(parts, lambda header: None)
    parts["bomb_.npy"] = stored(np.zeros(2**26))  # half a gigabyte in half a megabyte
    rebuilt(path, parts)
    assert path.stat().st_size < 2**29 / 500
    with raises(FileError, "damaged") as caught:
        load(path)
    assert "would become" in str(caught.value)


def test_a_directory_that_promises_more_than_deflate_can_give_is_refused(path):
    content = path.read_bytes()
    place = content.index(b"PK\x01\x02")  # the first member, in the directory at the end
    size = struct.unpack_from("<I", content, place + 20)[0]
    other = bytearray(content)
    struct.pack_into("<I", other, place + 24, (size + 2) * MAX_DEFLATED)
    path.write_bytes(other)
    with raises(FileError, "damaged"):
        load(path)


def test_pickles_are_not_read(path):
    parts = members(path)
    file = io.BytesIO()
    np.save(file, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    unsealed(parts, lambda header: None)
    parts["mean_.npy"] = file.getvalue()
    rebuilt(path, parts)
    with raises(FileError, "not-a-model"):
        load(path)


def test_a_path_without_a_file_is_named(tmp_path):
    for read in (load, DataSums.load):
        with raises(FileMissingError, "is-a-folder", "path"):
            read(tmp_path)
        with raises(FileMissingError, "missing", "path"):
            read(tmp_path / "none.npz")


def test_a_file_that_cannot_be_written_leaves_the_old_one(path, model, monkeypatch):
    before = path.read_bytes()

    def full(*args, **kwargs):
        raise OSError("no space left on device")

    monkeypatch.setattr(np, "savez_compressed", full)
    with pytest.raises(OSError, match="no space"):
        model.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["m.npz"]
    shutil.copy(path, path.with_name("copy.npz"))
    assert load(path.with_name("copy.npz")).n_features_in_ == 4
