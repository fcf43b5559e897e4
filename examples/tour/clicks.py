"""Clicks: four banners, an incumbent with 10 % clicks, and a promise never to lose more than 5 % of them.

The range of rewards is all that is declared about the noise. 2000 views of the incumbent are known.
"""

import numpy as np

import c4b

rng = np.random.default_rng(4)
rates = 0.10 * np.array(
    [1.0, 1.3, 1.0, 0.85, 0.7]
)  # the incumbent's, then four banners: nobody knows them
features = np.column_stack(
    [np.ones(5), np.eye(5)[:, 1:]]
)  # an intercept, and one indicator for each banner

model = c4b.LinearModel.bounded(dim=5, norm_bound=1.0, rewards=(0, 1))
policy = c4b.Policy("clicks", model, alpha=0.05)
policy.learn(np.tile(features[0], (2000, 1)), rng.random(2000) < rates[0])

shown = np.zeros(5, dtype=int)
clicks = 0.0
for _ in range(30_000):
    decision = policy.decide(candidates=features[1:], baseline=features[0])
    banner = 0 if decision.action is None else 1 + decision.action
    click = float(rng.random() < rates[banner])
    policy.observe(decision.id, click)
    shown[banner] += 1
    clicks += click

print("shown:", dict(zip(["incumbent", "A", "B", "C", "D"], shown.tolist(), strict=True)))
print(f"clicks beyond the incumbent's: {clicks / (rates[0] * 30_000) - 1:+.1%}")
print("what speaks against the model:", policy.alarm)
