"""What a policy promises and what input it requires, as data.

Studies measure what is promised, the conformance kit checks it, and a policy refuses to start without the
input that it requires.
"""

from enum import StrEnum
from typing import NamedTuple

HORIZON, SEED = "horizon", "seed"
"""Needs that are given when a policy is opened; ``round.BASELINE_MEAN`` is given in every round."""
ONE_HOT = "one-hot features"
"""What a policy over arms needs: every row is a unit vector, and all means are nonnegative."""


class Kind(StrEnum):
    """The rounds at which the budget R0 + sum of true contrasts is promised to be nonnegative."""

    EVERY_ROUND = "every round"
    END_OF_PHASE = "the end of every phase"
    ROUND_ALONE = "every round, and each round's own contrast"
    NONE = "nothing"


class Promise(NamedTuple):
    """What holds with probability at least 1 - delta, at all promised rounds at once.

    >>> str(Promise(Kind.END_OF_PHASE, 20))
    'the end of every phase of 20 rounds'
    """

    kind: Kind
    period: int = 1
    """Number of rounds in a phase."""

    def holds_at(self, rounds: int) -> bool:
        """Whether the promise covers the state after so many rounds."""
        return self.kind is not Kind.NONE and rounds % self.period == 0

    def __str__(self) -> str:
        return f"{self.kind} of {self.period} rounds" if self.period > 1 else str(self.kind)


EVERY_ROUND = Promise(Kind.EVERY_ROUND)
