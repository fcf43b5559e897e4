"""Systems of the field that are not ellipsoids and claims: gates in plain Python, one file each.

Arms with an interval each (``arms``), a budget saved first (``budget_first``), randomised choices over a
regression (``inverse_gap``).
"""

from c4b.policies.field import arms, budget_first, inverse_gap

__all__ = ["arms", "budget_first", "inverse_gap"]
