// Small pieces that several pages are made of.

import { hasToken } from "./api.js";
import { h, setText } from "./dom.js";

export function link(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

export function trail(...steps) {
  const items = steps.map(([text, address]) =>
    h("li", {}, address ? h("a", { href: address }, text) : h("span", { "aria-current": "page" }, text)),
  );
  return h("nav", { class: "trail", "aria-label": "You are here" }, h("ol", {}, ...items));
}

// A heading that the router can focus.
export function heading(...children) {
  return h("h1", { tabindex: "-1" }, ...children);
}

// Name and value pairs, of which the values change: {element, set(name, value, note)}.
export function figures(names, kind = "") {
  const cells = new Map();
  const boxes = names.map((name) => {
    const value = h("dd", { class: "value" });
    const note = h("dd", { class: "aside" });
    cells.set(name, { value, note });
    return h("div", {}, h("dt", {}, name), value, note);
  });
  const set = (name, value, note = "") => {
    setText(cells.get(name).value, value);
    setText(cells.get(name).note, note);
  };
  return { element: h("dl", { class: `figures ${kind}` }, ...boxes), set };
}

// The address of the store that is served, without names and passwords, as one word of a shell.
export function store() {
  const address = document.querySelector('meta[name="store"]').content;
  return /^[\w:/.@+-]+$/.test(address) ? address : `'${address.replaceAll("'", "'\\''")}'`;
}

// A command to copy.
export function command(label, text) {
  const done = h("button", { type: "button", class: "small" }, "Copy");
  const code = h("code", {}, text);
  done.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      setText(done, "Copied");
    } catch {
      getSelection().selectAllChildren(code); // no clipboard here: at least mark it
      setText(done, "Marked");
    }
  });
  done.setAttribute("aria-label", `Copy: ${label}`);
  const head = h("p", { class: "command-head" }, h("span", {}, label), done);
  return h("div", { class: "command" }, head, h("pre", { tabindex: "0" }, code));
}

// The curl for a request to this service, with a placeholder for the token where one is needed.
export function curl(method, path, body) {
  const lines = [`curl -X ${method} '${new URL(path, document.baseURI).href.replaceAll("'", "%27")}'`];
  lines.push("-H 'Content-Type: application/json'");
  if (hasToken()) lines.push('-H "Authorization: Bearer $C4B_TOKEN"');
  lines.push(`-d '${JSON.stringify(body)}'`);
  return lines.join(" \\\n  ");
}

export function tableHead(names) {
  const cells = names.map(([name, kind]) => h("th", { scope: "col", role: "columnheader", class: kind }, name));
  return h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, ...cells));
}

// A row's cell; its name is shown beside it where the table becomes cards.
export function cell(name, kind = "", tag = "td") {
  const scope = tag === "th" ? { scope: "row", role: "rowheader" } : { role: "cell" };
  return h(tag, { ...scope, class: kind, "data-name": name });
}

export function caption(text) {
  return h("caption", {}, text);
}
