// Decisions without a known outcome, oldest first, and their age.

import { h, Keyed, setText } from "../dom.js";
import { age, moment, played, plural } from "../format.js";
import { caption, cell, link, tableHead } from "../parts.js";

const COLUMNS = [
  ["Age", "number"],
  ["Decision", ""],
  ["Decided", ""],
  ["Played", ""],
  ["Request id", ""],
];

export class PendingTable {
  #body = h("tbody", { role: "rowgroup" });
  #rows;
  #summary = h("summary", {}, "Pending outcomes");
  #rest = h("p", { class: "aside" });
  #seen = [];
  #at = 0;

  constructor(name) {
    this.#rows = new Keyed(this.#body, (each) => each.id, (each) => row(name, each));
    this.element = h(
      "details",
      {},
      this.#summary,
      h(
        "div",
        { class: "sideways" },
        h(
          "table",
          { class: "cards pending", role: "table" },
          caption("Report these outcomes, or declare them lost: later outcomes may have to wait for them."),
          tableHead(COLUMNS),
          this.#body,
        ),
        this.#rest,
      ),
    );
  }

  show(pending, state) {
    this.#seen = pending;
    this.#at = performance.now();
    setText(this.#summary, state.pending ? `${plural(state.pending, "pending outcome")}, oldest first` : "No pending outcome");
    const more = state.pending - pending.length;
    setText(this.#rest, more > 0 ? `${plural(more, "more recent one is", "more recent ones are")} not listed.` : "");
    this.#rows.show(pending);
  }

  // Time goes on also when nothing happens.
  age() {
    const passed = (performance.now() - this.#at) / 1000;
    for (const each of this.#seen) this.#rows.update({ ...each, age: each.age + passed });
  }
}

function row(name, first) {
  const cells = COLUMNS.map(([title, kind], n) => cell(title, kind, n === 1 ? "th" : "td"));
  const [old, id, decided, what, request] = cells;
  id.append(h("a", { href: link("d", name, "decisions", first.id) }, first.id));
  setText(decided, moment(first.at));
  setText(what, played(first.action, undefined, first.label));
  setText(request, first.request_id ?? "–");
  const update = (each) => setText(old, age(each.age));
  update(first);
  return { element: h("tr", { role: "row" }, ...cells), update };
}
