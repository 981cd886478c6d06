"""Malformed files of rows, and altered files of models; what each may end in. Belongs to `fuzz.py`."""

import gzip
import io
import json
import shutil
import signal
import warnings
import zipfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from contrica import ContrastiveICA, ContrastivePCA, load
from contrica.errors import ContricaError, FileError
from contrica.moments import DataSums

# Seconds of computing that no command on so few rows may take.
PATIENCE = 60
CELLS = ["NA", "", "#", "1,5", '"', "1;2", "x", "1e400", "nan", "0x1f", "\0", "١", "-", "1 2", "'"]


class Hang(BaseException):
    """A call took longer than it may."""


def rows(n=30, p=4):
    return np.random.default_rng(0).laplace(size=(n, p)) * [3, 1, 1, 1]


# --- good files, of every kind ---


def write_all(folder):
    """One good file of each kind that can be written here; their paths."""
    X = rows()
    text = "\n".join(["a,b,c,d", *(",".join(map(str, row)) for row in X.tolist())]) + "\n"
    (folder / "t.csv").write_text(text)
    (folder / "i.csv").write_text(
        "\n".join(["s,a,b,c,d", *(f"r{i}," + ",".join(map(str, r)) for i, r in enumerate(X))])
    )
    (folder / "t.tsv").write_text(text.replace(",", "\t"))
    (folder / "t.csv.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    np.save(folder / "t.npy", X)
    np.savez(folder / "t.npz", X=X)
    np.savez_compressed(folder / "c.npz", X=X)
    sparse = sp.random(30, 4, 0.6, format="csr", random_state=0)
    for form in ("csr", "csc", "coo", "bsr"):
        sp.save_npz(folder / f"{form}.npz", sparse.asformat(form))
    try:
        import anndata
        import h5py
        import pandas as pd
        import zarr
    except ImportError:
        return sorted(folder.iterdir())
    with h5py.File(folder / "t.h5", "w") as file:
        file["X"] = X
    obs = pd.DataFrame(index=[f"c{i}" for i in range(30)])
    for name, values in (("dense", X), ("sparse", sparse)):
        cells = anndata.AnnData(values, obs=obs, var=pd.DataFrame(index=list("abcd")))
        cells.write_h5ad(folder / f"{name}.h5ad")
    zarr.create_array(store=str(folder / "t.zarr"), shape=X.shape, chunks=(7, 4), dtype="f8")[:] = X
    pd.DataFrame(X, columns=list("abcd")).to_parquet(folder / "t.parquet")
    return sorted(folder.iterdir())


# --- damage ---


def damaged(content, rng):
    """Bytes with a few flipped, cut off, inserted, left out, zeroed or doubled."""
    content = bytearray(content)
    for _ in range(1 + rng.geometric(0.6)):
        if not content:
            break
        place, kind = int(rng.integers(len(content))), rng.integers(7)
        length = int(min(rng.geometric(0.05), len(content) - place))
        if kind <= 1:
            content[place] ^= 1 << rng.integers(8)
        elif kind == 2:
            del content[place:]
        elif kind == 3:
            content[place:place] = rng.bytes(length)
        elif kind == 4:
            del content[place : place + length]
        elif kind == 5:
            content[place : place + length] = bytes(length)
        else:
            content[place:place] = content[place : place + length]
    return bytes(content)


def retyped(text, rng):
    """A text table with cells, lines or the header changed."""
    lines = [line.split(",") for line in text.splitlines()]
    for _ in range(1 + rng.integers(3)):
        line = lines[rng.integers(len(lines))] if rng.random() < 0.6 else lines[rng.integers(2)]
        place, kind = int(rng.integers(len(line))) if line else 0, rng.integers(6)
        if kind == 0 and line:
            del line[place]
        elif kind == 1:
            line.insert(place, CELLS[rng.integers(len(CELLS))])
        elif kind == 2:
            lines.insert(int(rng.integers(len(lines))), ["# a remark"])
        elif kind == 3:
            lines.remove(line)
        elif line:
            line[place] = CELLS[rng.integers(len(CELLS))]
        if not lines:
            break
    return "\n".join(map(",".join, lines))


def spoil(path, rng):
    """Damage a file, or one file of a folder."""
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.is_file())
        spoil(files[rng.integers(len(files))], rng)
        return
    if path.suffix == ".csv" and rng.random() < 0.7:
        path.write_text(retyped(path.read_text(), rng))
    elif path.suffix == ".json" and rng.random() < 0.7:
        path.write_text(retyped_json(path.read_text(), rng))
    elif path.suffix == ".npz" and rng.random() < 0.7:
        rebuild(path, rng)
    else:
        path.write_bytes(damaged(path.read_bytes(), rng))


