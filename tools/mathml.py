"""Formulas of the documentation as MathML, which browsers draw by themselves: no script and no network is needed.

MkDocs calls `on_page_content` for every page (`hooks` in mkdocs.yml).
"""

import html
import re
from typing import Any

from latex2mathml.converter import convert

INLINE = re.compile(r'<span class="arithmatex">\\\((.+?)\\\)</span>', re.DOTALL)
DISPLAYED = re.compile(r'<div class="arithmatex">\\\[(.+?)\\\]</div>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """The page with its formulas converted."""
    content = INLINE.sub(lambda found: _converted(found, "inline"), content)
    return DISPLAYED.sub(lambda found: _converted(found, "block"), content)


def _converted(formula: re.Match[str], display: str) -> str:
    return convert(html.unescape(formula[1]).strip(), display=display)
