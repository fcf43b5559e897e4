"""Products of matrices as chains of fused multiply-adds, feature after feature.

Every sum here is ``fma(v_n, x_n, ... fma(v_1, x_1, fma(v_0, x_0, 0)))``, whatever loop computes it. So a
number has the same bits alone and in a pool of any size, and loops may be blocked for speed: four sums of
four candidates each share what they load, and stay in registers for four features.
"""

from c4b._compilation.jit import called, fma, inlined
from c4b._validate import Array


@called
def pool_chains(
    pool: Array, vectors: Array, first: int, last: int, row: int, step: int, out: Array
) -> None:
    """out[row + step (g - first), k] = x_k @ vectors[g] for first <= g < last; pool (d, K)."""
    fours = first + (last - first) // 4 * 4
    if pool.shape[0] == 5:  # as in most small problems: in one pass
        for g in range(first, fours, 4):
            _four_of_five(pool, vectors, g, row + step * (g - first), step, out)
        for g in range(fours, last):
            _one_of_five(pool, vectors, g, row + step * (g - first), out)
        return
    for g in range(first, fours, 4):
        _four_chains(pool, vectors, g, row + step * (g - first), step, out)
    for g in range(fours, last):
        _one_chain(pool, vectors, g, row + step * (g - first), out)


Five = tuple[float, float, float, float, float]


@inlined
def _five(vectors: Array, g: int) -> Five:
    return vectors[g, 0], vectors[g, 1], vectors[g, 2], vectors[g, 3], vectors[g, 4]


@inlined
def _chain_of_five(v: Five, x: Five) -> float:
    return fma(v[4], x[4], fma(v[3], x[3], fma(v[2], x[2], fma(v[1], x[1], fma(v[0], x[0], 0.0)))))


@inlined
def chain_of_five(vectors: Array, g: int, x: Five) -> float:
    """vectors[g] @ x of five features."""
    return _chain_of_five(_five(vectors, g), x)


@inlined
def _four_of_five(pool: Array, vectors: Array, g: int, row: int, step: int, out: Array) -> None:
    """``_four_chains`` of five features."""
    a, b = _five(vectors, g), _five(vectors, g + 1)
    c, d = _five(vectors, g + 2), _five(vectors, g + 3)
    for k in range(pool.shape[1]):
        x = pool[0, k], pool[1, k], pool[2, k], pool[3, k], pool[4, k]
        out[row, k] = _chain_of_five(a, x)
        out[row + step, k] = _chain_of_five(b, x)
        out[row + 2 * step, k] = _chain_of_five(c, x)
        out[row + 3 * step, k] = _chain_of_five(d, x)


@inlined
def _one_of_five(pool: Array, vectors: Array, g: int, row: int, out: Array) -> None:
    v = _five(vectors, g)
    for k in range(pool.shape[1]):
        out[row, k] = _chain_of_five(v, (pool[0, k], pool[1, k], pool[2, k], pool[3, k], pool[4, k]))


@inlined
def _four_chains(pool: Array, vectors: Array, g: int, row: int, step: int, out: Array) -> None:
    dim, size = pool.shape
    fours, second, third, fourth = dim - dim % 4, row + step, row + 2 * step, row + 3 * step
    for i in range(0, fours, 4):
        a0, a1, a2, a3 = vectors[g, i], vectors[g, i + 1], vectors[g, i + 2], vectors[g, i + 3]
        b0, b1 = vectors[g + 1, i], vectors[g + 1, i + 1]
        b2, b3 = vectors[g + 1, i + 2], vectors[g + 1, i + 3]
        c0, c1 = vectors[g + 2, i], vectors[g + 2, i + 1]
        c2, c3 = vectors[g + 2, i + 2], vectors[g + 2, i + 3]
        d0, d1 = vectors[g + 3, i], vectors[g + 3, i + 1]
        d2, d3 = vectors[g + 3, i + 2], vectors[g + 3, i + 3]
        for k in range(size):
            x0, x1, x2, x3 = pool[i, k], pool[i + 1, k], pool[i + 2, k], pool[i + 3, k]
            a = 0.0 if i == 0 else out[row, k]
            b = 0.0 if i == 0 else out[second, k]
            c = 0.0 if i == 0 else out[third, k]
            d = 0.0 if i == 0 else out[fourth, k]
            out[row, k] = fma(a3, x3, fma(a2, x2, fma(a1, x1, fma(a0, x0, a))))
            out[second, k] = fma(b3, x3, fma(b2, x2, fma(b1, x1, fma(b0, x0, b))))
            out[third, k] = fma(c3, x3, fma(c2, x2, fma(c1, x1, fma(c0, x0, c))))
            out[fourth, k] = fma(d3, x3, fma(d2, x2, fma(d1, x1, fma(d0, x0, d))))
    for i in range(fours, dim):
        a0, b0, c0, d0 = vectors[g, i], vectors[g + 1, i], vectors[g + 2, i], vectors[g + 3, i]
        for k in range(size):
            x = pool[i, k]
            out[row, k] = fma(a0, x, 0.0 if i == 0 else out[row, k])
            out[second, k] = fma(b0, x, 0.0 if i == 0 else out[second, k])
            out[third, k] = fma(c0, x, 0.0 if i == 0 else out[third, k])
            out[fourth, k] = fma(d0, x, 0.0 if i == 0 else out[fourth, k])


@inlined
def _one_chain(pool: Array, vectors: Array, g: int, row: int, out: Array) -> None:
    dim, size = pool.shape
    fours = dim - dim % 4
    for i in range(0, fours, 4):
        v0, v1, v2, v3 = vectors[g, i], vectors[g, i + 1], vectors[g, i + 2], vectors[g, i + 3]
        for k in range(size):
            total = fma(v1, pool[i + 1, k], fma(v0, pool[i, k], 0.0 if i == 0 else out[row, k]))
            out[row, k] = fma(v3, pool[i + 3, k], fma(v2, pool[i + 2, k], total))
    for i in range(fours, dim):
        v0 = vectors[g, i]
        for k in range(size):
            out[row, k] = fma(v0, pool[i, k], 0.0 if i == 0 else out[row, k])


@inlined
def four_products(matrix: Array, i: int, v: Array) -> tuple[float, float, float, float]:
    """matrix[i] @ v and the three rows after it, 0 for rows beyond the last; matrix (n, d), v (d,).

    Four chains at once: each one alone would wait for its own last step.
    """
    last = matrix.shape[0] - 1
    second, third, fourth = min(i + 1, last), min(i + 2, last), min(i + 3, last)
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for j in range(matrix.shape[1]):
        x = v[j]
        a = fma(matrix[i, j], x, a)
        b = fma(matrix[second, j], x, b)
        c = fma(matrix[third, j], x, c)
        d = fma(matrix[fourth, j], x, d)
    return a, b if i + 1 <= last else 0.0, c if i + 2 <= last else 0.0, d if i + 3 <= last else 0.0
