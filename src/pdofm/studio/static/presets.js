// Equations to begin with. Each is nothing but formulas, which the page shows and which can be edited.

const zero = (unknowns) => [{ parts: [], rows: unknowns.map(() => ({ kind: "value", left: "", right: "0" })) }];
const source = "50*exp(-((x-px)^2 + (y-py)^2)/0.05)";

function steady(left, parameters = {}) {
  return { unknowns: ["u"], equations: [{ left, right: source }], parameters, end: null, initial: [], conditions: zero(["u"]) };
}

export const presets = {
  Poisson: steady("-lap(u)"),
  Helmholtz: steady("-lap(u) - k^2*u", { k: 5 }),
  heat: { ...steady("u_t - a*lap(u)", { a: 0.2 }), end: 1, initial: [{ value: "0", velocity: "" }] },
  wave: {
    ...steady("u_tt - c^2*lap(u)", { c: 1 }),
    equations: [{ left: "u_tt - c^2*lap(u)", right: "0" }],
    end: 1,
    initial: [{ value: "cos(pi*x/2)*cos(pi*y/2)", velocity: "0" }],
  },
  "reaction–diffusion": {
    ...steady("u_t - a*lap(u) - r*u*(1 - u)", { a: 0.1, r: 3 }),
    equations: [{ left: "u_t - a*lap(u) - r*u*(1 - u)", right: "0" }],
    end: 1,
    initial: [{ value: "exp(-4*(x^2 + y^2))", velocity: "" }],
    conditions: [{ parts: [], rows: [{ kind: "slope", left: "", right: "0" }] }],
  },
  elasticity: {
    unknowns: ["u", "v"],
    equations: [
      { left: "-E/(1 - nu^2)*(u_xx + (1 - nu)/2*u_yy + (1 + nu)/2*v_xy)", right: "0" },
      { left: "-E/(1 - nu^2)*(v_yy + (1 - nu)/2*v_xx + (1 + nu)/2*u_xy)", right: "-1" },
    ],
    parameters: { E: 1, nu: 0.3 },
    end: null,
    initial: [],
    conditions: zero(["u", "v"]),
  },
  "my own": null,
};

// What a row of a condition gives, in words.
export const kinds = { value: "value", slope: "normal derivative", formula: "formula", none: "nothing" };

export function first() {
  return {
    shapes: [
      { kind: "rectangle", cut: false, numbers: [-1, -1, 1, 1] },
      { kind: "disk", cut: true, numbers: [0.35, 0.25, 0.3] },
    ],
    handles: { p: [-0.5, -0.3] },
    ...structuredClone(presets.Poisson),
  };
}
