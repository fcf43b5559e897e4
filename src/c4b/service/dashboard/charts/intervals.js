// Candidates as intervals of their contrast: the joint bound, the separate one, and the gap between.

import { setAttribute, svg } from "../dom.js";
import { fixed } from "../format.js";
import { extent, linear, threeTicks, tickDecimals } from "./scale.js";

const NARROW = 620;

export class Intervals {
  #svg = svg("svg", { role: "img", class: "plot intervals" });
  #rows = [];
  #limit = null;
  #gated = true;

  constructor() {
    this.element = this.#svg;
    this.#svg.style.setProperty("width", "100%");
  }

  // rows: {name, chosen, admissible, joint, upper, estimate, separate, verdict, short}; limit: what the bank
  // affords, or null where that is not one number.
  show(rows, limit, gated, label) {
    this.#rows = rows;
    this.#limit = limit;
    this.#gated = gated;
    setAttribute(this.#svg, "aria-label", label);
    new ResizeObserver(() => this.#draw()).observe(this.#svg.parentElement);
    this.#draw();
  }

  redraw(rows) {
    this.#rows = rows;
    this.#draw();
  }

  #draw() {
    const width = this.#svg.parentElement?.clientWidth;
    if (!width) return;
    const narrow = width < NARROW;
    const tall = narrow ? 50 : 32;
    const side = 30 + 6.9 * Math.max(...this.#rows.map((row) => row.verdict.length));
    const frame = { left: narrow ? 12 : 150, right: width - (narrow ? 12 : side), top: 46 };
    frame.bottom = frame.top + tall * this.#rows.length;
    const known = this.#rows.flatMap((row) => [row.joint, row.upper, row.estimate, row.separate]);
    const [low, high] = extent([...known, 0, this.#limit].filter((value) => value !== null));
    const x = linear([low, high], [frame.left, frame.right]);
    const inside = (value) => Math.min(Math.max(value, frame.left), frame.right);
    const layers = { bands: [], bars: [], front: [] };
    this.#rows.forEach((row, n) => {
      const top = frame.top + n * tall;
      const middle = narrow ? top + 34 : top + tall / 2;
      this.#row(layers, row, { top, middle, tall, width, narrow, frame }, (value) => inside(x(value)));
    });
    const axis = this.#axis(frame, x, low, high);
    const parts = [this.#hatch(), ...layers.bands, ...axis, ...layers.bars, ...this.#marks(frame, x), ...layers.front];
    const height = frame.bottom + 44;
    setAttribute(this.#svg, "viewBox", `0 0 ${width} ${height}`);
    this.#svg.style.setProperty("height", `${height}px`);
    this.#svg.replaceChildren(...parts);
  }

  #hatch() {
    return svg(
      "pattern",
      { id: "gap", width: 5, height: 5, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
      svg("line", { x1: 0, x2: 0, y1: 0, y2: 5, class: "gap-hatch" }),
    );
  }

  #axis(frame, x, low, high) {
    const values = threeTicks(low, high, (frame.right - frame.left) / 80);
    const decimals = tickDecimals(values);
    const parts = [];
    for (const value of values) {
      const at = x(value);
      parts.push(
        svg("line", { x1: at, x2: at, y1: frame.top - 4, y2: frame.bottom + 4, class: "grid" }),
        svg("text", { x: at, y: frame.top - 9, class: "tick middle" }, fixed(value, decimals)),
        svg("text", { x: at, y: frame.bottom + 18, class: "tick middle" }, fixed(value, decimals)),
      );
    }
    const unit = "contrast, units of reward";
    parts.push(svg("text", { x: (frame.left + frame.right) / 2, y: frame.bottom + 36, class: "unit middle" }, unit));
    return parts;
  }

  #marks(frame, x) {
    const ends = { y1: frame.top - 4, y2: frame.bottom + 4 };
    const zero = x(0);
    const parts = [svg("line", { x1: zero, x2: zero, ...ends, class: "zero" })];
    const y = frame.top - 28;
    // only where there is room on that side
    if (this.#gated && zero - frame.left > 160) {
      parts.push(svg("text", { x: zero - 8, y, class: "tick end" }, "← below the promised share"));
    }
    if (this.#gated && frame.right - zero > 90) {
      parts.push(svg("text", { x: zero + 8, y, class: "tick" }, "above it →"));
    }
    if (this.#limit !== null) {
      parts.push(svg("line", { x1: x(this.#limit), x2: x(this.#limit), ...ends, class: "reference" }));
    }
    return parts;
  }

  #row({ bands, bars, front }, row, at, x) {
    const { top, middle, tall, width, narrow, frame } = at;
    if (row.chosen) bands.push(svg("rect", { x: 0, y: top, width, height: tall, rx: 5, class: "band" }));
    const line = narrow ? top + 17 : middle + 4;
    const strong = row.chosen ? " chosen" : "";
    const name = { x: narrow ? 10 : 12, y: line, class: `row-name${strong}` };
    const side = narrow
      ? { x: width - 10, y: line, class: `verdict end${strong}` }
      : { x: frame.right + 16, y: line, class: `verdict${strong}` };
    front.push(svg("text", name, row.name), svg("text", side, narrow ? row.short : row.verdict));
    if (row.joint === null) {
      const position = { x: (frame.left + frame.right) / 2, y: middle + 4, class: `cannot middle${strong}` };
      front.push(svg("text", position, "cannot be certified"));
      return;
    }
    const from = x(row.joint);
    if (row.separate !== null) {
      const low = x(row.separate);
      const box = { x: low, y: middle - 5, width: Math.max(0, from - low), height: 10 };
      bars.push(
        svg("rect", { ...box, class: "gap" }),
        svg("rect", { ...box, fill: "url(#gap)" }),
        svg("line", { x1: low, x2: low, y1: middle - 8, y2: middle + 8, class: "separate" }),
      );
    }
    const d = `M${from} ${middle}h24m-6 -5l6 5l-6 5`; // at least this: no upper end is known
    bars.push(
      row.upper === null
        ? svg("path", { d, class: "at-least" })
        : svg("line", { x1: from, x2: x(row.upper), y1: middle, y2: middle, class: "joint" }),
      svg("line", { x1: from, x2: from, y1: middle - 8, y2: middle + 8, class: "joint-end" }),
    );
    if (row.estimate !== null) front.push(marker(x(row.estimate), middle, row.admissible));
  }
}

// A disc for what was admissible, a cross for what was not.
export function marker(x, y, admissible) {
  if (admissible) return svg("circle", { cx: x, cy: y, r: 5, class: "estimate" });
  const d = `M${x - 4} ${y - 4}l8 8M${x + 4} ${y - 4}l-8 8`;
  return svg("g", {}, svg("path", { d, class: "estimate-halo" }), svg("path", { d, class: "estimate-cross" }));
}
