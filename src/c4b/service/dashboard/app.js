// The frame around the pages: routing, the connection to the service, and errors.

import { hasToken, keepToken, Problem } from "./api.js";
import { h, setProse, setText } from "./dom.js";
import { clock } from "./format.js";
import { announce } from "./health.js";
import { Live } from "./live.js";
import { heading } from "./parts.js";
import { deploymentPage } from "./pages/deployment.js";
import { listPage } from "./pages/list.js";
import { tokenPage } from "./pages/token.js";
import { whyPage } from "./pages/why.js";

const KEPT = 4; // pages that are restored as they were left
const part = (id) => document.getElementById(id);
const main = part("main");
const kept = new Map(); // address: {page, scroll, focus}
let address = null;
let page = null;
let tokenWanted = false
let trouble = null; // the last round's problem
let countdown = null;

const live = new Live((signal) => page.refresh(signal), showStatus);

function routed(hash) {
  const parts = hash.replace(/^#\/?/, "").split("/").map(decoded);
  if (parts[0] === "") return listPage();
  if (parts[0] === "d" && parts.length === 2) return deploymentPage(parts[1]);
  if (parts[0] === "d" && parts.length === 4 && parts[2] === "decisions") return whyPage(parts[1], parts[3]);
  return missingPage();
}

// Shows little more than its heading until there is something to show.
function fresh(hash) {
  const made = routed(hash);
  made.element.classList.add("blank");
  return made;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function missingPage() {
  const back = h("a", { href: "#/" }, "All deployments");
  const element = h("div", {}, heading("There is no such page"), h("p", {}, "The address may be incomplete. ", back));
  return { element, title: "No such page", refresh: async () => {} };
}

function open() {
  const wanted = location.hash || "#/";
  if (!wanted.startsWith("#/")) return;
  const first = page === null;
  if (page && !tokenWanted) {
    kept.delete(address);
    kept.set(address, { page, scroll: scrollY, focus: document.activeElement });
    if (kept.size > KEPT) kept.delete(kept.keys().next().value);
  }
  address = wanted;
  const before = kept.get(wanted);
  page = before?.page ?? fresh(wanted);
  tokenWanted = false;
  show(page);
  if (!first) {
    const target = before && page.element.contains(before.focus) ? before.focus : page.element.querySelector("h1");
    target.focus({ preventScroll: true });
    scrollTo(0, before?.scroll ?? 0);
  }
  live.now();
}

function show({ element, title }) {
  main.replaceChildren(element);
  name(title);
  part("forget").hidden = !hasToken();
}

function name(title) {
  const full = `${title} - Reserve-C4B`;
  if (document.title !== full) document.title = full;
}

// Start again, with another token or without one.
function again() {
  kept.clear();
  page = fresh(address);
  tokenWanted = false;
  show(page);
  live.now();
}

function askForToken(rejected) {
  live.stop();
  tokenWanted = true;
  const form = tokenPage(rejected, again);
  show(form);
  form.field.focus();
}

function showStatus({ problem, retryAt, last }) {
  clearInterval(countdown);
  if (problem?.status === 401) {
    banner(null);
    setText(part("live"), "");
    askForToken(hasToken());
    return;
  }
  const lost = trouble?.passing ?? false;
  trouble = problem instanceof Problem ? problem : problem && new Problem(500, String(problem));
  part("forget").hidden = !hasToken();
  if (!problem) {
    if (lost) announce("Connected again");
    banner(null);
    refused(null);
    page.element.classList.remove("blank");
    name(page.title);
    setText(part("live"), live.paused ? `paused at ${clock(last)}` : `live, updated ${clock(last)}`);
    return;
  }
  setText(part("live"), "");
  if (!trouble.passing) {
    banner(null);
    refused(trouble);
    return;
  }
  if (!lost) announce("Connection lost");
  const tick = () => banner(trouble, Math.max(0, Math.ceil((retryAt - Date.now()) / 1000)), last);
  tick();
  countdown = setInterval(tick, 500);
}

function banner(problem, seconds, last) {
  part("banner").hidden = problem === null;
  if (problem === null) return;
  const what = problem.status === 0 ? "Connection lost" : "The service has a problem";
  const when = last ? `last update ${clock(last)}` : "no data yet";
  setProse(part("banner-text"), `${what}, retrying in ${seconds} s, ${when}: ${problem.message}.`);
}

// An error that a retry will not change.
function refused(problem) {
  main.querySelector(":scope > .refused")?.remove();
  if (problem === null) return;
  const what = { 403: "Not allowed", 404: "Not found" }[problem.status] ?? "Refused";
  const remedy =
    problem.status === 403
      ? "Use “Forget token” and enter a token with the required rights; a read token is enough for this page."
      : "";
  const message = h("p", { class: "reason", "data-health": "alarm", role: "alert" });
  setProse(message, `${what}: ${problem.message}. ${remedy}`);
  main.prepend(h("div", { class: "refused" }, message, h("p", {}, h("a", { href: "#/" }, "All deployments"))));
}

part("pause").addEventListener("click", () => {
  live.paused = !live.paused;
  part("pause").setAttribute("aria-pressed", String(live.paused));
  if (!tokenWanted) live.now();
});
part("retry").addEventListener("click", () => live.now());
part("forget").addEventListener("click", () => {
  keepToken(null);
  again();
});
part("skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", open);
open();
