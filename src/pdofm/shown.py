"""Objects that show themselves in a notebook."""


class Shown:
    """A base of classes that a notebook shows as a card: what it is, its verdict, its numbers and a small picture.

    `pdofm.output.notebook` makes the cards; a class gets one by a function that is registered there.
    """

    def _repr_html_(self) -> str:
        from pdofm.output.notebook import html

        return html(self)
