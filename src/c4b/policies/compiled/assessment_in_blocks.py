"""``compiled_assessment`` of the candidates of an online round, a block of them at a time.

Everything about a block stays in cache. A candidate's numbers have the same bits in whatever block it is.
"""

import numpy as np

from c4b._compilation.cache_lines import LINE, whole_lines
from c4b._compilation.jit import called, inlined
from c4b._compilation.shaped_view import shaped_view
from c4b._validate import Array
from c4b.certificates.contrast_kernels import Assessment
from c4b.evidence.belief import Belief, believes, pool_belief
from c4b.evidence.ellipsoids import Region
from c4b.evidence.pools.pool_bounds import pool_interval
from c4b.evidence.pools.pool_forms import CROSS, SQUARES, form_rows, forms_size, pool_forms
from c4b.ledger.books import Account, Ledger
from c4b.policies.catalogue.choice_rule import Rule, boldness_now
from c4b.policies.compiled.comparison import CONTRASTS, DEVIATION, EXPECTED, HIGH, LOW
from c4b.policies.compiled.compiled_assessment import certify, score
from c4b.policies.rounds.candidate_fields import JOINT, MARGIN, ROWS, SCORE, SEPARATE

BLOCK, SPECTRAL_BLOCK = 256, 128
"""The most candidates in a block; the second of sets that keep an eigenbasis."""
NUMBERS = 4096
"""Numbers in a block of a spectral set, which is read again for every four eigenvectors: from the nearest
cache."""
BISECTIONS = 20
"""For the lowest score of the best-scored block."""


def blocks_size(stack: int, dim: int, size: int) -> int:
    """How large ``space`` of the functions here must be for K candidates."""
    block = min(size, BLOCK)
    return LINE + (1 + block) * dim + ROWS * block + forms_size(stack, dim, block)


@called
def assess(
    region: Region,
    belief: Belief,
    ledger: Ledger,
    account: Account,
    rule: Rule,
    claims: Array,
    candidates: Array,
    first: int,
    last: int,
    baseline: Array,
    mean: float,
    earned: Array,
    details: Array,
    lazy: bool,
    space: Array,
) -> int:
    """``score`` and, unless ``lazy``, ``certify`` for candidates (K, d) from ``first`` to ``last``;
    returns the first row that is not finite, or -1."""
    (size, dim), stack = candidates.shape, len(region.radius)
    boldness, block = boldness_now(ledger, account, rule), _block(region, size, dim, not lazy)
    if believes(belief):
        boldness = rule.believes
    scratch, at_pool = shaped_view(space, 0, (dim,)), whole_lines(dim)
    after = at_pool + block * dim
    for start in range(first, last, block):
        count = min(block, last - start)
        pool = shaped_view(space, at_pool, (dim, count))
        _transpose(candidates, start, pool)
        rows = form_rows(stack, dim, region.spectral, count)
        forms = shaped_view(space, after + ROWS * block, (rows, count))
        if count == size:
            whole = shaped_view(details, 0, (ROWS, count))
        else:
            whole = shaped_view(space, after, (ROWS, count))
        assessed = Assessment(pool, forms, baseline, whole, scratch, mean, earned, claims)
        score(region, belief, assessed, boldness)
        if lazy:
            for k in range(count):
                whole[MARGIN, k], whole[JOINT, k], whole[SEPARATE, k] = np.nan, np.nan, np.nan
        else:
            certify(region, ledger, account, rule, assessed, True)
        for k in range(count):
            # x V^-1 x is finite for no infinite or NaN x, so only suspects are looked at again
            if not forms[SQUARES, k] < np.inf and not _is_finite(candidates, start + k):
                return start + k
        if count < size:
            for row in range(ROWS):
                for k in range(count):
                    details[row, start + k] = whole[row, k]
    return -1


