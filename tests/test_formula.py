"""Formulas that are typed: what they mean, and that nothing else is a formula."""

import jax.numpy as jnp
import numpy as np
import pytest

import pdofm as pf
from pdofm.studio.formula import FormulaError, parse
from pdofm.studio.meaning import Scope, numbers_at, python, value

POINTS = np.random.default_rng(0).uniform(0.2, 0.9, (7, 2))
NAMES = ("x", "y", "k")

MEANINGS = {
    "1": lambda x, y: 1.0,
    "-2^2": lambda x, y: -4.0,
    "2^-1": lambda x, y: 0.5,
    "2^3^2": lambda x, y: 512.0,
    "2**3": lambda x, y: 8.0,
    "8/4/2 - 1 - 1": lambda x, y: -1.0,
    "--x + +y": lambda x, y: x + y,
    "-x*-y": lambda x, y: x * y,
    "(x + y)*(x - y)": lambda x, y: x**2 - y**2,
    "x/(y*k)": lambda x, y: x / (3 * y),
    "x-(y-k)": lambda x, y: x - y + 3,
    "1.5e-3*x + .5": lambda x, y: 1.5e-3 * x + 0.5,
    "e^(pi*x)": lambda x, y: np.e ** (np.pi * x),
    "sin(x)^2 + cos(x)^2": lambda x, y: 1.0 + 0 * x,
    "atan2(y, x) - atan(y/x)": lambda x, y: 0 * x,
    "max(x, y) - min(x, y)": lambda x, y: abs(x - y),
    "sqrt(abs(-x)) + asin(x) + acos(y)": lambda x, y: np.sqrt(x) + np.arcsin(x) + np.arccos(y),
    "log(exp(x)) + sinh(x) - cosh(x) + tanh(y) + tan(y)": lambda x, y: x - np.exp(-x) + np.tanh(y) + np.tan(y),
    "x^k": lambda x, y: x**3,
    "x^y^0.5": lambda x, y: x ** np.sqrt(y),
}


@pytest.mark.parametrize("text", MEANINGS)
def test_a_formula_means_what_mathematics_says(text):
    node = parse(text, NAMES)
    x, y = POINTS.T
    found = numbers_at(node, Scope({"k": 3.0}, ((x, y),)), len(POINTS))
    expected = np.broadcast_to(MEANINGS[text](x, y), found.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14)
    traced = [value(node, Scope({"k": 3.0}, (jnp.asarray(point),))) for point in POINTS]
    np.testing.assert_allclose(traced, expected, rtol=1e-14, atol=1e-14)
    code = python(node, {}, has_time=False)
    written = [eval(code, {"jnp": jnp, "x": point, "k": 3.0}) for point in POINTS]  # noqa: S307 (what we wrote)
    np.testing.assert_allclose(written, expected, rtol=1e-14, atol=1e-14)


DERIVATIVES = {  # of u = x² y³ + t x
    "u": lambda x, y, t: x**2 * y**3 + t * x,
    "u_x": lambda x, y, t: 2 * x * y**3 + t,
    "u_xy": lambda x, y, t: 6 * x * y**2,
    "u_xt": lambda x, y, t: 1.0,
    "u_tt": lambda x, y, t: 0.0,
    "lap(u)": lambda x, y, t: 2 * y**3 + 6 * x**2 * y,
    "u_xx + u_yy - lap(u)": lambda x, y, t: 0.0,
    "dx(y*u_y)": lambda x, y, t: 6 * x * y**3,
    "dt(t*u)": lambda x, y, t: x**2 * y**3 + 2 * t * x,
    "dy(dx(u))": lambda x, y, t: 6 * x * y**2,
    "lap(u^2)/2 - u*lap(u)": lambda x, y, t: (2 * x * y**3 + t) ** 2 + (3 * x**2 * y**2) ** 2,
}


@pytest.mark.parametrize("text", DERIVATIVES)
def test_derivatives_in_a_formula_are_those_of_the_function(text):
    node = parse(text, ("x", "y", "t"), ["u"], "xyt")
    u = lambda x, t: x[0] ** 2 * x[1] ** 3 + t * x[0]
    x, t = jnp.array([0.7, 0.4]), jnp.array(0.3)
    expected = DERIVATIVES[text](0.7, 0.4, 0.3)
    np.testing.assert_allclose(value(node, Scope({}, (x, t), unknowns={"u": u})), expected, rtol=1e-13, atol=1e-13)
    code = python(node, {"u": "u"}, has_time=True)
    written = eval(code, {"jnp": jnp, "pf": pf, "x": x, "t": t, "u": u})  # noqa: S307 (what we wrote)
    np.testing.assert_allclose(written, expected, rtol=1e-13, atol=1e-13)