def retyped_json(text, rng):
    about = json.loads(text)
    key = list(about)[rng.integers(len(about))]
    values = [[6 * 10**13, 4], [-5, 4], [30], [], None, "x", 5, {}, [4, 30], 1e308]
    about[key] = values[rng.integers(len(values))]
    return json.dumps(about)


def rebuild(path, rng):
    """A zip file whose own checksums are right, of parts that were changed."""
    with zipfile.ZipFile(path) as zipped:
        parts = {name: zipped.read(name) for name in zipped.namelist()}
    names = list(parts)
    one, two = (names[i] for i in rng.integers(len(names), size=2))
    kind = rng.integers(8)
    if kind == 0:
        parts[one], parts[two] = parts[two], parts[one]
    elif kind == 1:
        del parts[one]
    elif kind == 2:
        added = [
            "fit.npy",
            "transform.npy",
            "n_components.npy",
            "notes.txt",
            "a_.npy",
            "__class__.npy",
        ]
        parts[added[rng.integers(len(added))]] = parts[one]
    elif kind == 3:
        parts[one] = damaged(parts[one], rng)
    else:
        parts[one] = changed_array(parts[one], rng)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in parts.items():
            zipped.writestr(name, content)


def changed_array(content, rng):
    """An array of other numbers, or of another dtype, order or shape."""
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError):
        return damaged(content, rng)
    kind = rng.integers(8)
    if array.dtype.kind == "U" and array.ndim == 0:  # a header
        text = str(array)
        place = int(rng.integers(len(text))) if text else 0
        return stored(np.array(text[:place] + "9x{}[],:"[rng.integers(8)] + text[place + 1 :]))
    if kind == 0 and array.dtype.kind in "fiu":
        array = array.astype([np.float32, ">f8", "U5", "c16", "i1"][rng.integers(5)])
    elif kind == 1:
        array = np.asfortranarray(array.T)
    elif kind == 2:
        array = array[..., :-1] if array.ndim else array.reshape(1)
    elif kind == 3:
        array = array.ravel()
    elif array.size and array.dtype.kind in "fiu":
        array = array.copy()
        values = [10**8, -5, 0, 99] if array.dtype.kind != "f" else [np.nan, np.inf, -1e300, 0.5]
        with np.errstate(all="ignore"):
            array.flat[rng.integers(array.size)] = values[rng.integers(4)]
    return stored(array)


