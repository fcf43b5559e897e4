"""A plan as one HTML page with its picture."""

from __future__ import annotations

import base64
import html
import io
import math
from pathlib import Path

from c4b.planning.plans import WEEKS, Plan

STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "td,th{padding:.25rem .7rem;border-bottom:1px solid #ddd;text-align:left}img{max-width:100%}"
)


def write_page(plan: Plan, path: Path) -> None:
    """Write the page; an existing one is replaced."""
    numbers = {
        "noise": (f"{plan.proposal.noise:.3g}", plan.proposal.origins["noise"]),
        "norm_bound": (f"{plan.proposal.norm_bound:.3g}", plan.proposal.origins["norm_bound"]),
        "alpha": (f"{plan.proposal.alpha:g}", plan.proposal.risk),
        "reserve": (f"{plan.proposal.reserve:g}", plan.proposal.origins["reserve"]),
        "history": (f"{plan.proposal.history}", "rows, learned before the first decision"),
    }
    rows = "".join(
        f"<tr><td>{name}<td>{html.escape(value)}<td>{html.escape(said)}"
        for name, (value, said) in numbers.items()
    )
    opens = ", ".join("never" if math.isinf(v) else f"{v:,.0f}" for v in plan.forecast.opens_at)
    text = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>Plan</title><style>{STYLE}</style>"
        f"<h1>Plan</h1><p><b>{html.escape(plan.verdict)}</b></p>"
        f"<h2>Numbers to declare</h2><table><tr><th>number<th>value<th>origin{rows}</table>"
        f"<h2>What to expect</h2><p>First other action in round (5, 50, 95 % of "
        f"{plan.forecast.simulations} simulations): {opens}. "
        f"Alarms in {100 * plan.forecast.alarms:.0f} %.</p>"
        f'<img alt="Uplift by week" src="data:image/png;base64,{_figure(plan)}"></html>\n'
    )
    path.write_text(text, encoding="utf-8")


def _figure(plan: Plan) -> str:
    """Uplift after each number of weeks: median, and 5 to 95 %."""
    from matplotlib.figure import Figure  # noqa: PLC0415 (slow to import)

    drawn = Figure(figsize=(6.0, 3.2), layout="constrained")
    axes = drawn.subplots()
    middle = [100 * found.middle for found in plan.forecast.uplift.values()]
    below = [100 * (found.middle - found.low) for found in plan.forecast.uplift.values()]
    above = [100 * (found.high - found.middle) for found in plan.forecast.uplift.values()]
    axes.errorbar(WEEKS, middle, yerr=[below, above], fmt="o-", capsize=4)
    axes.axhline(0.0, color="0.6", lw=1)
    axes.set(xlabel="weeks", ylabel="above the incumbent, %", xticks=list(WEEKS))
    held = io.BytesIO()
    drawn.savefig(held, format="png", dpi=130)
    return base64.b64encode(held.getvalue()).decode()
