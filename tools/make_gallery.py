"""The pictures of the gallery, docs/images/gallery: `python tools/make_gallery.py [EXAMPLE…]`, all by default.

Every example with a function `plot` is run and drawn. Its picture is made small enough for a page.
"""

import runpy
import sys
import time
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).parent.parent
GALLERY = ROOT / "docs" / "images" / "gallery"

WIDTH = 720
"""Pixels that a picture is wide, at most."""


def draw(example: Path) -> None:
    """Run an example and draw its solution."""
    names = runpy.run_path(str(example))
    if "plot" not in names:
        return
    path = GALLERY / f"{example.stem}.png"
    start = time.perf_counter()
    names["plot"](names["main"](), path)
    with Image.open(path) as picture:
        picture.thumbnail((WIDTH, WIDTH))
        picture.convert("P", palette=Image.Palette.ADAPTIVE, colors=128).save(path, optimize=True)
    print(f"{path.relative_to(ROOT)}: {path.stat().st_size // 1024} KiB, {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    GALLERY.mkdir(parents=True, exist_ok=True)
    chosen = [Path(name) for name in sys.argv[1:]] or sorted((ROOT / "examples").glob("*.py"))
    for each in chosen:
        draw(each)
