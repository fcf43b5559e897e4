// Run an audit, and export the decisions to a file.

import { blob, path, post } from "../api.js";
import { h, setAttribute, setProse, setText } from "../dom.js";
import { clock, count, plural } from "../format.js";

export class Checks {
  #name;
  #audit = h("button", { type: "button", class: "main" }, "Run an audit");
  #export = h("button", { type: "button" }, "Export decisions (Parquet)");
  #verdict = h("p", { class: "reason", hidden: true, role: "status" });
  hash = h("code", { class: "hash" });

  constructor(name) {
    this.#name = name;
    this.#audit.addEventListener("click", () => this.#run(this.#audit, "Auditing, this may take minutes …", () => this.#judge()));
    this.#export.addEventListener("click", () => this.#run(this.#export, "Exporting …", () => this.#save()));
    this.element = h(
      "section",
      { class: "card", "aria-labelledby": "checks" },
      h("h2", { id: "checks" }, "Check and export"),
      h("p", {}, "An audit recomputes the whole journal with independent code and changes nothing."),
      h("div", { class: "line" }, this.#audit, this.#export),
      this.#verdict,
      h("p", { class: "aside" }, "Hash of the last entry. Keep a copy elsewhere to detect later changes of the history: ", this.hash),
    );
  }

  async #run(button, meanwhile, work) {
    const label = button.textContent;
    this.#audit.disabled = this.#export.disabled = true;
    setText(button, meanwhile);
    try {
      this.#showVerdict(...(await work()));
    } catch (problem) {
      this.#showVerdict("attention", `Failed: ${problem.message}.`);
    }
    setText(button, label);
    this.#audit.disabled = this.#export.disabled = false;
    button.focus({ preventScroll: true });
  }

  async #judge() {
    const report = await post(path(this.#name, "audit"));
    const entries = `${plural(report.entries, "entry", "entries")}, ${plural(report.decisions, "decision")}`;
    if (report.clean) {
      const checked = `Clean at ${clock(new Date())}: ${entries} and ${plural(report.outcomes, "outcome")}`;
      if (report.level === "replayed") return ["ok", `${checked} replayed: the policy decided every round again, bit for bit.`];
      return [
        "ok",
        `${checked} recomputed, ${plural(report.precise, "decision")} in 50 digits; ` +
          `largest difference ${report.largest_error.toExponential(1)}.`,
      ];
    }
    const where = report.entry === null ? "" : ` at entry ${report.entry}`;
    return [
      "alarm",
      `Not clean${where}: ${report.finding}. Play the baseline, keep the store unchanged for the ` +
        "investigation, and continue in a new deployment or from a backup.",
    ];
  }

  async #save() {
    const file = await blob(path(this.#name, "export"));
    const address = URL.createObjectURL(file);
    h("a", { href: address, download: `${this.#name}.parquet` }).click();
    setTimeout(() => URL.revokeObjectURL(address), 60_000);
    return ["ok", `Exported ${this.#name}.parquet, ${count(Math.ceil(file.size / 1024))} KiB.`];
  }

  #showVerdict(health, text) {
    setAttribute(this.#verdict, "data-health", health);
    setProse(this.#verdict, text);
    this.#verdict.hidden = false;
  }
}
