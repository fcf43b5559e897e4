"""Compile the kernels before the first request."""

import numpy as np

from c4b.evidence import LinearModel
from c4b.policies.gate import Played
from c4b.policies.pending import PendingOutcome
from c4b.policies.policy import Policy
from c4b.policies.rounds.round import Round


def warm_up() -> None:
    """Compile everything that compiled policies and deployments need, unless it is in the cache already.

    The first decision on a new machine waits for the compiler, for about half a minute. Call this
    function, or run ``c4b compile``, at a time when waiting does no harm: when an image is built, or
    before a service accepts requests. Compiled policies share their kernels, so one call covers every
    policy and dimension.
    """
    baseline = np.array([1.0, 0.0])
    policy = Policy("reserve-c4b+", LinearModel(dim=2, noise=1.0, norm_bound=1.0), alpha=0.1)
    candidates = np.array([[1.0, 0.5], [1.0, -0.5]])
    for name in ("refresh", "revalue"):  # the paper's round; the one for all others
        Policy(name, policy.model).decide(candidates, baseline)
    policy.learn(baseline[np.newaxis], np.ones(1))
    for outcome in (1.0, None):
        decision = policy.decide(candidates, baseline)
        policy.executed(decision.id, baseline)
        if outcome is None:
            policy.forget(decision.id)
        else:
            policy.observe(decision.id, outcome)
    decision.explain()
    policy.evidence.lower(baseline)
    policy.evidence.contains(baseline)
    policy.gate.explanation(Round(baseline[np.newaxis], baseline))
    policy.gate.charge(policy.bank, Played(baseline, baseline, True))
    _warm_up_totals(PendingOutcome(baseline, baseline, True))


def _warm_up_totals(made: PendingOutcome) -> None:
    """What a deployment adds up beside its policy."""
    from c4b.deployment.summary.running_totals import (  # noqa: PLC0415 (`import c4b` loads no deployments)
        RunningTotals,
    )

    totals = RunningTotals(2)
    totals.add(1, 0, 0.0, True, made)
    totals.amend(0, made, made, 0.0)
