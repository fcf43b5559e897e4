"""What is known while one question is answered: arrays in a working space of their own.

Nothing of the evidence is changed by a question, not even its working space, so threads may ask at the
same time. Shapes: J = RIDGES, d features.
"""

from typing import NamedTuple

import numpy as np

from c4b._compilation.jit import inlined
from c4b._compilation.shaped_view import shaped_view
from c4b._validate import Array
from c4b.evidence.eigenbasis.spectrum import Spectrum
from c4b.evidence.ellipsoids import TALLY, Data, Region
from c4b.evidence.sets.several_ridges_parts.ridge_mixes import RIDGES

BALL, PAIR = RIDGES, RIDGES + 1
"""Index of a among the variables, after those of p, and how many they are."""
DRIFT, ERROR = 0, 1
"""Entries of ``Question.numbers``."""
NOW, TRIAL = 0, 1
"""Rows of a ``Question`` that hold the best pair so far and the one on trial."""


class Question(NamedTuple):
    """What is asked, what is known, and the pairs (p, a) with their caps."""

    turned: Array  # (d,) z = Q v
    values: Array  # (d,) Lambda
    moment: Array  # (d,) Q m
    shares: Array  # (d, J) 1 / (Lambda_i + distance + l_j)
    log_dets: Array  # (J,)
    log_weights: Array  # (J,)
    mixes: Array  # (2, J)
    multipliers: Array  # (2,)
    caps: Array  # (2,)
    weights: Array  # (2, d) F'_i
    shrinks: Array  # (2, d) F'_i / F_i
    thetas: Array  # (2, d) where the ellipsoid's bound is attained
    numbers: Array  # (2,) epsilon sqrt(n) and tau
    curvature: Array  # (1, J + 1, J + 1) minus the dual's
    steps: Array  # (2, J + 1) its slope, and Newton's step


def space_size(dim: int) -> int:
    """Numbers in the working space of a question about d features."""
    return 4 * RIDGES + 11 + TALLY + PAIR * (PAIR + 2) + dim * (RIDGES + 13)


@inlined
def opened_space(space: Array, region: Region, data: Data) -> tuple[Question, Region, Data]:
    """The question, a stack whose second ellipsoid says nothing, and the data with a tally, a turned
    moment and weights of its own: all that is written while a question is answered."""
    dim = len(data.moment)
    a = 4 * RIDGES
    b = a + 11 + TALLY
    c = b + PAIR * PAIR
    d = c + 2 * PAIR
    e = d + dim * RIDGES
    f = e + 6 * dim
    values, errors = data.spectrum.values, data.spectrum.errors
    moment, tally = shaped_view(space, f, (dim,)), shaped_view(space, a + 11, (TALLY,))
    question = Question(
        shaped_view(space, f + dim, (dim,)), values, moment, shaped_view(space, d, (dim, RIDGES)),
        shaped_view(space, 0, (RIDGES,)), shaped_view(space, RIDGES, (RIDGES,)),
        shaped_view(space, 2 * RIDGES, (2, RIDGES)), shaped_view(space, a, (2,)),
        shaped_view(space, a + 2, (2,)), shaped_view(space, e, (2, dim)),
        shaped_view(space, e + 2 * dim, (2, dim)), shaped_view(space, e + 4 * dim, (2, dim)),
        shaped_view(space, a + 4, (2,)), shaped_view(space, b, (1, PAIR, PAIR)),
        shaped_view(space, c, (2, PAIR)),
    )  # fmt: skip
    one = Region(
        region.spectral, region.inverse, region.basis, shaped_view(space, f + 2 * dim, (2, dim)),
        shaped_view(space, f + 4 * dim, (2, dim)), shaped_view(space, a + 6, (2,)),
        shaped_view(space, a + 8, (2,)), region.blur, shaped_view(space, a + 10, (1,)),
        region.norm_bound, region.totals, shaped_view(space, 0, (0,)),
    )  # fmt: skip
    for g in range(2):
        one.radius[g], one.reach[g] = np.nan, np.inf
    for k in range(TALLY):
        tally[k] = data.tally[k]
    s = data.spectrum
    spectrum = Spectrum(
        values, moment, errors, s.image, s.poles, s.weights, shaped_view(space, f + 6 * dim, (dim,)),
        s.active, s.rotation, s.copied,
    )  # fmt: skip
    own = Data(
        data.ridges, data.gram, data.moment, tally, data.mixing, data.code, data.inverse_error,
        data.log_det_error, data.scratch, spectrum, data.extra,
    )  # fmt: skip
    return question, one, own
