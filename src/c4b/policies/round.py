"""One round, compiled: score, certify, choose, charge (Algorithm 1). Online and simulation run this."""

import numpy as np

from c4b._jit import allocating, inlined
from c4b._validate import LARGEST, Array
from c4b.certificates.kernels import (
    joint_claim,
    pool_joint,
    pool_separate,
    structural,
)
from c4b.evidence.bounds import SQUARES, lower, new_forms, pool_forms, pool_upper, upper
from c4b.evidence.statistics import Region
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


@inlined
def score(region: Region, pool: Array, forms: Array, details: Array) -> None:
    """UCB of every candidate into details (4, K); pool (d, K), forms from ``new_forms``."""
    pool_forms(region, pool, forms)
    pool_upper(region, forms, UCB, details)


@inlined
def certify(
    region: Region,
    ledger: Ledger,
    account: Account,
    pool: Array,
    baseline: Array,
    forms: Array,
    scratch: Array,
    details: Array,
    explain: bool,
) -> None:
    """Margins of scored candidates and the certificates they need, or both kinds to ``explain``.

    Shapes: pool (d, K), baseline and scratch (d,), details (4, K).
    """
    alpha = account.alpha
    if explain or account.kind == JOINT:
        pool_joint(region, forms, pool, baseline, alpha, scratch, JOINT_BOUND, details)
    if explain or account.kind == SEPARATE:
        pool_separate(region, forms, baseline, alpha, SEPARATE_BOUND, details)
    certificate = SEPARATE_BOUND if account.kind == SEPARATE else JOINT_BOUND
    pool_margins(ledger, account, region, forms, pool, baseline, certificate, scratch, MARGIN, details)


@inlined
def proposal(details: Array) -> int:
    """The candidate of highest finite UCB, lowest index on ties, or BASELINE."""
    best, top = BASELINE, -np.inf
    for k in range(details.shape[1]):
        if details[UCB, k] > top and details[UCB, k] < np.inf:
            best, top = k, details[UCB, k]
    return best


@inlined
def choose(details: Array, propose: bool) -> int:
    """Highest finite UCB among margins >= 0, lowest index on ties; BASELINE when there is none.

    ``propose``: only the candidate of highest UCB is tested.
    """
    best, top = BASELINE, -np.inf
    if propose:
        best = proposal(details)
        return best if best != BASELINE and details[MARGIN, best] >= 0.0 else BASELINE
    for k in range(details.shape[1]):
        if details[MARGIN, k] >= 0.0 and details[UCB, k] > top and details[UCB, k] < np.inf:
            best, top = k, details[UCB, k]
    return best


@inlined
def settle(
    region: Region,
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
    action = choose(details, propose)
    while action != BASELINE and not _usable(candidates, action):
        details[UCB, action] = np.inf  # absorbing it could overflow: never admitted
        details[MARGIN, action] = -np.inf
        action = choose(details, propose)
    if action == BASELINE:
        margin = baseline_margin(ledger, account, region, baseline, executed)
        for i in range(len(executed)):
            executed[i] = baseline[i]
        if account.kind != UNGATED and not account.nonnegative and not margin >= 0.0:
            return NO_SAFE_ACTION, margin
    else:
        margin = details[MARGIN, action] if account.kind != UNGATED else np.nan
        for i in range(len(executed)):
            executed[i] = candidates[action, i]
    charge(ledger, account, margin, executed, baseline, action == BASELINE)
    return action, margin


@inlined
def executed_bounds(
    region: Region,
    account: Account,
    details: Array,
    action: int,
    executed: Array,
    baseline: Array,
    scratch: Array,
) -> tuple[float, float]:
    """(joint, separate) lower bound of the executed contrast; the baseline's is structural in both.

    The one that the account's kind needed is in ``details`` already.
    """
    if action == BASELINE:
        bound = structural(region, baseline, account.alpha, account.nonnegative)
        return bound, bound
    if account.kind == SEPARATE:
        separate = details[SEPARATE_BOUND, action]
    else:
        separate = lower(region, executed) - (1.0 - account.alpha) * upper(region, baseline)
    if account.kind == JOINT:
        return details[JOINT_BOUND, action], separate
    base = joint_claim(baseline, account.alpha, scratch)
    for i in range(len(scratch)):
        scratch[i] += executed[i]
    return base + lower(region, scratch), separate


@allocating
def decide(
    evidence_flat: Array, ledger_flat: Array, propose: bool, candidates: Array, baseline: Array
) -> tuple[int, float, float, float, Array, Array]:
    """One online round on candidates (K, d); the ledger is written only when it succeeds.

    Returns (action or a negative code, margin, UCB of the executed action, its certificate, details
    (4, K), executed features (d,)). With the code NOT_FINITE the margin is the offending candidate,
    or BASELINE.
    """
    region, _, _ = opened_evidence(evidence_flat)
    ledger, account = opened_ledger(ledger_flat)
    size, dim = candidates.shape
    details = np.empty((4, size))
    executed = np.empty(dim)
    if not _usable(baseline.reshape(1, dim), 0):
        return NOT_FINITE, float(BASELINE), np.nan, np.nan, details, executed
    for start in range(0, size, BLOCK):
        stop = min(start + BLOCK, size)
        if size <= BLOCK:
            bad = _certify_rows(region, ledger, account, candidates, baseline, details)
        else:
            part = np.empty((4, stop - start))
            rows = candidates[start:stop]
            bad = _certify_rows(region, ledger, account, rows, baseline, part)
            details[:, start:stop] = part
        if bad >= 0:
            return NOT_FINITE, float(start + bad), np.nan, np.nan, details, executed
    action, margin = settle(region, ledger, account, propose, candidates, baseline, details, executed)
    if action < 0:
        bound = structural(region, baseline, account.alpha, account.nonnegative)
        return action, margin, upper(region, baseline), bound, details, executed
    bound = details[SEPARATE_BOUND if account.kind == SEPARATE else JOINT_BOUND, action]
    return action, margin, details[UCB, action], bound, details, executed


@inlined
def _usable(rows: Array, k: int) -> bool:
    for i in range(rows.shape[1]):
        if not abs(rows[k, i]) <= LARGEST:
            return False
    return True


@allocating
def _certify_rows(
    region: Region,
    ledger: Ledger,
    account: Account,
    rows: Array,
    baseline: Array,
    details: Array,
) -> int:
    """``score`` and ``certify`` for rows (K, d); returns a row that is not finite, or -1."""
    size, dim = rows.shape
    pool = np.empty((dim, size))
    for start in range(0, size, TILE):
        for i in range(dim):
            for k in range(start, min(start + TILE, size)):
                pool[i, k] = rows[k, i]
    forms = new_forms(region, size)
    score(region, pool, forms, details)
    certify(region, ledger, account, pool, baseline, forms, np.empty(dim), details, True)
    for k in range(size):
        # x V^-1 x is finite for no infinite or NaN x, so only suspects are looked at again
        if not forms[SQUARES, k] < np.inf and not np.all(np.isfinite(rows[k])):
            return k
    return -1
