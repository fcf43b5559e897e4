"""Sets written outside in plain Python: they work like the compiled ones, and bad ones change nothing."""

import dataclasses
import importlib.util
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import c4b
from c4b import errors
from c4b.evidence import CONFIDENCES, PythonSet, SetView, is_compiled, register_set, set_names
from c4b.evidence.sets import table
from c4b.policies import Composition
from c4b.testing import check_policy
from support.oracle_comparison import history
from support.oracle_sets import Array
from support.random_stream import random_stream

EXAMPLE = Path(__file__).parents[2] / "examples" / "my_set.py"


@pytest.fixture(autouse=True)
def clean_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sets that a test registers, and installed packages that it pretends, are gone after it."""
    monkeypatch.setattr(table, "_TABLE", dict(table._TABLE))
    monkeypatch.setattr(table, "_loaded_entry_points", False)


def one_ridge(model: c4b.LinearModel) -> Array:
    return np.array([model.ridge])


def paper(view: SetView) -> None:
    """(4) to (6) in NumPy, from scratch."""
    model, ridge = view.model, view.ridges[0]
    V = view.gram + ridge * np.eye(model.dim)
    view.inverse[0] = np.linalg.inv(V)
    view.estimate[0] = np.linalg.solve(V, view.moment)
    log_det = np.linalg.slogdet(V)[1] - model.dim * math.log(ridge)
    radius = model.noise * math.sqrt(log_det - 2.0 * math.log(model.delta))
    radius += math.sqrt(ridge) * model.norm_bound
    view.radius[0] = radius + model.misspecification * math.sqrt(view.count)


def numpy_paper(name: str = "numpy-paper", **changed: Any) -> PythonSet:
    return register_set(PythonSet(name, "the paper's, in NumPy", one_ridge, rebuild=paper, **changed))


def nothing(view: SetView) -> None:
    """Leaves everything as it is."""


@pytest.mark.parametrize("epsilon", [0.0, 0.02])
@pytest.mark.parametrize("policy", ["separate", "refresh", "revalue", "checkpoints", "linucb"])
def test_the_papers_set_in_numpy_decides_like_the_compiled_one(policy: str, epsilon: float) -> None:
    numpy_paper()
    rng = np.random.default_rng(3)
    theta, stream = random_stream(rng, 4, 40, max_candidates=6)
    rows = history(rng, theta, 20, 0.1)
    ours, theirs = (
        c4b.Policy(policy, c4b.LinearModel(4, 0.1, 1.0, 0.2, 0.05, name, epsilon), 0.2, 1.0)
        for name in ("numpy-paper", "self-normalized")
    )
    for each in (ours, theirs):
        each.learn(*rows)
    for pool, baseline in stream:
        one, other = (each.decide(pool, baseline) for each in (ours, theirs))
        assert one.action == other.action
        np.testing.assert_allclose(one.details, other.details, rtol=1e-7, atol=1e-8)
        assert one.bank == pytest.approx(other.bank, abs=1e-8, rel=1e-7, nan_ok=True)
        played = baseline if one.action is None else pool[one.action]
        reward = float(played @ theta + 0.1 * rng.normal())
        for each, decision in ((ours, one), (theirs, other)):
            each.observe(decision.id, reward)
            assert each.evidence.contains(theta)
            assert not each.evidence.contains(9.0 * theta)
    assert ours.evidence.count == theirs.evidence.count == 60
    assert ours.alarm is None


def test_the_kit_accepts_it() -> None:
    numpy_paper()
    own = Composition("own", "joint", "refresh", "filter", "refresh", confidence="numpy-paper")
    assert "passed" in check_policy(own).values()


def weigh(view: SetView, x: Array, y: float) -> None:
    """Depends on the order: each weight uses those before it, and the sums with this row in them."""
    assert view.extra.shape == (view.model.dim + 1,)
    view.extra[-1] = 0.5 * view.extra[-1] + view.count + view.squares_sum
    view.extra[:-1] += view.extra[-1] * x * y


def test_statistics_of_its_own_are_part_of_the_state(tmp_path: Path) -> None:
    """One by one equals all at once; a saved policy continues with the same bits."""
    numpy_paper(update=weigh, extra_size=lambda dim: dim + 1)
    model = c4b.LinearModel(3, 0.1, 1.0, confidence="numpy-paper")
    rng = np.random.default_rng(0)
    features, rewards = history(rng, np.full(3, 0.4), 12, 0.1)
    at_once, one_by_one = c4b.Evidence(model), c4b.Evidence(model)
    at_once.learn(features, rewards)
    for x, y in zip(features, rewards, strict=True):
        one_by_one.absorb(x, float(y))
    assert at_once.flat.tobytes() == one_by_one.flat.tobytes()
    assert np.all(at_once.flat[-4:] != 0.0)
    policy = c4b.Policy("refresh", model, reserve=1.0)
    policy.learn(features, rewards)
    policy.save(tmp_path / "state")
    loaded = c4b.Policy.load(tmp_path / "state")
    for each in (policy, loaded):
        each.observe(each.decide(features, features[0]).id, 0.5)
    assert policy.evidence.flat.tobytes() == loaded.evidence.flat.tobytes()


def refuse(view: SetView) -> None:
    if view.count > 1:
        view.radius[:] = 7.0
        raise ArithmeticError("not today")


def test_a_set_that_fails_leaves_the_evidence_as_it_was() -> None:
    register_set(PythonSet("fails", "raises at the second row", one_ridge, rebuild=refuse))
    evidence = c4b.Evidence(c4b.LinearModel(2, 0.1, 1.0, confidence="fails"))
    evidence.absorb([1.0, 0.0], 0.5)
    before = evidence.flat.tobytes()
    with pytest.raises(ArithmeticError):
        evidence.absorb([1.0, 0.0], 0.5)
    with pytest.raises(ArithmeticError):
        evidence.learn([[1.0, 0.0]], [0.5])
    assert evidence.flat.tobytes() == before


@pytest.mark.parametrize(("x", "y"), [([1.0], 0.5), ([math.nan, 0.0], 0.5), ([1.0, 0.0], math.inf)])
@pytest.mark.parametrize("confidence", ["mixture", "numpy-paper"])
def test_bad_observations_change_nothing(confidence: str, x: list[float], y: float) -> None:
    numpy_paper()
    evidence = c4b.Evidence(c4b.LinearModel(2, 0.1, 1.0, confidence=confidence))
    before = evidence.flat.tobytes()
    with pytest.raises(errors.InvalidInput):
        evidence.absorb(x, y)
    assert evidence.flat.tobytes() == before


@pytest.mark.parametrize("radius", [-1.0, math.nan, math.inf])
def test_a_radius_that_is_none_certifies_nothing(radius: float) -> None:
    def broken(view: SetView) -> None:
        view.radius[0] = radius

    register_set(PythonSet("broken", "no radius", one_ridge, rebuild=broken))
    policy = c4b.Policy("refresh", c4b.LinearModel(2, 0.1, 1.0, confidence="broken"), reserve=5.0)
    assert policy.decide([[1.0, 0.1]], [1.0, 0.0]).is_baseline
    assert policy.evidence.lower([1.0, 0.0]) == pytest.approx(-1.0)  # the norm ball


def test_a_set_can_raise_the_alarm() -> None:
    def refuting(view: SetView) -> None:
        view.radius[0] = math.nan
        if view.count == 2:
            view.refute()

    register_set(PythonSet("refuting", "refutes the second row", one_ridge, rebuild=refuting))
    evidence = c4b.Evidence(c4b.LinearModel(1, 0.1, 1.0, confidence="refuting"))
    evidence.learn([[1.0]] * 2, [0.5] * 2)
    evidence.absorb([1.0], 0.5)
    assert evidence.alarm == "no theta within the norm bound explains the data"


@pytest.mark.parametrize("ridges", [[], [0.0], [-1.0], [math.nan], [math.inf], [[1.0]]])
def test_ridges_must_be_positive_numbers(ridges: list[float]) -> None:
    register_set(PythonSet("bad", "bad ridges", lambda model: np.array(ridges), rebuild=nothing))
    with pytest.raises(errors.InvalidInput, match=r"^ridges .* 'bad' must be positive"):
        c4b.Evidence(c4b.LinearModel(2, 0.1, 1.0, confidence="bad"))


def test_names() -> None:
    assert set_names()[: len(CONFIDENCES)] == list(CONFIDENCES)
    entry = numpy_paper()
    assert register_set(entry) is entry  # the same again is harmless
    shipped = [
        *CONFIDENCES, "bounded", "bounded-2", "bounded-3", "box", "nested", "kazerouni", "adaptive",
    ]  # fmt: skip
    assert set_names()[: len(shipped)] == shipped
    assert set_names().count("numpy-paper") == 1  # beside what other tests of this process registered
    assert not is_compiled("numpy-paper")
    assert all(is_compiled(name) for name in CONFIDENCES)
    with pytest.raises(errors.UnknownName, match=r"must be one of .*'numpy-paper'"):
        is_compiled("nonsense")
    for taken in ("numpy-paper", "mixture"):
        with pytest.raises(errors.InvalidInput, match="is taken"):
            register_set(PythonSet(taken, "another", one_ridge, rebuild=nothing))
    for bad in (None, "mixture", paper):
        with pytest.raises(errors.InvalidInput, match="PythonSet"):
            register_set(bad)  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidInput, match="non-empty"):
        numpy_paper(name=" ")


def test_installed_packages_offer_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entry points are loaded when a name is unknown, once; one that fails is left out with a warning."""
    entry, asked = PythonSet("installed", "from elsewhere", one_ridge, rebuild=nothing), []

    def fails() -> None:
        raise ImportError("no module named elsewhere")

    def installed(group: str) -> list[Any]:
        asked.append(group)
        return [
            SimpleNamespace(name="broken", value="elsewhere:broken", load=fails),
            SimpleNamespace(name="installed", value="elsewhere:entry", load=lambda: entry),
        ]

    monkeypatch.setattr(table, "entry_points", installed)
    c4b.LinearModel(1, 0.1, 1.0, confidence="mixture")
    assert asked == []
    with pytest.warns(UserWarning, match=r"'broken' \(elsewhere:broken\) cannot be used: no module"):
        assert c4b.LinearModel(1, 0.1, 1.0, confidence="installed").confidence == "installed"
    assert set_names()[-1] == "installed"
    assert asked == ["c4b.sets"]


