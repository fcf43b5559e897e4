"""The numbers that a decision has for each candidate, defined once for kernels, journal and display."""

from enum import IntEnum


class CandidateField(IntEnum):
    """Rows of ``Decision.details``, shape (5, K), in units of reward."""

    UCB = 0
    """Upper confidence bound: the upper end of the reward's interval."""
    MARGIN = 1
    """Bank after playing the candidate; admissible when >= 0. +inf: no gate. -inf: not certified."""
    JOINT = 2
    """Lower bound of the contrast from one set for both rewards (8)."""
    SEPARATE = 3
    """Lower bound of the contrast from two separate intervals (9)."""
    SCORE = 4
    """The score that orders the admissible candidates."""


UCB, MARGIN, JOINT, SEPARATE, SCORE = (int(field) for field in CandidateField)
"""The same rows as kernels read them."""
ROWS = len(CandidateField)
