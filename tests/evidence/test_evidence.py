"""The object around the statistics: its answers follow its own data, in copies as well."""

import copy
import pickle
from collections.abc import Callable

import numpy as np
import pytest

import c4b


@pytest.mark.parametrize("confidence", ["self-normalized", "several-ridges"])
@pytest.mark.parametrize(
    "made_again", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))]
)
def test_a_copy_answers_from_its_own_data(
    made_again: Callable[[c4b.Evidence], c4b.Evidence], confidence: str
) -> None:
    first = c4b.Evidence(c4b.LinearModel(2, noise=0.1, norm_bound=1.0, confidence=confidence))
    first.learn([[1.0, 0.0]] * 5, [0.5] * 5)
    assert first.count == 5
    second = made_again(first)
    for evidence, reward in ((first, 0.9), (second, -0.9)):
        evidence.absorb([0.0, 1.0], reward)
        assert evidence.count == 6
        assert np.sign(evidence.estimate[1]) == np.sign(reward)
        assert evidence.lower([0.0, 1.0]) < evidence.estimate[1] < evidence.upper([0.0, 1.0])
    replaced = c4b.Evidence(first.model)
    replaced.flat = first.flat.copy()
    assert replaced.count == 6
    assert np.array_equal(replaced.estimate, first.estimate)
