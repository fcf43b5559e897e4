"""The numbers that a decision records about every candidate."""

from enum import IntEnum


class CandidateField(IntEnum):
    """Rows of ``Decision.details``, shape (5, K)."""

    UCB = 0
    MARGIN = 1
    JOINT = 2
    SEPARATE = 3
    SCORE = 4
