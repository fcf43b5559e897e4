"""One function for plans, from a log of any kind or from a few rates."""

from __future__ import annotations

from typing import Any

from c4b.errors import InvalidInput
from c4b.logs import Columns, open_log
from c4b.planning.plans import Plan, plan_log, plan_rates
from c4b.replay import Terms

_TERMS = ("policy", "alpha", "reserve", "delta", "reward_range", "norm_bound")


def plan(
    log: object = None,
    columns: Columns | None = None,
    *,
    rounds_a_day: float,
    baseline: str | None = None,
    rates: list[float] | None = None,
    **options: Any,
) -> Plan:
    """Propose the numbers of a deployment and forecast its results.

    Parameters
    ----------
    log, columns: a randomised log (a file, or a Polars, pandas or Arrow table), and the meaning of its
        columns.
    rounds_a_day: the expected traffic.
    baseline: the label of the incumbent's action, unless a column names it in each row.
    rates: without a log, guessed success rates, the incumbent's first.
    options: ``alpha``, ``reserve``, ``delta``, ``policy``; ``history``, ``simulations``, ``rounds``,
        ``seed`` and ``executor`` as for :func:`c4b.planning.plan_log`; only with a log ``reward_range``,
        ``norm_bound`` and ``builder``.

    >>> made = plan(rates=[0.3, 0.6], rounds_a_day=500, history=100, simulations=2, rounds=50)
    >>> made.proposal.policy
    'reserve-c4b+'
    """
    if (log is None) == (rates is None):
        raise InvalidInput("log", log, "give either a log with its columns, or rates")
    if rates is not None:
        return plan_rates(rates[0], rates[1:], rounds_a_day=rounds_a_day, **options)
    if columns is None or (baseline is None and columns.baseline is None):
        missing = "columns" if columns is None else "baseline"
        raise InvalidInput(missing, None, "a log needs its Columns and the label of its incumbent")
    terms = Terms(baseline or "", **{key: options.pop(key) for key in _TERMS if key in options})
    rows = open_log(log, columns, reward_range=terms.reward_range)
    return plan_log(rows, terms, rounds_a_day=rounds_a_day, **options)
