// The health of a deployment as a shape, a word and a colour, so that it can be read without colour.

import { h, setAttribute, setText, svg } from "./dom.js";

const WORDS = {
  ok: "OK",
  idle: "Idle",
  attention: "Attention",
  alarm: "Alarm",
  broken: "Cannot be read",
};
const SHAPES = {
  ok: ["M10 1a9 9 0 1 0 0 18 9 9 0 0 0 0-18z", "M5.8 10.3l2.9 2.9 5.6-6"],
  idle: ["M10 1a9 9 0 1 0 0 18 9 9 0 0 0 0-18z", "M6 10h8"],
  attention: ["M10 1.2L19.4 18.4H0.6z", "M10 7v5.2M10 15.2v.3"],
  alarm: ["M6.3 1h7.4L19 6.3v7.4L13.7 19H6.3L1 13.7V6.3z", "M6.8 6.8l6.4 6.4M13.2 6.8l-6.4 6.4"],
  broken: ["M2 2h16v16H2z", "M7 7l6 6M13 7l-6 6"],
};
const GRAVITY = ["alarm", "broken", "attention", "idle", "ok"];

export function word(health) {
  return WORDS[health] ?? health;
}

export function gravity(health) {
  const index = GRAVITY.indexOf(health);
  return index < 0 ? GRAVITY.length : index;
}

// For the title of the page, which a tab shows when nothing else is seen.
export function mark(health) {
  return { alarm: "!! ", broken: "!! ", attention: "! " }[health] ?? "";
}

export class HealthBadge {
  #subject;
  #word = h("span");
  #body = svg("path", { class: "health-body" });
  #sign = svg("path", { class: "health-sign" });
  #health = null;

  constructor(subject) {
    this.#subject = subject;
    const icon = svg("svg", { viewBox: "0 0 20 20", "aria-hidden": "true" }, this.#body, this.#sign);
    this.element = h("span", { class: "health" }, icon, this.#word);
  }

  show(health) {
    if (health === this.#health) return;
    if (this.#health !== null) announce(`${this.#subject} is now: ${word(health)}`);
    this.#health = health;
    const [body, sign] = SHAPES[health] ?? SHAPES.idle;
    setAttribute(this.element, "data-health", health);
    setAttribute(this.#body, "d", body);
    setAttribute(this.#sign, "d", sign);
    setText(this.#word, word(health));
  }
}

// For screen readers.
export function announce(text) {
  setText(document.getElementById("announcer"), text);
}
