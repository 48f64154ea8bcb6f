// Draws shapes with the pointer: a rectangle from corner to corner, a disk from its center, a polygon vertex by vertex.

export const tools = { move: "Move", rectangle: "Rectangle", disk: "Disk", polygon: "Polygon" };

// Numbers of a new shape at its place, before they are typed.
export const examples = {
  rectangle: [-0.5, -0.5, 0.5, 0.5],
  disk: [0, 0, 0.4],
  ellipse: [0, 0, 0.6, 0.3],
  polygon: [0, 0, 1, 0, 0.5, 0.8],
};

export const numbersOf = {
  rectangle: "two corners: x, y, x, y",
  disk: "center and radius: x, y, r",
  ellipse: "center and half axes: x, y, a, b",
  polygon: "vertices: x, y, x, y, …",
};

const round = (value) => Number(value.toPrecision(3));

export class Sketcher {
  // done(kind, numbers) is called with every shape that is finished.
  constructor(picture, done) {
    Object.assign(this, { picture, done, tool: "move", vertices: [] });
  }

  choose(tool) {
    Object.assign(this, { tool, vertices: [], start: null });
    this.preview([]);
  }

  preview(points) {
    this.picture.begun = points;
    this.picture.draw();
  }

  press(point) {
    if (this.tool === "polygon") {
      const [first] = this.vertices, near = first && Math.hypot(first[0] - point[0], first[1] - point[1]) * this.picture.scale < 12;
      if (near && this.vertices.length > 2) this.finishPolygon();
      else this.vertices.push(point.map(round));
    } else this.start = point.map(round);
  }

  move(point) {
    if (this.tool === "polygon") this.preview([...this.vertices, point]);
    else if (this.start) this.preview(this.shape(point).outline);
  }

  release(point) {
    if (this.tool === "polygon" || !this.start) return;
    const { numbers, size } = this.shape(point);
    this.start = null;
    this.preview([]);
    if (size > 0) this.done(this.tool, numbers);
  }

  shape(point) {
    const [x, y] = this.start, [a, b] = point.map(round);
    if (this.tool === "rectangle") {
      const outline = [[x, y], [a, y], [a, b], [x, b], [x, y]];
      return { numbers: [Math.min(x, a), Math.min(y, b), Math.max(x, a), Math.max(y, b)], outline, size: Math.abs((a - x) * (b - y)) };
    }
    const radius = round(Math.hypot(a - x, b - y));
    const outline = Array.from({ length: 61 }, (_, i) => [x + radius * Math.cos((i * Math.PI) / 30), y + radius * Math.sin((i * Math.PI) / 30)]);
    return { numbers: [x, y, radius], outline, size: radius };
  }

  finishPolygon() {
    const numbers = this.vertices.flat();
    this.vertices = [];
    this.preview([]);
    if (numbers.length >= 6) this.done("polygon", numbers);
  }
}
