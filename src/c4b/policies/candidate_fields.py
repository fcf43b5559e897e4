"""What is computed for every candidate of a decision: the one definition of these fields.

Kernels write them as the rows of an array ``details`` (5, K), the journal keeps that array, and
explanations, exports and the audit read it. The order is part of the journal's format.
"""

from enum import IntEnum


class CandidateField(IntEnum):
    """Row of a decision's ``details``; all values are in units of reward."""

    UCB = 0
    """Upper bound of the candidate's mean reward."""
    MARGIN = 1
    """Bank after playing it; it is admissible when >= 0. +inf: no gate. -inf: cannot be certified."""
    JOINT = 2
    """Lower bound (8) of its contrast with the baseline, from one set for both."""
    SEPARATE = 3
    """Lower bound (9) of the same contrast, from two intervals bounded apart."""
    SCORE = 4
    """What the selection rule orders admissible candidates by."""
