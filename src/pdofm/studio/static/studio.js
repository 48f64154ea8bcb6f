// The page: a statement that the forms edit, and what the server makes of it.

import { form, renderAll } from "./form.js";
import { Picture, gradient } from "./picture.js";
import { first, presets } from "./presets.js";
import { Sketcher, tools } from "./sketch.js";

const $ = (id) => document.getElementById(id);
const picture = new Picture($("picture"));
const model = { statement: first(), given: {} };
let result = null; // of the last search that ended
let waiting = 0; // the timer of the next check

async function ask(action, body = {}) {
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  try {
    return await (await fetch(action, options)).json();
  } catch {
    return { error: "The server does not answer; is pdofm studio still running?", field: "" };
  }
}

const say = (text) => ($("status").textContent = text);
const short = (value) => (value === null || value === undefined ? "–" : value.toExponential(1));

// What is sent: the statement, and the accuracy that is asked for.
function request() {
  return { statement: model.statement, tol: Number($("tol").value), seconds: Number($("seconds").value) };
}

// Every change of the statement comes here.
function changed() {
  picture.handles = model.statement.handles;
  picture.chosen ??= Object.keys(picture.handles)[0] ?? null;
  picture.draw();
  clearTimeout(waiting);
  waiting = setTimeout(check, 250);
}

function showError({ error = "", field = "" }) {
  document.querySelectorAll("[aria-invalid]").forEach((each) => each.removeAttribute("aria-invalid"));
  document.querySelectorAll("[data-error]").forEach((each) => (each.textContent = ""));
  const input = field && document.querySelector(`[data-field="${CSS.escape(field)}"]`);
  if (input) input.setAttribute("aria-invalid", "true");
  const places = field ? [field, field.split(".")[0]] : [];
  const place = places.map((each) => document.querySelector(`[data-error="${CSS.escape(each)}"]`)).find(Boolean);
  (place ?? $("problem-error")).textContent = error;
  if (place) $("problem-error").textContent = "";
}

async function check() {
  const sent = request(), answer = await ask("check", sent);
  if (JSON.stringify(sent) !== JSON.stringify(request())) return; // it has changed since
  showError(answer);
  $("solve").disabled = Boolean(answer.error);
  if (answer.domain) {
    const names = (domain) => JSON.stringify(domain?.parts.map((part) => part.name));
    const other = JSON.stringify(picture.domain?.loops) !== JSON.stringify(answer.domain.loops);
    const renamed = names(picture.domain) !== names(answer.domain);
    picture.domain = answer.domain;
    if (other) picture.show(null);
    if (renamed) renderAll(model, answer.domain, changed);
    picture.draw();
  }
  if (answer.code) $("code").textContent = answer.code;
}

async function solve() {
  clearTimeout(waiting);
  const answer = await ask("solve", request());
  if (answer.error) return showError(answer);
  result = null;
  $("result").hidden = $("shown").hidden = $("comparison").hidden = true;
  picture.where = null;
  picture.show(null);
  watch(answer);
}

// Follow what is running until it ends.
async function watch(answer) {
  $("stop").disabled = false;
  $("solve").disabled = $("compare").disabled = true;
  for (; answer.running; answer = await ask("state")) {
    say(`Working, ${answer.seconds} s.`);
    showAttempts(answer.attempts);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  $("stop").disabled = true;
  $("solve").disabled = $("compare").disabled = false;
  if (answer.error) {
    say("It ended with an error.");
    $("problem-error").textContent = answer.error;
  } else if (answer.result?.comparison) showComparison(answer);
  else if (answer.result) await showResult(answer);
}

function cells(texts) {
  const row = document.createElement("tr");
  for (const text of texts) row.insertCell().textContent = text;
  return row;
}

function showAttempts(attempts = []) {
  if (!attempts.length) return;
  $("search").hidden = false;
  $("attempts").replaceChildren(...attempts.map((a) => cells([a.space, a.features, a.seconds, short(a.estimate), a.why])));
}

async function showResult(answer) {
  result = answer.result;
  showAttempts(answer.attempts);
  say(result.converged ? `Solved in ${answer.seconds} s.` : `Not converged after ${answer.seconds} s.`);
  $("verdict").textContent = (result.converged ? "✓ " : "! ") + result.reason;
  $("verdict").className = result.converged ? "good" : "warn";
  const numbers = { "estimated relative error": short(result.estimate), space: result.space, features: result.features, rows: result.rows, seconds: answer.seconds };
  $("numbers").replaceChildren(...Object.entries(numbers).flatMap(([name, value]) => {
    const [term, text] = [document.createElement("dt"), document.createElement("dd")];
    [term.textContent, text.textContent] = [name, value];
    return [term, text];
  }));
  $("dragged").textContent = result.draggable
    ? "Drag a handle: the picture follows."
    : Object.keys(model.statement.handles).length ? "The equation is nonlinear, or its left side contains the handle: solve again after dragging." : "";
  $("component").replaceChildren(...result.unknowns.map((name, i) => new Option(name, i)));
  $("component-label").hidden = result.components < 2;
  $("time-label").hidden = result.end === null;
  if (result.end !== null) Object.assign($("time"), { max: result.end, step: result.end / 100, value: result.end });
  $("result").hidden = $("shown").hidden = $("comparison").hidden = false;
  $("compared").hidden = true;
  showWhere();
  await refresh();
  if (result.draggable) ask("drag", { handles: model.statement.handles, ...view() }); // factored before the first move
}

function showComparison({ result: { comparison } }) {
  say("Compared.");
  $("compared").hidden = false;
  $("compared").tBodies[0].replaceChildren(
    ...comparison.map((row) => cells([row.features, row.error ?? short(row.estimate), short(row.difference), row.seconds ?? ""])),
  );
}

function showWhere() {
  picture.where = $("features").checked && result ? result.where : null;
  picture.draw();
}

function view() {
  return { component: Number($("component").value || 0), time: result.end === null ? undefined : Number($("time").value) };
}

function showImage(answer) {
  if (answer.error) return showError(answer);
  picture.show(answer);
  $("scale").hidden = false;
  [$("low").textContent, $("high").textContent] = answer.limits.map((limit) => limit.toPrecision(4));
}

async function refresh() {
  $("time-value").textContent = result.end === null ? "" : Number($("time").value).toPrecision(3);
  showImage(await ask("picture", view()));
}

// The picture follows a handle: one request at a time, always for the latest position.
const follow = { busy: false, again: false };
async function followHandle() {
  if (!result?.draggable) return;
  if (follow.busy) {
    follow.again = true;
    return;
  }
  follow.busy = true;
  do {
    follow.again = false;
    const start = performance.now(), answer = await ask("drag", { handles: model.statement.handles, ...view() });
    showImage(answer);
    if (answer.error) break;
    const spent = Math.round(performance.now() - start);
    Object.assign($("dragged").dataset, { milliseconds: spent, count: Number($("dragged").dataset.count ?? 0) + 1 });
    $("dragged").textContent = `Followed in ${spent} ms; relative residual ${short(answer.residual)}${answer.accurate ? "" : ", not accurate"}. Solve again for an error estimate and for files.`;
  } while (follow.again);
  follow.busy = false;
}

function moveHandle(name, point) {
  model.statement.handles[name] = point.map((value) => Number(value.toFixed(4)));
  form.handle(name, model.statement.handles[name]);
  changed();
  followHandle();
}

// The tools, and the pointer in the picture.
const sketcher = new Sketcher(picture, (kind, numbers) => {
  model.statement.shapes.push({ kind, numbers, cut: $("cut").checked && model.statement.shapes.length > 0 });
  renderAll(model, picture.domain, changed);
  changed();
});

function choose(tool) {
  sketcher.choose(tool);
  for (const button of $("tools").querySelectorAll("[role=radio]")) button.setAttribute("aria-checked", button.dataset.tool === tool);
}

for (const [tool, text] of Object.entries(tools)) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: text });
  button.dataset.tool = tool;
  button.setAttribute("role", "radio");
  button.addEventListener("click", () => choose(tool));
  $("tools").append(button);
}
const cut = document.createElement("label");
cut.append(Object.assign(document.createElement("input"), { type: "checkbox", id: "cut" }), " cut out");
$("tools").append(cut);
choose("move");

