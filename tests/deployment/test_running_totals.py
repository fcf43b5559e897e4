"""Sums that are added up late and many at a time are those of adding everything at once, bit for bit."""

from __future__ import annotations

import math

import numpy as np
import pytest

from c4b._validate import Array
from c4b.deployment.summary.added_decisions import HEADING, Sum
from c4b.deployment.summary.running_totals import KEPT, RunningTotals, blocks
from c4b.policies.pending import PendingOutcome


class Plain:
    """The same sums in plain Python, with those after every decision."""

    def __init__(self, dim: int) -> None:
        self.now = np.zeros(HEADING + 3 * dim)
        self.error = np.zeros(3 * dim)
        self.after: dict[int, Array] = {}

    def add(self, seq: int, at: int, bank: float, fallback: bool, made: PendingOutcome) -> None:
        now = self.now
        now[Sum.DECISIONS] += 1
        now[Sum.SEQ], now[Sum.AT], now[Sum.BANK] = seq, at, bank
        now[Sum.FALLBACKS] += fallback
        self.execute(1.0, made)
        self.after[int(now[Sum.DECISIONS])] = now.copy()

    def execute(self, sign: float, made: PendingOutcome) -> None:
        now, mean, dim = self.now, made.baseline_mean, len(made.baseline)
        now[Sum.TOLD] = math.nan if mean is None else now[Sum.TOLD] + sign * mean
        size = now[Sum.SIZE] + (0.0 if mean is None else abs(mean))
        if made.is_baseline:
            parts = {2: made.baseline}
        else:
            parts = {0: made.executed, 1: made.baseline}
            now[Sum.PLAYED] += sign
            now[Sum.TOLD_PLAYED] += 0.0 if mean is None else sign * mean
        for block, features in parts.items():
            size += math.sqrt(features.dot(features))
            for i, feature in enumerate(features.tolist()):
                k = block * dim + i
                lost = float(self.error[k]) + sign * feature
                grown = float(now[HEADING + k]) + lost
                self.error[k] = lost + (float(now[HEADING + k]) - grown)
                now[HEADING + k] = grown
        now[Sum.SIZE] = size

    def outcome(self, round_: int, reward: float) -> None:
        for row in (self.now, *(row for number, row in self.after.items() if number > round_)):
            row[Sum.OUTCOMES] += 1
            row[Sum.REWARD] += reward


def kept_after(decisions: int) -> list[int]:
    """The numbers of decisions whose sums are still there: see ``KEPT``."""
    return [n for n in range(1, decisions + 1) if n + KEPT * (n & -n) > decisions]


def check(totals: RunningTotals, plain: Plain) -> None:
    assert totals.now.tobytes() == plain.now.tobytes()
    assert totals.arrays()["error"].tobytes() == plain.error.tobytes()
    assert list(totals.kept) == kept_after(len(plain.after))
    for number, row in totals.kept.items():
        assert row.tobytes() == plain.after[number].tobytes()


@pytest.mark.parametrize("late", [0, 1, 40, 300])
@pytest.mark.parametrize("told", [0.0, 0.98, 1.0])
def test_added_late_is_added_at_once(late: int, told: float) -> None:
    """Outcomes come up to ``late`` decisions after their own; some never. told: share of told means."""
    rng = np.random.default_rng([late, int(100 * told)])
    for dim, often in ((1, 0.01), (4, 0.2)):
        totals, plain, waiting = RunningTotals(dim), Plain(dim), list[int]()
        for round_ in range(700):
            is_baseline = bool(rng.random() < 0.3)
            baseline = rng.normal(size=dim) * 10.0 ** rng.integers(-3, 9)
            executed = baseline if is_baseline else rng.normal(size=dim)
            made = PendingOutcome(
                executed, baseline, is_baseline, rng.normal() if rng.random() < told else None
            )
            given = 2 * round_ + 1, 10 * round_, float(rng.normal()), is_baseline, made
            mark = totals.mark()
            for _ in range(int(rng.integers(4))):  # decisions that are taken back
                totals.add(*given)
            totals.undo(mark)
            totals.add(*given)
            plain.add(*given)
            assert (totals.decisions, totals.last_seq) == (round_ + 1, 2 * round_ + 1)
            waiting.append(round_)
            while waiting and rng.random() < 0.6:
                about = waiting.pop(max(0, len(waiting) - 1 - int(rng.integers(late + 1))))
                reward = float(rng.normal()) if rng.random() < 0.9 else None
                totals.outcome(about, reward)
                if reward is not None:
                    plain.outcome(about, reward)
            if rng.random() < often:
                check(totals, plain)
        check(totals, plain)


def test_something_else_was_executed() -> None:
    """All that is executed instead is in the sums of now as if it were taken back and added again."""
    rng = np.random.default_rng(0)
    totals, plain, made = RunningTotals(3), Plain(3), list[PendingOutcome]()
    for round_ in range(100):
        baseline = rng.normal(size=3)
        made.append(PendingOutcome(rng.normal(size=3), baseline, False, rng.normal()))
        for sums in (totals, plain):
            sums.add(round_, round_, 0.0, False, made[-1])
    for round_ in (99, 3, 50):
        before = made[round_]
        after = PendingOutcome(before.baseline, before.baseline, True, before.baseline_mean)
        totals.amend(round_, before, after, 7.0)
        plain.execute(-1.0, before)
        plain.execute(1.0, after)
        plain.now[Sum.BANK] = 7.0
        plain.now[Sum.AMENDED] += 1.0
    assert totals.now.tobytes() == plain.now.tobytes()
    assert totals.kept[98][Sum.AMENDED] == 2.0
    assert totals.kept[98][Sum.PLAYED] == 96.0


def test_sums_belong_to_decisions_and_are_few() -> None:
    random, totals, made = np.random.default_rng(1), RunningTotals(2), []
    for n in range(3000):
        outcome = PendingOutcome(random.random(2), random.random(2), bool(n % 3 == 0), None)
        totals.add(n, n, 0.0, outcome.is_baseline, outcome)
        made.append(outcome)
    late = PendingOutcome(np.array([9.0, 9.0]), made[700].baseline, False)
    totals.amend(700, made[700], late, 0.0)
    made[700] = late
    totals.outcome(2000, 0.5)
    assert len(totals.kept) < 16 * math.log2(3000) + KEPT
    for number, row in [*totals.kept.items(), (3000, totals.now)]:
        plays = [each for each in made[:number] if not each.is_baseline]
        assert row[Sum.PLAYED] == len(plays)
        assert row[Sum.REWARD] == (0.5 if number > 2000 else 0.0)
        expected = sum(each.executed - each.baseline for each in plays)
        assert blocks(row)[0] - blocks(row)[1] == pytest.approx(expected, abs=1e-9)
    gaps = np.diff([*totals.kept])
    assert all(gap <= max(1, (3000 - n) / KEPT * 2) for n, gap in zip(totals.kept, gaps, strict=False))
