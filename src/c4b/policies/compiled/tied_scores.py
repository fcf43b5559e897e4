"""Candidates that nothing tells apart, in an order that the data give: docs/theory.md, "Choice"."""

import numpy as np

from c4b._compilation.jit import inlined
from c4b._validate import Array
from c4b.policies.catalogue.choice_rule import GOLDEN
from c4b.policies.rounds.candidate_fields import SCORE

TIE = 2.0**-36
"""Relative difference below which scores count as equal. Rounding makes less, two candidates that differ
in a way that matters make more."""
SPREAD = 1024.0 * GOLDEN
"""By which a sum of rewards is multiplied, so that a small difference of it gives another order; not a
fraction of whole numbers, because rewards may be 0 and 1."""


@inlined
def shuffle_ties(moment: Array, details: Array) -> None:
    """Order candidates whose scores are equal up to rounding as if at random.

    Every score is multiplied by a number between 1 and 1 + TIE, from a sequence that spreads evenly and
    begins where ``moment`` (d,), the sum of rewards times features, says. So the order depends on the
    data and on nothing else, and whoever decides again from the same data finds it again.
    """
    total = 0.0
    for i in range(len(moment)):
        total += moment[i]
    start = SPREAD * total
    start -= np.floor(start)
    if not 0.0 <= start < 1.0:
        start = 0.0  # an overflow
    for k in range(details.shape[1]):
        place = start + GOLDEN * k
        details[SCORE, k] *= 1.0 + TIE * (place - np.floor(place))
