"""One round, compiled: score, certify, choose, charge (Algorithm 1). Online and simulation run this."""

import numpy as np

from c4b._jit import kernel
from c4b._validate import LARGEST, Array
from c4b.certificates.kernels import (
    joint_claim,
    pool_joint,
    pool_separate,
    separate_claim,
    structural,
)
from c4b.evidence.bounds import Forms, lower, new_forms, pool_forms, pool_upper, upper
from c4b.evidence.statistics import Statistics
from c4b.evidence.statistics import opened as opened_evidence
from c4b.ledger.kernels import (
    JOINT,
    SEPARATE,
    UNGATED,
    Account,
    Ledger,
    baseline_margin,
    charge,
    pool_margins,
)
from c4b.ledger.kernels import opened as opened_ledger

BASELINE = -1
"""The index that stands for the baseline in kernels."""
NO_SAFE_ACTION, NOT_FINITE = -2, -3
UCB, MARGIN, JOINT_BOUND, SEPARATE_BOUND = 0, 1, 2, 3
"""Rows of ``details``."""
BLOCK = 256
"""Candidates assessed at a time, so that everything about them stays in cache."""
TILE = 32
"""Candidates transposed at a time, so that both sides of the copy stay in cache."""


@kernel
def assess(
    stats: Statistics,
    ledger: Ledger,
    account: Account,
    forms: Forms,
    pool: Array,
    baseline: Array,
    details: Array,
    explain: bool,
) -> None:
    """Fill details (4, K): UCB, margin, joint and separate certificate of every candidate.

    Without ``explain`` only the certificate that the margin needs is computed.
    """
    pool_forms(stats, pool, forms)
    pool_upper(stats, forms, details[UCB])
    separate = account.kind == SEPARATE
    if explain or account.kind == JOINT:
        pool_joint(stats, forms, pool, baseline, account.alpha, details[JOINT_BOUND])
    if explain or separate:
        pool_separate(stats, forms, pool, baseline, account.alpha, details[SEPARATE_BOUND])
    certificate = details[SEPARATE_BOUND if separate else JOINT_BOUND]
    pool_margins(ledger, account, stats, forms, pool, baseline, certificate, details[MARGIN])


@kernel
def choose(score: Array, margin: Array, propose: bool) -> int:
    """Highest score among margins >= 0, lowest index on ties; BASELINE when there is none.

    ``propose``: only the candidate of highest score is tested. A score that is not finite never wins.
    """
    best, top = BASELINE, -np.inf
    for k in range(len(score)):
        if score[k] > top and score[k] < np.inf and (propose or margin[k] >= 0.0):
            best, top = k, score[k]
    if best != BASELINE and not margin[best] >= 0.0:
        return BASELINE
    return best


@kernel
def settle(
    stats: Statistics,
    ledger: Ledger,
    account: Account,
    propose: bool,
    candidates: Array,
    baseline: Array,
    details: Array,
    executed: Array,
) -> tuple[int, float]:
    """Choose among assessed candidates (K, d) and charge the ledger.

    Returns (action, BASELINE or NO_SAFE_ACTION; its margin) and writes the features of what is
    executed. Without known nonnegativity a baseline whose margin is below 0 stops the policy; then
    nothing is charged.
    """
    action = choose(details[UCB], details[MARGIN], propose)
    while action != BASELINE and not _usable(candidates[action]):
        details[UCB, action] = np.inf  # absorbing it could overflow: never admitted
        details[MARGIN, action] = -np.inf
        action = choose(details[UCB], details[MARGIN], propose)
    if action == BASELINE:
        margin = baseline_margin(ledger, account, stats, baseline, executed)
        executed[:] = baseline
        if account.kind != UNGATED and not account.nonnegative and not margin >= 0.0:
            return NO_SAFE_ACTION, margin
    else:
        margin = details[MARGIN, action] if account.kind != UNGATED else np.nan
        executed[:] = candidates[action]
    charge(ledger, account, margin, executed, baseline, action == BASELINE)
    return action, margin


@kernel
def executed_bounds(
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
    separate = separate_claim(stats, baseline, account.alpha, scratch) + lower(stats, executed)
    joint = joint_claim(baseline, account.alpha, scratch)
    for i in range(len(scratch)):
        scratch[i] += executed[i]
    return joint + lower(stats, scratch), separate


@kernel
def decide(
    evidence_flat: Array, ledger_flat: Array, propose: bool, candidates: Array, baseline: Array
) -> tuple[int, float, float, float, Array, Array]:
    """One online round on candidates (K, d); the ledger is written only when it succeeds.

    Returns (action or a negative code, margin, UCB of the executed action, its certificate, details
    (4, K), executed features (d,)). With the code NOT_FINITE the margin is the offending candidate,
    or BASELINE.
    """
    stats, _ = opened_evidence(evidence_flat)
    ledger, account = opened_ledger(ledger_flat)
    size, dim = candidates.shape
    details = np.empty((4, size))
    executed = np.empty(dim)
    if not _usable(baseline):
        return NOT_FINITE, float(BASELINE), np.nan, np.nan, details, executed
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        if size <= BLOCK:
            bad = _assess_rows(stats, ledger, account, candidates, baseline, details)
        else:
            part = np.empty((4, stop - start))
            rows = candidates[start:stop]
            bad = _assess_rows(stats, ledger, account, rows, baseline, part)
            details[:, start:stop] = part
        if bad >= 0:
            return NOT_FINITE, float(start + bad), np.nan, np.nan, details, executed
    action, margin = settle(stats, ledger, account, propose, candidates, baseline, details, executed)
    if action < 0:
        bound = structural(stats, baseline, account.alpha, account.nonnegative)
        return action, margin, upper(stats, baseline), bound, details, executed
    bound = details[SEPARATE_BOUND if account.kind == SEPARATE else JOINT_BOUND, action]
    return action, margin, details[UCB, action], bound, details, executed


@kernel
def _usable(x: Array) -> bool:
    for i in range(len(x)):
        if not abs(x[i]) <= LARGEST:
            return False
    return True


@kernel
def _assess_rows(
    stats: Statistics,
    ledger: Ledger,
    account: Account,
    rows: Array,
    baseline: Array,
    details: Array,
) -> int:
    """``assess`` for candidate-major rows (K, d); returns a row that is not finite, or -1."""
    size, dim = rows.shape
    pool = np.empty((dim, size))
    for start in range(0, size, TILE):
        for i in range(dim):
            for k in range(start, min(start + TILE, size)):
                pool[i, k] = rows[k, i]
    forms = new_forms(stats, size)
    assess(stats, ledger, account, forms, pool, baseline, details, True)
    for k in range(size):
        # x V^-1 x is finite for no infinite or NaN x, so only suspects are looked at again
        if not forms.squares[0, k] < np.inf and not np.all(np.isfinite(rows[k])):
            return k
    return -1
