"""The page in the browser: statements, pictures, and a server that answers nobody else. See tests/page for the page."""

import copy
import http.client
import json
import re
import threading
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from typer.testing import CliRunner

import pdofm as pf
from pdofm.cli import app
from pdofm.discrete.evaluate import evaluate
from pdofm.studio import Studio
from pdofm.studio.code import as_python
from pdofm.studio.dragging import Dragging
from pdofm.studio.reading import FieldError, handle_numbers, read
from pdofm.studio.view import COARSE, Grid, drawn, where
from pdofm.studio.work import Session

# The page shows the verdict; `serve` silences warnings for its process.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

VALUE = {"kind": "value", "left": "", "right": "0"}

POISSON = {
    "shapes": [{"kind": "rectangle", "cut": False, "numbers": [0, 0, 1, 1]}],
    "parameters": {},
    "handles": {"p": [0.4, 0.5]},
    "end": None,
    "unknowns": ["u"],
    "equations": [{"left": "-lap(u)", "right": "exp(-((x-px)^2 + (y-py)^2))"}],
    "conditions": [
        {"parts": ["x0=lower"], "rows": [{"kind": "slope", "left": "", "right": "y*(1-y)*px"}]},
        {"parts": ["x0=upper"], "rows": [{"kind": "formula", "left": "u_x*nx + 2*u", "right": "py*y*(1-y)"}]},
        {"parts": [], "rows": [VALUE]},
    ],
    "initial": [],
}

OTHERS = {
    "heat": {
        "parameters": {"a": 0.2},
        "end": 0.5,
        "equations": [{"left": "u_t - dx(a*u_x) - a*u_yy", "right": "sin(pi*x)*t"}],
        "conditions": [{"parts": [], "rows": [VALUE]}],
        "initial": [{"value": "sin(pi*x)*sin(pi*y)", "velocity": ""}],
    },
    "elasticity": {
        "parameters": {"E": 2, "nu": 0.3},
        "unknowns": ["u", "v"],
        "equations": [
            {"left": "-E/(1 - nu^2)*(u_xx + (1 - nu)/2*u_yy + (1 + nu)/2*v_xy)", "right": "x"},
            {"left": "-E/(1 - nu^2)*(v_yy + (1 - nu)/2*v_xx + (1 + nu)/2*u_xy)", "right": "-1"},
        ],
        "conditions": [{"parts": [], "rows": [VALUE, VALUE]}],
    },
    "nonlinear": {
        "equations": [{"left": "-lap(u) + u^3", "right": "10"}],
        "conditions": [{"parts": [], "rows": [VALUE]}],
    },
}


def statement(name: str = "poisson") -> dict:
    return copy.deepcopy(POISSON) | copy.deepcopy(OTHERS.get(name, {}))


