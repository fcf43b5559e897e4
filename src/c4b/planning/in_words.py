"""A plan as rows of text, for the terminal and the HTML page."""

from __future__ import annotations

import math

from c4b.planning.forecast import Forecast
from c4b.planning.plans import WEEKS
from c4b.planning.proposal import Proposal


def numbers_to_declare(proposal: Proposal) -> list[list[str]]:
    """(number, value, origin) of each number."""
    return [
        ["policy", proposal.policy, "see c4b policies"],
        ["noise", f"{proposal.noise:.3g}", proposal.origins["noise"]],
        ["norm_bound", f"{proposal.norm_bound:.3g}", proposal.origins["norm_bound"]],
        ["confidence", proposal.confidence, proposal.origins["confidence"]],
        ["alpha", f"{proposal.alpha:g}", proposal.risk],
        ["reserve", f"{proposal.reserve:g}", proposal.origins["reserve"]],
        ["history", f"{proposal.history} rows", "learned before the first decision"],
    ]


def columns_to_expect(forecast: Forecast) -> list[str]:
    """The heading of ``what_to_expect``: few simulations say nothing about 5 and 95 %."""
    ends = ("lowest", "highest") if forecast.ends_are_extremes else ("5 %", "95 %")
    return ["", ends[0], "median", ends[1]]


def what_to_expect(forecast: Forecast) -> list[list[str]]:
    """(what, low end, median, high end) of each."""
    rows = [
        ["first other action in round", *(_round(forecast, v) for v in forecast.opens_at)],
        ["incumbent's action, % of rounds", *(f"{100 * v:.1f}" for v in forecast.fallback)],
        ["pays from round", *("never" if math.isinf(v) else f"{v:,.0f}" for v in forecast.pays_from)],
    ]
    for weeks, (horizon, found) in zip(WEEKS, forecast.uplift.items(), strict=True):
        label = f"uplift after {weeks} week{'s' * (weeks > 1)} ({horizon:,} rounds), %"
        rows.append([label, *(f"{100 * v:+.1f}" for v in found)])
    return rows


def _round(forecast: Forecast, value: float) -> str:
    """The number of a round, or that it was none of the simulated ones."""
    return f"beyond {forecast.rounds:,}" if math.isinf(value) else f"{value:,.0f}"
