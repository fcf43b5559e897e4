// One line over decisions, with axes, a readout by pointer or arrow keys, and its numbers as a table.

import { disclosure, fillRows, h, setAttribute, setText, svg } from "../dom.js";
import { fixed, moment, tickTime } from "../format.js";
import { extent, linear, threeTicks, tickDecimals } from "./scale.js";

const DOTS = 60; // up to this many points each is marked
let charts = 0;

export class Chart {
  #options;
  #id = `chart-${++charts}`;
  #title = h("h3");
  #svg = svg("svg", { role: "img", class: "plot" });
  #cursor = null;
  #slider;
  #readout = h("p", { class: "readout" });
  #empty = h("p", { class: "nothing" });
  #stage;
  #numbers;
  #rows = h("tbody");
  #view = null;
  #picked = null; // index of the decision that is read; null: the last one
  #layout = null;

  // options: name, unit, height, describe(value), and what is drawn: kind "line", "lines", "area" or "dots";
  // below: name of a second value, under each dot or as a dashed line; zero: a line at zero; danger: a red region below it; bounds: [low, high] that are always seen.
  constructor(options) {
    this.#options = options;
    this.#slider = h("div", {
      class: "reader",
      role: "slider",
      tabindex: "0",
      "aria-label": `${options.name}: read values with the arrow keys`,
      on: {
        keydown: (event) => this.#key(event),
        pointermove: (event) => this.#point(event),
        pointerdown: (event) => this.#point(event),
        pointerleave: () => this.#pick(null),
        blur: () => this.#pick(null),
      },
    });
    this.#stage = h("div", { class: "stage" }, this.#svg, this.#slider);
    this.#stage.style.setProperty("height", `${options.height}px`);
    const heading = ["Decision", "Entry", "Time", options.below ? "estimated" : `${options.name}, ${options.unit}`];
    if (options.below) heading.push(options.below);
    const table = h(
      "table",
      { class: "numbers" },
      h("caption", { class: "unseen" }, `${options.name} by decision`),
      h("thead", {}, h("tr", {}, ...heading.map((text) => h("th", { scope: "col" }, text)))),
      this.#rows,
    );
    const box = h("div", { class: "scroll", tabindex: "0", role: "region" }, table);
    box.setAttribute("aria-label", `${options.name}: numbers`);
    this.#numbers = disclosure("Numbers", box, () => this.#view && this.#list());
    this.element = h(
      "figure",
      { class: "chart", "aria-labelledby": this.#id },
      this.#title,
      this.#stage,
      this.#empty,
      this.#readout,
      this.#numbers.element,
    );
    this.#title.id = this.#id;
    new ResizeObserver(() => this.#draw()).observe(this.#stage);
  }

  // view: title, nothing (why there is no line, or null), round (of each decision: 1 for the first), entry (its
  // number in the journal, as in its id), at, values, floor (the second values), reference {value, name}, marks
  // [{round, name}] after decisions.
  show(view) {
    this.#view = view;
    setText(this.#title, view.title);
    const bare = view.nothing !== null;
    setText(this.#empty, view.nothing ?? "");
    this.#empty.hidden = !bare;
    for (const part of [this.#stage, this.#readout, this.#numbers.element]) part.hidden = bare;
    if (bare) return;
    setAttribute(this.#svg, "aria-label", `${view.title} ${this.#describe(view.round.length - 1)}`);
    this.#draw();
    this.#numbers.refresh();
  }

  #describe(n) {
    const { round, entry, at, values, marks = [] } = this.#view;
    const floor = this.#view.floor?.[n];
    const value = values[n] === null ? "nothing certified" : this.#options.describe(values[n], floor);
    const after = marks.filter((mark) => round[n] > mark.round).map((mark) => `, after the ${mark.name}`);
    return `Decision ${round[n]}, entry ${entry[n]}, ${moment(at[n])}${after[0] ?? ""}: ${value}`;
  }

  #list() {
    const { round, entry, at, values, floor } = this.#view;
    const decimals = this.#options.decimals ?? 4;
    const both = (k) => (floor ? [values[k], floor[k]] : [values[k]]);
    const numbers = (k) => both(k).map((value) => fixed(value, decimals));
    const rows = round.map((n, k) => [String(n), String(entry[k]), moment(at[k]), ...numbers(k)]);
    fillRows(this.#rows, rows.reverse());
  }

  #draw() {
    const width = this.#stage.clientWidth;
    if (!width || !this.#view || this.#view.nothing !== null) return;
    const { height, kind, zero, danger, bounds = [], whole, unit } = this.#options;
    const { round, values, reference, floor = [], marks = [] } = this.#view;
    const known = [...values, ...floor].filter((value) => value !== null);
    const always = [...bounds, ...(zero ? [0] : []), ...(reference ? [reference.value] : [])];
    let [low, high] = extent([...known, ...always]);
    if (bounds.length) low = Math.max(low, bounds[0]);
    if (bounds.length > 1) high = Math.min(high, bounds[1]);
    if (whole) high = Math.max(high, 2);
    if (danger && [...known, ...always].every((value) => value === 0)) high = 1;
    if (danger) low = Math.min(low, -0.1 * high);

    const up = threeTicks(low, high, height / 48, whole);
    const decimals = tickDecimals(up);
    const labels = up.map((value) => fixed(value, decimals));
    const left = Math.max(62, 14 + 6.8 * Math.max(...labels.map((label) => label.length)));
    const frame = { left, right: width - 14, top: 30, bottom: height - 45 };
    const first = round[0];
    const last = round.at(-1);
    const alone = (frame.left + frame.right) / 2;
    const x = first === last ? () => alone : linear([first, last], [frame.left + 6, frame.right - 6]);
    const xOf = (n) => x(round[n]);
    const y = linear([low, high], [frame.bottom, frame.top]);
    this.#layout = { xOf, y, frame };

    const parts = [svg("text", { x: 2, y: 12, class: "unit" }, unit)];
    if (danger) parts.push(...this.#danger(frame, y(0)));
    up.forEach((value, n) => {
      const at = y(value);
      parts.push(
        svg("line", { x1: frame.left, x2: frame.right, y1: at, y2: at, class: "grid" }),
        svg("text", { x: frame.left - 7, y: at + 4, class: "tick end" }, labels[n]),
      );
    });
    parts.push(...this.#across(frame, x));
    if (kind === "area") parts.push(area(values, xOf, y, y(Math.max(0, low))));
    if (zero) {
      parts.push(svg("line", { x1: frame.left, x2: frame.right, y1: y(0), y2: y(0), class: "zero" }));
    }
    if (reference) parts.push(...referenceLine(frame, y, reference, values));
    if (kind === "dots") {
      floor.forEach((value, n) => {
        if (value !== null) parts.push(svg("circle", { cx: xOf(n), cy: y(value), r: 1.8, class: "dot below" }));
      });
      values.forEach((value, n) => {
        if (value !== null) parts.push(svg("circle", { cx: xOf(n), cy: y(value), r: 2, class: "dot" }));
      });
    } else {
      if (kind === "lines") parts.push(svg("path", { d: path(floor, xOf, y), class: "line certified" }));
      parts.push(svg("path", { d: path(values, xOf, y), class: "line" }));
      if (values.length <= DOTS) {
        values.forEach((value, n) => {
          if (value !== null) parts.push(svg("circle", { cx: xOf(n), cy: y(value), r: 2.5, class: "dot" }));
        });
      }
    }
    for (const mark of marks) parts.push(...markLine(frame, x(Math.min(Math.max(mark.round, first), last)), mark.name));
    this.#cursor = svg("g", { class: "cursor" });
    setAttribute(this.#svg, "viewBox", `0 0 ${width} ${height}`);
    this.#svg.replaceChildren(...parts, this.#cursor);
    setAttribute(this.#slider, "aria-valuemin", 1);
    setAttribute(this.#slider, "aria-valuemax", round.length);
    this.#pick(this.#picked);
  }

  #danger(frame, zero) {
    const hatch = `${this.#id}-hatch`;
    const height = frame.bottom - zero;
    const box = { x: frame.left, y: zero, width: frame.right - frame.left, height };
    const parts = [
      svg(
        "pattern",
        { id: hatch, width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
        svg("line", { x1: 0, x2: 0, y1: 0, y2: 7, class: "hatch" }),
      ),
      svg("rect", { ...box, class: "danger" }),
      svg("rect", { ...box, fill: `url(#${hatch})` }),
    ];
    if (height > 15) {
      const position = { x: frame.right - 6, y: zero + Math.min(height - 4, 14) };
      parts.push(svg("text", { ...position, class: "danger-name end" }, "below zero: not covered"));
    }
    return parts;
  }

  // Two rows under the axis: how many decisions there were, and the time of the last of them.
  #across(frame, x) {
    const { round, at } = this.#view;
    const span = new Date(at.at(-1)) - new Date(at[0]);
    const wanted = Math.max(1, Math.floor((frame.right - frame.left) / 110));
    const values = threeTicks(round[0], round.at(-1), wanted, true);
    const parts = [
      svg("text", { x: frame.left - 7, y: frame.bottom + 20, class: "tick end" }, "decision"),
      svg("text", { x: frame.left - 7, y: frame.bottom + 35, class: "tick end faint" }, "time"),
    ];
    let free = frame.left; // where no label is yet
    for (const value of values) {
      const n = nearest(round, value);
      const middle = x(value);
      const label = tickTime(at[n], span);
      const half = Math.max(label.length, String(value).length) * 3.4;
      const inside = Math.min(Math.max(middle, frame.left + half), frame.right + 12 - half);
      parts.push(svg("line", { x1: middle, x2: middle, y1: frame.bottom, y2: frame.bottom + 4, class: "notch" }));
      if (inside - half < free) continue;
      free = inside + half + 4;
      parts.push(
        svg("text", { x: inside, y: frame.bottom + 20, class: "tick middle" }, String(value)),
        svg("text", { x: inside, y: frame.bottom + 35, class: "tick middle faint" }, label),
      );
    }
    return parts;
  }

  #pick(n) {
    const { round, values } = this.#view;
    if (!round.length) return;
    const last = round.length - 1;
    this.#picked = n === null ? null : Math.min(Math.max(n, 0), last);
    const shown = this.#picked ?? last;
    const text = this.#describe(shown);
    setText(this.#readout, this.#picked === null ? `Latest: ${text}` : text);
    setAttribute(this.#slider, "aria-valuenow", shown + 1);
    setAttribute(this.#slider, "aria-valuetext", text);
    if (!this.#cursor) return;
    const { xOf, y, frame } = this.#layout;
    const parts = [];
    if (this.#picked !== null) {
      const at = xOf(shown);
      parts.push(svg("line", { x1: at, x2: at, y1: frame.top, y2: frame.bottom, class: "hair" }));
    }
    if (values[shown] !== null) {
      parts.push(svg("circle", { cx: xOf(shown), cy: y(values[shown]), r: 4, class: "here" }));
    }
    this.#cursor.replaceChildren(...parts);
  }

  #key(event) {
    const last = this.#view.round.length - 1;
    const here = this.#picked ?? last;
    const leap = Math.max(1, Math.round(last / 10));
    const next = {
      ArrowLeft: here - 1,
      ArrowDown: here - 1,
      ArrowRight: here + 1,
      ArrowUp: here + 1,
      PageDown: here - leap,
      PageUp: here + leap,
      Home: 0,
      End: last,
    }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.#pick(next);
  }

  #point(event) {
    if (!this.#layout) return;
    const at = event.clientX - this.#stage.getBoundingClientRect().left;
    const { xOf } = this.#layout;
    let best = 0;
    for (let n = 1; n < this.#view.round.length; n++) {
      if (Math.abs(xOf(n) - at) < Math.abs(xOf(best) - at)) best = n;
    }
    this.#pick(best);
  }
}

function nearest(sorted, value) {
  let best = 0;
  sorted.forEach((each, n) => {
    if (Math.abs(each - value) < Math.abs(sorted[best] - value)) best = n;
  });
  return best;
}

// Runs of known values; a null is a gap.
function runs(values) {
  const runs = [];
  let open = null;
  values.forEach((value, n) => {
    if (value === null) open = null;
    else if (open) open.push(n);
    else runs.push((open = [n]));
  });
  return runs;
}

function path(values, xOf, y) {
  return runs(values)
    .map((run) => run.map((n, k) => `${k ? "L" : "M"}${xOf(n).toFixed(1)} ${y(values[n]).toFixed(1)}`).join(""))
    .join("");
}

function area(values, xOf, y, floor) {
  const shapes = runs(values).map((run) => {
    const top = run.map((n) => `L${xOf(n).toFixed(1)} ${y(values[n]).toFixed(1)}`).join("");
    return `M${xOf(run[0]).toFixed(1)} ${floor}${top}L${xOf(run.at(-1)).toFixed(1)} ${floor}Z`;
  });
  return svg("path", { d: shapes.join(""), class: "area" });
}

// A moment that everything after it is to be read by, such as an alarm.
function markLine(frame, x, name) {
  const end = x > (frame.left + frame.right) / 2;
  return [
    svg("line", { x1: x, x2: x, y1: frame.top - 6, y2: frame.bottom, class: "mark" }),
    svg("text", { x: end ? x - 5 : x + 5, y: frame.top + 9, class: end ? "mark-name end" : "mark-name" }, name),
  ];
}

// Its name stands at the end from which the line is farther away.
function referenceLine(frame, y, { value, name }, values) {
  const at = y(value);
  const far = (other) => Math.abs((other ?? value) - value);
  const end = far(values.at(-1)) >= far(values[0]);
  const position = end ? { x: frame.right - 6, class: "reference-name end" } : { x: frame.left + 6, class: "reference-name" };
  return [
    svg("line", { x1: frame.left, x2: frame.right, y1: at, y2: at, class: "reference" }),
    svg("text", { ...position, y: at - 6 }, name),
  ];
}