const at = (event) => [event.offsetX, event.offsetY];
let dragged = null;
picture.canvas.addEventListener("pointerdown", (event) => {
  picture.canvas.setPointerCapture(event.pointerId);
  if (sketcher.tool !== "move") return sketcher.press(picture.toPoint(at(event)));
  dragged = picture.handleAt(at(event));
  picture.chosen = dragged ?? picture.chosen;
  const part = dragged ? null : picture.partAt(at(event));
  if (part) form.showPart(part);
});
picture.canvas.addEventListener("pointermove", (event) => {
  const point = picture.toPoint(at(event)), value = picture.valueAt(point);
  $("probe").textContent = `x = ${point[0].toFixed(3)}, y = ${point[1].toFixed(3)}` + (value === null ? "" : `, value ${value.toPrecision(5)}`);
  if (sketcher.tool !== "move") sketcher.move(point);
  else if (dragged) moveHandle(dragged, point);
});
picture.canvas.addEventListener("pointerup", (event) => {
  if (sketcher.tool !== "move") sketcher.release(picture.toPoint(at(event)));
  dragged = null;
});
picture.canvas.addEventListener("dblclick", () => sketcher.tool === "polygon" && sketcher.finishPolygon());
picture.canvas.addEventListener("keydown", (event) => {
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
  if (event.key === "Escape") sketcher.choose(sketcher.tool);
  if (event.key === "Enter" && sketcher.tool === "polygon") sketcher.finishPolygon();
  const chosen = model.statement.handles[picture.chosen];
  if (!steps || !chosen) return;
  event.preventDefault();
  const size = ((picture.bounds[0][1] - picture.bounds[0][0]) / 100) * (event.shiftKey ? 5 : 1);
  moveHandle(picture.chosen, chosen.map((value, i) => value + size * steps[i]));
});

// The buttons and the other inputs.
$("bar").style.background = gradient;
$("statement").addEventListener("submit", (event) => {
  event.preventDefault();
  solve();
});
$("stop").addEventListener("click", () => ask("stop"));
$("tol").addEventListener("input", changed);
$("seconds").addEventListener("input", changed);
$("component").addEventListener("change", refresh);
$("time").addEventListener("input", refresh);
$("features").addEventListener("change", showWhere);
$("compare").addEventListener("click", async () => {
  const answer = await ask("compare", { size: Number($("size").value), steps: Number($("steps").value) });
  if (answer.error) showError(answer);
  else watch(answer);
});
$("copy").addEventListener("click", async () => {
  await navigator.clipboard.writeText($("code").textContent);
  say("Copied.");
});
$("preset").addEventListener("change", () => {
  if (presets[$("preset").value]) Object.assign(model.statement, structuredClone(presets[$("preset").value]));
  renderAll(model, picture.domain, changed);
  changed();
});

// A page that is loaded again shows what it showed before.
const before = await ask("state");
if (before.given?.statement) {
  model.statement = before.given.statement;
  [$("tol").value, $("seconds").value] = [before.given.tol, before.given.seconds];
}
renderAll(model, null, changed);
picture.handles = model.statement.handles;
picture.chosen = Object.keys(picture.handles)[0] ?? null;
await check();
say("Ready.");
if (before.running) watch(before);
