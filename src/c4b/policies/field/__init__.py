"""Systems of the field that are gates in plain Python, one file each.

Randomised choices over a ridge regression (``inverse_gap``), over any regression that declares its regret
(``regression_oracle``). ``arms`` and ``budget_first`` are compositions now; their gates go on with what
earlier versions have recorded.
"""

from c4b.policies.field import arms, budget_first, inverse_gap
from c4b.policies.field.regression_oracle import Regressor, square_cb_over

__all__ = ["Regressor", "arms", "budget_first", "inverse_gap", "square_cb_over"]
