"""One page: a table and a figure for each world."""

from __future__ import annotations

import base64
import html
import io
from typing import Any

import matplotlib as mpl
import numpy as np

mpl.use("Agg")
import matplotlib.pyplot as plt
from realdata import movielens
from realdata.outcome import CITED
from realdata.plans import summary as plan_summary

STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0
1rem;color:#222} table{border-collapse:collapse;margin:1rem 0}td,th{padding:.25rem
.7rem;border-bottom:1px solid #ddd;text-align:right}
td:first-child,th:first-child,td:nth-child(7):last-child,th:nth-child(7):last-child{text-align:left}img{max-width:100%}small{color:#555}"""
OURS = ("reserve-c4b+", "clicks")
GATED = (*OURS, CITED)
HEADING = (
    "policy", "reward a round", "second half", "fallback %", "opened at", "smallest credit",
    "noise allows", "certified at the end", "alarms",
)  # fmt: skip


ABOUT = {
    "MovieLens": "Recommend one of ten films that a user has rated; 1 for a rating of 4 or 5. The "
    "incumbent recommends the film that 300 past users rated most often. Everything is known of every "
    "film, so nothing is estimated. 2,000 past rounds of the incumbent are the history.",
    "thornton_hiv": "A randomised trial: who came to learn the result of an HIV test, by the incentive "
    "that was drawn for him. The incumbent pays nothing. Each decision is answered by the next person of "
    "the trial who got that incentive, until there is none. 100 rows of history.",
    "ResumeNames": "A randomised trial: which applications were called back, by the quality of the "
    "resume. The incumbent sends the resume of low quality. 100 rows of history.",
    "Shuttle": "Tell from nine sensors whether something is wrong; 1 if the answer is right, and what "
    "would have been right is never shown. The incumbent names the most frequent class. 500 rows of "
    "history.",
    "adult": "The same with census data: does a person earn more than 50,000 dollars?",
    "digits": "The same with images of ten digits, 90 features: too many for so few rows; the gate "
    "hardly opens.",
}


def figure(world: str, rows: list[dict[str, Any]]) -> str:
    """Mean reward up to each round, one line a policy (mean over seeds), as an inline image."""
    drawn, axes = plt.subplots(figsize=(7.5, 3.6), layout="constrained")
    for n, policy in enumerate(dict.fromkeys(row["policy"] for row in rows)):
        runs = [row for row in rows if row["policy"] == policy]
        least = min(len(row["rate"]) for row in runs)
        rate = np.mean([row["rate"][:least] for row in runs], axis=0)
        places = np.linspace(1, np.mean([row["rounds"] for row in runs]), least)
        style = {"ls": "--", "zorder": 3} if policy == CITED else {}  # it may lie on the incumbent's
        axes.plot(places, rate, color=f"C{n}", lw=2.2 if policy in OURS else 1.2, label=policy, **style)
    axes.set(xlabel="round", ylabel="mean reward so far", title=world)
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=9)
    held = io.BytesIO()
    drawn.savefig(held, format="png", dpi=130)
    plt.close(drawn)
    return base64.b64encode(held.getvalue()).decode()


def lines(rows: list[dict[str, Any]]) -> list[list[str]]:
    """One line for each policy, averaged over its seeds."""

    def mean(runs: list[dict[str, Any]], name: str, form: str, scale: float = 1.0) -> str:
        values = [row[name] for row in runs if row[name] is not None]
        return form.format(scale * np.mean(values)) if values else "-"

    def opened(runs: list[dict[str, Any]]) -> str:
        shut = sum(row["opened_at"] is None for row in runs)
        shown = mean(runs, "opened_at", "{:.0f}")
        return "never" if shut == len(runs) else shown + f" (never in {shut})" * (shut > 0)

    made = []
    for policy in dict.fromkeys(row["policy"] for row in rows):
        runs = [row for row in rows if row["policy"] == policy]
        worst = [row["smallest_credit"] for row in runs if row["smallest_credit"] is not None]
        allowed = [row["noise_allowance"] for row in runs if row["noise_allowance"] is not None]
        gated = policy in GATED
        made.append(
            [
                policy,
                mean(runs, "reward", "{:.4f}"),
                mean(runs, "reward_second_half", "{:.4f}"),
                mean(runs, "fallback", "{:.1f}", 100.0),
                opened(runs) if gated else "-",
                f"{min(worst) + 0.0:.1f}" if worst else "-",
                f"{0.0 - max(allowed):.1f}" if allowed else "-",
                mean(runs, "bank", "{:.0f}") if gated else "-",
                f"{sum(row['alarm'] is not None for row in runs)} of {len(runs)}" if gated else "-",
            ]
        )
    return made


