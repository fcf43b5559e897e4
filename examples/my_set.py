"""A confidence set of your own, in plain Python, used by a policy.

It suits one-hot features (arms): the noise of every arm is bounded apart, with a share delta / d of the
error probability each, and the d intervals are enclosed in one ellipsoid.

    python examples/my_set.py
"""

from __future__ import annotations

import numpy as np

import c4b
from c4b.evidence import PythonSet, SetView, register_set


def ridges(model: c4b.LinearModel) -> np.ndarray:
    """One ellipsoid, with the model's own ridge."""
    return np.array([model.ridge])


def rebuild(view: SetView) -> None:
    """Write the ellipsoid from the sums; called after every batch of observations.

    Arm i was seen n_i times. With probability 1 - delta, for all arms and at all times, the noise in its
    sum is at most sigma sqrt((n_i + l) (log((n_i + l) / l) + 2 log(d / delta))). The ridge l adds a bias.
    """
    model, dim = view.model, view.model.dim
    counts = np.diag(view.gram)
    total = counts + model.ridge
    noise = model.noise * np.sqrt(np.log(total / model.ridge) + 2.0 * np.log(dim / model.delta))
    bias = model.ridge * model.norm_bound / np.sqrt(total)
    view.inverse[0] = np.diag((noise + bias) ** 2 / total)
    view.estimate[0] = view.moment / total
    view.radius[0] = np.sqrt(dim)


# one_hot: other rows than unit vectors are refused before they are decided upon
register_set(PythonSet("arms", "one interval for each arm", ridges, rebuild=rebuild, one_hot=True))


def main() -> None:
    rng = np.random.default_rng(0)
    means = np.array([0.5, 0.4, 0.7])
    arms = np.eye(3)
    model = c4b.LinearModel(dim=3, noise=0.1, norm_bound=1.0, confidence="arms")
    policy = c4b.Policy("reserve-c4b+", model, alpha=0.1, reserve=5.0)
    history = np.repeat(arms[:1], 50, axis=0)
    policy.learn(history, history @ means + 0.1 * rng.normal(size=50))
    played = np.zeros(3, dtype=int)
    for _ in range(200):
        decision = policy.decide(arms[1:], baseline=arms[0])
        arm = 0 if decision.action is None else 1 + decision.action
        played[arm] += 1
        policy.observe(decision.id, means[arm] + 0.1 * rng.normal())
    print("played:", played.tolist())
    print(policy.decide(arms[1:], baseline=arms[0]).explain())


if __name__ == "__main__":
    main()
