"""What a notebook shows: one card for every kind of object, as HTML that needs nothing else."""

import base64
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from PIL import Image

import pdofm as pf
from pdofm.output.notebook import html

SQUARE = pf.Box([-1, -1], [1, 1])
VOID = {"img", "br"}


class Balanced(HTMLParser):
    """Collects text, and checks that every element is closed."""

    def __init__(self, text: str):
        super().__init__()
        self.open, self.text, self.attributes = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def shown(thing) -> str:
    """The text of a card, after a look at its form and its pictures."""
    text = thing._repr_html_()
    parsed = Balanced(text)
    assert not any(name.startswith("on") for name, _ in parsed.attributes)
    assert "<script" not in text
    assert "http" not in text
    for data in re.findall(r'src="data:image/png;base64,([^"]+)"', text):
        picture = Image.open(io.BytesIO(base64.b64decode(data)))
        assert len(picture.convert("L").getcolors()) > 10  # not blank
    return " ".join(parsed.text)


def pictures(thing) -> int:
    return thing._repr_html_().count("<img ")


@pytest.fixture(scope="module")
def searched():
    return pf.solve(pf.zoo.get("poisson-square"), tol=1e-8)


def test_a_solution_shows_verdict_estimate_and_picture(searched):
    text = shown(searched)
    assert "Solution of 'poisson-square'" in text
    assert searched.verdict.message in text
    assert f"{searched.error_estimate:.1e}" in text
    assert pictures(searched) == 1


def test_the_record_of_a_search_is_text_and_a_table(searched):
    record = searched.search
    assert isinstance(record, str)
    assert record.splitlines()[0].split() == ["space", "features", "rows", "seconds", "estimate", "change", "why"]
    assert len(record.splitlines()) == 1 + len(searched.attempts)
    text = record._repr_html_()
    assert text.count("<tr") == 1 + len(searched.attempts)
    assert searched.attempts[0].space in shown(record)


def test_a_solution_that_has_not_converged_says_so():
    with pytest.warns(pf.errors.ConvergenceWarning):
        u = pf.solve(pf.zoo.get("poisson-square"), 5)
    assert u.reason in shown(u)
    assert "✓" not in shown(u)


@pytest.mark.parametrize("name", ["poisson-lshape", "kovasznay", "heat", "poisson-cube", "helmholtz-1d"])
def test_every_kind_of_problem_has_a_card(name):
    problem = pf.zoo.get(name)
    text = shown(problem)
    assert repr(problem.domain) in text
    assert all(repr(each) in text for each in problem.stated)
    assert pictures(problem) == 1


@pytest.mark.parametrize(
    "features",
    [
        pf.Chebyshev(SQUARE, degree=6),
        pf.RandomFeatures(SQUARE, 40, key=0),
        pf.NetworkFeatures(pf.Interval(0, 1), 30, key=0),
        pf.Chebyshev(pf.Box([0, 0, 0], [1, 1, 1]), degree=3),
        pf.Chebyshev(pf.Interval(0, 1), degree=0),
    ],
    ids=lambda features: f"{type(features).__name__} {features.dim}D",
)
def test_features_show_their_number_their_box_and_some_of_them(features):
    text = shown(features)
    assert type(features).__name__ in text
    assert str(features.size) in text
    assert pictures(features) == (features.dim <= 2)


def test_training_shows_its_course():
    problem = pf.zoo.get("poisson-square")
    trained = pf.pretrain(problem, pf.NetworkFeatures(problem.domain, 20, key=0), steps=20, points=64, progress=False)
    assert trained.reason in shown(trained)
    assert pictures(trained) == 1


def test_a_search_shows_what_it_has_so_far():
    seen = []

    def policy(search):
        seen.append(shown(search))
        search.attempt("few", "a first <look>", pf.Chebyshev(search.problem.domain, degree=16))
        search.attempt("more", "a second look", pf.Chebyshev(search.problem.domain, degree=20))
        seen.append(shown(search))

    pf.solve(pf.zoo.get("poisson-square"), tol=1e-4, policy=policy)
    assert "best so far" not in seen[0]
    assert "a first <look>" in seen[1]


def test_many_solutions_and_eigenvalues_have_cards():
    solver = pf.factor(pf.zoo.get("poisson-square"), pf.Chebyshev(SQUARE, degree=20))
    assert "2 of 2" in shown(solver.solve([lambda x: x[0], lambda x: x[1]]))
    interval = pf.Interval(0, np.pi)
    problem = pf.Problem(interval, lambda u, x: -pf.laplacian(u)(x), conditions=[pf.Dirichlet(0.0)])
    modes = pf.eigs(problem, 2)
    assert "estimated relative error" in shown(modes)
    assert "eigenvalue" in shown(modes[0])


def test_names_are_text_and_never_markup():
    problem = pf.zoo.get("poisson-square").replace(name="<script>alert(1)</script>")
    text = html(problem)
    assert "<script" not in text
    assert "&lt;script&gt;" in text
