// The orders in force as a banner, and, for an admin's token, the buttons that give them.

import { Problem, path, post } from "../api.js";
import { h, setAttribute, setText } from "../dom.js";
import { moment } from "../format.js";
import { announce } from "../health.js";

const WORDS = {
  closed: "Closed: it makes no more decisions. Outcomes are still accepted, and everything can be read.",
  frozen: "Frozen: only the incumbent is played.",
  shadow: "Shadow mode: decisions are made and recorded, but the incumbent is executed. The budget starts when the deployment goes live.",
};
const GIVEN = { freeze: "Frozen", ramp: "Ramp set", "go-live": "Went live", close: "Closed", succeed: "Closed for its successor" };
const BUTTONS = {
  freeze: "Freeze",
  thaw: "Thaw",
  ramp: "Set the ramp",
  "go-live": "Go live",
  close: "Close permanently",
};

function headline(state) {
  if (WORDS[state.mode]) return WORDS[state.mode];
  const ramp = state.orders.find((order) => order.action === "ramp");
  return ramp ? `Ramp: at most ${percent(ramp.share)} of the rounds may play something else than the incumbent.` : "";
}

function percent(share) {
  return `${+(100 * share).toFixed(4)} %`;
}

function given(order) {
  const done = GIVEN[order.action] ?? order.action;
  return order.action === "ramp" ? `${done} to ${percent(order.share)}` : done;
}

// What may be ordered now.
function possible(state) {
  const frozen = state.orders.some((order) => order.action === "freeze");
  if (state.mode === "closed") return [];
  return [state.shadow ? "go-live" : null, frozen ? "thaw" : "freeze", "ramp", "close"].filter(Boolean);
}

export class Orders {
  #name;
  #banner = h("div", { class: "reason", role: "status", hidden: true });
  #line = h("strong");
  #said = h("ul");
  #why = h("input", { id: "order-why", type: "text", maxlength: "500", autocomplete: "off" });
  #share = h("input", { id: "order-share", type: "number", min: "0.0001", max: "100", step: "any", value: "10" });
  #buttons = new Map();
  #result = h("p", { class: "reason", hidden: true, role: "alert" });
  #form;

  constructor(name) {
    this.#name = name;
    for (const [action, label] of Object.entries(BUTTONS)) {
      const button = h("button", { type: "button" }, label);
      button.addEventListener("click", () => this.#give(action, button));
      this.#buttons.set(action, button);
    }
    this.#banner.append(this.#line, this.#said);
    this.#form = h(
      "details",
      { hidden: true, class: "orders" },
      h("summary", {}, "Freeze, ramp, close"),
      h("p", {}, h("label", { for: "order-why" }, "Reason (stored in the journal) "), this.#why),
      h("p", {}, h("label", { for: "order-share" }, "Ramp: largest share of rounds that may play something else than the incumbent, in percent; 100 ends it "), this.#share),
      h("div", { class: "line" }, ...this.#buttons.values()),
      this.#result,
    );
    this.element = h("div", {}, this.#banner, this.#form);
  }

  show(state, configuration, scope) {
    const text = headline(state);
    this.#banner.hidden = !text;
    setAttribute(this.#banner, "data-health", state.mode === "frozen" ? "attention" : "idle");
    setText(this.#line, text);
    const lines = state.orders.map((order) => `${given(order)} by ${order.by}, ${moment(order.at)}: ${order.why}`);
    while (this.#said.childElementCount > lines.length) this.#said.lastElementChild.remove();
    lines.forEach((line, n) => {
      if (!this.#said.children[n]) this.#said.append(h("li"));
      setText(this.#said.children[n], line);
    });
    this.#form.hidden = scope !== "admin" || state.mode === "closed";
    const live = state.orders.some((order) => order.action === "go-live");
    const allowed = possible({ ...state, shadow: configuration.mode === "shadow" && !live });
    for (const [action, button] of this.#buttons) button.hidden = !allowed.includes(action);
  }

  async #give(action, button) {
    const why = this.#why.value.trim();
    if (!why) {
      this.#tell("attention", "Enter a reason first: it is stored in the journal.");
      this.#why.focus();
      return;
    }
    if (action === "close" && !confirm(`Close ${this.#name} permanently? It will make no more decisions.`)) return;
    const share = action === "ramp" ? Number(this.#share.value) / 100 : null;
    button.disabled = true;
    try {
      await post(path(this.#name, "orders"), { action, why, share });
      this.#tell("ok", `${BUTTONS[action]}: done.`);
      announce(`${BUTTONS[action]}: done`);
      this.#why.value = ""; // the banner changes with the next refresh
    } catch (problem) {
      if (!(problem instanceof Problem)) throw problem;
      this.#tell("attention", `The order failed: ${problem.message}.`);
    } finally {
      button.disabled = false;
    }
  }

  #tell(health, text) {
    setAttribute(this.#result, "data-health", health);
    setText(this.#result, text);
    this.#result.hidden = false;
  }
}
