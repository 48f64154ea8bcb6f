"""The challenge: rows, their judgement, and what a run writes."""

import json
import math

import numpy as np
import pytest

import pdofm as pf
from pdofm import challenge
from pdofm.adaptive.boxes import solve_in_boxes
from pdofm.challenge import flows, report
from pdofm.challenge.row import Answer, Published, Row, estimated, largest_relative
from pdofm.errors import PdofmError
from pdofm.experiments import runner


def row(
    name: str, error: float, estimate: float, converged: bool, published: float | None = None, reference: float = 0.0
) -> Row:
    answer = Answer(error, estimate, converged, "a space", 10, reference=reference)
    known = Published(published, "someone, a table")
    return Row(name, "made up", "What is it?", lambda tol: answer, 1e-8, known)


def run(rows: list[Row], out, tol: float | None = None) -> list[report.Entry]:
    cases = challenge.cases(rows, tol)
    assert runner.run(cases, 1, out) == []
    found, written = report.write(rows, cases, out)
    assert all(path.exists() for path in written)
    return found


def test_every_row_has_a_name_a_question_and_a_source_for_what_is_published():
    names = challenge.names()
    assert len(set(names)) == len(names)
    for each in challenge.rows():
        assert each.question
        assert each.published.error is None or each.published.source
        assert 0 < each.tol < 1


def test_rows_are_selected_by_name():
    assert [each.name for each in challenge.select(["kovasznay"])] == ["kovasznay"]
    assert challenge.select() == challenge.select(["all"]) == challenge.rows()
    assert 0 < len(challenge.select(quick=True)) < len(challenge.rows())
    with pytest.raises(PdofmError, match=r"kovaznay.*kovasznay"):
        challenge.select(["kovaznay"])


def test_an_answer_is_judged_by_its_own_word_and_by_the_truth(tmp_path):
    rows = [
        row("right", 1e-9, 2e-9, True, 1e-5),
        row("wrong", 1e-3, 2e-9, True),
        row("modest", 1e-3, 1e-2, False, 1e-4),
        row("few digits", 1e-3, 2e-9, True, reference=2e-3),
    ]
    right, wrong, modest, few = run(rows, tmp_path)
    assert [each.verdict for each in (right, wrong, modest, few)] == ["yes", "yes, wrongly", "no", "yes"]
    assert right.ahead == pytest.approx(1e4)
    assert modest.ahead == pytest.approx(0.1)
    assert math.isnan(wrong.ahead)


def test_an_error_that_is_not_known_is_not_ahead_of_any(tmp_path):
    (unknown,) = run([row("unknown", math.nan, 1e-9, True, 1e-5)], tmp_path)
    assert math.isnan(unknown.ahead)
    assert "inf" not in " ".join(report.cells(unknown))


def test_an_estimate_decides_whether_an_answer_has_converged():
    answer = Answer(5e-3, 1e-4, True, "a space", 10)
    assert estimated(answer, 1.3e-2, 2e-2).converged
    assert not estimated(answer, 1.3e-2, 1e-3).converged
    assert estimated(answer, 1.3e-2, 2e-2).estimate == 1.3e-2


def test_a_run_is_resumed_and_another_tolerance_is_another_run(tmp_path):
    calls = []

    def answer(tol: float) -> Answer:
        calls.append(tol)
        return Answer(tol, tol, True, "a space", 1)

    rows = [Row("counted", "made up", "How often?", answer, 1e-6)]
    assert [run(rows, tmp_path)[0].metrics["error"] for _ in range(2)] == [1e-6, 1e-6]
    assert calls == [1e-6, 1e-6]  # once cold and once hot, in the first run only
    assert run(rows, tmp_path, 1e-4)[0].metrics["error"] == 1e-4


def test_a_problem_is_solved_by_nothing_but_its_tolerance(tmp_path):
    (entry,) = run(challenge.select(["poisson-corner"]), tmp_path)
    assert entry.verdict == "yes"
    assert entry.metrics["error"] < 3e-9
    assert entry.picture
    page = (tmp_path / "report.html").read_text()
    assert "poisson-corner" in page
    assert "http" not in page.replace("http-equiv", "")  # self-contained
    assert "| poisson-corner |" in (tmp_path / "tables.md").read_text()
    assert json.loads(json.dumps(report.as_json([entry])))[0]["converged"] is True


@pytest.mark.parametrize("name", flows.PUBLISHED)
def test_velocities_in_the_cavity_agree_with_the_published_ones_to_six_digits(name):
    np.testing.assert_allclose(flows.PUBLISHED[name], flows.CENTRE_LINES[name], rtol=5e-7)


def test_the_flow_under_a_regular_lid_agrees_with_a_galerkin_method():
    reference = pf.zoo.reference("cavity-regular")
    assert reference.error < 1e-7
    assert reference.weights.sum() == pytest.approx(1.0)
    assert reference.relative_l2(solve_in_boxes(pf.zoo.get("cavity-regular"), 1e-4)) < 1e-4


def test_eigenvalues_are_compared_in_order():
    answer = challenge.select(["oscillator"])[0].answer(1e-10)
    assert answer.converged
    assert answer.error < 1e-10
    assert largest_relative([1.0, 2.0], [1.0, 4.0]) == 0.5
    assert largest_relative([1.0], [1.0, 4.0]) == math.inf
