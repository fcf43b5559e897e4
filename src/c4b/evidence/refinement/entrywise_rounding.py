"""Rounding entry by entry: an allowance that directions without data do not pay for.

n rounded additions leave errors of at most b sqrt(A_ii A_jj) in A and b sqrt(A_ii sum Y^2) in m, with b
about n u. ``eigenbasis.spectral`` bounds them by norms: n u tr A in every direction, also where no row
points and theta may be as long as S. There the event of ``constrained`` grows with the error itself, that
of any other set with its square. docs/theory.md, section "Rounding", proves the finer form (T3). The
decomposition is measured anew, O(d^3), so one question asks for it and policies do not.
"""

import math

from c4b._compilation.jit import called
from c4b.evidence.arithmetic.rounding import UNIT
from c4b.evidence.eigenbasis.spectrum import RESIDUAL, SKEW, misturn
from c4b.evidence.ellipsoids import COUNT, SQUARES_SUM, Data, Region, Terms


@called
def entrywise_spread(region: Region, data: Data, terms: Terms) -> float:
    """sigma^2 gamma^2 of ``constrained``, enlarged by what rounding can have done to A and m: (T3).

    The turned moment Q m is written.
    """
    values, ridge, bound = data.spectrum.values, data.ridges[0], terms.norm_bound
    dim, least = len(values), values[0] + ridge
    trace, log_det, shares = 0.0, 0.0, 0.0
    for i in range(dim):
        trace += data.gram[i, i]
        log_det += math.log1p(values[i] / ridge)
        total = 0.0
        for k in range(dim):
            total += region.basis[k, i] * region.basis[k, i] / (values[k] + ridge)
        root = 1.01 * math.sqrt(total) + data.spectrum.errors[SKEW] / math.sqrt(least)
        shares += math.sqrt(data.gram[i, i]) * root
    entry = 1.2 * (data.tally[COUNT] + 2.0) * UNIT
    turned, loss = decomposition_error(region, data, terms)
    loss += entry * shares * shares
    log_det = log_det * (1.0 + 8.0 * (dim + 2) * UNIT) + dim * loss
    spread: float = terms.noise**2 * (log_det + terms.log_term)
    radius = math.sqrt(spread + ridge * bound**2)
    rewards, fitted = math.sqrt(data.tally[SQUARES_SUM]), math.sqrt(trace) * bound
    if loss <= 0.5:
        fitted = min(fitted, 1.5 * shares * (radius + rewards))
    growth: float = 0.5 * loss * radius + turned + entry * shares * (rewards + fitted)
    return (spread + growth * (2.0 * radius + growth)) * (1.0 + 64.0 * UNIT)


@called
def decomposition_error(region: Region, data: Data, terms: Terms) -> tuple[float, float]:
    """The root of sum_i (nu_i + rho_i S)^2 / (values_i + lambda) and sum_i rho_i / (values_i + lambda).

    rho_i bounds row i of U^T A - diag(values) U^T and nu_i the error of (Q m)_i, A and m as they were
    summed up.
    """
    values, basis, gram = data.spectrum.values, region.basis, data.gram
    moment, turned, skew = data.moment, data.spectrum.moment, data.spectrum.errors[SKEW]
    dim, rounding = len(values), 1.1 * (len(values) + 3) * UNIT
    trace, size, length = 0.0, 0.0, 0.0
    for i in range(dim):
        trace += gram[i, i]
        length += moment[i] * moment[i]
        for j in range(dim):
            size += gram[i, j] * gram[i, j]
    rest = data.spectrum.errors[RESIDUAL] + 1.2 * (data.tally[COUNT] + 2.0) * UNIT * trace
    far = 1.1 * skew * (rest + skew * (math.sqrt(size) + values[dim - 1]))
    off = 1.1 * skew * misturn(data.spectrum) * math.sqrt(length)
    square, loss = 0.0, 0.0
    for i in range(dim):
        residual, bent, nu = 0.0, 0.0, off
        for j in range(dim):
            total = -values[i] * basis[i, j]
            largest = abs(total)
            skewed = -1.0 if i == j else 0.0
            product = abs(skewed)
            for k in range(dim):
                total += basis[i, k] * gram[k, j]
                largest += abs(basis[i, k] * gram[k, j])
                skewed += basis[i, k] * basis[j, k]
                product += abs(basis[i, k] * basis[j, k])
            residual += (abs(total) + rounding * largest) ** 2
            skewed = abs(skewed) + rounding * product
            bent += (skewed * (values[j] - values[i])) ** 2
            nu += 0.51 * skewed * abs(turned[j]) + rounding * abs(basis[i, j] * moment[j])
        rho = 1.01 * math.sqrt(residual) + 0.52 * math.sqrt(bent) + far
        square += (nu + rho * terms.norm_bound) ** 2 / (values[i] + data.ridges[0])
        loss += rho / (values[i] + data.ridges[0])
    return 1.01 * math.sqrt(square), 1.01 * loss
