"""Each assumption is broken in turn, and found; nothing is found where all hold."""

import numpy as np
import pytest

from c4b.diagnostics import Diagnosis, diagnose
from c4b.errors import InvalidInput


def rows(
    seed: int, n: int = 4000, bend: float = 0.0, noise: float = 0.2, change: float = 0.0
) -> Diagnosis:
    draw = np.random.default_rng(seed)
    u = draw.uniform(-1.0, 1.0, (n, 2))
    x = np.column_stack([np.ones(n), u])
    slope = np.where(np.arange(n) < n // 2, 0.3, 0.3 + change)
    means = 0.5 + slope * u[:, 0] + bend * np.abs(u[:, 1])
    y = means + noise * draw.choice([-1.0, 1.0], n)
    return diagnose(x, y, noise=0.2, names=["1", "age", "price"])


def answers(found: Diagnosis) -> list[bool]:
    """Linear, noise, drift."""
    return [finding.good for finding in found.findings]


def test_nothing_is_found_where_all_holds() -> None:
    wrong = sum(not rows(seed).good for seed in range(20))
    assert wrong <= 5  # three questions at 5 %


def test_a_bend_is_found_and_its_feature_named() -> None:
    found = rows(1, bend=0.4)
    assert not answers(found)[0]
    assert "price" in found.findings[0].remedy
    assert "misspecification" in found.findings[0].remedy
    worst = max(found.groups, key=lambda group: abs(group.deviation))
    assert abs(worst.deviation) == pytest.approx(0.16, abs=0.05)  # .4·(|.9| - ½)


def test_more_noise_than_declared_is_found() -> None:
    found = rows(2, noise=0.4)
    assert not answers(found)[1]
    assert "at least 0.4" in found.findings[1].remedy


def test_a_change_of_theta_is_found() -> None:
    found = rows(3, change=0.3)
    assert not answers(found)[2]
    assert len(found.periods) == 8
    assert sum(period.rows for period in found.periods) == 4000


def clicks(seed: int, change: float, revenue: bool = False) -> Diagnosis:
    """Four items at rates from 1 to 3 %; the second gets better half-way. Or what buyers pay."""
    draw, n = np.random.default_rng([8, seed]), 2000
    x = np.column_stack([np.ones(n), np.eye(4)[draw.integers(0, 4, n)][:, 1:]])
    rates = x @ [0.02, 0.01, -0.01, 0.005] + change * x[:, 1] * (np.arange(n) >= n // 2)
    y = (draw.random(n) < rates).astype(float)
    return diagnose(x, y * draw.uniform(0.0, 1.0, n) if revenue else y, noise=0.5)


@pytest.mark.parametrize("revenue", [False, True])
def test_periods_without_a_click_are_no_drift(revenue: bool) -> None:
    found = [answers(clicks(seed, 0.0, revenue))[2] for seed in range(40)]
    assert found.count(False) <= 6  # 2 are to be expected
    assert not answers(clicks(1, 0.5, revenue))[2]


def test_which_features_matter() -> None:
    found = rows(4)
    assert [effect.feature for effect in found.effects] == ["age", "price"]  # the constant moves nothing
    assert found.effects[0].effect == pytest.approx(0.3 / np.sqrt(3.0), abs=0.02)
    assert abs(found.effects[0].ratio) > 10
    assert abs(found.effects[1].ratio) < 4


def test_given_periods_and_labels() -> None:
    draw = np.random.default_rng(5)
    x = np.column_stack([np.ones(400), np.repeat([0.0, 1.0], 200)])
    found = diagnose(x, draw.random(400), noise=0.5, period_labels=["May"] * 200 + ["June"] * 200)
    assert [period.name for period in found.periods] == ["May", "June"]
    assert {group.by for group in found.groups} >= {"x1"}
    assert found.as_dict()["rows"] == 400


def test_wrong_arguments() -> None:
    x, y = np.ones((200, 2)), np.ones(200)
    for arguments, message in [
        ({"noise": 0.0}, "noise = 0.0"),
        ({"noise": 1.0, "names": ["a"]}, "must be 2 names"),
        ({"noise": 1.0, "period_labels": ["a"]}, "period_labels"),
    ]:
        with pytest.raises(InvalidInput, match=message):
            diagnose(x, y, **arguments)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="at least 100 rows"):
        diagnose(x[:50], y[:50], noise=1.0)
    with pytest.raises(InvalidInput, match="features"):
        diagnose(x[:150], y, noise=1.0)
