"""A page in the browser: draw a domain, type an equation, watch the search, drag a source.

`serve` serves the page, and `Studio` is its server, for this machine alone. `formula` reads what is typed, `sketch`
what is drawn; `reading` makes a `Statement` of both, from which follow the problem (`statement`) and its Python
(`code`). `work` solves, `dragging` follows a handle, `view` has the pictures, and `static` contains the page.
"""

from pdofm.studio.server import Studio, serve

__all__ = ["Studio", "serve"]
