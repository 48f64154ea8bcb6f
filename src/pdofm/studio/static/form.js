// The forms of the statement: every input edits the model and says that it has changed.

import { kinds, presets } from "./presets.js";
import { examples, numbersOf } from "./sketch.js";

const $ = (id) => document.getElementById(id);
const numbers = (text) => text.split(/[\s,]+/).filter(Boolean).map(Number);

function element(tag, properties = {}, ...children) {
  const { field, label, ...rest } = properties, made = Object.assign(document.createElement(tag), rest);
  if (field) made.dataset.field = field;
  if (label) made.setAttribute("aria-label", label);
  made.append(...children);
  return made;
}

function input(value, change, properties = {}) {
  const made = element("input", { value, className: "grow", ...properties });
  made.addEventListener("input", () => change(made.value));
  return made;
}

function select(options, value, change, properties = {}) {
  const made = element("select", properties, ...Object.entries(options).map(([key, text]) => new Option(text, key, false, key === value)));
  made.addEventListener("change", () => change(made.value));
  return made;
}

function button(text, press, label) {
  const made = element("button", { type: "button", textContent: text, label });
  made.addEventListener("click", press);
  return made;
}

const error = (field) => {
  const made = element("p", { className: "error" });
  made.dataset.error = field;
  return made;
};

// What other modules ask of the forms.
export const form = {
  handle(name, point) {
    const shown = document.querySelector(`[data-field="handle.${name}"]`);
    if (shown && shown !== document.activeElement) shown.value = point.join(", ");
  },
  showPart() {},
};

export function renderAll(model, domain, changed) {
  const { statement } = model;
  const again = () => {
    renderAll(model, domain, changed);
    changed();
  };
  renderShapes(statement, changed, again);
  renderEquations(statement, changed);
  renderHandles(statement, changed, again);
  renderConditions(statement, domain, changed, again);
}

function renderShapes({ shapes }, changed, again) {
  const row = (shape, i) =>
    element("li", {},
      element("span", { className: "name", textContent: shape.kind }),
      i ? select({ add: "added", cut: "cut out" }, shape.cut ? "cut" : "add", (value) => { shape.cut = value === "cut"; changed(); }, { label: `shape ${i + 1} is` }) : "",
      input(shape.numbers.join(", "), (text) => { shape.numbers = numbers(text); changed(); }, { field: `shapes.${i}`, label: `numbers of shape ${i + 1}, ${numbersOf[shape.kind]}`, title: numbersOf[shape.kind] }),
      button("✕", () => { shapes.splice(i, 1); if (shapes.length) shapes[0].cut = false; again(); }, `remove shape ${i + 1}`));
  $("shapes").replaceChildren(...shapes.map(row));
  $("add-shape").replaceChildren(...Object.keys(examples).map((kind) =>
    button(`+ ${kind}`, () => { shapes.push({ kind, cut: false, numbers: [...examples[kind]] }); again(); }, `add a ${kind}`)));
}

function renderEquations(statement, changed) {
  const same = (name) => presets[name] && presets[name].equations.every((e, i) => e.left === statement.equations[i]?.left);
  const name = Object.keys(presets).find(same) ?? "my own";
  $("preset").replaceChildren(...Object.keys(presets).map((each) => new Option(each, each, false, each === name)));
  const own = () => { changed(); if (!same($("preset").value)) $("preset").value = "my own"; };
  $("equations").replaceChildren(
    element("label", { className: "line" }, "Unknowns ", input(statement.unknowns.join(", "), (text) => {
      statement.unknowns = text.split(/[\s,]+/).filter(Boolean);
      resize(statement);
      renderRows(statement, own);
      form.conditions();
      changed();
    }, { field: "unknowns" })),
    error("unknowns"),
    element("div", { id: "equation-rows" }),
    error("equations"));
  $("parameters").value = Object.entries(statement.parameters).map(([key, value]) => `${key} = ${value}`).join(", ");
  $("parameters").oninput = () => { statement.parameters = parameters($("parameters").value); changed(); };
  $("end").value = statement.end ?? "";
  $("end").oninput = () => {
    const text = $("end").value.trim(), number = Number(text);
    statement.end = text ? (Number.isFinite(number) ? number : text) : null; // what is not a number is refused
    resize(statement);
    renderRows(statement, own);
    changed();
  };
  renderRows(statement, own);
}

// "k = 10, a = 0.5" as an object; what is not a number is sent as it is, and refused with a message.
function parameters(text) {
  const pairs = text.split(",").map((each) => each.split("=").map((side) => side.trim())).filter(([name]) => name);
  return Object.fromEntries(pairs.map(([name, value]) => [name, value && Number.isFinite(Number(value)) ? Number(value) : value ?? ""]));
}