def table(heading: tuple[str, ...], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in heading)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def open_bandit_section(found: dict[str, Any]) -> str:
    rows = [
        [name, *(f"{found[key][field]:+.5f}" for field in ("estimate", "lower", "upper"))]
        for name, key in (
            ("click rate of chance", "rate_of_chance"),
            ("click rate of the policy", "rate"),
            ("policy less the log's own rate", "lift"),
        )
    ]
    said = "The rows certify intervals of a rate. They certify no lift: its interval contains 0."
    if found["lift"]["deploy"]:
        said = "The rows certify a lift."
    return (
        f"<h2>Open Bandit Data</h2><p>{found['rows']} rows; the policy shows {found['policy']}.</p>"
        + table(("", "estimate", "at least", "at most"), rows)
        + f"<p>{said}</p><p>{_planned(found['plan'])}</p>"
    )


def _planned(plan: dict[str, Any]) -> str:
    return html.escape(
        f"c4b plan proposes {plan['policy']}, which plays another item than the incumbent's for "
        f"the first time in round {plan['opens_at'][1]:.0f} (in a replay of the last rows: "
        f"{plan['opened_at']}). Its verdict: {plan['verdict']}"
    )


def plans_section(plans: list[dict[str, Any]]) -> str:
    """What c4b.planning foretold, and what happened."""
    rows = [
        [
            f"{each['world']}, seed {each['seed']}",
            " / ".join(f"{v:.0f}" for v in each["opens_at"]),
            "never" if each["opened_at"] is None else f"{each['opened_at']}",
            f"{100 * each['uplift'][0]:+.1f} to {100 * each['uplift'][2]:+.1f}",
            f"{100 * each['uplift_found']:+.1f}",
        ]
        for each in plans
    ]
    heading = ("world", "opens at: 5 / 50 / 95 %", "opened at", "uplift foretold, %", "uplift, %")
    over = ("world", "opens at, foretold", "opened at", "within a factor of 2", "uplift in its interval")
    summary = [
        [
            each["world"],
            f"{each['opens_at']:.0f}",
            f"{each['opened_at']:.0f}",
            "yes" if each["within_a_factor_of_two"] else "no",
            f"{each['uplift_in_its_interval']} of {each['plans']}",
        ]
        for each in plan_summary(plans)
    ]
    return "<h2>Plans</h2>" + table(over, summary) + "<h3>Each of them</h3>" + table(heading, rows)


COMMAND_KEYS = ("rows", "features", "seconds", "processor_seconds", "peak_mb", "verdict")


def commands_section(measured: list[dict[str, Any]]) -> str:
    """The command on each data set."""
    rows = [
        [
            each["world"],
            *(f"{each[key]}" for key in COMMAND_KEYS),
        ]
        for each in measured
    ]
    heading = ("log", "rows", "features", "seconds", "of a processor", "MB at most", "verdict")
    said = (
        "<p>With no other options than columns and incumbent: 20 simulations of up to 10,000 rounds.</p>"
    )
    return "<h2>The command c4b plan</h2>" + said + table(heading, rows)


