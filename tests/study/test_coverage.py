"""Coverage at scale, reduced: ``benchmarks/set_coverage.py`` is the same, 100 000 episodes a method."""

import pytest

from c4b.study.results.intervals import binomial_upper
from support import benchmark_script


@pytest.mark.slow
def test_misses_are_rare_and_violations_only_among_them() -> None:
    module = benchmark_script.loaded("set_coverage")
    rows = list(module.coverage(episodes=300, seed=11, jobs=2))
    assert len(rows) == len(module.METHODS) * (4 + 1)
    for row in rows:
        assert row["on_covered"] == 0
        assert row["min_slack"] >= 0.0
        if row["history"] == "all":
            assert row["episodes"] == 1200
            assert binomial_upper(row["misses"], row["episodes"], 0.99) <= row["delta"]
