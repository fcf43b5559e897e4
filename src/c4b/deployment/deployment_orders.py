"""Orders to a deployment: freeze, thaw, ramp, go live, close. ``rollout`` implements them."""

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
    """The orders of ``Deployment``, as a base class."""

    _transactor: Transactor

    def freeze(self, reason: str, by: str | None = None) -> Status:
        """Play only the incumbent from the next decision on, until ``thaw``. Credit accumulates as usual.

        by: who gives the order; by default the user of this process. Like every order, it is recorded
        once even if it is repeated, and it returns the state.
        """
        return self._order(rollout.FREEZE, reason, by)

    def thaw(self, reason: str, by: str | None = None) -> Status:
        """End ``freeze``."""
        return self._order(rollout.THAW, reason, by)

    def ramp(self, share: float, reason: str, by: str | None = None) -> Status:
        """Limit the share of rounds that may play something else than the incumbent; 1 ends the limit.

        Of any n consecutive decisions, at most ``share * n + 1`` play something else than the incumbent.
        """
        remedy = "must lie in (0, 1], at least a millionth; a freeze allows none"
        value = _validate.positive("share", share, remedy)
        if not 1e-6 <= value <= 1.0:
            raise InvalidInput("share", share, remedy)
        return self._order(rollout.RAMP, reason, by, value)

    def go_live(self, reason: str, by: str | None = None) -> Status:
        """End shadow mode permanently.

        What was learned is kept, and the budget starts with the reserve.
        """
        return self._order(rollout.LIVE, reason, by)

    def close_decisions(self, reason: str, by: str | None = None) -> Status:
        """Stop making decisions permanently; ``decide`` then raises ``DecisionsClosed``.

        Outcomes of earlier decisions are still accepted, repeated requests are answered, and everything
        can be read and audited. (``close`` is different: it only closes the connections of this object.)
        """
        return self._order(rollout.CLOSE, reason, by)

    def _order(self, action: str, reason: str, by: str | None, share: float | None = None) -> Status:
        why, who = checks.text("reason", reason), checks.text("by", user_name() if by is None else by)
        more = {} if share is None else {"share": share}
        self._transactor.write(lambda commands: commands.control(action, who, why, **more))
        time = self._transactor.time
        return self._transactor.read(lambda journal, state: queries.status(journal, state, time(state)))


def user_name() -> str:
    """Name of the user that runs this process."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may have no name for its user
        return f"user {os.getuid()}" if hasattr(os, "getuid") else "unknown"
