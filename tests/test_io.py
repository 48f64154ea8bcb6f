"""Features in files: what comes back is bit-identical, and what is not such a file is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from test_features import BOX, FEATURES, made, points, values

import pdofm as pf
from pdofm.errors import FeaturesError
from pdofm.features import Features

CODE = {"functions": "functions are code", "concatenate-functions": "functions are code"}
SAVABLE = [name for name in FEATURES if name not in CODE]


@pytest.fixture(params=SAVABLE)
def features(request) -> Features:
    return made(request.param)


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "features.safetensors"


def header_of(path: Path) -> dict[str, str]:
    with safe_open(path, framework="numpy") as file:
        return file.metadata()


# ---- round trips


def test_a_round_trip_gives_bit_identical_features(features, path):
    pf.save(path, features)
    again = pf.load(path)
    assert type(again) is type(features)
    assert jax.tree.structure(again) == jax.tree.structure(features)
    for old, new in zip(jax.tree.leaves(features), jax.tree.leaves(again), strict=True):
        assert isinstance(new, jax.Array) == isinstance(old, jax.Array)
        assert new.dtype == old.dtype
        assert np.array_equal(new, old)
    assert np.array_equal(values(again, points()), values(features, points()))
    assert np.array_equal(again.ranks, features.ranks)


def test_the_header_can_be_read_without_this_package(features, path):
    pf.save(path, features)
    header = header_of(path)
    assert header["format"] == "pdofm-features-1"
    assert header["family"] == type(features).__name__
    assert header["size"] == str(features.size)
    assert header["pdofm"] == pf.__version__
    assert json.loads(header["box"]) == [BOX.lower.tolist(), BOX.upper.tolist()]
    assert json.loads(header["tree"])["family"] == type(features).__name__


def test_arrays_are_stored_by_name_in_double_precision(path):
    net = made("network")
    pf.save(path, net)
    with safe_open(path, framework="numpy") as file:
        assert {"first", "first_bias", "hidden", "hidden_bias"} <= set(file.keys())
        assert file.get_tensor("hidden").dtype == np.float64
        assert np.array_equal(file.get_tensor("first"), net.first)


def test_weights_that_were_rounded_take_less_space_and_come_back_exactly(path):
    net = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf).astype(np.float16).astype(float)), made("network"))
    pf.save(path, net)
    with safe_open(path, framework="numpy") as file:
        assert file.get_tensor("hidden").dtype == np.float16
    again = pf.load(path)
    assert again.hidden.dtype == np.float64
    assert np.array_equal(again.hidden, net.hidden)


@pytest.mark.parametrize(("name", "dim"), [("poisson-2d", 2), ("poisson-3d", 3)])
def test_features_that_come_with_the_package_are_loaded_by_name(name, dim):
    features = pf.load(name)
    assert (features.size, features.dim) == (500, dim)
    assert np.array_equal(features.lower, -np.ones(dim))
    assert np.array_equal(features.upper, np.ones(dim))
    folder = Path(pf.__file__).parent / "data"
    assert (folder / f"{name}.safetensors").stat().st_size < 2**20


def test_an_unknown_name_lists_the_features_that_come_with_the_package():
    with pytest.raises(FeaturesError, match=r"There is no file 'poison-2d'.*come with the package: poisson-2d, poiss"):
        pf.load("poison-2d")


@pytest.mark.parametrize("name", ["poisson-square", "poisson-lshape", "poisson-annulus", "poisson-polygon"])
def test_features_that_come_with_the_package_solve_on_other_domains(name):
    """Nine digits or more for the smooth solutions of the zoo, wherever the domain lies."""
    problem = pf.zoo.get(name)
    u = pf.solve(problem, pf.load("poisson-2d").on(problem.domain))
    assert u.converged
    assert u.errors().relative_l2 < 1e-9


def test_loaded_features_solve_like_the_saved_ones(path):
    problem = pf.zoo.get("poisson-1d")
    features = pf.NetworkFeatures(problem.domain, 20)
    pf.save(path, features)
    first, second = pf.solve(problem, features), pf.solve(problem, pf.load(path))
    assert np.array_equal(first.coefficients, second.coefficients)


def test_a_lifting_that_is_a_number_is_kept(path):
    pf.save(path, pf.HardDirichlet(made("network"), BOX, 2.5))
    on_the_boundary = np.array([-1.0, 1.0])
    found = pf.load(path).combine(jax.numpy.asarray(on_the_boundary), jax.numpy.ones((24, 1)))
    assert found.tolist() == [2.5]


def test_a_path_may_be_a_string(path):
    pf.save(str(path), made("network"))
    assert pf.load(str(path)).size == 24


# ---- writing


def test_equal_features_give_equal_files(path):
    files = set()
    for _ in range(5):
        pf.save(path, made("network"))
        files.add(path.read_bytes())
    assert len(files) == 1


def test_nothing_but_the_file_is_left_behind(path):
    for name in ("network", "random"):  # new, and over an old one
        pf.save(path, made(name))
        assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert header_of(path)["family"] == "RandomFeatures"


@pytest.mark.parametrize("name", CODE)
def test_functions_are_not_saved_and_the_old_file_stays(name, path):
    pf.save(path, made("random"))
    before = path.read_bytes()
    with pytest.raises(FeaturesError, match=r"Functions cannot be saved\. Functions are code, .* join them again"):
        pf.save(path, made(name))
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_lifting_that_is_a_function_is_not_saved(path):
    hard = pf.HardDirichlet(made("network"), BOX, lambda x: x[0])
    with pytest.raises(
        FeaturesError, match=r"A function \(the lifting of hard conditions\) cannot be saved: .*wrap them"
    ):
        pf.save(path, hard)
    assert not list(path.parent.iterdir())


class Custom(pf.RandomFeatures):
    """A family that is not of this package."""


def test_a_family_of_the_users_own_is_not_saved(path):
    with pytest.raises(FeaturesError, match=r"Custom cannot be saved\. Save features of the families of this package"):
        pf.save(path, Custom(BOX, 5))


def test_a_family_of_the_users_own_does_not_pass_for_one_of_the_package_by_its_name(path):
    namesake = type("RandomFeatures", (pf.RandomFeatures,), {})
    with pytest.raises(FeaturesError, match=r"RandomFeatures cannot be saved\. Save features of the families of this"):
        pf.save(path, namesake(BOX, 5))


# ---- files that are not what they should be


def rewritten(
    path: Path, change: Callable[[dict[str, str], dict[str, np.ndarray]], None], family: str = "random"
) -> None:
    """A saved file with its header or its arrays changed."""
    pf.save(path, made(family))
    header = header_of(path)
    with safe_open(path, framework="numpy") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    change(header, arrays)
    save_file(arrays, path, metadata=header)


def replace_in_tree(old: str, new: str) -> Callable[[dict[str, str], dict[str, np.ndarray]], None]:
    def change(header, arrays):
        assert old in header["tree"]
        header["tree"] = header["tree"].replace(old, new)

    return change


def in_boxes(path: Path, **changed: np.ndarray) -> None:
    """A saved file of two boxes with some arrays replaced."""
    rewritten(path, lambda header, arrays: arrays.update(changed), "boxes")


def truncate(path: Path, fraction: float) -> None:
    pf.save(path, made("network"))
    data = path.read_bytes()
    path.write_bytes(data[: int(fraction * len(data))])


BROKEN: dict[str, tuple[Callable[[Path], object], str]] = {
    "no file": (
        lambda path: None,
        r"There is no file '.*features\.safetensors'\. Give the path of a file that pdofm\.save",
    ),
    "folder": (lambda path: path.mkdir(), r"There is no file"),
    "half of a file": (
        lambda path: truncate(path, 0.5),
        r"is not a complete safetensors file .*truncated.*pdofm\.save",
    ),
    "a few bytes": (lambda path: truncate(path, 0.001), r"is not a complete safetensors file"),
    "empty": (lambda path: path.write_bytes(b""), r"is not a complete safetensors file"),
    "text": (lambda path: path.write_text("these are no features\n" * 50), r"is not a complete safetensors file"),
    "foreign": (
        lambda path: save_file({"weight": np.ones(3)}, path),
        r"is a safetensors file, but not of format 'pdofm-features-1' \(its header says None\)",
    ),
    "later format": (
        lambda path: rewritten(path, lambda header, arrays: header.update(format="pdofm-features-9")),
        r"not of format 'pdofm-features-1' \(its header says 'pdofm-features-9'\)",
    ),
    "unknown family": (
        lambda path: rewritten(path, replace_in_tree("RandomFeatures", "Path")),
        r"does not describe features of this package: .*unknown family 'Path'",
    ),
    "family of functions": (
        lambda path: rewritten(path, replace_in_tree("RandomFeatures", "Functions")),
        r"does not describe features of this package: .*unknown family 'Functions'",
    ),
    "abstract family": (
        lambda path: rewritten(path, replace_in_tree("RandomFeatures", "Ridges")),
        r"does not describe features of this package: .*unknown family 'Ridges'",
    ),
    "no tree": (
        lambda path: rewritten(path, lambda header, arrays: header.pop("tree")),
        r"does not describe features of this package: KeyError\('tree'\)",
    ),
    "tree that is not JSON": (
        lambda path: rewritten(path, lambda header, arrays: header.update(tree="{")),
        r"does not describe features of this package: JSONDecodeError",
    ),
    "tree of another kind": (
        lambda path: rewritten(path, lambda header, arrays: header.update(tree="[1]")),
        r"does not describe features of this package",
    ),
    "tree that is a value": (
        lambda path: rewritten(path, lambda header, arrays: header.update(tree='{"value": 3}')),
        r"does not describe features of this package",
    ),
    "undeclared field": (
        lambda path: rewritten(path, replace_in_tree('"activation"', '"values"')),
        r"does not describe features of this package: .*has the fields .*'activation'.*, the file has .*'values'",
    ),
    "unknown activation": (
        lambda path: rewritten(path, replace_in_tree('"tanh"', '"gelu"')),
        r"does not describe features of this package: .*Unknown activation 'gelu'",
    ),
    "missing array": (
        lambda path: rewritten(path, lambda header, arrays: arrays.pop("weight")),
        r"does not describe features of this package: KeyError\('weight'\)",
    ),
    "whole numbers of another kind": (
        lambda path: rewritten(path, lambda header, arrays: arrays.update(weight=np.ones((24, 2), np.int32))),
        r"does not describe features of this package: .*the array 'weight' is int32",
    ),
    "not finite": (
        lambda path: rewritten(path, lambda header, arrays: arrays.update(weight=np.full((24, 2), np.nan))),
        r"the array 'weight' is float64, or has values that are not finite",
    ),
    "wrong shape": (
        lambda path: rewritten(path, lambda header, arrays: arrays.update(bias=np.ones(7))),
        r"does not describe features of this package",
    ),
    "boxes that contain themselves": (
        lambda path: in_boxes(path, children=np.array([[0, 1], [-1, -1], [-1, -1]])),
        r"does not describe features of this package: .*do not form a tree",
    ),
    "boxes beyond the last": (
        lambda path: in_boxes(path, children=np.array([[1, 9], [-1, -1], [-1, -1]])),
        r"does not describe features of this package: .*do not form a tree",
    ),
    "boxes without polynomials": (
        lambda path: in_boxes(path, owners=np.array([-1, 0, 2])),
        r"does not describe features of this package: .*leaves without polynomials",
    ),
    "boxes of no size": (
        lambda path: in_boxes(path, patch_upper=np.array([[-1.0, 3.0], [1.0, 3.0]])),
        r"does not describe features of this package: .*boxes without an interior",
    ),
    "boxes of other shapes": (
        lambda path: in_boxes(path, cut=np.zeros(2)),
        r"does not describe features of this package: .*do not fit together",
    ),
    "boxes of a huge degree": (
        lambda path: rewritten(path, replace_in_tree('"value": 5', '"value": 99999999'), "boxes"),
        r"does not describe features of this package: .*the setting 99999999 is too large",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_holds_no_features_is_refused_with_the_reason(name, path):
    prepare, message = BROKEN[name]
    prepare(path)
    with pytest.raises(FeaturesError, match=message):
        pf.load(path)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FeaturesError, match=r"There is no folder .*missing"):
        pf.save(tmp_path / "missing" / "f.safetensors", pf.load("poisson-2d"))
