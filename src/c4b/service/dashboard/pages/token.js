// The form for a token.

import { hasToken, keepToken } from "../api.js";
import { h } from "../dom.js";
import { command, heading, store } from "../parts.js";

// `rejected`: a token was sent and refused; `enter` goes on with a new one.
export function tokenPage(rejected, enter) {
  const field = h("input", {
    id: "token",
    type: "password",
    autocomplete: "off",
    spellcheck: "false",
    required: true,
    "aria-describedby": "token-help",
  });
  const wrong = h("p", { class: "reason", "data-health": "alarm", role: "alert" });
  if (rejected) wrong.textContent = "This token is not valid: it is mistyped, belongs to another store, or was revoked.";
  wrong.hidden = !rejected;
  const submit = (event) => {
    event.preventDefault();
    const token = field.value.trim();
    if (!/^[\x21-\x7e]+$/.test(token)) {
      wrong.textContent = "A token consists of letters, digits and symbols, without spaces.";
      wrong.hidden = false;
      return;
    }
    keepToken(token);
    enter();
  };
  const form = h(
    "form",
    { class: "token", on: { submit } },
    h("label", { for: "token" }, "Token"),
    h("div", { class: "line" }, field, h("button", { type: "submit", class: "main" }, "Enter")),
    h("p", { id: "token-help", class: "aside" }, "A read token is enough. It is kept in this tab only, until you close the tab or use “Forget token”."),
  );
  if (hasToken()) keepToken(null);
  const element = h(
    "div",
    { class: "middle" },
    heading("This service requires a token"),
    wrong,
    form,
    command("Create one on the service's machine", `c4b token create --scope read --store ${store()}`),
  );
  return { element, title: "Token", field };
}
