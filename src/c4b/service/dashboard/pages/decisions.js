// The last decisions, and older ones on request, or those that are searched for. While older ones or found ones
// are shown, new ones are only announced.

import { get, path } from "../api.js";
import { h, Keyed, setText } from "../dom.js";
import { count, fixed, moment, played, plural } from "../format.js";
import { caption, cell, link, tableHead } from "../parts.js";
import { findForm } from "./find.js";

const PAGE = innerWidth > 900 ? 25 : 10; // fewer where a row is a card
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

const WORDS = "Newest first. Open a decision to see why. Candidates are counted from 0.";

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
  #alarm = null;
  #query = ""; // what is searched for
  #found = h("p", { class: "aside", role: "status", hidden: true });
  #caption = caption(WORDS);

  constructor(name) {
    this.#name = name;
    this.#rows = new Keyed(this.#body, (line) => line.id, (line) => row(name, line, this.#decimals));
    this.#older.addEventListener("click", () => this.#more());
    this.#fresh.addEventListener("click", () => {
      this.#paged = false;
      this.show(this.#waiting, this.#decimals, this.#alarm);
      this.#body.querySelector("a").focus();
    });
    this.element = h(
      "section",
      { class: "card", "aria-labelledby": "decisions" },
      h("h2", { id: "decisions" }, "Decisions"),
      findForm((query) => this.#search(query)),
      this.#found,
      this.#fresh,
      h(
        "div",
        { class: "sideways" },
        h(
          "table",
          { class: "cards decisions", role: "table" },
          this.#caption,
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

  show(page, decimals, alarm) {
    this.#decimals = decimals;
    this.#alarm = alarm;
    setText(this.#caption, alarm ? `${WORDS} An alarm is active: all certificates and banks are void, including those of earlier decisions.` : WORDS);
    if (this.#query) {
      for (const line of page.decisions) this.#rows.update(line);
      return;
    }
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
      const query = this.#query;
      const page = await this.#get(`&after=${after}`);
      if (query !== this.#query) return;
      this.#paged = true;
      this.#rows.append(page.decisions);
      if (query) this.#count(page);
      this.#trouble.hidden = true;
      this.#end(page);
    } catch (problem) {
      setText(this.#trouble, `Older decisions could not be read: ${problem.message}. Try again.`);
      this.#trouble.hidden = false;
    }
    this.#older.disabled = false;
  }

  #get(more) {
    const query = this.#query ? `&${this.#query}` : "";
    return get(`${path(this.#name, "decisions")}?limit=${PAGE}&order=newest${query}${more}`, new AbortController().signal);
  }

  async #search(query) {
    this.#query = query;
    this.#fresh.hidden = true;
    this.#paged = false;
    try {
      const page = await this.#get("");
      if (query !== this.#query) return;
      this.#trouble.hidden = true;
      this.#rows.show(page.decisions);
      this.#found.hidden = !query;
      if (query) this.#count(page);
      this.#end(page);
    } catch (problem) {
      setText(this.#trouble, `The search failed: ${problem.message}.`);
      this.#trouble.hidden = false;
    }
  }

  #count(page) {
    const found = this.#rows.size ? plural(this.#rows.size, "decision") : "No decision";
    const rest = page.next === null ? "." : "; older ones have not been searched yet.";
    setText(this.#found, `${found} found${rest}`);
  }

  #end(page) {
    this.#last = page.next;
    this.#older.hidden = page.next === null;
  }
}

function row(name, first, decimals) {
  const cells = COLUMNS.map(([title, kind], n) => cell(title, kind, n === 1 ? "th" : "td"));
  const [time, id, what, fit, certificate, bank, outcome, reward] = cells;
  const reason = h("span", { class: "aside" });
  const name_ = h("span", {});
  what.append(name_, reason);
  const at = h("time", { datetime: first.at, title: first.at }, moment(first.at));
  time.append(at);
  id.append(h("a", { href: link("d", name, "decisions", first.id) }, first.id));
  const element = h("tr", { role: "row" }, ...cells);

  function update(line) {
    const done = (line.held ? `, ${line.held}` : "") + (line.executed ? " (another action was executed)" : "");
    setText(name_, played(line.action, line.candidates, line.label) + done);
    setText(reason, reasonOf(line));
    const latched = line.because.startsWith("Latch");
    const least = line.action === null ? "?" : "≥ 1"; // not all margins were needed, or are on record
    const fits = line.admissible === null ? least : count(line.admissible);
    setText(fit, line.bank === null ? "no gate" : latched ? "void: alarm" : `${fits} of ${count(line.candidates)}`);
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

// Why, in two or three words; the page of the decision says more.
function reasonOf(line) {
  if (line.because.startsWith("Latch")) return "alarm: baseline only";
  if (line.because.startsWith("Saving up")) return "saving up";
  if (line.because.startsWith("Counterweight")) return "as a counterweight";
  if (line.because.startsWith("Thrift")) return "by thrift";
  if (line.action !== null || line.bank === null) return "";
  if (line.because.startsWith("Forced phase")) return "forced phase";
  if (!line.candidates) return "no candidates";
  if (line.admissible === null) return "";
  return line.admissible ? "no admissible candidate promises more" : "no admissible candidate";
}