// As many equations, rows of conditions and initial values as there are unknowns.
function resize(statement) {
  const count = statement.unknowns.length, fill = (list, make) => { while (list.length < count) list.push(make(list.length)); list.length = count; };
  fill(statement.equations, (i) => ({ left: `-lap(${statement.unknowns[i]})`, right: "0" }));
  for (const each of statement.conditions) fill(each.rows, () => ({ kind: "value", left: "", right: "0" }));
  if (statement.end === null) statement.initial = [];
  else fill(statement.initial, () => ({ value: "0", velocity: "" }));
}

function renderRows(statement, changed) {
  const edit = (object, key) => (text) => { object[key] = text; changed(); };
  $("equation-rows").replaceChildren(...statement.equations.flatMap((each, i) => [
    element("div", { className: "row" },
      input(each.left, edit(each, "left"), { field: `equations.${i}.left`, label: `left side of equation ${i + 1}` }), "=",
      input(each.right, edit(each, "right"), { field: `equations.${i}.right`, label: `right side of equation ${i + 1}` })),
    error(`equations.${i}.left`), error(`equations.${i}.right`)]));
  $("initial").replaceChildren(...statement.initial.flatMap((each, i) => [
    element("div", { className: "row" }, element("span", { className: "name", textContent: `${statement.unknowns[i]} at t = 0` }),
      input(each.value, edit(each, "value"), { field: `initial.${i}.value`, label: `initial value of ${statement.unknowns[i]}` }),
      "velocity", input(each.velocity, edit(each, "velocity"), { field: `initial.${i}.velocity`, label: `initial velocity of ${statement.unknowns[i]}`, placeholder: "none" })),
    error(`initial.${i}.value`), error(`initial.${i}.velocity`)]), error("initial"));
}

function renderHandles({ handles }, changed, again) {
  $("handles").replaceChildren(...Object.entries(handles).map(([name, point]) =>
    element("li", {}, element("span", { className: "name", textContent: name }),
      input(point.join(", "), (text) => { handles[name] = numbers(text); changed(); }, { field: `handle.${name}`, label: `place of the handle ${name}` }),
      button("✕", () => { delete handles[name]; again(); }, `remove the handle ${name}`))));
  const free = ["p", "q", "r", "s"].find((name) => !(name in handles));
  $("add-handle").disabled = !free;
  $("add-handle").onclick = () => { handles[free] = [0, 0]; again(); };
}

function renderConditions(statement, domain, changed, again) {
  const { conditions } = statement, known = domain ? domain.parts.map((part) => part.name) : [];
  const ruled = new Set(conditions.flatMap((each) => each.parts));
  const places = (parts) => Object.fromEntries([["", "all other parts"], ...[...new Set([...parts, ...known])].map((name) => [name, name])]);
  const one = (condition, i) =>
    element("div", { className: "condition" },
      element("div", { className: "row" }, "On ",
        select(places(condition.parts), condition.parts[0] ?? "", (name) => { condition.parts = name ? [name] : []; changed(); }, { field: `conditions.${i}.parts`, label: `part of condition ${i + 1}` }),
        conditions.length > 1 ? button("✕", () => { conditions.splice(i, 1); again(); }, `remove condition ${i + 1}`) : ""),
      ...condition.rows.flatMap((row, j) => [conditionRow(statement, row, `conditions.${i}.rows.${j}`, j, changed, again),
        error(`conditions.${i}.rows.${j}.left`), error(`conditions.${i}.rows.${j}.right`)]),
      error(`conditions.${i}.parts`));
  $("conditions").replaceChildren(...conditions.map(one));
  const add = (name) => {
    conditions.unshift({ parts: name ? [name] : [], rows: statement.unknowns.map(() => ({ kind: "value", left: "", right: "0" })) });
    again();
  };
  $("add-condition").onclick = () => add(known.find((name) => !ruled.has(name)) ?? known[0]);
  form.conditions = () => renderConditions(statement, domain, changed, again);
  form.showPart = (name) => {
    if (!ruled.has(name)) add(name);
    const index = conditions.findIndex((each) => each.parts.includes(name));
    document.querySelector(`[data-field="conditions.${index}.rows.0.right"]`)?.focus();
  };
}

function conditionRow(statement, row, field, j, changed, again) {
  const unknown = statement.unknowns[j], edit = (key) => (text) => { row[key] = text; changed(); };
  return element("div", { className: "row" },
    element("span", { className: "name", textContent: unknown }),
    select(kinds, row.kind, (kind) => { row.kind = kind; if (kind === "formula") row.left ||= `${unknown}_x*nx + ${unknown}_y*ny + ${unknown}`; again(); }, { label: `what is given of ${unknown}` }),
    row.kind === "formula" ? input(row.left, edit("left"), { field: `${field}.left`, label: `formula for ${unknown}` }) : "",
    row.kind === "none" ? "" : "=",
    row.kind === "none" ? "" : input(row.right, edit("right"), { field: `${field}.right`, label: `right side for ${unknown}` }));
}
