"""The health of a deployment: one word, and the reasons for it."""

from __future__ import annotations

from typing import Literal

from c4b.deployment import Status

Health = Literal["ok", "idle", "attention", "alarm"]

PENDING_SECONDS = 3600.0
"""Age at which a pending outcome needs attention, unless the deployment has an outcome timeout."""
ROUNDS_OF_BASELINE_ONLY = 100
"""Number of rounds after which a deployment that only played the baseline needs attention."""


def health_of(status: Status, outcome_timeout: float | None = None) -> tuple[Health, list[str]]:
    """Return the health of a deployment and its reasons.

    alarm: certificates do not hold. attention: the deployment is safe, but does not work as it should.
    idle: it has made no decision yet, or it is closed.
    """
    if status.alarm is not None:
        return "alarm", [
            f"Alarm: {status.alarm}. Earlier certificates are void: play the baseline, find out what "
            "changed (features, reward definition, noise bound), and start a new deployment."
        ]
    if status.bank < 0.0:
        return "alarm", [
            "The bank is negative: actions that were executed instead of the decided ones are not "
            "covered. Only the incumbent is played until the bank has recovered. Find out what overrides "
            "decisions."
        ]
    if status.mode == "closed":
        return "idle", [f"Closed: it makes no more decisions. {_order(status, 'close', 'succeed')}"]
    if status.mode == "waiting":
        return "idle", [
            "It waits for the history of its predecessor. If the succession was interrupted, repeat it."
        ]
    if not status.rounds:
        return "idle", ["No decision yet. Send history, then ask for decisions."]
    reasons = []
    if status.mode == "frozen":
        reasons.append(f"Frozen: only the incumbent is played. {_order(status, 'freeze')}")
    age = status.oldest_pending_age
    oldest_allowed = PENDING_SECONDS if outcome_timeout is None else 2.0 * outcome_timeout
    if age is not None and age > oldest_allowed:
        reasons.append(
            f"The outcome of {status.oldest_pending} has been missing for {_duration(age)} and holds "
            "back later outcomes: report it, or declare it lost."
        )
    if status.clock_ahead:
        reasons.append(
            f"The journal's times are {_duration(status.clock_ahead)} ahead of the clock: the clock of a "
            "worker was ahead, and outcomes may have timed out too early. Ages and timeouts are now "
            "measured from the journal's time. Check the clocks of all machines."
        )
    if status.rounds >= ROUNDS_OF_BASELINE_ONLY and status.fallbacks == status.rounds and not status.held:
        reasons.append(
            f"All {status.rounds} decisions played the baseline: no candidate could be certified yet. "
            "Give more history or a reserve, or check the noise and norm bounds."
        )
    return ("attention" if reasons else "ok"), reasons


def _order(status: Status, *actions: str) -> str:
    """Who ordered it, when and why."""
    said = next((order for order in status.orders if order.action in actions), None)
    return "" if said is None else f"By {said.by}, {said.at:%Y-%m-%d %H:%M} UTC: {said.why}."


def _duration(seconds: float) -> str:
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
