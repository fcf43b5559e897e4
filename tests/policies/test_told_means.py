"""Baseline means that the caller tells: who asks for them, what they change, what refutes them."""

from pathlib import Path

import numpy as np
import pytest

import c4b
from c4b.errors import InvalidInput
from c4b.policies.catalogue import registry

MODEL = c4b.LinearModel(3, 0.1, 1.0)
THETA = np.array([0.6, 0.3, -0.2])
BASELINE = np.array([1.0, 0.0, 0.0])
TOLD = ("clucb", "clucb-plays", "clucb2", "clucb2t", "lcbce")


def pools(rounds: int, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [BASELINE + 0.2 * rng.normal(size=(4, 3)) for _ in range(rounds)]


def opened(name: str, **options: object) -> c4b.Policy:
    policy = c4b.Policy(name, MODEL, alpha=0.1, reserve=0.3, **options)  # type: ignore[arg-type]
    rows = BASELINE + 0.3 * np.random.default_rng(1).normal(size=(30, 3))
    policy.learn(rows, rows @ THETA)
    return policy


@pytest.mark.parametrize("name", TOLD)
def test_a_mean_is_asked_for(name: str) -> None:
    policy = opened(name)
    for missing in (None, np.nan, np.inf, 1e101, -1e308, "0.6"):
        with pytest.raises(InvalidInput, match="baseline_mean"):
            policy.decide(pools(1)[0], BASELINE, missing)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"rounds\[1\]\.baseline_mean"):
        policy.decide_many([c4b.Round([], BASELINE, 0.6), ([], BASELINE)])
    assert policy.rounds == 0


def test_a_mean_that_nobody_asked_for_is_refused() -> None:
    with pytest.raises(InvalidInput, match="is not used by this policy"):
        opened("refresh").decide(pools(1)[0], BASELINE, 0.6)


def test_the_first_round_of_clucb_by_hand() -> None:
    """R0 - c mu + L(x) for a candidate, R0 + alpha mu for the baseline."""
    policy = c4b.Policy("clucb", c4b.LinearModel(1, 0.1, 1.0, 1.0), alpha=0.1, reserve=1.0)
    lower = policy.evidence.lower([0.5])
    decision = policy.decide([[0.5]], [1.0], 0.4)
    assert decision.action == 0
    assert decision.bank == pytest.approx(1.0 - 0.9 * 0.4 + lower, abs=1e-12)
    second = policy.decide([], [1.0], 0.4)
    assert second.bank == pytest.approx(1.0 - 0.9 * 0.4 + lower + 0.1 * 0.4, abs=1e-12)


def test_a_frozen_bank_keeps_what_was_certified_then() -> None:
    policy = opened("lcbce")
    bank = policy.reserve
    for pool in pools(10):
        decision = policy.decide(pool, BASELINE, 0.6)
        own = 0.1 * 0.6
        if decision.action is not None:
            own = policy.evidence.lower(pool[decision.action]) - 0.9 * 0.6
        bank += own
        assert decision.bank == pytest.approx(bank, abs=1e-9)
        policy.observe(decision.id, 0.5)


@pytest.mark.parametrize("name", TOLD)
def test_many_at_once_delays_and_files_change_nothing(name: str, tmp_path: Path) -> None:
    one, many = opened(name), opened(name)
    rounds = [c4b.Round(pool, BASELINE, 0.6) for pool in pools(8)]
    apart = [one.decide(round_) for round_ in rounds]
    together = many.decide_many(rounds)
    assert [(d.action, d.bank) for d in apart] == [(d.action, d.bank) for d in together]
    one.save(tmp_path / "state")
    loaded = c4b.Policy.load(tmp_path / "state")
    for policy in (one, loaded):
        policy.executed(apart[3].id)
        policy.executed(apart[4].id, 0.9 * BASELINE)
    assert one.bank == loaded.bank
    for policy in (one, loaded):
        for decision in reversed(apart):
            policy.observe(decision.id, 0.5)
    last = [policy.decide(pools(1, 5)[0], BASELINE, 0.55) for policy in (one, loaded)]
    assert last[0].bank == last[1].bank


