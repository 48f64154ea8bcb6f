"""The Python that states and solves what the page shows: what a user would have written by hand."""

from collections.abc import Iterator, Mapping

from pdofm.studio.formula import Node
from pdofm.studio.meaning import int_or, python
from pdofm.studio.statement import Row, Statement


def as_python(statement: Statement, tol: float, seconds: float) -> str:
    """A script that solves the problem and writes a picture."""
    return "\n".join(_Script(statement).lines(tol, seconds)) + "\n"


class _Script:
    def __init__(self, statement: Statement):
        self.statement = statement
        several = len(statement.unknowns) > 1
        taken = {*statement.unknowns, *statement.numbers}
        free = (name for name in ("w", "z", "s", *(f"w{i}" for i in range(len(taken) + 1))) if name not in taken)
        self.whole = next(free) if several else statement.unknowns[0]
        self.names: Mapping[str, str] = {
            name: f"{self.whole}.{name}" if several else self.whole for name in statement.unknowns
        }
        self.point = "x, t" if statement.has_time else "x"

    def lines(self, tol: float, seconds: float) -> Iterator[str]:
        """The lines of the script."""
        statement = self.statement
        yield from ("import jax.numpy as jnp", "import pdofm as pf", "")
        for name, number in statement.numbers.items():
            yield f"{name} = {int_or(number)!r}"
        if statement.numbers:
            yield ""
        yield statement.sketch.code
        if statement.end is not None:
            yield f"domain = pf.SpaceTime(domain, {int_or(statement.end)!r})"
        yield "problem = pf.Problem("
        yield "    domain,"
        yield f"    operator=lambda {self.whole}, {self.point}: {self._side(statement.lefts)},"
        yield f"    source=lambda {self.point}: {self._side(statement.rights)},"
        yield "    conditions=["
        for row in statement.rows:
            yield f"        {self._condition(row)},"
        for name, pair in zip(statement.unknowns, statement.initial, strict=False):
            yield f"        {self._initial(name, *pair)},"
        yield "    ],"
        if len(statement.unknowns) > 1:
            yield f"    unknowns={dict.fromkeys(statement.unknowns, 1)!r},".replace("'", '"')
        yield ")"
        yield f"solution = pf.solve(problem, tol={tol:g}, max_seconds={seconds:g})"
        yield "print(solution)"
        yield 'solution.plot("solution.png")'

    def _text(self, node: Node) -> str:
        return python(node, self.names, self.statement.has_time)

    def _side(self, nodes: tuple[Node, ...]) -> str:
        if len(nodes) == 1:
            return self._text(nodes[0])
        return f"jnp.stack([{', '.join(f'jnp.asarray({self._text(node)}, dtype=float)' for node in nodes)}])"

    def _condition(self, row: Row) -> str:
        part = f"domain.part({', '.join(map(_quoted, row.parts))})"
        right, name = self._text(row.right), f"name={_quoted(row.name)}"
        arguments = f"{self.point}, normal"
        if row.left is not None:
            return f"pf.Condition(lambda {self.whole}, {arguments}: {self._text(row.left)} - ({right}), {part}, {name})"
        kind = "Dirichlet" if row.kind == "value" else "Neumann"
        return f"pf.{kind}(lambda {arguments}: {right}, {part}{self._unknown(row.unknown)}, {name})"

    def _initial(self, name: str, first: Node, velocity: Node | None) -> str:
        more = "" if velocity is None else f", velocity=lambda {self.point}: {self._text(velocity)}"
        unknown, title = self._unknown(name), _quoted(f"initial {name}")
        return f"pf.Initial(lambda {self.point}: {self._text(first)}{more}{unknown}, name={title})"

    def _unknown(self, name: str) -> str:
        return f", unknown={_quoted(name)}" if len(self.statement.unknowns) > 1 else ""


def _quoted(text: str) -> str:
    return f'"{text}"'
