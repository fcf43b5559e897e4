// All deployments, the worst first.

import { get, path } from "../api.js";
import { h, Keyed, setAttribute, setProse, setText, steady } from "../dom.js";
import { age, constant, count, moment, number, plural, share } from "../format.js";
import { gravity, HealthBadge, mark, word } from "../health.js";
import { caption, cell, command, curl, heading, link, store, tableHead } from "../parts.js";

const COLUMNS = [
  ["Health", ""],
  ["Deployment", ""],
  ["Bank", "number"],
  ["Reserve", "number"],
  ["Decisions", "number"],
  ["Baseline played", "number", "Baseline"],
  ["Pending outcomes", "number"],
  ["Last entry", "number"],
];

export function listPage() {
  const summary = h("p", { class: "lead" });
  const body = h("tbody", { role: "rowgroup" });
  const rows = new Keyed(body, (item) => item.name, row);
  const table = h(
    "table",
    { class: "cards list", role: "table" },
    caption("All deployments and their state; bank and reserve in units of reward"),
    tableHead(COLUMNS),
    body,
  );
  const full = h("div", { class: "card sideways", hidden: true }, table);
  const empty = h("div", { class: "card", hidden: true });
  const element = h("div", {}, heading("Deployments"), summary, full, empty);
  let title = "Deployments";

  async function refresh(signal) {
    const response = await get(path(), signal);
    const broken = Object.entries(response.broken).map(([name, why]) => ({ name, health: "broken", reasons: [why] }));
    const items = [...response.deployments, ...broken];
    items.sort((a, b) => gravity(a.health) - gravity(b.health) || (a.name < b.name ? -1 : 1));
    full.hidden = !items.length;
    empty.hidden = items.length > 0;
    if (!items.length && !empty.firstChild) empty.append(...invitation());
    steady(() => rows.show(items));
    setText(summary, inWords(items));
    title = `${mark(items[0]?.health)}Deployments`;
  }

  return { element, refresh, get title() { return title; } };
}

function inWords(items) {
  if (!items.length) return "";
  const counts = new Map();
  for (const { health } of items) counts.set(health, (counts.get(health) ?? 0) + 1);
  const kinds = [...counts].map(([health, n]) => `${n} ${word(health).toLowerCase().replace("ok", "OK")}`);
  return `${plural(items.length, "deployment")}: ${kinds.join(", ")}.`;
}

function row(first) {
  const badge = new HealthBadge(first.name);
  const cells = COLUMNS.map(([name, kind, short = name], n) => cell(short, kind, n === 1 ? "th" : "td"));
  const [health, name, ...numbers] = cells;
  const reasons = h("ul", { class: "reasons-small" });
  const policy = h("span", { class: "aside" });
  health.append(badge.element);
  name.append(h("a", { href: link("d", first.name) }, first.name), policy, reasons);
  const element = h("tr", { role: "row" }, ...cells);

  function update(item) {
    badge.show(item.health);
    setAttribute(element, "data-health", item.health);
    if (reasons.childElementCount !== item.reasons.length) {
      reasons.replaceChildren(...item.reasons.map(() => h("li")));
    }
    item.reasons.forEach((reason, n) => setProse(reasons.children[n], reason));
    if (item.health === "broken") {
      setProse(policy, "It needs manual attention: see the service's log, and run `c4b deploy audit`.");
      numbers.forEach((each) => setText(each, "–"));
      return;
    }
    setProse(policy, item.policy);
    const oldest = item.oldest_pending_age === null ? "" : `, oldest ${age(item.oldest_pending_age)}`;
    const texts = [
      item.bank === null ? "no gate" : number(item.bank),
      constant(item.reserve),
      count(item.rounds),
      share(item.fallbacks, item.rounds),
      `${count(item.pending)}${oldest}`,
      moment(item.at),
    ];
    texts.forEach((text, n) => setText(numbers[n], text));
  }

  update(first);
  return { element, update };
}

function invitation() {
  const body = {
    model: { dim: 2, noise: 0.1, norm_bound: 1.0 },
    policy: "reserve-c4b+",
    alpha: 0.05,
    reserve: 0.5,
  };
  const shell =
    `c4b deploy create ${store()} homepage --dim 2 --noise 0.1 --norm-bound 1 \\\n` +
    "  --policy reserve-c4b+ --alpha 0.05 --reserve 0.5";
  return [
    h("h2", {}, "No deployment yet"),
    h("p", {}, "Create one with either command; it then appears here automatically. Over HTTP this needs an admin token as soon as tokens exist. A token for one deployment shows only that deployment."),
    command("Over HTTP", curl("PUT", path("homepage"), body)),
    command("On the service's machine, in the store that this service uses", shell),
  ];
}
