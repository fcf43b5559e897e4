"""The checkpoint ledger: which rounds it keeps, what it dominates, and the limit of every ledger."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import c4b
from c4b.evidence.ellipsoids import LOG_DET
from c4b.ledger import books
from c4b.ledger.books import Certificate, LedgerKind, Tally
from c4b.ledger.ledger_kernels import Execution, charge
from c4b.policies import CandidateField
from support.conic_solver import Quadratic, ball, ellipsoid, infimum
from support.evidence_internals import inside
from support.oracle_comparison import ALL_CONFIDENCES, ALL_GATED, history
from support.oracle_sets import DEFINITIONS, Array
from support.random_stream import random_stream

seeds = st.integers(0, 2**32 - 1)


def test_kept_rounds_are_the_start_and_evenly_spread_ones() -> None:
    """After any number of rounds: 0, stride, 2 stride, ... to the last, at most 32 of them."""
    account = books.Account(0.1, 0.0, 0.0, Certificate.JOINT, LedgerKind.BANK, 0.0)
    ledger, account = books.views(books.opening(account, 1, 32))
    for done in range(1, 2500):
        charge(ledger, account, float(done), Execution(np.ones(1), np.zeros(1), False, np.nan), False)
        kept = ledger.kept_round[: int(ledger.tally[Tally.KEPT])]
        stride = int(kept[1])
        np.testing.assert_array_equal(kept, np.arange(0, done + 1, stride))
        assert len(kept) <= 32
        assert stride & (stride - 1) == 0  # a power of two
        assert done < 32 or len(kept) > 16  # never fewer than half of the room
        np.testing.assert_array_equal(ledger.kept_bank[: len(kept)], kept)  # each with its own B and Z
        np.testing.assert_array_equal(ledger.kept_prefix[: len(kept), 0], kept)


def lived(rng: np.random.Generator, dim: int, rounds: int) -> tuple[c4b.Policy, Array]:
    """A checkpoint policy some rounds into its life."""
    theta, stream = random_stream(rng, dim, rounds, max_candidates=4)
    confidence = str(rng.choice(["mixture", "constrained", "unbiased"]))
    model = c4b.LinearModel(dim, 0.1, 1.0, confidence=confidence)
    policy = c4b.Policy("checkpoints", model, 0.2, float(rng.choice([0.0, 1.0])))
    policy.learn(*history(rng, theta, 10 * dim, 0.1))
    for pool, baseline in stream:
        decision = policy.decide(pool, baseline)
        executed = baseline if decision.action is None else pool[decision.action]
        policy.observe(decision.id, float(executed @ theta + 0.1 * rng.normal()))
    return policy, theta


def like(policy: c4b.Policy, name: str) -> c4b.Policy:
    """Another ledger with the same evidence, bank and prefix."""
    other = c4b.Policy(name, policy.model, policy.alpha, policy.reserve)
    other.evidence.flat[:] = policy.evidence.flat
    mine, its = (books.views(p.gate.ledger)[0] for p in (policy, other))
    its.bank[:] = mine.bank
    its.prefix[:] = mine.prefix
    return other


@given(seeds, st.integers(1, 5), st.integers(1, 45))
def test_checkpoints_dominate_refresh_dominates_carry(seed: int, dim: int, rounds: int) -> None:
    rng = np.random.default_rng(seed)
    policy, theta = lived(rng, dim, rounds)
    _, ((pool, baseline),) = random_stream(rng, dim, 1, max_candidates=6)
    baseline = baseline if baseline @ theta >= 0.0 else -baseline
    carry, refresh = like(policy, "contrast"), like(policy, "refresh")
    before = [p.gate.ledger.copy() for p in (carry, refresh, policy)]
    margins = [p.decide(pool, baseline).details[CandidateField.MARGIN] for p in (carry, refresh, policy)]
    assert np.all(np.diff(margins, axis=0) >= 0.0)
    for p, flat in zip((carry, refresh, policy), before, strict=True):
        p.gate.ledger[:] = flat
    banks = [p.decide(pool[:0], baseline).bank for p in (carry, refresh, policy)]  # the baseline's
    assert banks == sorted(banks)


def test_more_checkpoints_help_somewhere() -> None:
    """The maximum is not always reached by the first or the last round."""
    gains = []
    for seed in range(10):
        policy, _ = lived(np.random.default_rng(seed), 3, 40)
        _, ((pool, baseline),) = random_stream(np.random.default_rng(seed), 3, 1, max_candidates=6)
        refresh = like(policy, "refresh")
        gains.append(policy.decide(pool[:0], baseline).bank - refresh.decide(pool[:0], baseline).bank)
    assert max(gains) > 0.001


def exact_set(evidence: c4b.Evidence) -> list[Quadratic]:
    """The ellipsoid of the moment; for a set within the norm ball the set that its stack encloses."""
    parts, model = inside(evidence), evidence.model
    definition = DEFINITIONS[model.confidence or ""]
    shape = parts.gram + parts.ridges[0] * np.eye(model.dim)
    if not definition.within_ball:
        return [ellipsoid(evidence.estimate, shape, evidence.radius)]
    spread = model.noise**2 * (parts.tally[LOG_DET] + 2.0 * np.log(1.0 / model.delta))
    level = spread - float(parts.moment @ evidence.estimate)
    return [(*definition.quadratic(parts.gram.copy(), parts.moment.copy(), shape), level)]


@pytest.mark.parametrize("confidence", ALL_CONFIDENCES)
@pytest.mark.parametrize("name", ALL_GATED)
def test_no_ledger_exceeds_its_limit(name: str, confidence: str) -> None:
    """R0 + inf Z theta over all past sets, x_s(b_s) theta >= 0 and the norm ball (theory sheet)."""
    gaps = []
    for seed in range(3):
        rng = np.random.default_rng([seed, ALL_GATED.index(name)])
        theta, stream = random_stream(rng, 3, 14, max_candidates=5)
        policy = c4b.Policy(name, c4b.LinearModel(3, 0.1, 1.0, confidence=confidence), 0.2, 0.1)
        policy.learn(*history(rng, theta, 12, 0.1))
        sets: list[Quadratic] = [ball(3, 1.0)]
        baselines: list[Array] = []
        for pool, baseline in stream:
            sets += exact_set(policy.evidence)
            baselines.append(baseline)
            decision = policy.decide(pool, baseline)
            executed = baseline if decision.action is None else pool[decision.action]
            limit = policy.reserve + infimum(policy.prefix, sets, baselines)
            gaps.append(limit - decision.bank)
            policy.observe(decision.id, float(executed @ theta + 0.1 * rng.normal()))
    assert min(gaps) >= -1e-6
    assert min(gaps) < 0.05  # the limit is near at times: a bank that promised much more would show
