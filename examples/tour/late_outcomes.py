"""Outcomes that come late, out of order, or never; and a process that stops in between."""

import tempfile
from pathlib import Path

import numpy as np

import c4b

rng, truth, incumbent = np.random.default_rng(0), np.array([0.5, 0.2]), np.array([1.0, 0.0])
policy = c4b.Policy(model=c4b.LinearModel(dim=2, noise=0.1, norm_bound=1.0), alpha=0.05, reserve=1.0)

waiting = {}
for _ in range(200):
    offers = np.c_[np.ones(3), rng.uniform(-1, 1, 3)]
    decision = policy.decide(offers, incumbent)
    shown = incumbent if decision.action is None else offers[decision.action]
    waiting[decision.id] = float(shown @ truth + 0.1 * rng.normal())
print("decided without one outcome:", policy.rounds, "of them waiting:", len(policy.pending))

file = Path(tempfile.mkdtemp()) / "policy.npz"
policy.save(file)
policy = c4b.Policy.load(file)  # another process goes on, bit for bit

lost = policy.pending[7]  # its outcome got lost, for reasons that have nothing to do with it:
policy.forget(lost)  # said before an outcome of a later decision is known
del waiting[lost]

late_first = list(reversed(waiting.items()))
policy.observe_many(late_first[:150])
print("the newest came first; absorbed so far, in order:", policy.evidence.count)
policy.observe_many(late_first[150:])
print("all are there:", policy.evidence.count, "absorbed,", len(policy.pending), "waiting")
print("repeated, and harmless:", policy.observe(*late_first[0]))
