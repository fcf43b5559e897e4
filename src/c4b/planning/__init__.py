"""Which numbers to put in, and what to expect from them: :func:`plan`, on a log or on rates."""

from c4b.planning.ask import plan
from c4b.planning.forecast import Forecast, Simulator, Traffic
from c4b.planning.plans import Plan, plan_log, plan_rates
from c4b.planning.proposal import Proposal

__all__ = ["Forecast", "Plan", "Proposal", "Simulator", "Traffic", "plan", "plan_log", "plan_rates"]
