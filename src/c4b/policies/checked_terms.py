"""The terms of a gate from what a user gives."""

from __future__ import annotations

from c4b import _validate
from c4b.errors import InvalidInput
from c4b.evidence.model import LinearModel
from c4b.policies.gate import GateTerms


def checked_terms(
    needs: frozenset[str],
    model: object,
    alpha: object,
    reserve: object,
    baseline_nonnegative: object,
    baseline_floor: object,
    horizon: object,
    seed: object,
) -> GateTerms:
    """``needs``: what the policy must be given besides, of horizon and seed."""
    if not isinstance(model, LinearModel):
        raise InvalidInput("model", model, "must be a c4b.LinearModel")
    nonnegative = _validate.boolean("baseline_nonnegative", baseline_nonnegative)
    return GateTerms(
        model,
        _validate.fraction(
            "alpha", alpha, "must lie strictly between 0 and 1: the share of the baseline to risk"
        ),
        _validate.nonnegative("reserve", reserve, "must be a finite number >= 0, in units of reward"),
        nonnegative,
        _checked_floor(baseline_floor, nonnegative),
        _if_needed("horizon", horizon, needs, 1, "the most rounds that will be decided"),
        _if_needed("seed", seed, needs, 0, "the seed of its draws"),
    )


def _checked_floor(floor: object, nonnegative: bool) -> float | None:
    if floor is None:
        return None
    value = _validate.reward("baseline_floor", floor)
    if (value >= 0.0) != nonnegative:
        remedy = f"contradicts baseline_nonnegative={nonnegative}; give both accordingly"
        raise InvalidInput("baseline_floor", floor, remedy)
    return value


def _if_needed(argument: str, value: object, needs: frozenset[str], least: int, what: str) -> int | None:
    if argument not in needs:
        if value is not None:
            raise InvalidInput(argument, value, "is not used by this policy; leave it out")
        return None
    return _validate.count(argument, value, least, f"must be a whole number >= {least}: {what}")
