"""Errors name the argument, its value and the remedy, also after a trip to another process."""

import inspect
import pickle

import pytest

from c4b import errors

INPUT_ERRORS = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, errors.InvalidInput)
]


@pytest.mark.parametrize("kind", INPUT_ERRORS)
def test_the_message_has_three_parts_and_survives_pickling(kind: type[errors.InvalidInput]) -> None:
    error = kind("alpha", 2.0, "must lie strictly between 0 and 1")
    assert str(error) == "alpha = 2.0: must lie strictly between 0 and 1"
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is kind
    assert (copy.argument, copy.shown, copy.remedy, str(copy)) == (
        error.argument,
        error.shown,
        error.remedy,
        str(error),
    )


def test_everything_on_purpose_has_one_base() -> None:
    kinds = [kind for _, kind in inspect.getmembers(errors, inspect.isclass)]
    assert len(kinds) >= 10
    assert all(issubclass(kind, errors.C4BError) for kind in kinds)
    assert issubclass(errors.InvalidInput, ValueError)  # so that ordinary handlers catch it


def test_long_values_are_shortened() -> None:
    error = errors.InvalidInput("x", list(range(1000)), "must be shorter")
    assert len(str(error)) < 200
    assert "..." in error.shown


def test_a_value_that_cannot_be_printed_is_still_reported() -> None:
    error = errors.InvalidInput("x", 10**5000, "must be a float")  # repr() of it is refused by Python
    assert str(error) == "x = <int>: must be a float"
