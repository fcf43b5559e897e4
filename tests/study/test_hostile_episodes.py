"""``benchmarks/hostile_episodes.py``, reduced: an adversary finds no violation where the set covers."""

import pytest

from c4b.evidence.ellipsoids import views
from support import benchmark_script


@pytest.mark.slow
def test_an_adversary_finds_no_violation_on_a_covered_path() -> None:
    module = benchmark_script.loaded("hostile_episodes")
    for compiled in ("play", "_noise", "_unit", "_centre"):  # to compile them takes longer than to play
        setattr(module, compiled, getattr(module, compiled).py_func)
    module.opened = views
    *_, together = module.hostile(episodes=200, seed=5, jobs=1)
    assert together["episodes"] == 200
    assert together["on_covered"] == 0
    assert together["min_slack"] >= -module.ROUNDING
    assert together["miss_rate"] <= together["delta"]
    assert together["candidates_played"] > 0.5
