"""Weighted sums of the rows of a matrix: the products of matrices that a decomposition needs.

Four rows are added at a time, always in the same order, whatever loop does it: a sum has the same bits
alone and beside others.
"""

from c4b._compilation.jit import called, inlined
from c4b._validate import Array


@inlined
def add_rows(factors: Array, rows: Array, count: int, out: Array, size: int) -> None:
    """out[n] += sum over j < count of factors[j] rows[j, n], for n < size."""
    fours = count - count % 4
    for j in range(0, fours, 4):
        f0, f1, f2, f3 = factors[j], factors[j + 1], factors[j + 2], factors[j + 3]
        for n in range(size):
            fresh = (f0 * rows[j, n] + f1 * rows[j + 1, n]) + (f2 * rows[j + 2, n] + f3 * rows[j + 3, n])
            out[n] += fresh
    for j in range(fours, count):
        f0 = factors[j]
        for n in range(size):
            out[n] += f0 * rows[j, n]


@called
def add_four_rows(
    factors: Array, k: int, rows: Array, count: int, a: Array, b: Array, c: Array, d: Array, size: int
) -> None:
    """``add_rows`` with the factors in rows k to k + 3, into four vectors: what is loaded serves all."""
    fours = count - count % 4
    for j in range(0, fours, 4):
        a0, a1, a2, a3 = factors[k, j], factors[k, j + 1], factors[k, j + 2], factors[k, j + 3]
        b0, b1 = factors[k + 1, j], factors[k + 1, j + 1]
        b2, b3 = factors[k + 1, j + 2], factors[k + 1, j + 3]
        c0, c1 = factors[k + 2, j], factors[k + 2, j + 1]
        c2, c3 = factors[k + 2, j + 2], factors[k + 2, j + 3]
        d0, d1 = factors[k + 3, j], factors[k + 3, j + 1]
        d2, d3 = factors[k + 3, j + 2], factors[k + 3, j + 3]
        for n in range(size):
            r0, r1, r2, r3 = rows[j, n], rows[j + 1, n], rows[j + 2, n], rows[j + 3, n]
            a[n] += (a0 * r0 + a1 * r1) + (a2 * r2 + a3 * r3)
            b[n] += (b0 * r0 + b1 * r1) + (b2 * r2 + b3 * r3)
            c[n] += (c0 * r0 + c1 * r1) + (c2 * r2 + c3 * r3)
            d[n] += (d0 * r0 + d1 * r1) + (d2 * r2 + d3 * r3)
    for j in range(fours, count):
        a0, b0, c0, d0 = factors[k, j], factors[k + 1, j], factors[k + 2, j], factors[k + 3, j]
        for n in range(size):
            row = rows[j, n]
            a[n] += a0 * row
            b[n] += b0 * row
            c[n] += c0 * row
            d[n] += d0 * row


@inlined
def add_product(factors: Array, rows: Array, out: Array) -> None:
    """out += factors @ rows, all (d, d)."""
    dim = rows.shape[0]
    fours = dim - dim % 4
    for i in range(0, fours, 4):
        add_four_rows(factors, i, rows, dim, out[i], out[i + 1], out[i + 2], out[i + 3], dim)
    for i in range(fours, dim):
        add_rows(factors[i], rows, dim, out[i], dim)
