"""C-SquareCB over a regression of the package river, in a study.

Guarantee conditional on declared regret.

pip install river
python examples/square_cb_river.py
"""

import tempfile
from pathlib import Path

import numpy as np
from river import linear_model, optim

from c4b.policies.field import Regressor, square_cb_over
from c4b.study import load, run

STUDY = """
name = "oracle"
title = "C-SquareCB over river's linear regression"
episodes = 2
seed = 1
methods = [
    "c-squarecb",
    {label = "river", factory = "square_cb_river:river_linear"},
]
[[worlds]]
name = "oracle"
history = {kind = "baseline", size = 0}
candidates = {rho = 1.0, count = 8}
truth = {theta = [0.5, 0.3, 0.0, 0.0, 0.0], sigma = 0.2, noise = "uniform"}
learner = {norm_bound = 0.6, alpha = 0.1, reserve = 10.0}
deployment = {rounds = 400}
"""


class RiverLinear(Regressor):
    def __init__(self, dim):
        self.dim = dim
        self.model = linear_model.LinearRegression(optim.SGD(0.1), intercept_lr=0.0)

    def predict(self, rows):
        return np.array([self.model.predict_one(dict(enumerate(row))) for row in rows.tolist()])

    def update(self, features, reward):
        self.model.learn_one(dict(enumerate(features.tolist())), reward)

    def regret(self, plays):
        return 2.0 + plays / 200.0  # declared, not proved

    def arrays(self):
        weights = self.model.weights
        return {"weights": np.array([weights.get(i, 0.0) for i in range(self.dim)])}

    def restore(self, arrays):
        self.__init__(self.dim)
        self.model.predict_one(dict.fromkeys(range(self.dim), 0.0))
        self.model.weights.update(enumerate(arrays["weights"].tolist()))


river_linear = square_cb_over("river", lambda terms: RiverLinear(terms.model.dim), "river's regression")

if __name__ == "__main__":
    file = Path(tempfile.mkdtemp()) / "oracle.toml"
    file.write_text(STUDY)
    frame = run(load(file), file.parent / "results").frame
    print(river_linear.summary)
    print(frame.select("method", "reward_ratio", "fallback", "violation", "min_d"))