@pytest.mark.parametrize("name", TOLD)
def test_another_execution_moves_the_told_mean_as_well(name: str) -> None:
    """What was decided and then not executed leaves no trace in a ledger that is valued anew."""
    decided, executed = opened(name), opened(name)
    for policy in (decided, executed):
        decision = policy.decide([] if policy is decided else pools(1)[0], BASELINE, 0.6)
        if policy is executed:
            assert decision.action is not None
            policy.executed(decision.id)
        policy.observe(decision.id, 0.6)
    if name != "lcbce":
        assert decided.bank == pytest.approx(executed.bank, abs=1e-9)
    assert executed.bank <= 0.3 + 0.1 * 0.6 + 1e-9


@pytest.mark.parametrize("mean", [5.0, -3.0])
def test_a_mean_outside_of_its_interval_raises_the_alarm(mean: float) -> None:
    policy = opened("clucb")
    assert policy.decide(pools(1)[0], BASELINE, 0.6).alarm is None
    decision = policy.decide(pools(1)[0], BASELINE, mean)
    assert decision.alarm is not None
    assert "mean" in decision.alarm
    assert policy.decide([], BASELINE, 0.6).alarm == policy.alarm == decision.alarm  # it latches


TOLD = ("cucb", "budget-first", "budget-first-arms", "c-squarecb", "c-fastcb")
"""All of them were gates in Python, and the last two are."""


def watched(name: str, revision: int | None = None) -> c4b.Policy:
    """30 outcomes of the baseline, 0.6 each."""
    spec = c4b.policies.get(name)
    if revision is not None:
        spec = registry.from_record({"gate": {"name": name, "revision": revision}})
    horizon, seed = (100 if "horizon" in spec.needs else None), (1 if "seed" in spec.needs else None)
    policy = c4b.Policy(spec, MODEL, alpha=0.1, horizon=horizon, seed=seed)
    policy.learn(np.tile(BASELINE, (30, 1)), np.full(30, 0.6))
    return policy


@pytest.mark.parametrize("name", TOLD)
@pytest.mark.parametrize("wrong", [0.9, 0.3])
def test_the_others_object_to_a_wrong_mean_too(name: str, wrong: float, tmp_path: Path) -> None:
    policy = watched(name)
    assert policy.decide([], BASELINE, 0.6).alarm is None
    assert policy.preview([], BASELINE, wrong).alarm is not None
    assert policy.alarm is None  # a preview changes nothing
    decision = policy.decide([], BASELINE, wrong)
    assert decision.alarm is not None
    assert "mean" in decision.alarm
    policy.save(tmp_path / "state")
    loaded = c4b.Policy.load(tmp_path / "state")
    assert loaded.decide([], BASELINE, 0.6).alarm == loaded.alarm == decision.alarm  # it latches


@pytest.mark.parametrize("name", TOLD)
def test_what_the_first_revision_recorded_goes_on_as_it_was(name: str) -> None:
    policy = watched(name, revision=1)
    assert registry.recorded(policy.spec) == {"gate": {"name": name}}
    assert policy.decide([], BASELINE, 0.9).alarm is None
    assert registry.recorded(registry.gate(name)) == {"gate": {"name": name, "revision": 2}}
    assert "composition" in registry.recorded(watched(name).spec) or name in ("c-squarecb", "c-fastcb")


def test_a_composition_that_latches_plays_the_baseline_then() -> None:
    cautious = c4b.Composition("own", "known", "prefix", "filter", "a test's own", latches=True)
    policy = c4b.Policy(cautious, MODEL, alpha=0.1, reserve=5.0)
    assert policy.decide(pools(1)[0], BASELINE, 0.6).action is not None
    assert policy.decide(pools(1)[0], BASELINE, 9.0).is_baseline
    assert policy.decide(pools(1)[0], BASELINE, 0.6).is_baseline


def test_a_refused_batch_takes_the_alarm_back() -> None:
    policy = opened("clucb")
    with pytest.raises(InvalidInput):
        policy.decide_many([c4b.Round([], BASELINE, 9.0), c4b.Round([[np.nan] * 3], BASELINE, 0.6)])
    assert policy.alarm is None


def test_the_bank_of_clucb2_may_exceed_that_of_clucb() -> None:
    """Realised rewards of many plays are worth more than the lower bound of their sum."""
    banks = {}
    for name in ("clucb", "clucb2"):
        policy = opened(name)
        for pool in pools(400, 3):
            decision = policy.decide(pool, BASELINE, 0.6)
            played = BASELINE if decision.action is None else pool[decision.action]
            policy.observe(decision.id, float(played @ THETA))
        banks[name] = policy.bank
    assert banks["clucb2"] > banks["clucb"] > 0.0


