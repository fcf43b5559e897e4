"""Check that decisions followed the orders: shadow, freeze, ramp, close. Independent of ``rollout``."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from c4b.deployment.audit.audit_report import Finding
from c4b.deployment.audit.checks.decision_checks import described


class RolloutChecks:
    """Follows the orders of one journal; raises ``Finding``."""

    def __init__(self, shadow: bool, waiting: bool) -> None:
        self.shadow, self.frozen, self.closed = shadow, False, False
        self.waiting = waiting
        self.succession, self.succeeded = False, False
        self.share = Fraction(1)
        self.allowed = Fraction(0)  # rounds that may leave the incumbent now, with what was saved up

    def order(self, fields: dict[str, Any], bank: float, reserve: float) -> None:
        """A ``control`` entry. bank: after the entries before it, less what it counts on later ones."""
        action = fields["action"]
        if not all(isinstance(fields[key], str) and fields[key] for key in ("by", "why")):
            raise Finding("is an order without who or why")
        if action == "succeed" and not self.succession:
            handed = fields["handed"]
            if not (handed == 0.0 or 0.0 < handed <= min(bank, reserve)):
                raise Finding(
                    f"hands over {handed!r}, of {bank!r} in the bank and a reserve of {reserve!r}"
                )
            self.closed = self.succession = True
            return
        if action == "succeeded" and self.succession and not self.succeeded:
            self.succeeded = True
            return
        if action == "open" and self.waiting:
            self.waiting = False
            return
        if self.closed:
            raise Finding(f"orders {action!r} after the deployment was closed")
        if action == "ramp":
            share = fields["share"]
            if not 0.0 < share <= 1.0:
                raise Finding(f"orders a ramp to {share!r}")
            self.share, self.allowed = Fraction(int(share * 1_000_000), 1_000_000), Fraction(0)
        elif (action, self._state_of(action)) in (
            ("freeze", False), ("thaw", True), ("go-live", True), ("close", False),
        ):  # fmt: skip
            self.frozen = (self.frozen or action == "freeze") and action != "thaw"
            self.shadow = self.shadow and action != "go-live"
            self.closed = action == "close"
        else:
            raise Finding(f"orders {action!r}, which changes nothing or is no order")

    def _state_of(self, action: str) -> bool | None:
        states = {"freeze": self.frozen, "thaw": self.frozen, "go-live": self.shadow, "close": False}
        return states.get(action)

    def decided(self, fields: dict[str, Any]) -> None:
        """A ``decided`` entry: was it held exactly when an order says so?"""
        if self.closed:
            raise Finding("decides after the deployment was closed")
        if self.waiting:
            raise Finding("decides before its predecessor's history was complete")
        held, action = fields.get("held"), fields["action"]
        self.allowed = min(self.allowed, Fraction(1)) + self.share
        expected = None
        if self.shadow:
            expected = "shadow"
        elif self.frozen:
            expected = "frozen"
        elif self.share < 1 and self.allowed < 1:
            expected = "ramp"
        if held != expected:
            raise Finding(f"is held by {held!r}, the orders before it say {expected!r}")
        if held is not None and action is not None:
            raise Finding(f"executes {described(action)} although it is held ({held})")
        if action is not None:
            self.allowed -= 1
