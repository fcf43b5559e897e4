"""A round that is read without the schema is the round that the schema reads."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4b.service import schemas
from c4b.service.routing import plain_round

PLAIN = {"candidates": [[1.0, 0.5], [1, -2.5e-3]], "baseline": [1, 0.25]}
NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(),
    st.sampled_from([10**400, True, None, "1", [1.0]]),
)
VALUES = st.none() | st.booleans() | st.integers() | st.floats(-2, 2) | st.text() | st.lists(st.text())
BODIES = st.fixed_dictionaries(
    {},
    optional={
        "candidates": st.lists(st.lists(NUMBERS, min_size=2, max_size=2), max_size=3) | VALUES,
        "baseline": st.lists(NUMBERS, min_size=2, max_size=2) | VALUES,
        "baseline_mean": VALUES,
        "labels": VALUES,
        "context": VALUES,
        "more": VALUES,
    },
)


def same(body: bytes) -> None:
    mine = plain_round.parsed(body, "key")
    if mine is None:
        return
    theirs = schemas.Round.model_validate(json.loads(body)).to_round("key")
    assert mine[2:] == theirs[2:]
    for one, other in zip(mine[:2], theirs[:2], strict=True):
        assert one.flags.carray
        expected = np.array(other, dtype=np.float64)
        assert (one.shape, one.tobytes()) == (expected.shape, expected.tobytes())


@given(st.one_of(BODIES, BODIES.map(lambda some: {**PLAIN, **some})))
def test_any_body(value: object) -> None:
    try:
        same(json.dumps(value).encode())
    except OverflowError:
        assert str(10**400) in json.dumps(value)


@pytest.mark.parametrize(
    "more", [{}, {"labels": ["a", "b"]}, {"context": {"user": [1, None]}}, {"baseline_mean": 0.5}]
)
def test_what_is_plain(more: dict[str, object]) -> None:
    body = json.dumps({**PLAIN, **more}).encode()
    assert plain_round.parsed(body, None) is not None
    same(body)


@pytest.mark.parametrize(
    "change",
    [
        {"candidates": []},
        {"candidates": [[True, 1.0]]},
        {"candidates": [["1", 1.0]]},
        {"candidates": [[[1.0, 0.0]]], "baseline": [[1.0, 0.0]]},
        {"candidates": [[1.0, 0.0, 0.0]]},
        {"labels": [1, 2]},
        {"baseline_mean": "1"},
        {"more": 1},
    ],
)
def test_what_the_schema_has_to_judge(change: dict[str, object]) -> None:
    assert plain_round.parsed(json.dumps({**PLAIN, **change}).encode(), None) is None


def test_a_key_that_is_there_twice() -> None:
    body = json.dumps({**PLAIN, "context": {"user": 1, "visit": 2}})
    assert plain_round.parsed(body.encode(), None) is not None
    assert plain_round.parsed(body.replace("visit", "user").encode(), None) is None