def test_the_example_runs_and_is_short() -> None:
    assert len(EXAMPLE.read_text(encoding="utf-8").splitlines()) < 80
    printed = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE)], capture_output=True, text=True, check=True
    ).stdout
    first, second, *_ = printed.splitlines()
    played = [int(number) for number in first.removeprefix("played: [").removesuffix("]").split(",")]
    assert sum(played) == 200
    assert played[2] > 100  # the best arm is found
    assert second.startswith("Candidate 1 was played: admissible")


def test_only_the_box_gives_a_told_arms_share_of_delta_to_the_others() -> None:
    """How a set of arms of somebody else divides delta is not known: it may be one event for all."""
    numpy_paper("own-arms", one_hot=True)
    model = c4b.LinearModel(2, 0.1, 1.0, confidence="own-arms")
    assert c4b.Policy("cucb", model).evidence.model.delta == model.delta
    assert (
        c4b.Policy("cucb", dataclasses.replace(model, confidence="box")).evidence.model.delta
        > model.delta
    )


def test_the_kit_accepts_the_example() -> None:
    spec = importlib.util.spec_from_file_location("my_set", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(importlib.util.module_from_spec(spec))
    model = c4b.LinearModel(3, 0.1, 1.0, confidence="arms")
    assert "passed" in check_policy(lambda: c4b.Policy("refresh", model, 0.2, 0.3)).values()
    with pytest.raises(c4b.errors.InvalidInput, match="unit vector"):
        c4b.Policy("refresh", model).decide([[1.0, 0.5, 0.0]], [1.0, 0.0, 0.0])


def test_ridges_may_be_a_list() -> None:
    register_set(PythonSet("listed", "ridges in a list", lambda model: [model.ridge], rebuild=paper))  # type: ignore[arg-type, return-value]
    assert c4b.Evidence(c4b.LinearModel(2, 0.1, 1.0, confidence="listed")).lower([1.0, 0.0]) < 0.0
