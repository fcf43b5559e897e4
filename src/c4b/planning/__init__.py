"""Choose the numbers of a deployment and forecast its results, from a log or from rates: :func:`plan`."""

from c4b.planning.ask import plan
from c4b.planning.forecast import Forecast, Simulator, Traffic
from c4b.planning.plans import Plan, plan_log, plan_rates
from c4b.planning.proposal import Proposal

__all__ = ["Forecast", "Plan", "Proposal", "Simulator", "Traffic", "plan", "plan_log", "plan_rates"]
