// The explanation of one decision: the bounds of every candidate.

import { get, path } from "../api.js";
import { disclosure, fillRows, h, setText, svg } from "../dom.js";
import { count, decimalsFor, fixed, moment, number, played, plural, signed } from "../format.js";
import { Intervals, marker } from "../charts/intervals.js";
import { figures, heading, link, trail } from "../parts.js";

const SHOWN = 40;
const BANK = "Bank before → after";
const FIGURES = [BANK, "Played", "Certified contrast", "Admissible", "Outcome"];
const COLUMNS = [
  "Candidate", "Verdict", "Score", "Bank after", "Joint bound", "Separate bound", "Penalty avoided",
  "Estimate", "Upper bound", "UCB",
];

export function whyPage(name, id) {
  const summary = h("p", { class: "lead summary" });
  const because = h("p", { class: "because" });
  const voided = h("p", { class: "reason", "data-health": "alarm", hidden: true });
  const rule = h("p", { class: "aside rule" });
  const facts = figures(FIGURES, "first-wide");
  const rest = h("div", {});
  const when = h("p", { class: "aside" });
  const element = h(
    "div",
    {},
    trail(["Deployments", "#/"], [name, link("d", name)], [id, null]),
    heading(`Why ${id}?`),
    when,
    summary,
    because,
    voided,
    facts.element,
    rule,
    rest,
  );
  let settled = false;

  async function refresh(signal) {
    if (settled) return;
    const why = await get(path(name, "decisions", id), signal);
    settled = why.outcome !== "pending";
    show(why);
    if (!rest.firstChild) rest.append(...cases(why), ...more(why));
  }

  function show(why) {
    setText(when, `${name}, policy ${why.policy}, decided ${moment(why.at)}`);
    setText(summary, why.summary);
    setText(because, why.because);
    because.hidden = !why.because;
    setText(rule, `How ${why.policy} chooses: ${why.rule}`);
    rule.hidden = !why.rule;
    voided.hidden = why.alarm_later === null;
    if (why.alarm_later !== null) {
      setText(voided, `This decision was made before the alarm of ${moment(why.alarm_later)}. The alarm means that the data contradict the model, so the certificates of this decision are void, too.`);
    }
    summary.classList.toggle("reason", why.alarm !== null);
    summary.dataset.health = why.alarm === null ? "" : "alarm";
    const decimals = decimalsFor(contrasts(why));
    if (why.bank === null) facts.set(BANK, "no gate", "nothing is certified");
    else {
      const change = isVoid(why) ? "void: alarm" : `${signed(why.bank - why.bank_before, decimals)} units of reward`;
      facts.set(BANK, `${fixed(why.bank_before, decimals)} → ${fixed(why.bank, decimals)}`, change);
    }
    const instead = why.executed ? "another action was executed instead" : "";
    facts.set("Played", played(why.action, undefined, why.label), instead || (why.label ? `candidate ${why.action}` : ""));
    const alarm = why.alarm === null ? "void: an alarm came later" : "void: an alarm is active";
    const sure = !isVoid(why) ? "at least this, units of reward" : alarm;
    const bound = why.bank === null ? "lower bound, not used for the choice" : sure;
    facts.set("Certified contrast", fixed(why.certificate, decimals), bound);
    const fit = why.candidates.filter((each) => each.admissible).length;
    if (why.bank === null) facts.set("Admissible", "no gate", plural(why.candidates.length, "candidate"));
    else {
      const unused = why.alarm !== null && why.action === null ? "not used: after the alarm only the baseline is played" : "candidates";
      facts.set("Admissible", `${count(fit)} of ${count(why.candidates.length)}`, unused);
    }
    const [outcome, note] = {
      pending: ["pending", "the reward is not known yet"],
      observed: [number(why.reward), why.item_rewards ? `reward, by item ${why.item_rewards.map(number).join(" + ")}` : "reward"],
      timeout: [number(why.reward), "not reported in time: the declared default"],
      forgotten: ["lost", "its loss was declared independent of its value"],
    }[why.outcome] ?? [why.outcome, why.reward === null ? "" : `reward ${number(why.reward)}`];
    facts.set("Outcome", outcome, note);
  }

  return { element, refresh, title: `Why ${id}?` };
}

// Whether an alarm, then or later, speaks against the model that everything certified here assumes.
function isVoid(why) {
  return why.alarm !== null || why.alarm_later !== null;
}

// The numbers that decide how many decimals all numbers of the page have.
function contrasts(why) {
  return [why.certificate, ...why.candidates.flatMap((each) => [each.joint, each.upper, each.separate])];
}

// The chosen one, then by bank after playing it, or by UCB without a gate; without a number last.
function ordered(candidates, gated) {
  const value = (each) => (gated ? each.margin : each.ucb) ?? -Infinity;
  return [...candidates].sort((a, b) => b.chosen - a.chosen || value(b) - value(a) || a.candidate - b.candidate);
}

