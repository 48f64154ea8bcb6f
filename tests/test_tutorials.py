"""The tutorials run from their first cell to their last, and are kept without what they printed."""

import json
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

TUTORIALS = sorted((Path(__file__).parent.parent / "docs" / "tutorials").glob("*.ipynb"))


def cells(path: Path, kind: str) -> list[dict]:
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == kind]


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for cell in cells(path, "code"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            exec(compile("".join(cell["source"]), path.name, "exec"), names)  # noqa: S102
    plt.close("all")


@pytest.mark.parametrize("path", TUTORIALS, ids=lambda path: path.stem)
def test_a_tutorial_begins_with_its_title_and_keeps_no_output(path):
    assert cells(path, "markdown")[0]["source"][0].startswith("# ")
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells(path, "code"))
