"""Earnings, and the uplift over the incumbent, over all time or a window."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from c4b._validate import Array
from c4b.deployment.questions.uplift import Uplift, uplift
from c4b.deployment.questions.views import moment, plain_fields
from c4b.deployment.summary.added_decisions import Sum
from c4b.deployment.summary.journal_summary import JournalSummary
from c4b.policies.gate import Gate

NOTHING = Uplift(0.0, 0.0, math.nan, 0.0, math.nan)
"""Of a window without decisions."""
POINTS = 128
"""Points of the course over all time, at most."""


@dataclass(frozen=True, slots=True)
class Earnings:
    """What the decisions of a window have earned, in units of reward. Unknown numbers are NaN.

    ``certified`` and ``certified_share`` hold for all windows at once with probability at least 1 -
    delta, under the assumptions of the model (proof in ``docs/theory.md``). An alarm against the model
    voids them; they are NaN then.
    """

    since: datetime | None
    """Time of the last decision before the window; None if the window is all time."""
    decisions: int
    fallbacks: int
    """Number of decisions for the baseline."""
    outcomes: int
    """Number of decisions in the window whose reward is known."""
    earned: float
    """Sum of the known rewards."""
    incumbent: float
    """Estimate of what the incumbent would have earned in all decisions of the window."""
    uplift: float
    """Estimate of the earnings above ``incumbent``."""
    uplift_share: float
    """``uplift`` as a share of ``incumbent``."""
    certified: float
    """Certified lower bound of the uplift."""
    certified_share: float
    """Certified lower bound of the uplift's share; NaN while a loss is possible and the incumbent may
    have earned nothing."""
    void: str | None
    """The alarm because of which nothing is certified, or None."""

    def to_dict(self) -> dict[str, Any]:
        return plain_fields(self)


class EarningsPoint(NamedTuple):
    """The uplift of all decisions up to one of them, estimated from all data known now."""

    round: int
    """1 for the first decision."""
    seq: int
    at: datetime
    uplift: float
    certified: float


def of(
    summary: JournalSummary, gate: Gate, seconds: float | None, last: int | None, now: int
) -> Earnings:
    """Earnings of the last ``seconds``, of the ``last`` decisions, or of all time.

    The window starts at the stored sum that is nearest to the requested start; see ``running_totals``.
    """
    since = _beginning(summary, seconds, last, now)
    until = summary.totals.now
    row = until if since is None else until - since
    found = (
        uplift(gate, until, since)
        if row.item(Sum.DECISIONS)
        else Uplift(0.0, 0.0, math.nan, 0.0, math.nan)
    )
    return Earnings(
        None if since is None else moment(int(since[Sum.AT])),
        int(row[Sum.DECISIONS]),
        int(row[Sum.FALLBACKS]),
        int(row[Sum.OUTCOMES]),
        row.item(Sum.REWARD),
        found.incumbent,
        found.estimate,
        found.estimate_share,
        found.certified,
        found.certified_share,
        gate.alarm,
    )


def course(summary: JournalSummary, gate: Gate, points: int = POINTS) -> list[EarningsPoint]:
    """The uplift up to selected, almost evenly spaced decisions, from all data known now."""
    rows = _spread([*summary.totals.kept.values()], points)
    made = []
    for row in rows:
        found = uplift(gate, row, shares=False)
        made.append(
            EarningsPoint(
                int(row[Sum.DECISIONS]),
                int(row[Sum.SEQ]),
                moment(int(row[Sum.AT])),
                found.estimate,
                found.certified,
            )
        )
    return made


def _spread(rows: list[Array], points: int) -> list[Array]:
    """At most ``points`` rows, always the first and the last, with about the same gaps between."""
    if len(rows) <= points:
        return rows
    first, last = rows[0].item(Sum.DECISIONS), rows[-1].item(Sum.DECISIONS)
    gap, chosen = (last - first) / (points - 1), [rows[0]]
    for row in rows[1:-1]:
        if (
            row.item(Sum.DECISIONS) - chosen[-1].item(Sum.DECISIONS)
            >= gap
            <= last - row.item(Sum.DECISIONS)
        ):
            chosen.append(row)
    return [*chosen, rows[-1]]


def _beginning(
    summary: JournalSummary, seconds: float | None, last: int | None, now: int
) -> Array | None:
    """The sums before the window; None if it holds all decisions."""
    kept = summary.totals.kept
    if last is not None:
        wanted = summary.totals.now.item(Sum.DECISIONS) - last
        if wanted <= 0:
            return None
        return min(kept.values(), key=lambda row: abs(row.item(Sum.DECISIONS) - wanted))
    if seconds is None:
        return None
    start = now - seconds * 1e6
    before = [row for row in kept.values() if row.item(Sum.AT) < start]
    return before[-1] if before else None
