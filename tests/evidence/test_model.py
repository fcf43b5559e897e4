"""The model's assumptions: checked once, frozen, and the evidence built on them refuses bad data."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import c4b
from c4b import errors

GOOD: dict[str, Any] = {"dim": 2, "noise": 0.1, "norm_bound": 1.0, "ridge": 0.1, "delta": 0.05}
POSITIVE = ("noise", "norm_bound", "ridge")
NOT_POSITIVE = (0.0, -1.0, math.nan, math.inf, 1e101, "1", None, True, 1j, [1.0], 10**400)
NOT_A_FRACTION = (0.0, 1.0, -0.05, 1.5, math.nan, "0.05", None, True)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        *[(argument, value) for argument in POSITIVE for value in (*NOT_POSITIVE, 9e-31, 2e30)],
        *[("delta", value) for value in NOT_A_FRACTION],
        *[("dim", value) for value in (0, -1, 2.0, "2", None, True, 10_000_001, 10**30)],
        *[("confidence", value) for value in ("Mixture", "", 3, ["mixture"])],
    ],
)
def test_bad_assumptions(argument: str, value: object) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        c4b.LinearModel(**(GOOD | {argument: value}))
    assert caught.value.argument == argument
    assert repr(value)[:20] in str(caught.value)
    assert caught.value.remedy.startswith("must ")
    assert isinstance(caught.value, errors.UnknownName) == (argument == "confidence")


def test_numpy_numbers_become_plain_ones() -> None:
    model = c4b.LinearModel(np.int64(2), np.float32(0.5), np.int32(1), delta=np.float64(0.1))
    kinds = [int, *[float] * 4, type(None), float, type(None)]
    assert [type(value) for value in dataclasses.astuple(model)] == kinds


def test_the_model_is_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        c4b.LinearModel(**GOOD).delta = 0.5  # type: ignore[misc]


@pytest.mark.parametrize(
    ("argument", "features", "rewards"),
    [
        ("features", [[1.0]], [0.5]),
        ("features", [1.0, 0.0], [0.5]),
        ("features[1, 0]", [[1.0, 0.0], [math.nan, 0.0]], [0.5, 0.5]),
        ("features[0, 1]", [[1.0, -math.inf]], [0.5]),
        ("features[0, 0]", [[1e101, 0.0]], [0.5]),
        ("features", "rows", [0.5]),
        ("rewards", [[1.0, 0.0]], [0.5, 0.5]),
        ("rewards", [[1.0, 0.0]], 0.5),
        ("rewards[0]", [[1.0, 0.0]], [math.nan]),
        ("rewards[0]", [[1.0, 0.0]], [-1e101]),
    ],
)
def test_bad_rows_change_nothing(argument: str, features: object, rewards: object) -> None:
    evidence = c4b.Evidence(c4b.LinearModel(**GOOD))
    evidence.learn([[1.0, 1.0]], [0.5])
    before = evidence.flat.tobytes()
    with pytest.raises(errors.InvalidInput) as caught:
        evidence.learn(features, rewards)
    assert caught.value.argument == argument
    assert evidence.flat.tobytes() == before


@pytest.mark.parametrize("bad", [[1.0], [[1.0, 0.0]], [math.nan, 0.0], None, "v", [1e101, 0.0]])
def test_bad_directions(bad: object) -> None:
    evidence = c4b.Evidence(c4b.LinearModel(**GOOD))
    for bound in (evidence.lower, evidence.upper):
        with pytest.raises(errors.InvalidInput, match=r"^v"):
            bound(bad)


@pytest.mark.parametrize("bad", [None, "model", GOOD])
def test_evidence_needs_a_model(bad: Any) -> None:
    with pytest.raises(errors.InvalidInput, match=r"c4b\.LinearModel"):
        c4b.Evidence(bad)


def test_array_likes_of_any_layout_are_the_same_data() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(6, 2)), rng.normal(size=6)
    read_only = x.copy()
    read_only.flags.writeable = False
    flats = []
    for features in (x, x.tolist(), np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2], read_only):
        evidence = c4b.Evidence(c4b.LinearModel(**GOOD))
        evidence.learn(features, list(y))
        flats.append(evidence.flat.tobytes())
    assert len(set(flats)) == 1


def test_nothing_to_learn_is_fine_and_estimates_are_copies() -> None:
    evidence = c4b.Evidence(c4b.LinearModel(**GOOD))
    before = evidence.flat.tobytes()
    evidence.learn([], [])
    evidence.estimate[:] = 7.0
    assert evidence.flat.tobytes() == before
    assert evidence.count == 0
