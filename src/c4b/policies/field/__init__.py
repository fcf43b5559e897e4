"""Systems of the field that are not ellipsoids and claims: gates in plain Python, one file each.

Arms with an interval each (``arms``), a budget saved first (``budget_first``), randomised choices over a
regression (``inverse_gap``), over any regression that declares its regret (``regression_oracle``).
"""

from c4b.policies.field import arms, budget_first, inverse_gap
from c4b.policies.field.regression_oracle import Regressor, square_cb_over

__all__ = ["Regressor", "arms", "budget_first", "inverse_gap", "square_cb_over"]
