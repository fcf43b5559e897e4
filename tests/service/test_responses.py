"""Two ways to the same response."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from c4b.policies.rounds.decision import Decision, Receipt
from c4b.service.routing import responses

NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


@given(
    numbers=st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    action=st.none() | st.integers(0, 2),
    alarm=st.none() | st.text(),
    propensity=st.none() | st.floats(0.0, 1.0),
    receipt=st.none() | st.builds(Receipt, st.integers(0), st.text()),
    labels=st.none() | st.tuples(st.text(), st.text(), st.text()),
    held=st.none() | st.sampled_from(["shadow", "ramp"]),
    proposed=st.none() | st.integers(0, 2),
)
def test_a_decision_with_and_without_a_model(
    numbers: tuple[float, float, float, float, float],
    action: int | None,
    alarm: str | None,
    propensity: float | None,
    receipt: Receipt | None,
    labels: tuple[str, ...] | None,
    held: str | None,
    proposed: int | None,
) -> None:
    details = np.full((5, 3), math.nan)
    more = (propensity, receipt, labels, held, proposed)
    decision = Decision("shop-1-ü", action, *numbers, "refresh", alarm, details, *more)
    assert responses.decided_json(decision) == responses.decided(decision).model_dump_json().encode()
