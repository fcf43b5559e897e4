"""A plan as one HTML page with its figures."""

from __future__ import annotations

import base64
import html
import io
from pathlib import Path
from typing import Any

import numpy as np

from c4b.planning.in_words import columns_to_expect, numbers_to_declare, what_to_expect
from c4b.planning.plans import WEEKS, Plan

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse}img{max-width:100%}"
    "td,th{padding:.25rem .7rem;border-bottom:1px solid #ddd;text-align:left}"
)
LEGEND = """Left: what the simulations earned above the incumbent up to each round; the dashed line is the
median round of the first other action. Right: after whole weeks, as it would be measured, with the noise
of rewards; rounds that were not simulated lose beside the best actions at most what the last simulated
ones lost. Bands and bars reach from {} of the simulations. A forecast believes the linear model
and is no guarantee."""


def write_page(plan: Plan, path: Path) -> None:
    """Write the page; an existing one is replaced."""
    forecast = plan.forecast
    ends = "the lowest to the highest" if forecast.ends_are_extremes else "5 to 95 %"
    text = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Plan</title><style>{STYLE}</style>"
        f"<h1>Plan</h1><p><b>{html.escape(plan.verdict)}</b></p>"
        "<h2>Numbers to declare</h2>"
        + _table(["number", "value", "where it comes from"], numbers_to_declare(plan.proposal))
        + f"<h2>What to expect</h2><p>{forecast.simulations} simulations of {forecast.rounds:,} rounds. "
        f"Alarms in {100 * forecast.alarms:.0f} % of them.</p>"
        + _table(columns_to_expect(forecast), what_to_expect(forecast))
        + f'<p><img alt="Uplift by round and week" src="data:image/png;base64,{_figure(plan)}"></p>'
        f"<p>{LEGEND.format(ends)}</p></html>\n"
    )
    path.write_text(text, encoding="utf-8")


def _table(heading: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{html.escape(cell)}" for cell in heading)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}" for cell in row) for row in rows)
    return f"<table><tr>{head}{body}</table>"


def _figure(plan: Plan) -> str:
    from matplotlib.figure import Figure  # noqa: PLC0415 (slow to import)

    drawn = Figure(figsize=(8.4, 3.2), layout="constrained")
    left, right = drawn.subplots(1, 2, width_ratios=[3, 2])
    _draw_course(left, plan)
    found = 100 * np.array([list(each) for each in plan.forecast.uplift.values()])
    low, middle, high = found.T
    right.errorbar(range(len(WEEKS)), middle, yerr=[middle - low, high - middle], fmt="o", capsize=4)
    right.axhline(0.0, color="0.6", lw=1)
    right.set(xlabel="weeks", xticks=range(len(WEEKS)), xticklabels=WEEKS, xlim=(-0.5, len(WEEKS) - 0.5))
    left.set(ylabel="above the incumbent, %")
    held = io.BytesIO()
    drawn.savefig(held, format="png", dpi=130)
    return base64.b64encode(held.getvalue()).decode()


def _draw_course(axes: Any, plan: Plan) -> None:
    """Uplift up to each simulated round."""
    course = plan.forecast.course
    low, middle, high = 100 * np.array([list(each) for each in course.values()]).T
    axes.fill_between(list(course), low, high, alpha=0.25, lw=0)
    axes.plot(list(course), middle)
    axes.axhline(0.0, color="0.6", lw=1)
    if np.isfinite(plan.forecast.opens_at.middle):
        axes.axvline(plan.forecast.opens_at.middle, color="0.4", lw=1, ls="--")
    axes.set(xlabel="round", xlim=(0, plan.forecast.rounds))
