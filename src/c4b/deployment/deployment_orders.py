"""Orders to a deployment: freeze, thaw, ramp, go live, close. What they do is in ``rollout``."""

from __future__ import annotations

import getpass
import os

from c4b import _validate
from c4b.deployment import limits as checks
from c4b.deployment.questions import queries
from c4b.deployment.questions.views import Status
from c4b.deployment.transactions import rollout
from c4b.deployment.transactions.transactor import Transactor
from c4b.errors import InvalidInput


class DeploymentOrders:
    """A part of ``Deployment``."""

    _transactor: Transactor

    def freeze(self, reason: str, by: str | None = None) -> Status:
        """From the next decision on play the incumbent only, until ``thaw``. Credit is kept as always.

        by: who orders it; without it, the user of this process. Like every order of this kind it is
        recorded once, however often it is given, and returns the state.
        """
        return self._order(rollout.FREEZE, reason, by)

    def thaw(self, reason: str, by: str | None = None) -> Status:
        """End ``freeze``."""
        return self._order(rollout.THAW, reason, by)

    def ramp(self, share: float, reason: str, by: str | None = None) -> Status:
        """Let at most ``share`` of the rounds from now on leave the incumbent; 1 ends it.

        Of any n decisions in a row at most ``share * n + 1`` leave the incumbent.
        """
        remedy = "must lie in (0, 1], at least a millionth; a freeze allows none"
        value = _validate.positive("share", share, remedy)
        if not 1e-6 <= value <= 1.0:
            raise InvalidInput("share", share, remedy)
        return self._order(rollout.RAMP, reason, by, value)

    def go_live(self, reason: str, by: str | None = None) -> Status:
        """End shadow mode for good. What was learned is kept, and the budget begins with the reserve."""
        return self._order(rollout.LIVE, reason, by)

    def close_decisions(self, reason: str, by: str | None = None) -> Status:
        """Make no more decisions, for good; ``decide`` raises ``DecisionsClosed``.

        Outcomes of its decisions are still taken, repeated requests are answered, and everything can be
        read and audited. (``close`` gives this object's connections back and is something else.)
        """
        return self._order(rollout.CLOSE, reason, by)

    def _order(self, action: str, reason: str, by: str | None, share: float | None = None) -> Status:
        why, who = checks.text("reason", reason), checks.text("by", user_name() if by is None else by)
        more = {} if share is None else {"share": share}
        self._transactor.write(lambda commands: commands.control(action, who, why, **more))
        time = self._transactor.time
        return self._transactor.read(lambda journal, state: queries.status(journal, state, time(state)))


def user_name() -> str:
    """Of whoever runs this process."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may have no name for its user
        return f"user {os.getuid()}" if hasattr(os, "getuid") else "unknown"
