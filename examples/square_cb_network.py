"""C-SquareCB over a small neural network: guarantee conditional on declared regret.

The network is one hidden layer, learned online by gradient steps. Its author declares that the squared
errors of its predictions exceed those of the true means by at most 3 + sqrt(m)/2 after m plays. No theory
says so; the simulation below, which knows the truth, prints how much it was.

    python examples/square_cb_network.py
"""

import numpy as np

import c4b
from c4b.policies.field import Regressor, square_cb_over

HIDDEN, RATE = 16, 0.05


class Network(Regressor):
    def __init__(self, dim):
        weights = np.random.default_rng(0).normal(size=(HIDDEN, dim + 1)) / np.sqrt(dim)
        self.state = {"hidden": weights, "output": np.zeros(HIDDEN + 1)}

    def layer(self, rows):
        """Inputs and activations, each with a constant 1 at the end."""
        inputs = np.append(rows, np.ones((len(rows), 1)), axis=1)
        return inputs, np.append(
            np.tanh(inputs @ self.state["hidden"].T), np.ones((len(rows), 1)), axis=1
        )

    def predict(self, rows):
        return self.layer(rows)[1] @ self.state["output"]

    def update(self, features, reward):
        (inputs,), (active,) = self.layer(features[None, :])
        output = self.state["output"]
        error = reward - active @ output
        slope = output[:-1] * (1.0 - active[:-1] ** 2)
        self.state["hidden"] += RATE * error * np.outer(slope, inputs)
        self.state["output"] += RATE * error * active

    def regret(self, plays):
        return 3.0 + 0.5 * np.sqrt(plays)

    def arrays(self):
        return self.state

    def restore(self, arrays):
        self.state = arrays


network = square_cb_over("c-squarecb-network", lambda terms: Network(terms.model.dim), "a small network")


def mean(rows):
    """The truth, which is not linear."""
    return 0.5 + 0.3 * np.tanh(3.0 * rows[..., 0] * rows[..., 1] + rows[..., 0])


if __name__ == "__main__":
    c4b.policies.register(network)
    rng, baseline = np.random.default_rng(1), np.zeros(2)
    model = c4b.LinearModel(dim=2, noise=0.2, norm_bound=1.0)
    policy = c4b.Policy(network, model, alpha=0.1, reserve=20.0, seed=1)
    earned, budget, regret, plays = 0.0, 20.0, 0.0, 0
    for _ in range(2000):
        candidates = rng.uniform(-1.0, 1.0, (8, 2))
        decision = policy.decide(candidates, baseline, baseline_mean=0.5)
        played = baseline if decision.is_baseline else candidates[decision.action]
        reward = mean(played) + rng.uniform(-0.2, 0.2)
        if not decision.is_baseline:
            prediction = policy.gate.predict(played[None, :])[0]
            regret += (prediction - reward) ** 2 - (mean(played) - reward) ** 2
            plays += 1
        policy.observe(decision.id, reward)
        earned, budget = earned + mean(played), budget + mean(played) - 0.9 * 0.5
        assert max(policy.bank, 0.0) <= budget
    print(f"{network.summary}\nregret {regret:.1f}, declared {policy.gate.regret():.1f}, {plays} plays")
    print(f"reward {earned / 1000.0:.3f} of the baseline's")
