"""Which play brings the best-scored candidate nearer while that is not admissible.

docs/theory.md, section "Choice", *Saving up*. It looks one round ahead: what the set will certify of that
candidate once a play is executed and its outcome absorbed, if rewards are as expected. It orders
candidates and certifies nothing.
"""

import math

import numpy as np

from c4b._compilation.jit import called, inlined
from c4b._compilation.shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.arithmetic.chains import pool_chains
from c4b.evidence.belief import Belief, deviation
from c4b.evidence.bounds import interval
from c4b.evidence.ellipsoids import Region
from c4b.ledger.books import Account, Ledger
from c4b.policies.compiled.comparison import due, usable
from c4b.policies.compiled.tied_scores import TIE
from c4b.policies.rounds.candidate_fields import MARGIN, SCORE

BLOCK = 64
"""Candidates at a time."""
AHEAD, ALONG, CROSS, SQUARE = 0, 1, 2, 3
"""Rows of sums over features; at last the first holds what will be certified."""
SUMS = 4


@called
def nearest(
    region: Region,
    belief: Belief,
    ledger: Ledger,
    account: Account,
    exchange: float,
    target: int,
    candidates: Array,
    baseline: Array,
    details: Array,
    scratch: Array,
    space: Array,
) -> int:
    """The admissible candidate that brings ``target`` nearest, less what is ``due`` at this ``exchange``;
    -1 if none brings it nearer than the baseline does. Of equally near ones it is the best-scored.

    ``space`` has 1 + 2 d + 4 numbers for each candidate of a block, and d more; scratch is (d,).
    """
    size, dim = candidates.shape
    room, kept = min(BLOCK, size), 1.0 - account.alpha
    for i in range(dim):  # what is in the prefix once the baseline was played, and then the target
        scratch[i] = ledger.prefix[i] + account.alpha * baseline[i]
        scratch[i] += candidates[target, i] - kept * baseline[i]
    low, high = interval(region, scratch)
    widths = 0.5 * (high - low) / deviation(region, belief, scratch)
    onward = shaped_view(space, 0, (dim,))
    for i in range(dim):
        onward[i] = 0.0
        for j in range(dim):
            onward[i] += region.basis[i, j] * (scratch[j] - baseline[j])
    listed, start = shaped_view(space, dim, (room,)), dim + room
    pool, turned = shaped_view(space, start, (dim, 1)), shaped_view(space, start + dim, (dim, 1))
    sums = shaped_view(space, start + 2 * dim, (SUMS, 1))
    for i in range(dim):
        pool[i, 0] = baseline[i]
    _certify_ahead(region, belief, widths, onward, pool, turned, sums)
    usual, action, most, score, count = sums[AHEAD, 0], -1, 0.0, -np.inf, 0
    pool = shaped_view(space, start, (dim, room))
    turned = shaped_view(space, start + dim * room, (dim, room))
    sums = shaped_view(space, start + 2 * dim * room, (SUMS, room))
    for k in range(size + 1):
        if k < size and _is_admissible(candidates, details, k):
            listed[count] = k
            for i in range(dim):
                pool[i, count] = candidates[k, i]
            count += 1
        if count < room and k < size:
            continue
        _certify_ahead(region, belief, widths, onward, pool, turned, sums)
        for n in range(count):
            a = int(listed[n])
            gain = sums[AHEAD, n] - usual - due(belief, exchange, candidates, a, baseline, scratch)
            near = TIE * (abs(sums[AHEAD, n]) + abs(usual))
            tied = abs(gain - most) <= near and details[SCORE, a] > score
            if gain > 0.0 and (gain > most + near or tied or action < 0):
                action, most, score = a, max(gain, most), details[SCORE, a]
        count = 0
    return action


@inlined
def _is_admissible(candidates: Array, details: Array, k: int) -> bool:
    admitted = details[MARGIN, k] >= 0.0 and -np.inf < details[SCORE, k] < np.inf
    return admitted and usable(candidates, k)


@inlined
def _certify_ahead(
    region: Region,
    belief: Belief,
    widths: float,
    onward: Array,
    pool: Array,
    turned: Array,
    sums: Array,
) -> None:
    """sums[AHEAD]: what will be certified of the prefix once a play x_a of the pool (d, K) was observed.

    With W_a = ``onward`` + x_a, V the matrix of the belief and s the noise: the mean of W_a less
    ``widths`` times s ||W_a|| in (V + x_a x_a^T)^-1.
    """
    dim, size = pool.shape
    pool_chains(pool, region.basis, 0, dim, 0, 1, turned)
    for k in range(size):
        sums[AHEAD, k], sums[ALONG, k], sums[CROSS, k], sums[SQUARE, k] = 0.0, 0.0, 0.0, 0.0
    for i in range(dim):
        factor, mean, start = belief.factors[0, i], belief.turned[0, i], onward[i]
        for k in range(size):
            own, whole = turned[i, k], start + turned[i, k]
            sums[AHEAD, k] += mean * whole
            sums[ALONG, k] += factor * whole * whole
            sums[CROSS, k] += factor * whole * own
            sums[SQUARE, k] += factor * own * own
    for k in range(size):
        left = sums[ALONG, k] - sums[CROSS, k] * sums[CROSS, k] / (1.0 + sums[SQUARE, k])
        sums[AHEAD, k] -= widths * belief.noise * math.sqrt(max(left, 0.0))
