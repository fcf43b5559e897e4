// The state of the guarantee: bank, contrasts, fallbacks and pending outcomes over the decisions.

import { Chart } from "../charts/chart.js";
import { h } from "../dom.js";
import { age, constant, count, number, plural, share } from "../format.js";
import { figures } from "../parts.js";

const FIGURES = ["Bank", "Pending outcomes", "Rewards absorbed"];
const UNGATED = "No gate: nothing is certified.";

export class SeriesCharts {
  #bank = new Chart({
    name: "Bank",
    unit: "units of reward",
    height: 270,
    kind: "area",
    zero: true,
    danger: true,
    describe: (value) => `bank ${number(value)} units of reward`,
  });
  #fallbacks = new Chart({
    name: "Baseline played",
    unit: "% of decisions so far",
    height: 190,
    kind: "area",
    bounds: [0, 100],
    decimals: 1,
    describe: (value) => `baseline played in ${share(value, 100)} of decisions`,
  });
  #contrast = new Chart({
    name: "Estimated contrast of what was played",
    unit: "units of reward: ● estimated, ○ certified bound",
    height: 190,
    kind: "dots",
    zero: true,
    below: "certified lower bound",
    describe: (value, floor) => {
      const certain = floor === null ? "nothing certified" : `certified at least ${number(floor)}`;
      return `contrast estimated ${number(value)}, ${certain}, in units of reward`;
    },
  });
  #pending = new Chart({
    name: "Pending outcomes",
    unit: "outcomes",
    height: 190,
    kind: "area",
    whole: true,
    bounds: [0],
    decimals: 0,
    describe: (value) => `${plural(value, "outcome")} pending at that moment`,
  });
  #radius = new Chart({
    name: "Radius of the confidence set",
    unit: "no unit",
    height: 190,
    kind: "line",
    describe: (value) => `radius ${number(value)}`,
  });

  #facts = figures(FIGURES);

  constructor() {
    const small = [this.#contrast, this.#fallbacks, this.#pending];
    this.element = h(
      "section",
      { "aria-labelledby": "guarantee" },
      h("h2", { id: "guarantee" }, "State of the guarantee"),
      this.#facts.element,
      h("div", { class: "card" }, this.#bank.element),
      h("div", { class: "grid-2" }, ...small.map((chart) => h("div", { class: "card" }, chart.element))),
      h("details", { class: "advanced" }, h("summary", {}, "Advanced: the confidence set"), this.#radius.element),
    );
  }

  showFacts(state) {
    if (state.bank === null) this.#facts.set("Bank", "no gate", "nothing is certified");
    else this.#facts.set("Bank", number(state.bank), state.alarm ? "void: an alarm is active" : `reserve ${constant(state.reserve)}`);
    this.#facts.set(
      "Pending outcomes",
      count(state.pending),
      state.oldest_pending_age === null ? "none" : `oldest ${age(state.oldest_pending_age)}`,
    );
    const held = state.waiting ? `${plural(state.waiting, "more waits", "more wait")} for an earlier outcome` : "history included";
    this.#facts.set("Rewards absorbed", count(state.observations), held);
  }

  // marks: alarms, as charts show them.
  show(series, state, marks) {
    const { round, seq, at } = series;
    const shared = { round, entry: seq, at, marks, nothing: round.length ? null : "No decision yet." };
    const none = state.bank === null ? { ...shared, nothing: UNGATED } : shared;
    const reserve = state.reserve ? { value: state.reserve, name: `reserve ${constant(state.reserve)}` } : null;
    this.#bank.show({ ...none, title: bankTitle(state), values: series.bank, reference: reserve });
    this.#fallbacks.show({
      ...shared,
      title: `The baseline was played in ${share(state.fallbacks, state.rounds)} of decisions`,
      values: series.fallbacks.map((n, k) => (100 * n) / round[k]),
    });
    this.#contrast.show({
      ...shared,
      title: contrastTitle(series.certificate, state.alarm),
      values: series.estimate,
      floor: series.certificate,
    });
    this.#pending.show({ ...shared, title: pendingTitle(state), values: series.pending });
    const radius = series.radius.every((value) => value === null);
    this.#radius.show({
      ...(radius ? { ...shared, nothing: "This policy has no radius." } : shared),
      title: radiusTitle(series.radius),
      values: series.radius,
    });
  }
}

function bankTitle({ bank, reserve, alarm }) {
  if (bank === null) return "There is no bank";
  if (alarm) return `The bank shows ${number(bank)}, but certificates are void because of an alarm`;
  if (bank === 0) return "The bank is 0: nothing can be spent yet, and the promise is certified";
  if (bank < 0) return `The bank is ${number(bank)}, below zero: the executed actions are not covered`;
  if (!reserve) return `The bank is ${number(bank)}, above zero: the promise is certified`;
  return `The bank is ${number(bank)}, ${bank < reserve ? "below" : "above"} the reserve of ${constant(reserve)} and above zero: the promise is certified`;
}

function contrastTitle(values, alarm) {
  const known = values.filter((value) => value !== null);
  if (!known.length) return "Estimated contrast of what was played: nothing is certified";
  const good = known.filter((value) => value >= 0).length;
  if (!good) return "No decision shown was certain on its own to earn the promised share";
  const who = good === known.length ? "Every decision shown was" : `${share(good, known.length)} of the decisions shown were`;
  if (alarm) return `${who} certified to earn at least the promised share, but these certificates are void now`;
  return `${who} certain to earn at least the promised share`;
}

function pendingTitle({ pending, oldest_pending_age: oldest }) {
  if (!pending) return "No outcome is pending";
  return `${plural(pending, "outcome is", "outcomes are")} pending, the oldest for ${age(oldest)}`;
}

function radiusTitle(values) {
  const first = values.find((value) => value !== null);
  const last = values.findLast((value) => value !== null);
  if (first === undefined || first === last) return `The radius is ${number(last)}`;
  return `The radius ${last < first ? "shrank" : "grew"} from ${number(first)} to ${number(last)}`;
}
