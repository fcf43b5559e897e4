"""One round, compiled: score, certify, choose, charge (Algorithm 1). Online and simulation run this.

Pools are feature-major, (d, K). Nothing is written to the ledger unless the round succeeds.
"""

from typing import NamedTuple

import numpy as np

from c4b._jit import kernel
from c4b._validate import LARGEST, Array
from c4b.certificates.kernels import joint_claim, pool_certificates, separate_claim, structural
from c4b.evidence.bounds import lower, pool_forms, pool_upper, raise_to_lower, upper
from c4b.evidence.statistics import Statistics
from c4b.ledger.kernels import (
    SEPARATE,
    UNGATED,
    Account,
    Ledger,
    baseline_margin,
    charge,
    write_claims,
)
from c4b.policies.composition import Rule

BASELINE = -1
"""The index that stands for the baseline in kernels."""
NO_SAFE_ACTION, NOT_FINITE = -2, -3
TILE = 32
"""Candidates transposed at a time, so that both sides of the copy stay in cache."""


class Workspace(NamedTuple):
    """Scratch of one round with K candidates, a stack of G ellipsoids and M remembered rounds."""

    squares: Array  # (G, K)
    centres: Array  # (G, K)
    scratch: Array  # (K,)
    score: Array  # (K,) UCB of each candidate
    margin: Array  # (K,) certified bank if it were played; -inf: cannot be certified
    base: Array  # (M+1,)
    offset: Array  # (M+1, d)
    executed: Array  # (d,) features of what is executed


@kernel
def workspace(stats: Statistics, ledger: Ledger, size: int) -> Workspace:
    stack, dim = stats.estimate.shape
    claims = len(ledger.kept_bank) + 1
    return Workspace(
        np.empty((stack, size)),
        np.empty((stack, size)),
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty(claims),
        np.empty((claims, dim)),
        np.empty(dim),
    )


@kernel
def assess(
    stats: Statistics, ledger: Ledger, account: Account, pool: Array, baseline: Array, work: Workspace
) -> None:
    """UCB score and margin of every candidate; +inf margins where there is no gate."""
    pool_forms(stats, pool, work.squares, work.centres)
    pool_upper(stats, work.squares, work.centres, work.score)
    if account.kind == UNGATED:
        work.margin[:] = np.inf
        return
    work.margin[:] = -np.inf
    claims = write_claims(ledger, account, stats, baseline, work.base, work.offset)
    for m in range(claims):
        raise_to_lower(
            stats,
            pool,
            work.squares,
            work.centres,
            work.base[m],
            work.offset[m],
            work.scratch,
            work.margin,
        )


@kernel
def choose(pool: Array, score: Array, margin: Array, propose: bool) -> int:
    """Highest score among margins >= 0, lowest index on ties; BASELINE when there is none.

    ``propose``: only the candidate of highest score is tested. A score that is not finite never wins,
    and neither does a candidate so large that absorbing it could overflow.
    """
    best = BASELINE
    top = -np.inf
    for k in range(len(score)):
        if score[k] > top and (propose or margin[k] >= 0.0) and score[k] < np.inf:
            for i in range(pool.shape[0]):
                if not abs(pool[i, k]) <= LARGEST:
                    break
            else:
                best = k
                top = score[k]
    if best != BASELINE and not margin[best] >= 0.0:
        return BASELINE
    return best


@kernel
def settle(
    stats: Statistics, ledger: Ledger, rule: Rule, pool: Array, baseline: Array, work: Workspace
) -> tuple[int, float]:
    """Choose among assessed candidates and charge. Returns (action, BASELINE or a code, margin).

    With no certified nonnegative fallback a baseline whose margin is below 0 stops the policy.
    """
    account = rule.account
    action = choose(pool, work.score, work.margin, rule.propose)
    if action == BASELINE:
        margin = baseline_margin(ledger, account, stats, baseline, work.executed)
        if account.kind != UNGATED and not account.nonnegative and not margin >= 0.0:
            return NO_SAFE_ACTION, margin
        work.executed[:] = baseline
    else:
        margin = work.margin[action]
        for i in range(len(baseline)):
            work.executed[i] = pool[i, action]
    charge(ledger, account, margin, work.executed, baseline, action == BASELINE)
    return action, margin


@kernel
def certificate(
    stats: Statistics,
    account: Account,
    executed: Array,
    baseline: Array,
    is_baseline: bool,
    scratch: Array,
) -> tuple[float, float]:
    """(joint, separate) lower bound of the executed contrast; the baseline's is structural in both."""
    if is_baseline:
        bound = structural(stats, baseline, account.alpha, account.nonnegative)
        return bound, bound
    base = separate_claim(stats, baseline, account.alpha, scratch)
    separate = base + lower(stats, executed)
    base = joint_claim(baseline, account.alpha, scratch)
    for i in range(len(scratch)):
        scratch[i] += executed[i]
    return base + lower(stats, scratch), separate


@kernel
def decide(
    stats: Statistics, ledger: Ledger, rule: Rule, candidates: Array, baseline: Array
) -> tuple[int, float, float, float, Array, Array]:
    """One online round on candidates (K, d).

    Returns (action or a negative code, margin, UCB of the executed action, its certificate, details
    (4, K), executed features (d,)). Rows of details: UCB, margin, joint and separate certificate.
    """
    size, dim = candidates.shape
    pool = np.empty((dim, size))
    for start in range(0, size, TILE):
        stop = min(start + TILE, size)
        for i in range(dim):
            for k in range(start, stop):
                pool[i, k] = candidates[k, i]
    work = workspace(stats, ledger, size)
    assess(stats, ledger, rule.account, pool, baseline, work)
    details = np.empty((4, size))
    for k in range(size):
        # x V^-1 x is finite for no infinite or NaN x, so only suspects are looked at again
        if not work.squares[0, k] < np.inf and not np.all(np.isfinite(candidates[k])):
            return NOT_FINITE, float(k), np.nan, np.nan, details, work.executed
    details[0] = work.score
    details[1] = work.margin
    pool_certificates(
        stats,
        pool,
        work.squares,
        work.centres,
        baseline,
        rule.account.alpha,
        work.executed,
        work.scratch,
        details[2],
        details[3],
    )
    action, margin = settle(stats, ledger, rule, pool, baseline, work)
    if action < 0:
        bound = structural(stats, baseline, rule.account.alpha, rule.account.nonnegative)
        return action, margin, upper(stats, baseline), bound, details, work.executed
    bound = details[3 if rule.account.kind == SEPARATE else 2, action]
    return action, margin, details[0, action], bound, details, work.executed
