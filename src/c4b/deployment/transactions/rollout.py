"""How far a deployment is rolled out: shadow or live, frozen, ramped, closed.

One small state machine. ``control`` entries of the journal move it, decisions count for the ramp, and
``hold`` says whether the next decision must be the incumbent. It only ever removes candidates, so nothing
here can break the guarantee; ``docs/theory.md`` says why.

    waiting --open--> not             a successor that is still being given its history
    shadow --go_live--> live          never back: the ledger begins when it goes live
    frozen <--freeze, thaw--> not     the incumbent only, credit is kept
    ramp                              at most a share of the rounds leaves the incumbent
    closed                            for good: no more decisions, outcomes are still taken

A ramp saves ``share`` of a round at each decision, at most one round and one share of it, and each
decision that leaves the incumbent spends one. So of the first n decisions under it at most share * n
leave the incumbent, and of any n in a row at most share * n + 1. Counted in millionths, exactly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from c4b.errors import DecisionsClosed

FREEZE, THAW, RAMP, LIVE, CLOSE = "freeze", "thaw", "ramp", "go-live", "close"
SUCCEED, OPEN, SUCCEEDED = "succeed", "open", "succeeded"
"""Closed for a successor, which takes over the rest of the reserve; the successor has its history; the
predecessor knows that."""
SHADOW_HOLDS, FREEZE_HOLDS, RAMP_HOLDS = "shadow", "frozen", "ramp"
"""Reasons in ``Decision.held``."""
WHOLE = 1_000_000
"""Millionths of a round."""


class Control(NamedTuple):
    """What somebody ordered, and why."""

    action: str
    by: str
    why: str
    at: int
    """Microseconds since 1970."""
    seq: int = -1
    """Number of the entry that holds it."""
    share: float | None = None
    """Of a ramp."""
    successor: str | None = None
    """Name of the successor."""
    handed: float = 0.0
    """The reserve that the successor takes over."""
    hash: str | None = None
    """Of the successor's first entry."""


class Rollout(NamedTuple):
    """Where a deployment stands. A value: whoever takes a decision back keeps the one before."""

    shadow: bool = False
    waiting: bool = False
    live: Control | None = None
    """The switch from shadow to live, if there was one."""
    frozen: Control | None = None
    ramp: Control | None = None
    closed: Control | None = None
    succession: Control | None = None
    """The order that closed it for a successor."""
    successor: Control | None = None
    """Says that the successor was created."""
    saved: int = 0
    """Millionths of a round that the ramp has saved up."""
    held: int = 0
    """Decisions in which something else than the gate's choice was played."""
    controls: int = 0
    strayed: bool = False
    """Whether something else than the incumbent was executed in shadow: no bank knows what that cost."""

    @property
    def mode(self) -> str:
        """One word for people."""
        if self.closed is not None:
            return "closed"
        if self.waiting:
            return "waiting"
        if self.frozen is not None:
            return "frozen"
        if self.shadow:
            return "shadow"
        return "live" if self.ramp is None else "ramp"

    def hold(self) -> str | None:
        """Why the next decision must be the incumbent; None: the gate decides."""
        if self.shadow:
            return SHADOW_HOLDS
        if self.frozen is not None:
            return FREEZE_HOLDS
        return RAMP_HOLDS if self.ramp is not None and self._saving() < WHOLE else None

    def _saving(self) -> int:
        """What the ramp has saved once the next decision is counted."""
        assert self.ramp is not None
        share = millionths(self.ramp.share)
        return min(self.saved + share, WHOLE + share)

    def check_open(self) -> None:
        """Raise ``DecisionsClosed`` unless decisions can be made."""
        if self.closed is not None:
            raise closed_error(self.closed)
        if self.waiting:
            raise DecisionsClosed(
                "the deployment succeeds another one and was not given all of its history yet; repeat "
                "the succession if it was interrupted"
            )

    def decided(self, left: bool, overruled: bool) -> Rollout:
        """A decision was made.

        left: whether it left the incumbent. overruled: whether that was held although the gate chose a
        candidate.
        """
        after = self._replace(held=self.held + 1) if overruled else self
        if self.ramp is None:
            return after
        return after._replace(saved=self._saving() - (WHOLE if left else 0))

    def is_news(self, action: str, share: float | None = None) -> bool:
        """Whether an order would change something; raises ``DecisionsClosed`` if nothing can."""
        if action in (CLOSE, SUCCEED, SUCCEEDED):
            return {CLOSE: self.closed, SUCCEED: self.succession, SUCCEEDED: self.successor}[
                action
            ] is None
        if self.closed is not None:
            raise closed_error(self.closed)
        if action == RAMP:
            return share != (1.0 if self.ramp is None else self.ramp.share)
        states = {FREEZE: self.frozen is None, THAW: self.frozen is not None}
        return {**states, LIVE: self.shadow, OPEN: self.waiting}[action]

    def ordered(self, control: Control) -> Rollout:
        """After an order."""
        after = self._replace(controls=self.controls + 1)
        if control.action == FREEZE:
            return after._replace(frozen=control)
        if control.action == THAW:
            return after._replace(frozen=None)
        if control.action == CLOSE:
            return after._replace(closed=control)
        if control.action == SUCCEED:
            return after._replace(closed=self.closed or control, succession=control)
        if control.action == OPEN:
            return after._replace(waiting=False)
        if control.action == SUCCEEDED:
            return after._replace(successor=control)
        if control.action == LIVE:
            return after._replace(shadow=False, live=control)
        return after._replace(ramp=None if control.share == 1.0 else control, saved=0)

    def fields(self) -> dict[str, Any]:
        """Plain JSON that ``recorded`` takes back."""
        return {
            name: list(value) if isinstance(value, Control) else value
            for name, value in self._asdict().items()
        }

    @classmethod
    def recorded(cls, fields: dict[str, Any]) -> Rollout:
        values: dict[str, Any] = {
            name: Control(*value) if isinstance(value, list) else value for name, value in fields.items()
        }
        return cls(**values)


def millionths(share: float | None) -> int:
    """A share as a whole number of millionths, rounded down: a ramp never allows more."""
    return int((0.0 if share is None else share) * WHOLE)


def closed_error(closed: Control) -> DecisionsClosed:
    return DecisionsClosed(
        f"the deployment was closed by {closed.by!r} ({closed.why}): it makes no more decisions. Play "
        "the incumbent, or ask its successor; outcomes of its decisions are still taken"
    )