# -- what is known of baselines without being told ---------------------------------------------------


def test_a_floor_counts_for_every_fallback_round() -> None:
    for floor in (None, 0.3):
        policy = c4b.Policy("clucb-unknown", MODEL, alpha=0.1, baseline_floor=floor)
        for _ in range(5):
            decision = policy.decide([], BASELINE)
        assert decision.bank == pytest.approx(0.1 * 5 * (floor or 0.0))


def test_a_floor_helps_a_bank_as_well() -> None:
    policy = c4b.Policy("contrast", MODEL, alpha=0.1, baseline_floor=0.3)
    assert policy.decide([], BASELINE).bank == pytest.approx(0.03)


def test_a_negative_floor_is_better_than_none() -> None:
    banks = []
    for floor in (None, -0.2):
        policy = c4b.Policy("refresh", MODEL, 0.1, 1.0, False, baseline_floor=floor)
        banks.append(policy.decide([], BASELINE).bank)
    assert banks[0] < banks[1] == pytest.approx(0.98)


@pytest.mark.parametrize(
    ("floor", "nonnegative"), [(-0.1, True), (0.1, False), (np.nan, True), (1e101, True), (-1e308, False)]
)
def test_floors_that_contradict_or_overflow(floor: float, nonnegative: bool) -> None:
    with pytest.raises(InvalidInput, match="baseline_floor"):
        c4b.Policy("refresh", MODEL, 0.1, 0.0, nonnegative, baseline_floor=floor)


@pytest.mark.parametrize("argument", ["horizon", "seed"])
def test_terms_that_a_policy_does_not_need_are_refused(argument: str) -> None:
    with pytest.raises(InvalidInput, match=argument):
        c4b.Policy("refresh", MODEL, **{argument: 5})
    needs = "budget-first" if argument == "horizon" else "c-squarecb"
    with pytest.raises(InvalidInput, match=argument):
        c4b.Policy(needs, MODEL)


def test_phases_count_on_the_rounds_that_are_left() -> None:
    """The ledger of clucb2t is that of clucb2 with alpha r_l for each round until the phase ends."""
    rounds = [[] for _ in range(25)]
    banks = {}
    for name in ("clucb2", "clucb2t"):
        policy = c4b.Policy(name, MODEL, alpha=0.1, baseline_floor=0.5)
        banks[name] = np.array([policy.decide(pool, BASELINE, 0.6).bank for pool in rounds])
    left = np.array([-(t + 1) % 20 for t in range(25)])
    assert banks["clucb2t"] == pytest.approx(banks["clucb2"] + 0.1 * 0.5 * left)


def test_every_round_of_maximin_is_safe_by_itself() -> None:
    policy = opened("maximin")
    played = 0
    for pool in pools(60, 4):
        certificates = c4b.joint_certificate(policy.evidence, pool, BASELINE, 0.1)
        decision = policy.decide(pool, BASELINE)
        if certificates.max() >= 0.0:
            assert decision.action == int(certificates.argmax())
            played += 1
        else:
            assert decision.is_baseline
        x = BASELINE if decision.action is None else pool[decision.action]
        policy.observe(decision.id, float(x @ THETA))
    assert 0 < played < 60


@pytest.mark.parametrize(
    ("parts", "match"),
    [
        ({"certificate": "known", "ledger": "refresh"}, "ledger"),
        ({"certificate": "joint", "ledger": "refresh", "phase": 5}, "phase"),
        ({"certificate": "known", "ledger": "carry", "earned": "martingale"}, "earned"),
        ({"certificate": "known", "ledger": "prefix", "learns": "some"}, "learns"),
    ],
)
def test_parts_that_do_not_go_together(parts: dict[str, object], match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        c4b.Composition("own", selection="filter", summary="", **parts)  # type: ignore[arg-type]


def test_revalue_is_separate_with_prefix() -> None:
    composition = c4b.policies.get("revalue")
    assert isinstance(composition, c4b.Composition)
    assert (composition.certificate, composition.ledger) == ("separate", "prefix")
    assert c4b.Composition("x", "separate", "revalue", "filter", "") == c4b.Composition(
        "x", "separate", "prefix", "filter", ""
    )


def test_a_later_revision_is_refused() -> None:
    with pytest.raises(InvalidInput, match="recorded by a later version"):
        registry.from_record({"gate": {"name": "cucb", "revision": 99}})
