"""Which numbers to put in, and what to expect from them: :func:`plan_log` and :func:`plan_rates`."""

from c4b.planning.forecast import Forecast, Simulator, Traffic
from c4b.planning.plan import Plan, plan_log, plan_rates
from c4b.planning.proposal import Proposal

__all__ = ["Forecast", "Plan", "Proposal", "Simulator", "Traffic", "plan_log", "plan_rates"]
