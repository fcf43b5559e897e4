// The form that finds decisions by request id, label, outcome and time.

import { h } from "../dom.js";

const OUTCOMES = [["any", ""], ["pending", "pending"], ["observed", "observed"], ["by timeout", "timeout"], ["declared lost", "forgotten"]];
const PLAYED = [["any", ""], ["the baseline", "baseline"], ["a candidate", "candidate"]];

// `search(query)` shows what is found; an empty query shows everything again.
export function findForm(search) {
  const request = input("text");
  const label = input("text");
  const outcome = choice(OUTCOMES);
  const played = choice(PLAYED);
  const since = input("datetime-local");
  const until = input("datetime-local");
  const clear = h("button", { type: "button" }, "Show all again");
  const when = (field) => (field.value ? new Date(field.value).toISOString() : "");
  const submit = (event) => {
    event.preventDefault();
    const wanted = {
      request_id: request.value.trim(),
      label: label.value.trim(),
      outcome: outcome.value,
      played: played.value,
      since: when(since),
      until: when(until),
    };
    search(new URLSearchParams(Object.entries(wanted).filter(([, value]) => value)).toString());
  };
  const form = h(
    "form",
    { class: "find", on: { submit } },
    named("Request id", request),
    named("Label of the played candidate", label),
    named("Outcome", outcome),
    named("Played", played),
    named("From", since),
    named("To", until),
    h("div", { class: "line" }, h("button", { type: "submit", class: "main" }, "Find"), clear),
  );
  clear.addEventListener("click", () => {
    form.reset();
    search("");
  });
  return h("details", { class: "finder" }, h("summary", {}, "Find decisions"), form);
}

function input(type) {
  return h("input", { type, autocomplete: "off", spellcheck: "false", maxlength: "200" });
}

function choice(options) {
  return h("select", {}, ...options.map(([text, value]) => h("option", { value }, text)));
}

function named(name, field) {
  return h("label", {}, h("span", {}, name), field);
}
