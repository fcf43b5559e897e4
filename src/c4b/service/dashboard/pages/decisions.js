// The last decisions, and older ones on request. While older ones are shown, new ones are only announced.

import { get, path } from "../api.js";
import { h, Keyed, setText } from "../dom.js";
import { count, fixed, moment, played, plural } from "../format.js";
import { caption, cell, link, tableHead } from "../parts.js";

const PAGE = 25;
const COLUMNS = [
  ["Time", ""],
  ["Decision", ""],
  ["Played", ""],
  ["Admissible", "number"],
  ["Certificate", "number"],
  ["Bank after", "number"],
  ["Outcome", ""],
  ["Reward", "number"],
];

export class DecisionTable {
  #name;
  #rows;
  #body = h("tbody", { role: "rowgroup" });
  #fresh = h("button", { type: "button", hidden: true });
  #older = h("button", { type: "button" }, "Older decisions");
  #trouble = h("p", { class: "reason", "data-health": "attention", role: "alert", hidden: true });
  #last = null; // the oldest one shown
  #paged = false;
  #waiting = null; // a page of newer ones that is not shown
  #decimals = 3;

  constructor(name) {
    this.#name = name;
    this.#rows = new Keyed(this.#body, (line) => line.id, (line) => row(name, line, this.#decimals));
    this.#older.addEventListener("click", () => this.#more());
    this.#fresh.addEventListener("click", () => {
      this.#paged = false;
      this.show(this.#waiting, this.#decimals);
      this.#body.querySelector("a").focus();
    });
    this.element = h(
      "section",
      { class: "card", "aria-labelledby": "decisions" },
      h("h2", { id: "decisions" }, "Decisions"),
      this.#fresh,
      h(
        "div",
        { class: "sideways" },
        h(
          "table",
          { class: "cards decisions", role: "table" },
          caption("Newest first. Open a decision to see why. Candidates are counted from 0."),
          tableHead(COLUMNS),
          this.#body,
        ),
      ),
      this.#trouble,
      this.#older,
    );
  }

  newest(signal) {
    return get(`${path(this.#name, "decisions")}?limit=${PAGE}&order=newest`, signal);
  }

  show(page, decimals) {
    this.#decimals = decimals;
    if (this.#paged) {
      const fresh = page.decisions.filter((line) => !this.#rows.has(line.id)).length;
      this.#waiting = page;
      this.#fresh.hidden = fresh === 0;
      const most = fresh === PAGE ? `${PAGE} or more newer decisions` : plural(fresh, "newer decision");
      setText(this.#fresh, `${most}: show the newest`);
      for (const line of page.decisions) this.#rows.update(line);
      return;
    }
    this.#fresh.hidden = true;
    this.#rows.show(page.decisions);
    this.#end(page);
  }

  async #more() {
    this.#older.disabled = true;
    try {
      const after = encodeURIComponent(this.#last);
      const address = `${path(this.#name, "decisions")}?limit=${PAGE}&order=newest&after=${after}`;
      const page = await get(address, new AbortController().signal);
      this.#paged = true;
      this.#rows.append(page.decisions);
      this.#trouble.hidden = true;
      this.#end(page);
    } catch (problem) {
      setText(this.#trouble, `Older decisions could not be read: ${problem.message}. Try again.`);
      this.#trouble.hidden = false;
    }
    this.#older.disabled = false;
  }

  #end(page) {
    this.#last = page.next;
    this.#older.hidden = page.next === null;
  }
}

function row(name, first, decimals) {
  const cells = COLUMNS.map(([title, kind], n) => cell(title, kind, n === 1 ? "th" : "td"));
  const [time, id, what, fit, certificate, bank, outcome, reward] = cells;
  const at = h("time", { datetime: first.at, title: first.at }, moment(first.at));
  time.append(at);
  id.append(h("a", { href: link("d", name, "decisions", first.id) }, first.id));
  const element = h("tr", { role: "row" }, ...cells);

  function update(line) {
    setText(what, played(line.action, line.candidates) + (line.held ? `, ${line.held}` : "") + (line.executed ? " (another was executed)" : ""));
    setText(fit, line.bank === null ? "no gate" : `${line.admissible === null ? "?" : count(line.admissible)} of ${count(line.candidates)}`);
    setText(certificate, fixed(line.certificate, decimals));
    setText(bank, fixed(line.bank, decimals));
    setText(outcome, line.outcome);
    outcome.dataset.outcome = line.outcome;
    setText(reward, fixed(line.reward, decimals));
    element.classList.toggle("fallback", line.action === null);
  }

  update(first);
  return { element, update };
}