@pytest.mark.parametrize("name", ["poisson", *OTHERS])
def test_the_python_of_a_statement_states_the_same_problem(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    stated = read(statement(name))
    code = as_python(stated, 1e-3, 60.0)
    assert "solution = pf.solve(problem, tol=0.001, max_seconds=60)" in code
    monkeypatch.setattr(pf, "solve", lambda problem, **_: pf.zoo.get("poisson-1d"))  # the script is not solved here
    script: dict = {}
    exec(re.sub(r"solution\.plot.*", "", code), script)  # noqa: S102 (what we wrote)
    monkeypatch.undo()
    mine, written = stated.problem(), script["problem"]
    assert [term.name for term in mine.terms] == [term.name for term in written.terms]
    point = (jnp.array([0.3, 0.4]), jnp.array(0.2))[: 1 + stated.has_time]
    fields = {"u": lambda x, *t: jnp.sin(x[0] + 2 * x[1] + sum(t)), "v": lambda x, *t: jnp.exp(x[0] * x[1])}
    unknown = fields["u"] if len(stated.unknowns) == 1 else SimpleNamespace(**fields)
    sides = [(each.operator(unknown, *point), each.source(*point)) for each in (mine, written)]
    np.testing.assert_allclose(sides[0], sides[1], rtol=1e-14)
    if name == "poisson":  # the conditions, too
        solutions = [pf.solve(each, pf.Chebyshev(mine.domain, 40)) for each in (mine, written)]
        np.testing.assert_allclose(solutions[0].coefficients, solutions[1].coefficients, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["poisson", "heat"])
def test_a_picture_that_follows_a_handle_is_that_of_the_problem_with_the_handle_there(name):
    given = statement(name)
    given["equations"][0]["right"] = "exp(-((x-px)^2 + (y-py)^2))"
    before = read(given)
    features = pf.Chebyshev(before.domain, 80)
    dragging = Dragging(before, before.problem(), pf.solve(before.problem(), features))
    given["handles"]["p"] = [0.6, 0.3]
    after = read(given)
    time = after.end
    grid = Grid(after.sketch.domain, COARSE)
    expected = pf.solve(after.problem(), features)
    values = evaluate(expected.features, expected.coefficients, grid.points(time))[:, 0]
    found = dragging.at(handle_numbers(given["handles"]), time, 0)
    assert found["shape"] == grid.picture(values)["shape"]
    np.testing.assert_allclose(found["limits"], [values.min(), values.max()], rtol=1e-4, atol=1e-5 * np.ptp(values))


def test_a_picture_in_boxes_follows_a_handle():
    given = statement() | {"conditions": [{"parts": [], "rows": [VALUE]}]}
    before = read(given)
    boxes = pf.BoxPolynomials.grid(before.domain, 2, 8)
    dragging = Dragging(before, before.problem(), pf.solve(before.problem(), boxes))
    given["handles"]["p"] = [0.1, 0.9]
    expected = pf.solve(read(given).problem(), boxes)
    found = dragging.at(handle_numbers(given["handles"]), None, 0)
    values = expected(Grid(before.sketch.domain, COARSE).points(None))
    np.testing.assert_allclose(found["limits"], [values.min(), values.max()], rtol=1e-5, atol=1e-9)


def test_whether_a_handle_moves_only_data_is_known():
    assert read(statement()).moves_only_data({"px", "py"})
    moving = statement()
    moving["equations"][0]["left"] = "-lap(u) + px*u"
    assert not read(moving).moves_only_data({"px", "py"})


WRONG = [
    ("shapes", "shapes", [], "draw one first"),
    ("shapes", "shapes", [{"kind": "disk", "cut": True, "numbers": [0, 0, 1]}], "first shape must be added"),
    ("shapes", "shapes", [{"kind": "disk", "numbers": [0, 0]}], "expected a rectangle"),
    ("shapes", "shapes", [{"kind": "disk", "numbers": [0, 0, -1]}], "radius"),
    ("shapes", "shapes", [{"kind": "disk", "numbers": [0, 0, 1e9]}], "numbers between"),
    ("shapes", "shapes", [{"kind": "disk", "numbers": [0, 0, float("nan")]}], "numbers between"),
    ("shapes", "shapes", [{"kind": "__class__", "numbers": []}], "expected a rectangle"),
    ("shapes", "shapes", ["disk"], "not an object"),
    ("unknowns", "unknowns", [], "1 to 4 unknowns"),
    ("unknowns", "unknowns", ["x"], "meaning of its own"),
    ("unknowns", "unknowns", ["lambda"], "meaning of its own"),
    ("unknowns", "unknowns", ["u; import os"], "not a word"),
    ("parameters", "parameters", {"u": 1}, "used twice"),
    ("parameters", "parameters", {"px": 1}, "used twice"),
    ("parameters", "parameters", {"k": "1"}, "not a finite number"),
    ("parameters", "parameters", {"k": float("inf")}, "not a finite number"),
    ("parameters", "parameters", {"__import__": 1}, "not a word"),
    ("handles", "handles", {"pp": [0, 0]}, "called p, q, r or s"),
    ("handles", "handles", {"p": [0]}, "point of two numbers"),
    ("end", "end", -1, "positive"),
    ("equations", "equations", [], "expected 1 to 1"),
    ("equations.0.left", "equations", [{"left": "-lap(w)", "right": "0"}], "did you mean|names here"),
    ("equations.0.right", "equations", [{"left": "-lap(u)", "right": "u"}], "names here are"),
    ("equations.0.right", "equations", [{"left": "-lap(u)"}], "a text"),
    ("conditions", "conditions", [], "expected 1 to"),
    (
        "conditions.0.parts",
        "conditions",
        [{"parts": ["circle"], "rows": [VALUE]}],
        "parts of the boundary are x0=lower",
    ),
    ("conditions", "conditions", [{"parts": ["x0=lower"], "rows": [VALUE]}], "x0=upper has no condition"),
    ("conditions", "conditions", [{"parts": [], "rows": [VALUE]}] * 2, "Only one condition"),
    ("conditions.1.parts", "conditions", [{"parts": ["x0=lower"], "rows": [VALUE]}] * 2, "two conditions"),
    ("conditions.0.rows.0", "conditions", [{"parts": [], "rows": [{"kind": "eval"}]}], "value, slope, formula, none"),
    ("conditions.0", "conditions", [{"parts": [], "rows": []}], "one row for each unknown"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_what_is_wrong_in_a_statement_is_said_at_its_field(number):
    field, key, bad, message = WRONG[number]
    with pytest.raises(FieldError, match=message) as refused:
        read(statement() | {key: bad})
    assert refused.value.field == field
    json.dumps(str(refused.value))


def test_a_drawn_domain_has_closed_curves_and_named_parts():
    given = statement()
    given["shapes"].append({"kind": "disk", "cut": True, "numbers": [0.5, 0.5, 0.2]})
    found = drawn(read(given).domain)
    assert len(found["loops"]) == 2
    assert [part["name"] for part in found["parts"]] == ["x0=lower", "x0=upper", "x1=lower", "x1=upper", "circle"]
    assert all(loop[0] == loop[-1] for loop in found["loops"])
    assert found["bounds"] == [[0.0, 1.0], [0.0, 1.0]]


def test_where_features_are_is_known():
    plate = pf.Box([-1, -1], [1, 1]) - pf.Disk([0.1, 0.2], 0.3)
    joined = pf.Concatenate(
        pf.Chebyshev(plate, 30), pf.HoleFunctions(plate, degree=3), pf.CornerFunctions(plate, convex=True)
    )
    found = where(joined)
    assert found["boxes"] == [[-1, -1, 1, 1]]
    assert any(np.allclose(point, [0.1, 0.2]) for point in found["points"])
    assert any(np.allclose(point, [1, 1]) for point in found["points"])
    assert len(where(pf.BoxPolynomials.grid(pf.Box([0, 0], [1, 1]), 3, 2))["boxes"]) == 9


@pytest.fixture(scope="module")
def server():
    with Studio() as studio:
        thread = threading.Thread(target=studio.serve_forever, daemon=True)
        thread.start()
        yield studio
        studio.shutdown()


def send(server, method, path, body=None, **headers):
    """An answer as (status, headers, body)."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    text = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    given = {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    try:
        connection.request(method, path, text, given)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


def post(server, action, body=None):
    status, _, text = send(server, "POST", f"/{server.token}/{action}", {} if body is None else body)
    return status, json.loads(text)


def solved(server, given, tol=1e-4):
    """The state after a search."""
    status, state = post(server, "solve", {"statement": given, "tol": tol, "seconds": 30})
    assert status == 200, state
    server.session.job.join(60.0)
    return post(server, "state")[1]


def test_the_page_and_its_files_are_served_with_the_token(server):
    status, headers, page = send(server, "GET", f"/{server.token}/")
    assert status == 200
    assert b"<title>pdofm studio</title>" in page
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"
    used = set(re.findall(rb'(?:src|href)="([a-z]+\.(?:js|css))"', page))
    scripts = {b"studio.js"}
    while used:
        name = used.pop()
        scripts.add(name)
        status, headers, text = send(server, "GET", f"/{server.token}/{name.decode()}")
        assert status == 200, name
        used |= set(re.findall(rb'from "\./([a-z]+\.js)"', text)) - scripts
        for network in re.findall(rb"https?://[^\s\"']+", text):
            pytest.fail(f"{name!r} asks {network!r}")


@pytest.mark.parametrize(
    "path", ["/", "/studio.js", "/state", "//", "/{wrong}/", "/{wrong}/studio.js", "/x{token}/", "/{token}x/"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_requests_without_the_token_are_refused(server, method, path):
    given = path.format(token=server.token, wrong="A" * len(server.token))
    status, _, text = send(server, method, given, {} if method == "POST" else None)
    assert status == 403
    assert server.token not in text.decode()


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "example.org"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1.example.org:{port}"},
        {"Origin": "http://example.org"},
        {"Origin": "null"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ],
)
def test_requests_of_other_hosts_and_pages_are_refused_even_with_the_token(server, headers):
    given = {name: value.format(port=server.server_port) for name, value in headers.items()}
    assert send(server, "POST", f"/{server.token}/state", {}, **given)[0] == 403
    assert send(server, "GET", f"/{server.token}/", **given)[0] == 403


def test_requests_that_are_no_json_objects_are_refused(server):
    path = f"/{server.token}/check"
    assert send(server, "POST", path, b"[1]")[0] == 400
    assert send(server, "POST", path, b"{")[0] == 400
    assert send(server, "POST", path, b"[" * 100000)[0] == 400
    assert send(server, "POST", path, b"x=1", Content_Type="text/plain")[0] == 415
    assert send(server, "POST", path, b"{}", Content_Length=str(10**9))[0] == 413
    assert send(server, "GET", path)[0] == 404
    assert send(server, "POST", f"/{server.token}/shutdown", {})[0] == 404
    assert send(server, "GET", f"/{server.token}/../server.py")[0] == 404
    assert send(server, "PUT", path, {})[0] == 501


def test_a_problem_is_checked_solved_shown_dragged_and_downloaded(server):
    given = statement()
    status, checked = post(server, "check", {"statement": given, "tol": 1e-6, "seconds": 10})
    assert status == 200
    assert "error" not in checked
    assert "pf.Neumann(" in checked["code"]
    state = solved(server, given, 1e-3)
    result = state["result"]
    assert result["converged"], result
    assert result["estimate"] < 1e-3
    assert result["draggable"]
    assert state["attempts"][0]["space"] == "polynomials"
    status, picture = post(server, "picture", {})
    assert status == 200
    assert picture["shape"] == [240, 240]
    status, moved = post(server, "drag", {"handles": {"p": [0.1, 0.1]}})
    assert status == 200
    assert moved["accurate"]
    files = {name: send(server, "GET", f"/{server.token}/{name}") for name in ("picture.png", "solution.vtu")}
    assert files["picture.png"][2].startswith(b"\x89PNG")
    assert b"VTKFile" in files["solution.vtu"][2][:200]
    status, compared = post(server, "compare", {"size": 30, "steps": 2})
    assert status == 200, compared
    server.session.job.join(120.0)
    rows = post(server, "state")[1]["result"]["comparison"]
    assert [row["features"] for row in rows] == ["untrained, 30", "trained for this problem, 2 steps, 30"]
    assert all(row["difference"] < 1 for row in rows)


def test_a_saved_solution_is_downloaded_and_loads(server, tmp_path):
    given = statement() | {
        "equations": [{"left": "-lap(u)", "right": "1"}],
        "conditions": [{"parts": [], "rows": [VALUE]}],
    }
    assert solved(server, given, 1e-3)["result"]["converged"]
    status, headers, text = send(server, "GET", f"/{server.token}/solution.pdofm")
    assert status == 200, text
    assert headers["Content-Disposition"] == 'attachment; filename="solution.pdofm"'
    (tmp_path / "u.pdofm").write_bytes(text)
    loaded = pf.load(tmp_path / "u.pdofm")
    np.testing.assert_array_equal(loaded([[0.3, 0.4]]), server.session.solution([[0.3, 0.4]]))


def test_an_error_while_solving_is_told(server):
    status, answer = post(server, "solve", {"statement": statement() | {"shapes": []}})
    assert status == 422
    assert answer["field"] == "shapes"
    assert "draw one first" in answer["error"]
    status, answer = post(server, "solve", {"statement": statement(), "tol": "small"})
    assert status == 422
    assert answer["field"] == "tol"


def test_without_a_solution_there_is_nothing_to_show():
    session = Session()
    assert session.state() == {"running": False, "given": None}
    for ask in (session.picture, session.drag):
        with pytest.raises(pf.errors.PdofmError, match="solve the problem first"):
            ask({})


def test_a_search_can_be_stopped():
    session = Session()
    given = statement() | {"equations": [{"left": "-lap(u)", "right": "exp(-1000*((x-px)^2 + (y-py)^2))*1000"}]}
    session.begin({"statement": given, "tol": 1e-13, "seconds": 300})
    with pytest.raises(pf.errors.PdofmError, match="computed already"):
        session.begin({"statement": given})
    while not session.state()["attempts"] and session.job.is_running:
        session.job.join(0.05)
    session.stop()
    session.job.join(60.0)
    state = session.state()
    assert not state["running"]
    assert "interrupted" in state["result"]["reason"] or "interrupted" in state["error"] or "stopped" in state["error"]


def test_a_port_that_cannot_be_used_is_refused(server):
    with pytest.raises(pf.errors.SolveError, match="cannot be used"):
        Studio(server.server_port)
    with pytest.raises(pf.errors.SolveError, match="expected a number from 0"):
        Studio(70000)


def test_the_command_prints_an_address_with_a_token_of_its_own(monkeypatch):
    monkeypatch.setattr(Studio, "serve_forever", lambda self: None)
    urls = [CliRunner().invoke(app, ["studio"]).stdout.split("\n")[0] for _ in range(2)]
    for url in urls:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{43}/", url)
    assert urls[0][-44:] != urls[1][-44:]