HOSTILE = [
    # what would run if a formula were Python
    "__import__('os').system('id')", "__import__", "import os", "os.system('id')", "eval('1')", "exec('1')",
    "open('/etc/passwd')", "print(1)", "exit()", "quit()", "globals()", "locals()", "vars()", "dir()",
    "getattr(x, 'y')", "setattr(x, 'y', 1)", "delattr(x, 'y')", "compile('1', '', 'eval')", "input()",
    "breakpoint()", "type(x)", "id(x)", "len(x)", "repr(x)", "x.__class__",
    "x.__class__.__mro__[1].__subclasses__()", "().__class__", "[].__class__", "''.__class__", "x.y", "(1).real",
    "1 .real", "1..real", "lambda: 0", "lambda x: x", "(lambda: 1)()", "x if y else k", "x and y", "not x",
    "x in y", "x is y", "x == y", "x != y", "x < y", "x > y", "x <= y", "x := 1", "(x := 1)", "x = 1", "x += 1",
    "x; y", "x\ny", "x, y", "[x for x in y]", "[1]", "{1}", "{1: 2}", "x[0]", "x[0](1)", "x[:]", "()", "(,)", "'x'",
    '"x"', "'' * 9", "f'{x}'", "b'x'", "`id`", "$(id)", "${x}", "{{x}}", "%s", "x % y", "x // y", "x @ y", "x & y",
    "x | y", "~x", "x << 9", "x >> 9", "!x", "x!", "@x", "#", "x # y", "\\x41", "\\u0041", "x\\", "1_000", "0x10",
    "0b1", "0o7", "1j", "1e", "1e999", "..", "...", ".", "1.2.3", "1 2", "x y", "2x",
    # what would leave the page
    "<script>alert(1)</script>", "'><img src=x onerror=alert(1)>", "javascript:alert(1)", "</textarea>",
    "'; DROP TABLE x; --", "../../etc/passwd", "file:///etc/passwd", "http://example.org", "\x00", "x\x00",
    "\x1b[31m", "x\u202ey", "ｘ", "х", "𝑥", "٣", "²", "x²", "√x", "∞", "π", "−x", "x×y", "\u200bx",
    # names that are not ours
    "_", "__", "_x", "x_", "u_", "u_z", "u_xxxxx", "u__x", "nan", "inf", "True", "None", "self", "pf", "jnp",
    "jnp.sin(x)", "np", "constructor", "__proto__", "toString()", "sin", "sin x", "sin()", "sin(x, y)", "sin((x)",
    "sin(x))", "atan2(x)", "max(x)", "lap", "lap()", "lap(x, y)", "dx", "dx()", "dt(u)", "u_t", "t", "u(x)", "x(y)",
    "k(1)", "pi(2)", "1(2)", "(x)(y)", "f(x)",
    # what is no expression
    "", " ", "\t\n", "+", "-", "*x", "/x", "^2", "x^", "x*", "x+", "x**", "x***y", "x^^y", "(", ")", "(x", "x)",
    "((", "(" * 500, ")" * 500, "-" * 900, "x^" * 400 + "x", "sin(" * 200 + "x" + ")" * 200,
    "(" * 200 + "x" + ")" * 200, "x" * 1001, "x" * 100000, "+".join(["x"] * 501), None, 1, 1.0, True, [], {}, b"x",
    ["x"], object(),
]  # fmt: skip


def test_there_are_at_least_a_hundred_hostile_formulas():
    assert len(HOSTILE) > 100


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_what_is_not_a_formula_is_refused(number):
    with pytest.raises(FormulaError) as refused:
        parse(HOSTILE[number], ["x", "y", "k"], ["u"])
    assert 10 < len(str(refused.value)) < 400


def test_huge_numbers_become_infinite_without_delay():
    with np.errstate(all="raise"):
        for text in ("9^9^9^9^9^9", "exp(exp(exp(99)))", "1/0", "0/0", "log(0)", "10^400"):
            assert not np.isfinite(numbers_at(parse(text, ()), Scope({}, ((0.0, 0.0),)), 1)).any()


def test_the_longest_formulas_can_be_evaluated_and_written():
    for text in ("+".join(["x"] * 500), "*".join(["x"] * 500), "(" * 24 + "x" + ")" * 24, "-" * 24 + "x"):
        node = parse(text, ["x"])
        assert np.isfinite(value(node, Scope({}, (jnp.array([0.9, 0.0]),))))
        compile(python(node, {}, has_time=False), "", "eval")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sin(x", "ends too early: expected a closing parenthesis"),
        ("2x", "At 'x', character 2 of the formula: expected an operator"),
        ("u.x", "Character 2 of the formula, '.', has no meaning"),
        ("kk + x", "not a name that the formula may use; did you mean k?"),
        ("foo(x)", "not a function of formulas, which are sin, cos"),
        ("sin(x, y)", "sin takes 1 argument; it was given 2"),
        ("u_t", "there is no time in this problem"),
        ("", "The formula is empty"),
    ],
)
def test_a_refusal_says_where_and_why(text, message):
    with pytest.raises(FormulaError) as refused:
        parse(text, ["x", "y", "k"], ["u"])
    assert message in str(refused.value)
