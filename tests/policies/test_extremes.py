"""Huge rows and interruptions: what a stray value or a signal must not do to the books."""

import subprocess
import sys

import numpy as np
import pytest

import c4b
from support.any_world import COMPOSITIONS

GATED = [name for name in COMPOSITIONS if c4b.policies.get(name).gated]


def told(name: str, mean: float) -> float | None:
    """The baseline's mean for a policy that needs it."""
    return mean if c4b.policies.get(name).needs else None


@pytest.mark.parametrize("size", [1e8, 1e10])
@pytest.mark.parametrize("name", GATED)
def test_one_huge_row_of_history_never_certifies_a_lie(name: str, size: float) -> None:
    """Noise-free rewards, so theta is in the exact set: a bank above the truth would be rounding."""
    theta = np.array([0.6, -0.5])
    for seed in range(10):
        rng = np.random.default_rng(seed)
        policy = c4b.Policy(name, c4b.LinearModel(2, noise=0.1, norm_bound=1.0))
        rows = np.vstack([rng.normal(size=(20, 2)), size * rng.normal(size=2)])
        try:
            policy.learn(rows, rows @ theta)
        except c4b.errors.InvalidInput:
            continue
        pool, baseline = rng.normal(size=(4, 2)), np.array([1.0, 0.0])
        decision = policy.decide(pool, baseline, told(name, float(baseline @ theta)))
        x = baseline if decision.action is None else pool[decision.action]
        assert decision.bank <= (x - 0.95 * baseline) @ theta + 1e-6


@pytest.mark.parametrize("name", GATED)
def test_a_huge_round_does_not_hide_the_rounds_after_it(name: str) -> None:
    """The incumbent's row is 1e19 with mean 0; later prefixes are tiny beside it, and must count."""
    theta, baseline = np.array([0.5, 0.5]), np.array([1.0, 1.0])
    policy = c4b.Policy(name, c4b.LinearModel(2, noise=0.1, norm_bound=1.0), reserve=1.0)
    first = policy.decide([], [1e19, -1e19], told(name, 0.0))
    policy.forget(first.id)
    credit = 1.0
    for _ in range(60):
        pool = np.array([[-1.0, -1.0], [-0.5, -1.5]])
        decision = policy.decide(pool, baseline, told(name, 1.0))
        x = baseline if decision.action is None else pool[decision.action]
        credit += float((x - 0.95 * baseline) @ theta)
        assert decision.bank <= credit + 1e-6
        assert credit >= -1e-6


@pytest.mark.parametrize("name", ["contrast", "refresh", "revalue-f", "reserve-c4b+"])
def test_a_wrong_report_of_execution_can_be_corrected(name: str) -> None:
    rng = np.random.default_rng(3)
    policies = [c4b.Policy(name, c4b.LinearModel(2, 0.1, 1.0), reserve=1.0) for _ in range(2)]
    pool = rng.normal(size=(3, 2))
    for policy in policies:
        decision = policy.decide(pool, [1.0, 0.0])
        if policy is policies[0]:
            policy.executed(decision.id, [1.7e18, 1.7e18])
            policy.executed(decision.id, pool[1])
        else:
            policy.executed(decision.id, pool[1])
    np.testing.assert_array_equal(policies[0].prefix, policies[1].prefix)
    assert policies[0].bank <= policies[1].bank + 1e-9


INTERRUPTED = """
import signal
import numpy as np
import c4b
from c4b.ledger import books

class Timeout(Exception):
    pass

def strike(*_):
    raise Timeout

policy = c4b.Policy("refresh", c4b.LinearModel(5, 0.1, 1.0))
pool, baseline = np.random.default_rng(0).normal(size=(300, 5)), np.eye(5)[0]
policy.observe(policy.decide(pool, baseline).id, 0.5)
signal.signal(signal.SIGALRM, strike)
struck = 0
for n in range(400):
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, 1e-5 + 1e-6 * (n % 80))
            policy.observe(policy.decide(pool, baseline).id, 0.5)
        finally:  # it may strike here, too: caught below like the others
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    except (Timeout, SystemError):
        struck += 1
signal.signal(signal.SIGALRM, signal.SIG_IGN)
assert struck > 20, struck
ledger, _ = books.views(policy.gate.ledger)
assert policy.rounds == ledger.tally[books.Tally.ROUNDS]
for late in policy.pending:
    policy.observe(late, 0.5)
decision = policy.decide(pool, baseline)
count = policy.evidence.count
policy.observe(decision.id, 0.5)
assert policy.evidence.count == count + 1  # learning has not stalled
print("the books agree")
"""


@pytest.mark.slow
def test_an_exception_from_a_signal_leaves_no_charge_without_a_round() -> None:
    """Timers that strike at every stage of deciding and observing, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, check=False
    )
    assert "the books agree" in done.stdout, done.stderr
