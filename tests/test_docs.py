"""The Python of the documentation runs: the blocks of a page in order, in one namespace.

A block that opens with ```python no-run is only compiled.
"""

import re
import runpy
from pathlib import Path

import jax
import pytest

DOCS = Path(__file__).parent.parent / "docs"
PAGES = [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]
FORMULA = re.compile(r"\\\((?P<inline>.+?)\\\)|\\\[(?P<block>.+?)\\\]", re.DOTALL)
FENCE = re.compile(r"^```python(?P<skip> no-run)?\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # pages write pictures and features
    text, namespace = page.read_text(), {"__name__": page.stem}
    for block in FENCE.finditer(text):
        lines_before = text.count("\n", 0, block.start("code"))
        code = compile("\n" * lines_before + block["code"], str(page), "exec")
        if not block["skip"]:
            with jax.numpy_dtype_promotion("standard"):  # as readers have it
                exec(code, namespace)  # noqa: S102 (the documentation is ours)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_python_fence_of_a_page_is_found(page):
    text = page.read_text()
    assert len(re.findall(r"^\s*```\s*(?:python|py)\b", text, re.MULTILINE)) == len(FENCE.findall(text))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_formula_of_a_page_is_drawn_without_a_script(page):
    convert = runpy.run_path(str(DOCS.parent / "tools" / "mathml.py"))["on_page_content"]
    text = re.sub(r"^ *```.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for formula in FORMULA.finditer(re.sub(r"`[^`\n]*`", "", text)):
        tag = "span" if formula["inline"] else "div"
        drawn = convert(f'<{tag} class="arithmatex">{formula[0]}</{tag}>')
        assert drawn.startswith("<math")
        assert "\\" not in drawn, formula[0]
