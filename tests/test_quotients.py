"""``quotients``: four at once have the bits of four single ones."""

import numpy as np

from c4b._compilation.jit import kernel, quotients


@kernel
def divided(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    for n in range(0, len(a), 4):
        above, below = (a[n], a[n + 1], a[n + 2], a[n + 3]), (b[n], b[n + 1], b[n + 2], b[n + 3])
        out[n], out[n + 1], out[n + 2], out[n + 3] = quotients(above, below)


def test_four_at_once_have_the_bits_of_single_ones() -> None:
    rng = np.random.default_rng(0)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -1e308, 1.0]
    a = np.r_[np.repeat(special, 8), rng.normal(size=4000) * 10.0 ** rng.integers(-300, 300, 4000)]
    b = np.r_[np.tile(special, 8), rng.normal(size=4000) * 10.0 ** rng.integers(-300, 300, 4000)]
    found = np.empty(len(a))
    divided(a, b, found)
    with np.errstate(all="ignore"):
        expected = a / b
    assert np.array_equal(found, expected, equal_nan=True)
    numbers = ~np.isnan(expected)
    assert np.array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))