def stored(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


# --- the shell reads a malformed file ---


def run_file(seed, number, folder):
    """What is wrong with the outcome of one command; "refused" or "right" where nothing is."""
    from typer.testing import CliRunner

    from contrica.cli import app

    rng = np.random.default_rng([seed, number, 1])
    good = Path(folder) / "good"
    place = Path(folder) / f"case{number}"
    shutil.rmtree(place, ignore_errors=True)  # left by a process that crashed over this case
    place.mkdir()
    names = sorted(path.name for path in good.iterdir())
    name = names[rng.integers(len(names))]
    (shutil.copytree if (good / name).is_dir() else shutil.copy)(good / name, place / name)
    told = f"file {seed}:{number} {name}"
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            spoil(place / name, rng)
        out = str(place / "out")
        command = ["transform", str(Path(folder) / "model.npz"), str(place / name), "-o", out]
        if rng.random() < 0.1:
            command = ["fit", str(place / name), "-b", str(good / "t.csv"), "-o", out, "--solver"]
            command += ["subspace", "--components", "1"]
        result, trouble = invoked(CliRunner(), app, command)
        if trouble:
            return f"{told}: {trouble}"
        if result.exit_code == 0:
            return "right"
        lines = [line for line in result.output.splitlines() if line.startswith("error: ")]
        said = result.exit_code == 2 and len(lines) == 1 and "Traceback" not in result.output
        whole = not (place / "out").exists()
        return "refused" if said and whole else f"{told}: exit {result.exit_code}: {result.output}"
    finally:
        shutil.rmtree(place)


def invoked(runner, app, command):
    def hang(*_):
        raise Hang

    before = signal.signal(signal.SIGPROF, hang)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = runner.invoke(app, command)
        error = result.exception
        if error is not None and not isinstance(error, SystemExit):
            return result, f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
        cause = getattr(getattr(error, "__context__", None), "__cause__", None)
        if result.exit_code == 2 and cause is not None and not isinstance(cause, ContricaError):
            return result, f"in its own words, {type(cause).__name__}: {str(cause)[:200]}"
        return result, ""
    except Hang:
        return None, f"more than {PATIENCE} s of computing"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# --- models and sums ---


def write_models(folder):
    """Models and sums as they are saved now, and as earlier versions saved them."""
    X, Y = rows(300), np.random.default_rng(1).laplace(size=(200, 4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ContrastiveICA(2, solver="subspace", random_state=0).fit(X, background=Y).save(
            folder / "ica.npz"
        )
        ContrastivePCA(2, alpha=1.0).fit(X, background=Y).save(folder / "pca.npz")
    DataSums(n_kept=20).update(X).save(folder / "sums.npz")
    for name, header in (("ica", "header"), ("pca", "header"), ("sums", "contrica_sums")):
        with np.load(folder / f"{name}.npz") as file:
            arrays = {key: file[key] for key in file.files if key != "seal"}
        about = json.loads(str(arrays[header]))
        del about["schema"], about["arrays"]
        np.savez(folder / f"old_{name}.npz", **{**arrays, header: np.array(json.dumps(about))})


def run_model(seed, number, folder):
    """What is wrong with loading one altered file; "refused" or "right" where nothing is."""
    rng = np.random.default_rng([seed, number, 2])
    names = sorted(path.name for path in (Path(folder) / "models").iterdir())
    name = names[rng.integers(len(names))]
    path = Path(folder) / f"altered{number}.npz"
    shutil.copy(Path(folder) / "models" / name, path)
    told = f"model {seed}:{number} {name}"
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            spoil(path, rng)
        read = DataSums.load if "sums" in name else load
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = read(path)
            except FileError as error:
                return "refused" if str(error) else f"{told}: an error without words"
            if name.startswith("old"):  # numbers that were changed cannot be told without checksums
                found.summary() if "sums" in name else found.transform(rows())
                return "right"
            return (
                "right" if same(found, read(Path(folder) / "models" / name)) else f"{told}: differs"
            )
    except Exception as error:
        return f"{told}: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    finally:
        path.unlink(missing_ok=True)


def same(one, other):
    if isinstance(one, DataSums):
        pairs = zip((*one.summary(), one.rows()), (*other.summary(), other.rows()), strict=True)
        covariances = one.cumulants().covariance, other.cumulants().covariance
        return all(np.array_equal(a, b) for a, b in [*pairs, covariances])
    scores = [model.transform(rows()) for model in (one, other)]
    return np.array_equal(*scores) and one.get_params() == other.get_params()
