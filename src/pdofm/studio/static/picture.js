// Draws a domain and values on a grid in a canvas, and converts between pixels and coordinates.

const viridis = ["440154", "482878", "3e4989", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725"].map(
  (hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)),
);
export const gradient = `linear-gradient(to right, ${viridis.map((rgb) => `rgb(${rgb})`).join(", ")})`;
const padding = 34;

function colour(share) {
  const place = Math.min(Math.max(share, 0), 1) * (viridis.length - 1);
  const low = Math.min(Math.floor(place), viridis.length - 2);
  return viridis[low].map((part, i) => part + (place - low) * (viridis[low + 1][i] - part));
}

export function decoded(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Float32Array(bytes.buffer);
}

export class Picture {
  constructor(canvas) {
    this.canvas = canvas;
    this.domain = null; // what the server says of the domain
    this.image = null; // {shape, bounds, limits, values: Float32Array}
    this.handles = {};
    this.chosen = null;
    this.where = null; // boxes and points of the features, if they are shown
    this.begun = []; // points of a shape that is being drawn
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  show(answer) {
    this.image = answer && { ...answer, values: decoded(answer.values) };
    this.bitmap = this.image && this.coloured();
    this.draw();
  }

  coloured() {
    const { shape: [rows, columns], limits: [low, high], values } = this.image;
    const bitmap = new OffscreenCanvas(columns, rows), pixels = new ImageData(columns, rows);
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < columns; column++) {
        const value = values[(rows - 1 - row) * columns + column], at = 4 * (row * columns + column);
        const [r, g, b] = colour(high > low ? (value - low) / (high - low) : 0.5);
        pixels.data.set([r, g, b, Number.isFinite(value) ? 255 : 0], at);
      }
    }
    bitmap.getContext("2d").putImageData(pixels, 0, 0);
    return bitmap;
  }

  get bounds() {
    return this.domain ? this.domain.bounds : [[-1.5, 1.5], [-1.5, 1.5]];
  }

  fit() {
    const { clientWidth: width, clientHeight: height } = this.canvas, [[left, right], [bottom, top]] = this.bounds;
    const scale = Math.min((width - 2 * padding) / (right - left), (height - 2 * padding) / (top - bottom));
    this.scale = scale > 0 ? scale : 1;
    this.middle = [(left + right) / 2, (bottom + top) / 2, width / 2, height / 2];
    const parts = this.domain ? this.domain.parts.map((part) => part.name) : [];
    Object.assign(this.canvas.dataset, { bounds: JSON.stringify(this.bounds), scale: this.scale, parts: JSON.stringify(parts) });
  }

  toPixel([x, y]) {
    const [cx, cy, px, py] = this.middle;
    return [px + (x - cx) * this.scale, py - (y - cy) * this.scale];
  }

  toPoint([px, py]) {
    const [cx, cy, mx, my] = this.middle;
    return [cx + (px - mx) / this.scale, cy - (py - my) / this.scale];
  }

  // The value at a point, or null outside of the domain.
  valueAt([x, y]) {
    if (!this.image || !this.domain || !this.path) return null;
    const context = this.canvas.getContext("2d"), ratio = devicePixelRatio, [px, py] = this.toPixel([x, y]);
    if (!context.isPointInPath(this.path, px * ratio, py * ratio, "evenodd")) return null;
    const { shape: [rows, columns], bounds: [[left, right], [bottom, top]], values } = this.image;
    const column = Math.floor(((x - left) / (right - left)) * columns), row = Math.floor(((y - bottom) / (top - bottom)) * rows);
    const value = values[Math.min(row, rows - 1) * columns + Math.min(column, columns - 1)];
    return Number.isFinite(value) ? value : null;
  }

  line(points, closed) {
    const path = new Path2D();
    points.forEach((point, i) => path[i ? "lineTo" : "moveTo"](...this.toPixel(point)));
    if (closed) path.closePath();
    return path;
  }

  draw() {
    const { canvas } = this, ratio = devicePixelRatio, context = canvas.getContext("2d"), style = getComputedStyle(canvas);
    const accent = style.getPropertyValue("--accent");
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.font = "12px system-ui, sans-serif";
    this.fit();
    if (this.domain) this.drawDomain(context, style);
    if (this.where) this.drawWhere(context);
    if (this.begun.length) {
      context.setLineDash([5, 4]);
      context.strokeStyle = accent;
      context.lineWidth = 1.5;
      context.stroke(this.line(this.begun, false));
      context.setLineDash([]);
    }
    for (const [name, point] of Object.entries(this.handles)) this.drawHandle(context, name, point, accent);
  }

  drawDomain(context, style) {
    const ink = style.color;
    this.path = new Path2D();
    for (const loop of this.domain.loops) this.path.addPath(this.line(loop, true));
    if (this.bitmap) {
      const [[left, right], [bottom, top]] = this.image.bounds;
      const [x0, y0] = this.toPixel([left, top]), [x1, y1] = this.toPixel([right, bottom]);
      context.save();
      context.clip(this.path, "evenodd");
      context.imageSmoothingQuality = "high";
      context.drawImage(this.bitmap, x0, y0, x1 - x0, y1 - y0);
      context.restore();
    }
    context.strokeStyle = ink;
    context.lineWidth = 1.5;
    context.stroke(this.path);
    [context.fillStyle, context.strokeStyle, context.lineWidth] = [ink, style.getPropertyValue("--page"), 3];
    for (const { name, at } of this.domain.parts) {
      const [x, y] = this.toPixel(at), width = context.measureText(name).width;
      const place = [Math.min(Math.max(x + 5, 2), this.canvas.clientWidth - width - 2), Math.max(y - 5, 12)];
      context.strokeText(name, ...place); // a rim, which keeps it legible above the colours
      context.fillText(name, ...place);
    }
  }

  drawWhere(context) {
    context.lineWidth = 0.8;
    for (const style of ["rgba(0,0,0,.45)", "rgba(255,255,255,.75)"]) {
      context.strokeStyle = style;
      context.setLineDash(style.startsWith("rgba(255") ? [3, 3] : []);
      for (const [x0, y0, x1, y1] of this.where.boxes) {
        context.stroke(this.line([[x0, y0], [x1, y0], [x1, y1], [x0, y1]], true));
      }
    }
    context.setLineDash([]);
    for (const point of this.where.points) {
      const [x, y] = this.toPixel(point);
      context.beginPath();
      context.arc(x, y, 4, 0, 2 * Math.PI);
      context.fillStyle = "#d6336c";
      context.fill();
    }
  }

  drawHandle(context, name, point, accent) {
    const [x, y] = this.toPixel(point);
    context.beginPath();
    context.arc(x, y, name === this.chosen ? 9 : 7, 0, 2 * Math.PI);
    context.fillStyle = accent;
    context.strokeStyle = "#fff";
    context.lineWidth = 2;
    context.fill();
    context.stroke();
    context.fillStyle = "#fff";
    context.textAlign = "center";
    context.fillText(name, x, y + 4);
    context.textAlign = "start";
  }

  // The handle within reach of a pixel.
  handleAt([px, py]) {
    const near = Object.entries(this.handles).find(([, point]) => {
      const [x, y] = this.toPixel(point);
      return Math.hypot(x - px, y - py) < 14;
    });
    return near ? near[0] : null;
  }

  // The part of the boundary within reach of a pixel.
  partAt([px, py]) {
    for (const { name, lines } of this.domain ? this.domain.parts : []) {
      for (const line of lines) {
        for (const point of line) {
          const [x, y] = this.toPixel(point);
          if (Math.hypot(x - px, y - py) < 8) return name;
        }
      }
    }
    return null;
  }
}
