"""A yardstick for clicks: `reserve-c4b+` as if they were Gaussian with the history's standard deviation.

Named by ``factory`` in study files. It shows what learning the variance costs. Clicks are not Gaussian,
and a standard deviation computed from data is no bound, so nothing that it certifies is proved.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from c4b._validate import Array
from c4b.policies import GateTerms
from c4b.policies.catalogue.built_in import BUILT_IN
from c4b.policies.compiled.compiled_gate import CompiledGate

COMPOSITION = dataclasses.replace(
    next(entry for entry in BUILT_IN if entry.name == "reserve-c4b+"),
    name="gaussian-oracle",
    latches=False,
)
"""Without the alarm: it would, rightly, object to the noise."""


class GaussianOracle(CompiledGate):
    """Takes its noise scale from the rows that it learns before the first round, if there are any."""

    def __init__(self, terms: GateTerms) -> None:
        super().__init__(COMPOSITION, terms)

    def learn(self, features: Array, rewards: Array) -> None:
        if self.rounds == 0 and self.observations == 0 and rewards.any():
            model = dataclasses.replace(self.terms.model, noise=float(np.std(rewards)), rewards=None)
            super().__init__(COMPOSITION, self.terms._replace(model=model))
        super().learn(features, rewards)