def in_short(results: dict[str, Any]) -> str:
    """The page in a few sentences, as a list."""
    said = []
    films = [row for row in results["outcomes"] if row["world"] == movielens.WORLD]
    if films:
        found = movielens.summary(films)
        said.append(
            f"MovieLens, second half of the rounds: {100 * found['above_the_incumbent']:.1f} % above the "
            f"incumbent, in the worst of {found['seeds']} seeds "
            f"{100 * found['smallest_above_the_incumbent']:.1f} %; not below LinUCB, which has no gate, "
            f"in {found['seeds_not_below_linucb']}, and not below the best past average in "
            f"{found['seeds_not_below_best_average']}."
        )
    trial = [row for row in results["outcomes"] if row["world"] == "thornton_hiv"]
    gated = [row for row in trial if row["policy"] == "reserve-c4b+" and row["opened_at"] is not None]
    if gated:
        rounds = [row["opened_at"] for row in gated]
        said.append(
            f"thornton_hiv: reserve-c4b+ opens in round {min(rounds)} to {max(rounds)} and earns "
            f"{min(row['reward'] for row in gated):.3f} a round or more."
        )
    broken = [row for row in results["outcomes"] if row["policy"] in GATED and _is_broken(row)]
    said.append(f"Runs of a gate whose realised deficit is more than noise explains: {len(broken)}.")
    if results.get("plans"):
        worlds = plan_summary(results["plans"])
        near = sum(each["within_a_factor_of_two"] for each in worlds)
        said.append(
            f"Plans: the median opening round within a factor of two of what happened in {near} of "
            f"{len(worlds)} worlds."
        )
    if results.get("commands"):
        most = max(each["processor_seconds"] for each in results["commands"])
        largest = max(each["peak_mb"] for each in results["commands"])
        said.append(f"c4b plan takes at most {most:.0f} s of a processor and {largest} MB.")
    return "<h2>In short</h2><ul>" + "".join(f"<li>{html.escape(each)}" for each in said) + "</ul>"


def _is_broken(row: dict[str, Any]) -> bool:
    return row["smallest_credit"] is not None and row["smallest_credit"] < -row["noise_allowance"]


def write(results: dict[str, Any], command: str) -> str:
    """The whole page."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>Real data</title>",
        f"<style>{STYLE}</style><h1>Reserve-C4B on real data</h1>",
        "<p>Rewards are averages over seeds. <i>Smallest credit</i> is the lowest point, over all",
        "rounds and seeds, of the sum of reward less 95 % of what the incumbent earned in the same",
        "rounds, noise included; <i>noise allows</i> is how far noise alone takes it in one run of",
        "a thousand. <i>Certified at the end</i> is the bank: a lower bound, known while playing, of",
        "that sum's mean. <i>clucb-unknown</i> is the system of Kazerouni et al. (2017) where the",
        "incumbent's mean is not known.</p>",
        f"<p><small>Made by <code>{html.escape(command)}</code>.</small></p>",
    ]
    parts.append(in_short(results))
    worlds = dict.fromkeys(row["world"] for row in results["outcomes"])
    for world in worlds:
        rows = [row for row in results["outcomes"] if row["world"] == world]
        seeds = len({row["seed"] for row in rows})
        about = f"{ABOUT.get(world, '')} {seeds} seed{'s' * (seeds > 1)}.".strip()
        parts.append(f"<h2>{html.escape(world)}</h2><p>{html.escape(about)}</p>")
        parts.append(table(HEADING, lines(rows)))
        alt = html.escape(f"{world}: mean reward so far, by round")
        parts.append(f'<img alt="{alt}" src="data:image/png;base64,{figure(world, rows)}">')
    if results.get("open_bandit"):
        parts.append(open_bandit_section(results["open_bandit"]))
    if results.get("plans"):
        parts.append(plans_section(results["plans"]))
    if results.get("commands"):
        parts.append(commands_section(results["commands"]))
    parts.extend(f"<p>Skipped: {html.escape(reason)}</p>" for reason in results["skipped"])
    return "\n".join(parts) + "</html>\n"