// Where margin and joint bound differ by the same number for all, that number is what the bank affords.
function affordable(candidates) {
  const known = candidates.filter((each) => each.margin !== null && each.joint !== null);
  if (!known.length) return null;
  const limits = known.map((each) => each.joint - each.margin);
  const spread = Math.max(...limits) - Math.min(...limits);
  return spread <= 1e-6 * Math.max(1, ...limits.map(Math.abs)) ? limits[0] : null;
}

// Whether a picture of the intervals can also show what the bank affords, and still be read.
function isNear(limit, candidates) {
  if (limit === null) return false;
  const ends = candidates.flatMap((each) => [each.joint, each.upper, each.separate, 0]).filter((end) => end !== null);
  const low = Math.min(...ends);
  return limit >= low - 1.5 * (Math.max(...ends) - low);
}

function verdict(each, gated) {
  if (!gated) return each.chosen ? "chosen" : "no gate";
  if (each.chosen) return "admissible, chosen";
  if (!each.admissible) return "not admissible";
  return each.reason ? `admissible, but ${each.reason}` : "admissible";
}

function cases(why) {
  const gated = why.bank !== null;
  const sorted = ordered(why.candidates, gated);
  if (!sorted.length) return [h("p", { class: "card" }, "There were no candidates, so the baseline was the only choice.")];
  const decimals = decimalsFor(contrasts(why));
  const limit = gated ? affordable(sorted) : null;
  const near = isNear(limit, sorted);
  const rows = sorted.map((each) => row(each, gated, decimals));
  if (why.action === null && gated) rows.unshift(baselineRow(why, decimals));

  const plot = new Intervals();
  const box = h("div", { class: "interval-box" }, plot.element);
  const few = rows.length > SHOWN;
  const all = h("button", { type: "button" }, `Show all ${count(sorted.length)} candidates`);
  all.hidden = !few;
  const table = h(
    "table",
    { class: "numbers wide" },
    h("caption", { class: "unseen" }, "Every candidate's numbers"),
    h("thead", {}, h("tr", {}, ...COLUMNS.map((text) => h("th", { scope: "col" }, text)))),
  );
  const body = table.createTBody();
  const list = (some) => fillRows(body, some.map((each) => line(each, gated, decimals)));
  list(sorted.slice(0, SHOWN));
  all.addEventListener("click", () => {
    plot.redraw(rows);
    list(sorted);
    all.hidden = true;
    box.tabIndex = -1;
    box.focus({ preventScroll: true });
  });
  queueMicrotask(() => plot.show(rows.slice(0, SHOWN), near ? limit : null, gated, inWords(why, sorted, decimals)));
  return [
    h(
      "section",
      { class: "card", "aria-labelledby": "cases" },
      h("h2", { id: "cases" }, title(why, sorted, limit)),
      legend(limit, near, gated, why, decimals),
      box,
      all,
      h("p", { class: "aside" }, "The same in numbers, in units of reward:"),
      h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Numbers of the candidates" }, table),
    ),
  ];
}

function title(why, sorted, limit) {
  // a ledger that recertifies its past has no one limit: there the round alone does not decide
  const short = (each) => limit !== null && each.separate !== null && each.separate < limit;
  const saved = sorted.filter((each) => each.admissible && short(each)).length;
  if (why.bank === null) return "No gate: nothing is certified, the highest UCB was played";
  if (why.alarm !== null) return "An alarm is active: these certificates are void";
  if (isVoid(why)) return "An alarm came later: these certificates are void";
  if (saved) {
    return `${plural(saved, "candidate is", "candidates are")} admissible only because both rewards were bounded jointly`;
  }
  return "Bounds of each candidate's contrast with the incumbent";
}

function row(each, gated, decimals) {
  const what = !gated ? "" : each.chosen ? "chosen" : each.admissible ? "admissible" : "not admissible";
  const bank = each.margin === null ? "" : fixed(each.margin, decimals);
  const sign = each.chosen ? "★ " : !gated ? "" : each.admissible ? "✓ " : "✕ ";
  return {
    name: short(`${sign}${nameOf(each)}`),
    chosen: each.chosen,
    admissible: each.admissible,
    joint: each.joint,
    upper: each.upper,
    estimate: each.estimate,
    separate: each.separate,
    verdict: bank ? `${what} · bank ${bank}` : what,
    short: bank ? `${what}, ${bank}` : what,
  };
}

function nameOf(each) {
  return each.label ?? `candidate ${each.candidate}`;
}

// A name has the room of 20 letters beside its interval.
function short(text) {
  return text.length > 20 ? `${text.slice(0, 19)}…` : text;
}

function baselineRow(why, decimals) {
  return {
    name: "★ baseline",
    chosen: true,
    admissible: true,
    joint: why.certificate,
    upper: null,
    estimate: null,
    separate: null,
    verdict: `chosen · bank ${fixed(why.bank, decimals)}`,
    short: `chosen, ${fixed(why.bank, decimals)}`,
  };
}

