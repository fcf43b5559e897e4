"""What is measured in an episode."""

from enum import IntEnum


class Metric(IntEnum):
    """Columns of an episode's row of numbers, in this order.

    NaN means that the method has no such number: a method without a gate has no bank, and a gate in
    plain Python may not say whether its confidence set covers theta.
    """

    REWARD_RATIO = 0
    """Sum over rounds of the played mean, divided by the sum of the baseline's means. With a fixed
    baseline that is the mean over rounds of the played mean, divided by the baseline's mean."""
    FALLBACK = 1
    """Share of rounds in which the baseline was played."""
    MIN_D = 2
    """Smallest D_t = R0 + sum of true contrasts, over the rounds t at which the method promises it."""
    VIOLATION = 3
    """1 if the method's promise was broken, else 0: some such D_t < 0 or, where each round is promised to
    be safe alone, some contrast < 0."""
    COVERED = 4
    """1 if theta was in the confidence set at every round, and plays had earned what was said, else 0."""
    MIN_SLACK = 5
    """Smallest D_t - B_t, over the same rounds."""
    FINAL_BANK = 6
    """The bank after the last round."""
    REGRET = 7
    """Sum over rounds of the best mean (candidates and baseline) minus the played mean."""
    RMIN_JOINT = 8
    """The minimum reserve (14) along the executed path, with joint certificates."""
    RMIN_SEPARATE = 9
    """The minimum reserve (14) along the executed path, with separate certificates."""
    SUM_PENALTY = 10
    """Sum of decoupling penalties (10) along the executed path."""

    @property
    def column(self) -> str:
        """Name of the column in ``results.parquet``."""
        return self.name.lower()