@called
def assess_best(
    region: Region,
    belief: Belief,
    ledger: Ledger,
    account: Account,
    rule: Rule,
    claims: Array,
    candidates: Array,
    baseline: Array,
    mean: float,
    earned: Array,
    details: Array,
    space: Array,
) -> None:
    """Margins and certificates of up to SPECTRAL_BLOCK candidates whose scores are above all others.

    They are gathered at the end of ``space``, of which ``assess`` needs no more than the first half.
    """
    (size, dim), room = candidates.shape, SPECTRAL_BLOCK
    low, high = np.inf, -np.inf
    for k in range(size):
        value = details[SCORE, k]
        low, high = min(low, value), max(high, value if value < np.inf else -np.inf)
    count = 0
    for _ in range(BISECTIONS):
        middle, above = 0.5 * (low + high), 0
        for k in range(size):
            above += (details[SCORE, k] > middle) & (details[SCORE, k] < np.inf)
        if above > room:
            low = middle
        else:
            high, count = middle, above
        if room // 2 <= count:
            break
    start = len(space) - room * (dim + ROWS + 1)
    listed = shaped_view(space, start, (room,))
    best = shaped_view(space, start + room, (count, dim))
    found = shaped_view(space, start + room * (dim + 1), (ROWS, count))
    n = 0
    for k in range(size):
        if high < details[SCORE, k] < np.inf:
            listed[n] = k
            for i in range(dim):
                best[n, i] = candidates[k, i]
            n += 1
    assess(
        region, belief, ledger, account, rule, claims, best, 0, count, baseline, mean, earned, found,
        False, space,
    )  # fmt: skip
    for n in range(count):
        k = int(listed[n])
        for row in (JOINT, SEPARATE, MARGIN):
            details[row, k] = found[row, n]


@called
def write_contrasts(
    region: Region, belief: Belief, candidates: Array, baseline: Array, contrasts: Array, space: Array
) -> None:
    """``contrasts`` of ``comparison`` for candidates (K, d)."""
    (size, dim), stack = candidates.shape, len(region.radius)
    block = _block(region, size, dim, False)
    after = block * dim
    for start in range(0, size, block):
        count = min(block, size - start)
        pool, part = shaped_view(space, 0, (dim, count)), shaped_view(space, after, (CONTRASTS, count))
        _transpose(candidates, start, pool)
        for i in range(dim):
            for k in range(count):
                pool[i, k] -= baseline[i]
        rows = form_rows(stack, dim, region.spectral, count)
        forms = shaped_view(space, after + ROWS * block, (rows, count))
        pool_forms(region, pool, forms)
        pool_interval(region, forms, pool, LOW, HIGH, part)
        if believes(belief):
            pool_belief(belief, belief.turned, len(region.radius), forms, EXPECTED, part)
            for k in range(count):
                part[DEVIATION, k] = forms[CROSS, k]
        for row in range(CONTRASTS if believes(belief) else EXPECTED):
            for k in range(count):
                contrasts[row, start + k] = part[row, k]


@inlined
def _is_finite(rows: Array, k: int) -> bool:
    for i in range(rows.shape[1]):
        if not abs(rows[k, i]) < np.inf:
            return False
    return True


@inlined
def _block(region: Region, size: int, dim: int, claims: bool) -> int:
    """Candidates at a time. ``claims``: every block costs as much again for each claim, so that larger
    ones pay."""
    largest = SPECTRAL_BLOCK if region.spectral else BLOCK
    if region.spectral and not claims:
        largest = min(max(NUMBERS // dim // 16 * 16, 32), largest)
    return max(min(size, largest), 1)


@called
def _transpose(candidates: Array, start: int, pool: Array) -> None:
    """Candidates from ``start`` on, (K, d), as a pool (d, count)."""
    dim, count = pool.shape
    for k in range(0, count - count % 4, 4):
        n = start + k
        for i in range(0, dim - dim % 4, 4):  # four by four, so that both sides are whole vectors
            a0, a1 = candidates[n, i], candidates[n, i + 1]
            a2, a3 = candidates[n, i + 2], candidates[n, i + 3]
            b0, b1 = candidates[n + 1, i], candidates[n + 1, i + 1]
            b2, b3 = candidates[n + 1, i + 2], candidates[n + 1, i + 3]
            c0, c1 = candidates[n + 2, i], candidates[n + 2, i + 1]
            c2, c3 = candidates[n + 2, i + 2], candidates[n + 2, i + 3]
            d0, d1 = candidates[n + 3, i], candidates[n + 3, i + 1]
            d2, d3 = candidates[n + 3, i + 2], candidates[n + 3, i + 3]
            pool[i, k], pool[i, k + 1], pool[i, k + 2], pool[i, k + 3] = a0, b0, c0, d0
            pool[i + 1, k], pool[i + 1, k + 1], pool[i + 1, k + 2], pool[i + 1, k + 3] = a1, b1, c1, d1
            pool[i + 2, k], pool[i + 2, k + 1], pool[i + 2, k + 2], pool[i + 2, k + 3] = a2, b2, c2, d2
            pool[i + 3, k], pool[i + 3, k + 1], pool[i + 3, k + 2], pool[i + 3, k + 3] = a3, b3, c3, d3
        for i in range(dim - dim % 4, dim):
            for m in range(k, k + 4):
                pool[i, m] = candidates[start + m, i]
    for k in range(count - count % 4, count):
        for i in range(dim):
            pool[i, k] = candidates[start + k, i]
