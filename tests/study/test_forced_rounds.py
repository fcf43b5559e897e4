"""The forced phase: hand-computed, and no set-certified gate plays a candidate before its end."""

import numpy as np
import pytest

import c4b
from c4b.errors import InvalidInput
from c4b.study.engine.chunk import simulate
from c4b.study.engine.episode_metrics import Metric
from c4b.study.spec.plan import Method, Study
from c4b.study.spec.setting import Setting
from support.oracle_comparison import ALL_GATED


@pytest.mark.parametrize(
    ("rho", "reserve", "expected"),
    [
        # S = 1.5, m = 1: rho sqrt(1.25) / .05 - 1 = 2.35, 7.94, 16.89; with a reserve 20 R0 fewer
        (0.15, 0.0, 3),
        (0.40, 0.0, 8),
        (0.80, 0.0, 17),
        (0.80, 0.5, 7),
        (0.40, 0.4, 0),
        (0.40, 0.35, 1),
        (0.80, 2.0, 0),
    ],
)
def test_hand_computed(rho: float, reserve: float, expected: int) -> None:
    assert Setting(history="baseline", rho=rho, reserve=reserve).forced_rounds == expected


def test_a_baseline_of_another_scale() -> None:
    """x(b) = (2, 0, ...), theta_1 = .5, m = 1: the rest of theta has norm up to sqrt(1.44 - .25), and a
    candidate earns .5 - .95 against the baseline: (.4 * 1.0909 + .45) / .05 = 17.7."""
    scaled = Setting(
        history="baseline", rho=0.4, norm_bound=1.2, theta=(0.5, 0.6, 0.0), baseline=(2.0, 0.0, 0.0)
    )
    assert scaled.forced_rounds == 18


ARMS = {"generator": "one-hot", "theta": (1.0, 0.8, 1.2), "baseline": (1.0, 0.0, 0.0), "norm_bound": 2.0}


def test_arms() -> None:
    """Nothing of an arm is known: (sqrt(4 - 1) + .95) / .05 = 53.6."""
    assert Setting(history="baseline", count=2, **ARMS).forced_rounds == 54  # type: ignore[arg-type]


def test_alike_candidates_and_an_empty_history_change_nothing() -> None:
    assert Setting(history="baseline", rho=0.8, correlation=0.7).forced_rounds == 17
    assert Setting(history="diverse", history_size=0, rho=0.8).forced_rounds == 17


@pytest.mark.parametrize(
    "fields",
    [
        {"history": "diverse"},
        {"baseline_spread": 0.1},
        {"generator": "gaussian"},
        {"baseline": (1.0, 0.1, 0.0, 0.0, 0.0)},
    ],
)
def test_nothing_is_claimed_where_the_argument_does_not_hold(fields: dict[str, object]) -> None:
    assert Setting(**{"history": "baseline", "rho": 0.8, **fields}).forced_rounds == 0


@pytest.mark.parametrize("reserve", [0.0, 0.3])
@pytest.mark.parametrize("rho", [0.15, 0.4, 0.8])
def test_no_gate_plays_a_candidate_before(rho: float, reserve: float) -> None:
    """Every gated policy on every set, 20 and 500 baseline observations; paths in which the set holds."""
    methods = tuple(
        Method(f"{name}, {confidence}", name, confidence)
        for name in ALL_GATED
        for confidence in c4b.evidence.CONFIDENCES
    )
    common = {"history": "baseline", "rho": rho, "reserve": reserve, "rounds": 25, "count": 8}
    settings = tuple(
        Setting(history_size=size, sigma=sigma, **common)  # type: ignore[arg-type]
        for size, sigma in ((20, 0.1), (500, 0.3))
    )
    study = Study("forced", "", methods, settings, ("sigma",), 12, 3)
    forced = settings[0].forced_rounds
    assert bool(forced) == (rho > 0.3 or not reserve)
    paths = 0
    for episode in range(12):
        found = simulate(study, episode, episode + 1)
        covered = found.metrics[0, ..., Metric.COVERED] == 1.0
        paths += int(covered.sum())
        if forced:
            assert np.all(found.fallback_sum[covered][:, forced - 1] == forced)
    assert paths >= 0.98 * 12 * len(settings) * len(methods)


def test_no_gate_plays_an_arm_before() -> None:
    methods = tuple(Method(name, name) for name in ALL_GATED)
    setting = Setting(history="baseline", sigma=0.1, count=2, rounds=200, **ARMS)  # type: ignore[arg-type]
    found = simulate(Study("arms", "", methods, (setting,), (), 8, 3), 0, 8)
    assert np.all(found.metrics[..., Metric.COVERED] == 1.0)
    assert np.all(found.fallback_sum[0, :, setting.forced_rounds - 1] == 8 * setting.forced_rounds)
    assert found.fallback_sum[0, :, -1].min() < 8 * 200


def test_the_floor_can_be_reached() -> None:
    """With the baseline's mean all but known, reserve-c4b+ plays a candidate within a round of it."""
    setting = Setting(history="baseline", history_size=20_000, rho=0.4, sigma=0.1, rounds=25)
    found = simulate(Study("floor", "", (Method("c", "reserve-c4b+"),), (setting,), (), 4, 3), 0, 4)
    assert setting.forced_rounds == 8
    assert found.fallback_sum[0, 0, 9] < 4 * 10


def test_late_linucb_waits_exactly_so_long() -> None:
    methods = (Method("now", "linucb"), Method("late", "linucb", after_forced_phase=True))
    setting = Setting(history="baseline", rho=0.8, rounds=25)
    found = simulate(Study("late", "", methods, (setting,), (), 4, 3), 0, 4)
    assert not found.fallback_sum[0, 0].any()
    assert found.fallback_sum[0, 1, 16] == found.fallback_sum[0, 1, 24] == 4 * 17


def test_unknown_confidence_in_a_method() -> None:
    with pytest.raises(InvalidInput):
        Method("x", "refresh", "tight")
    assert (
        Method("x", "refresh").confidence_in(Setting())
        == c4b.LinearModel(1, 1.0, 1.0).resolved().confidence
    )
