// Counts of each label: offered, admissible, played, and its mean reward.

import { h, Keyed, setText } from "../dom.js";
import { count, decimalsFor, fixed } from "../format.js";
import { caption, cell, tableHead } from "../parts.js";

const SHOWN = innerWidth > 900 ? 20 : 8; // fewer where a row is a card
const COLUMNS = [
  ["Item", ""],
  ["Offered", "number"],
  ["Admissible", "number"],
  ["Played", "number"],
  ["Rewards", "number"],
  ["Mean reward", "number"],
  ["95 % interval", "number"],
];

const WORDS =
  "The most played item comes first. Admissibility is computed only for the candidates that a choice depends on: “Admissible” counts how often an item was found admissible. The interval contains an item's mean reward over its plays, after any number of rewards, with 95 % probability for each item separately. It assumes the declared noise, and that the time at which a reward is reported does not depend on its value.";
const VOID =
  "The most played item comes first. The intervals are void: the alarm means that the data contradict the declared noise or the model, which they assume.";

export class ItemTable {
  #body = h("tbody", { role: "rowgroup" });
  #rows;
  #all = h("button", { type: "button", hidden: true });
  #items = [];
  #void = false; // an alarm is active: the data contradict what the interval assumes
  #caption;
  #whole = false;
  #decimals = 3;

  constructor() {
    this.#rows = new Keyed(this.#body, (each) => each.label, (each) => row(each, () => this.#decimals, () => this.#void));
    this.#all.addEventListener("click", () => {
      this.#whole = true;
      this.show(this.#items, this.#void);
    });
    this.#caption = caption(WORDS);
    this.element = h(
      "section",
      { class: "card", "aria-labelledby": "items", hidden: true },
      h("h2", { id: "items" }, "Items"),
      h(
        "div",
        { class: "sideways" },
        h("table", { class: "cards items", role: "table" }, this.#caption, tableHead(COLUMNS), this.#body),
      ),
      this.#all,
    );
  }

  show(items, alarm) {
    this.#items = items;
    this.#void = Boolean(alarm);
    setText(this.#caption, this.#void ? VOID : WORDS);
    this.element.hidden = !items.length;
    this.#decimals = decimalsFor(items.flatMap((each) => [each.mean]), 3);
    this.#rows.show(this.#whole ? items : items.slice(0, SHOWN));
    const more = items.length - SHOWN;
    this.#all.hidden = this.#whole || more <= 0;
    setText(this.#all, `${count(SHOWN)} of ${count(items.length)} items are shown: show all`);
  }
}

function row(first, decimals, isVoid) {
  const cells = COLUMNS.map(([title, kind], n) => cell(title, kind, n === 0 ? "th" : "td"));
  const [label, offered, fit, played, rewards, mean, interval] = cells;
  setText(label, first.label || "all other labels");
  const update = (each) => {
    setText(offered, count(each.offered));
    setText(fit, count(each.admissible));
    setText(played, count(each.played));
    setText(rewards, count(each.outcomes));
    setText(mean, fixed(each.mean, decimals()));
    const known = isVoid() ? "void: alarm" : "–";
    setText(interval, isVoid() || each.low === null ? known : `${fixed(each.low, decimals())} to ${fixed(each.high, decimals())}`);
  };
  update(first);
  return { element: h("tr", { role: "row" }, ...cells), update };
}
