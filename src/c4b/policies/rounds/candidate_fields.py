"""What is known of every candidate at a decision: one definition for kernels, journal and people."""

from enum import IntEnum


class CandidateField(IntEnum):
    """Rows of ``Decision.details``, shape (5, K), in units of reward."""

    UCB = 0
    """Optimistic reward: the upper end of the reward's interval."""
    MARGIN = 1
    """Bank after playing the candidate; admissible when >= 0. +inf: no gate. -inf: not certified."""
    JOINT = 2
    """Lower bound of the contrast from one shared set (8)."""
    SEPARATE = 3
    """Lower bound of the contrast from two intervals bounded apart (9)."""
    SCORE = 4
    """What orders the admissible candidates."""


UCB, MARGIN, JOINT, SEPARATE, SCORE = (int(field) for field in CandidateField)
"""The same rows as kernels read them."""
ROWS = len(CandidateField)
