"""The light: one word and the reasons for it, for a person at 3 am."""

from __future__ import annotations

from typing import Literal

from c4b.deployment import Status

Light = Literal["ok", "idle", "attention", "alarm"]

PATIENCE = 3600.0
"""Seconds after which a pending outcome deserves attention, unless the deployment has its own window."""
ENOUGH = 100
"""Rounds after which playing nothing but the baseline deserves attention."""


def light(status: Status, window: float | None = None) -> tuple[Light, list[str]]:
    """alarm: do not trust it; attention: safe, but it does not do its work; idle: no traffic yet."""
    if status.alarm is not None:
        return "alarm", [
            f"Alarm: {status.alarm}. Certificates given before are void; play the baseline, find out "
            "what changed (features, reward definition, noise bound), and start a new deployment."
        ]
    if status.bank < 0.0:
        return "alarm", ["The bank is negative: what was executed instead of decisions is not covered."]
    if not status.rounds:
        return "idle", ["No decision yet. Give it history, then send decisions."]
    reasons = []
    age, patience = status.oldest_pending_age, PATIENCE if window is None else 2.0 * window
    if age is not None and age > patience:
        reasons.append(
            f"The outcome of {status.oldest_pending} is missing for {_ago(age)} and holds back "
            "what came after it: report it, or declare it lost."
        )
    if status.rounds >= ENOUGH and status.fallbacks == status.rounds:
        reasons.append(
            f"All {status.rounds} decisions were the baseline: nothing could be certified yet. Give more "
            "history or a reserve, or check the noise and norm bounds."
        )
    return ("attention" if reasons else "ok"), reasons


def _ago(seconds: float) -> str:
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
