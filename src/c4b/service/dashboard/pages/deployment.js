// One deployment: its earnings, its decisions and the state of the guarantee.

import { get, path } from "../api.js";
import { h, setAttribute, setProse, setText, steady } from "../dom.js";
import { constant, decimalsFor, moment, plural } from "../format.js";
import { HealthBadge, mark } from "../health.js";
import { command, curl, heading, link, trail } from "../parts.js";
import { Checks } from "./checks.js";
import { DecisionTable } from "./decisions.js";
import { EarningsPanel } from "./earnings.js";
import { ItemTable } from "./items.js";
import { Orders } from "./orders.js";
import { PendingTable } from "./pending.js";
import { SeriesCharts } from "./series.js";

export function deploymentPage(name) {
  const badge = new HealthBadge(name);
  const promise = h("p", { class: "aside promise" });
  const reasons = h("div", { class: "reasons" });
  const since = h("p", { class: "aside alarm-since", hidden: true });
  const earnings = new EarningsPanel(name);
  const items = new ItemTable();
  const charts = new SeriesCharts();
  const table = new DecisionTable(name);
  const pending = new PendingTable(name);
  const checks = new Checks(name);
  const orders = new Orders(name);
  const start = h("section", { class: "card", hidden: true });
  const busy = h("div", {}, earnings.element, items.element, pending.element, table.element, charts.element);
  const settings = h("dl", { class: "pairs" });
  const element = h(
    "div",
    {},
    trail(["Deployments", "#/"], [name, null]),
    h("div", { class: "title" }, heading(name), badge.element),
    reasons,
    since,
    orders.element,
    promise,
    start,
    busy,
    checks.element,
    h("details", {}, h("summary", {}, "Configuration"), settings),
  );
  let seen = null;
  let title = name;

  async function refresh(signal) {
    const { state, configuration, scope } = await get(path(name), signal);
    steady(() => {
      show(state, configuration);
      orders.show(state, configuration, scope);
    });
    pending.age();
    if (state.seq === seen || !state.rounds) return;
    const [earned, listed, series, page, waiting] = await Promise.all([
      earnings.read(signal),
      get(path(name, "items"), signal),
      get(`${path(name, "series")}?points=500`, signal),
      table.newest(signal),
      get(`${path(name, "pending")}?limit=50`, signal),
    ]);
    const marks = alarms(state);
    steady(() => {
      earnings.show(earned, state, configuration, marks);
      items.show(listed.items, state.alarm);
      charts.show(series, state, marks);
      table.show(page, decimalsFor([configuration.model.noise], 3), state.alarm);
      pending.show(waiting.pending, state);
    });
    seen = state.seq; // only now, so that a failed request is repeated
  }

  function show(state, configuration) {
    badge.show(state.health);
    title = `${mark(state.health)}${name}`;
    why(reasons, state);
    setText(promise, promised(state, configuration));
    showSince(since, state);
    charts.showFacts(state);
    start.hidden = state.rounds > 0;
    busy.hidden = !state.rounds;
    if (!state.rounds && !start.firstChild) start.append(...beginning(name, configuration));
    if (!settings.firstChild) list(settings, configuration);
    setText(checks.hash, state.hash);
  }

  return { element, refresh, get title() { return title; } };
}

function why(box, state) {
  const reasons = state.reasons.filter((reason) => !/^(Frozen|Closed):/.test(reason)); // the banner says it
  if (box.childElementCount !== reasons.length) {
    box.replaceChildren(...reasons.map(() => h("p", { class: "reason" })));
  }
  reasons.forEach((reason, n) => {
    setProse(box.children[n], reason);
    setAttribute(box.children[n], "data-health", state.health);
  });
}

function promised(state, configuration) {
  if (state.bank === null) return `Policy ${state.policy} has no gate: nothing is certified.`;
  if (state.alarm) return `Policy ${state.policy}. An alarm is active: certificates are void, and nothing is promised.`;
  const sure = constant(100 * (1 - configuration.model.delta));
  const kept = constant(100 * (1 - state.alpha));
  const reserve = state.reserve ? `, less the reserve of ${constant(state.reserve)}` : "";
  return `Policy ${state.policy}. While the bank is not negative, the total mean reward is, with ${sure} % probability, at least ${kept} % of the incumbent's${reserve}.`;
}

// When the alarm was raised, and after which decision: earlier certificates are void as well.
function showSince(box, state) {
  box.hidden = state.alarm_since === null;
  if (box.hidden) return;
  const where = state.alarm_after === null
    ? ["before the first decision."]
    : ["after decision ", h("a", { href: link("d", state.name, "decisions", state.alarm_after) }, state.alarm_after), ` (${plural(state.alarm_decisions, "decision")} made by then).`];
  box.replaceChildren(`Alarm since ${moment(state.alarm_since)}, `, ...where);
}

// Where charts mark the alarm.
function alarms(state) {
  if (state.alarm_since === null) return [];
  return [{ round: state.alarm_decisions ?? 0, name: "alarm" }];
}

function beginning(name, configuration) {
  const { dim } = configuration.model;
  const unit = (second) => Array.from({ length: dim }, (_, n) => (n === 0 ? 1 : n === 1 ? second : 0));
  const history = { features: [unit(0), unit(0.2)], rewards: [0.5, 0.55] };
  const round = { candidates: [unit(0.1), unit(-0.3)], baseline: unit(0), context: { user: "u-1" } };
  return [
    h("h2", {}, "No decision yet"),
    h("p", {}, `Each feature vector has ${plural(dim, "number")}. The commands below are examples. This page updates automatically.`),
    command("1. Give history (admin token, before the first decision)", curl("POST", path(name, "history"), history)),
    command("2. Ask for a decision (decide token)", curl("POST", path(name, "decisions"), round)),
  ];
}

function list(box, { model, ...rest }) {
  for (const [key, value] of Object.entries({ ...model, ...rest })) {
    box.append(h("dt", {}, key.replaceAll("_", " ")), h("dd", {}, value === null ? "–" : String(value)));
  }
}
