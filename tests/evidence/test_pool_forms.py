"""Bounds of a whole pool write what they are given room for, and nothing else."""

import numpy as np
import pytest

import c4b
from c4b._compilation.jit import kernel
from c4b._validate import Array
from c4b.evidence.ellipsoids import Region, views
from c4b.evidence.evidence import Evidence
from c4b.evidence.pools.offset_bounds import raise_to_lower
from c4b.evidence.pools.pool_forms import form_rows, pool_forms


@kernel
def raised(region: Region, pool: Array, offset: Array, forms: Array, out: Array) -> None:
    pool_forms(region, pool, forms)
    raise_to_lower(region, forms, pool, 0.0, offset, 0, out, True)


@pytest.mark.parametrize("size", [0, 1, 2, 5])
@pytest.mark.parametrize("confidence", ["self-normalized", "constrained", "several-ridges"])
def test_nothing_is_written_beyond_the_forms_of_a_pool(confidence: str, size: int) -> None:
    evidence = Evidence(c4b.LinearModel(3, 0.1, 1.0, confidence=confidence))
    evidence.learn(np.eye(3), np.array([0.5, 0.1, 0.2]))
    region = views(evidence.flat)[0]
    rows, around = form_rows(len(region.radius), 3, region.spectral, size), 64
    memory = np.full(rows * size + 2 * around, 7.0)
    forms = memory[around : around + rows * size].reshape(rows, size)
    raised(region, np.ones((3, size)), np.array([0.1, 0.2, 0.3]), forms, np.empty((1, size)))
    assert np.all(memory[:around] == 7.0)
    assert np.all(memory[around + rows * size :] == 7.0)