function line(each, gated, decimals) {
  const shown = (value) => (value === null ? "–" : fixed(value, decimals));
  const joint = each.joint === null ? "cannot be certified" : shown(each.joint);
  return [
    each.label ? `${each.label} (${each.candidate})` : each.candidate, verdict(each, gated),
    each.score === null ? "passed over" : shown(each.score), shown(each.margin), joint, shown(each.separate), shown(each.penalty),
    shown(each.estimate), shown(each.upper), shown(each.ucb),
  ];
}

function inWords(why, sorted, decimals) {
  const best = sorted.slice(0, 3).map((each) => {
    if (each.joint === null) return `${nameOf(each)} cannot be certified`;
    return (
      `${nameOf(each)} (${verdict(each, why.bank !== null)}) contrast at least ` +
      `${fixed(each.joint, decimals)}, bounded separately ${fixed(each.separate, decimals)}`
    );
  });
  return `${plural(sorted.length, "candidate")} as intervals of contrast: ${best.join("; ")}. All numbers are in the table below.`;
}

function swatch(...parts) {
  return svg("svg", { viewBox: "0 0 44 18", class: "swatch", "aria-hidden": "true" }, ...parts);
}

function legend(limit, near, gated, why, decimals) {
  const bank = why.bank_before;
  const bar = [
    svg("line", { x1: 8, x2: 42, y1: 9, y2: 9, class: "joint" }),
    svg("line", { x1: 8, x2: 8, y1: 2, y2: 16, class: "joint-end" }),
    svg("circle", { cx: 25, cy: 9, r: 4.5, class: "estimate" }),
  ];
  const gap = [
    svg("rect", { x: 4, y: 4, width: 36, height: 10, class: "gap" }),
    svg("rect", { x: 4, y: 4, width: 36, height: 10, fill: "url(#gap)" }),
    svg("line", { x1: 4, x2: 4, y1: 1, y2: 17, class: "separate" }),
  ];
  const items = [
    [bar, `Contrast: reward above the promised share of the incumbent's. The bar ${isVoid(why) ? "would be the certified interval without the alarm" : "is the certified interval"}, from the joint lower bound (one confidence set for both rewards) to the upper bound; the mark is the estimate.`],
    [gap, "Penalty avoided: the bound would lie at the left end if the two rewards were bounded separately."],
  ];
  if (gated) {
    items.push([[marker(12, 9, true), marker(32, 9, false)], "Disc: admissible; the bank after playing it is at least zero. Cross: not admissible."]);
  }
  if (limit !== null && !near) {
    items.push([[], `The bank of ${fixed(bank, decimals)} covers joint bounds down to ${fixed(limit, decimals)}, which lies far to the left.`]);
  } else if (limit !== null) {
    const dashed = svg("line", { x1: 22, x2: 22, y1: 0, y2: 18, class: "reference" });
    items.push([[dashed], `What the bank of ${fixed(bank, decimals)} covers: a candidate with a joint bound left of this line is not admissible.`]);
  }
  const rows = items.map(([picture, text]) => h("li", {}, swatch(...picture), h("span", {}, text)));
  return h("ul", { class: "legend" }, ...rows);
}

function more(why) {
  const context = h("pre", { tabindex: "0" }, why.context === null ? "none was given" : JSON.stringify(why.context, null, 2));
  const facts = [
    ["Request id", why.request_id ?? "none was given"],
    ["Decided at", why.at],
    ["Outcome", why.outcome],
    ["Reward", why.reward === null ? "–" : String(why.reward)],
    ["Executed instead", why.executed === null ? "no, the decided action was executed" : vector(why.executed)],
    ["Alarm", why.alarm ?? (why.alarm_later === null ? "none" : `none then; one was raised ${moment(why.alarm_later)}`)],
    ["Radius of the confidence set", number(why.radius)],
  ];
  const record = h("dl", { class: "pairs" });
  for (const [name, value] of facts) record.append(h("dt", {}, name), h("dd", {}, value));
  const body = h("tbody", {});
  const features = h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": "Features" },
    h(
      "table",
      { class: "numbers" },
      h("caption", { class: "unseen" }, "Features of the baseline and of every candidate"),
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Action"), h("th", { scope: "col" }, "Features"))),
      body,
    ),
  );
  const list = () =>
    fillRows(body, [
      ["baseline", vector(why.baseline)],
      ...why.candidates.map((each) => [nameOf(each), vector(each.features)]),
    ]);
  return [
    disclosure("Context", context, () => {}).element,
    disclosure("Request, outcome and what was executed", record, () => {}).element,
    disclosure("Features", features, list).element,
  ];
}

function vector(values) {
  return values.map((value) => Number(value.toPrecision(6))).join(", ");
}
