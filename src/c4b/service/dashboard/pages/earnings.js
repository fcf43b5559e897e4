// The uplift over the incumbent, estimated and certified, over all time or a window.

import { get, path } from "../api.js";
import { Chart } from "../charts/chart.js";
import { h, setAttribute, setText } from "../dom.js";
import { constant, count, moment, number, percent, plural, share } from "../format.js";
import { figures } from "../parts.js";

const WINDOWS = [
  ["All time", ""],
  ["Last day", "?seconds=86400"],
  ["Last hour", "?seconds=3600"],
  ["Last 1,000 decisions", "?last=1000"],
];
const FIGURES = ["Earned", "Incumbent, estimated", "Uplift, estimated", "Uplift, certified", "Decisions", "Baseline played"];

export class EarningsPanel {
  #name;
  #query = "";
  #said = h("p", { class: "earned" });
  #span = h("p", { class: "aside" });
  #facts = figures(FIGURES);
  #how = h("p", { class: "aside" });
  #trouble = h("p", { class: "reason", "data-health": "attention", role: "alert", hidden: true });
  #buttons;
  #chart = new Chart({
    name: "Uplift over the incumbent",
    unit: "units of reward: — estimated, - - certified bound",
    height: 250,
    kind: "lines",
    zero: true,
    below: "certified lower bound",
    describe: (value, floor) => {
      const certain = floor === null ? "nothing certified" : `certified at least ${number(floor)}`;
      return `uplift of all decisions up to here: estimated ${number(value)}, ${certain}`;
    },
  });

  constructor(name) {
    this.#name = name;
    this.#buttons = WINDOWS.map(([text, query]) => {
      const button = h("button", { type: "button", class: "small", }, text);
      setAttribute(button, "aria-pressed", query === "");
      button.addEventListener("click", () => this.#choose(query));
      return button;
    });
    this.element = h(
      "section",
      { class: "card earnings", "aria-labelledby": "earning" },
      h("div", { class: "bar" }, h("h2", { id: "earning" }, "Is it earning?"),
        h("div", { class: "windows", role: "group", "aria-label": "Window" }, ...this.#buttons)),
      this.#said,
      this.#span,
      this.#trouble,
      this.#facts.element,
      this.#chart.element,
      this.#how,
    );
  }

  async read(signal) {
    const [earnings, course] = await Promise.all([
      get(`${path(this.#name, "earnings")}${this.#query}`, signal),
      get(path(this.#name, "earnings", "course"), signal),
    ]);
    return { earnings, course, query: this.#query };
  }

  show({ earnings, course, query }, state, configuration, marks) {
    if (query === this.#query) this.#tell(earnings);
    const sure = constant(100 * (1 - configuration.model.delta));
    setText(
      this.#how,
      earnings.void
        ? "The alarm means that the data contradict the model: earlier certificates are void, and the estimate uses the same model."
        : `Certified: holds with ${sure} % probability for all windows and all moments at once, under the assumptions of the model. Estimated: by the same model; the true value may be higher or lower. Decisions whose reward is not known yet count in the uplift, but not in “Earned”.`,
    );
    const last = course.round.length - 1;
    this.#chart.show({
      title: last < 0 ? "" : titleOf(course.uplift[last], course.certified[last], earnings.void),
      nothing: last < 0 ? "No decision yet." : course.uplift.every((value) => value === null) ? "This policy gives no estimate." : null,
      round: course.round,
      entry: course.seq,
      at: course.at,
      values: course.uplift,
      floor: course.certified,
      marks,
    });
  }

  async #choose(query) {
    this.#query = query;
    WINDOWS.forEach(([, each], n) => setAttribute(this.#buttons[n], "aria-pressed", each === query));
    try {
      const earnings = await get(`${path(this.#name, "earnings")}${query}`, new AbortController().signal);
      if (query === this.#query) this.#tell(earnings);
      this.#trouble.hidden = true;
    } catch (problem) {
      setText(this.#trouble, `The window could not be read: ${problem.message}. Try again.`);
      this.#trouble.hidden = false;
    }
  }

  #tell(earnings) {
    const { decisions, fallbacks, outcomes } = earnings;
    setText(this.#said, headline(earnings));
    const since = earnings.since === null ? "All decisions so far" : `After ${moment(earnings.since)}`;
    setText(this.#span, `${since}: ${plural(decisions, "decision")}, ${plural(outcomes, "reward")} known.`);
    const mean = outcomes ? `mean ${number(earnings.earned / outcomes)} of ${plural(outcomes, "reward")}` : "no reward known yet";
    this.#facts.set("Earned", number(earnings.earned), mean);
    this.#facts.set("Incumbent, estimated", number(earnings.incumbent), `in all ${plural(decisions, "decision")}`);
    const estimated = earnings.void ? "with a model that the data contradict" : shareOf(earnings.uplift_share);
    this.#facts.set("Uplift, estimated", plus(earnings.uplift), estimated);
    if (earnings.void) this.#facts.set("Uplift, certified", "void", "an alarm is active");
    else if (earnings.certified === null) this.#facts.set("Uplift, certified", "none", "this policy certifies nothing");
    else this.#facts.set("Uplift, certified", `≥ ${plus(earnings.certified)}`, leastShare(earnings.certified_share));
    this.#facts.set("Decisions", count(decisions));
    this.#facts.set("Baseline played", share(fallbacks, decisions), decisions ? `${count(fallbacks)} times` : "");
  }
}

const plus = (value) => (value > 0 ? `+${number(value)}` : number(value));
// No share is certified where the data do not show yet that the incumbent earns anything.
const leastShare = (value) => (value === null ? "no share yet: the incumbent may have earned nothing" : `at least ${shareOf(value)}`);
const shareOf = (value) => (value === null ? "share not known" : `${value > 0 ? "+" : ""}${percent(value)} of the incumbent's`);

function amount(share, units) {
  return share === null ? `${number(Math.abs(units))} units of reward` : percent(Math.abs(share));
}

function headline(earnings) {
  const { decisions, uplift, uplift_share: estimated, certified, certified_share: sure } = earnings;
  if (!decisions) return "No decision in this window.";
  if (uplift === 0 && certified === 0) return "Only the incumbent's action was played: the earnings are exactly the incumbent's.";
  if (earnings.void) return "The alarm means that the data contradict the model: no uplift is certified, and the estimate is not reliable.";
  let first = "The uplift over the incumbent cannot be estimated for this policy";
  if (uplift !== null) {
    first = `Earned an estimated ${amount(estimated, uplift)} ${uplift >= 0 ? "more" : "less"} than the incumbent would have`;
  }
  const known = sure ?? certified;
  if (known === null) return `${first}; nothing is certified.`;
  const most = amount(sure, certified);
  return known >= 0 ? `${first}; at least ${most} more is certified.` : `${first}; a loss of more than ${most} is ruled out.`;
}

function titleOf(uplift, certified, alarm) {
  const estimate = uplift === null ? "The uplift is not estimated" : `Uplift of all decisions: ${plus(uplift)} estimated`;
  if (alarm) return `${estimate}; the certified bound is void`;
  return certified === null ? `${estimate}; nothing is certified` : `${estimate}, at least ${plus(certified)} certified`;
}
