"""Each composition gets the smallest compiled round that serves it; all of them give the same bits."""

from typing import Any

import numpy as np
import pytest

import c4b
from c4b.policies.catalogue.choice_rule import rule_numbers
from c4b.policies.compiled.compiled_gate import CompiledGate
from c4b.policies.compiled.compiled_round import decide
from c4b.policies.compiled.decide_kernels import decide_by_ucb, decide_from_bank, decider
from c4b.policies.compiled.round_space import space_size
from c4b.policies.rounds.candidate_fields import ROWS
from c4b.study.engine.compiled_episode import run_setting, run_usual_setting
from c4b.study.engine.prepared_setting import prepare
from c4b.study.spec.plan import Method
from c4b.study.spec.setting import Setting

DIM = 4


def gate_of(name: str, confidence: str | None = None) -> CompiledGate:
    model: Any = c4b.LinearModel(dim=DIM, noise=0.2, norm_bound=1.5, confidence=confidence)
    if name == "clicks":
        model = c4b.LinearModel.bounded(dim=DIM, norm_bound=1.0)
    terms = {"horizon": 100} if name == "budget-first" else {}
    gate = c4b.Policy(name, model, reserve=1.0, **terms).gate
    assert isinstance(gate, CompiledGate)
    return gate


@pytest.mark.parametrize(
    ("name", "confidence", "smallest"),
    [
        ("reserve-c4b+", None, decide_from_bank),
        ("reserve-c4b+", "self-normalized", decide),
        ("refresh", "several-ridges", decide_from_bank),
        ("separate", "unbiased", decide_from_bank),
        ("refresh", None, decide_by_ucb),
        ("separate", None, decide_by_ucb),
        ("checkpoints", None, decide_by_ucb),
        ("linucb", None, decide_by_ucb),
        ("revalue", None, decide),
        ("maximin", None, decide),
        ("cucb-unknown", None, decide),
        ("lcbce", "several-ridges", decide),
        ("revalue", "several-ridges", decide),
        ("maximin", "several-ridges", decide),
        ("linucb", "several-ridges", decide),
        ("budget-first", None, decide),
        ("clicks", None, decide),
    ],
)
def test_who_gets_which_round(name: str, confidence: str | None, smallest: object) -> None:
    gate = gate_of(name, confidence)
    rule = rule_numbers(gate.composition.rule(DIM, 0.2))
    assert decider(gate.evidence.flat, gate.ledger, rule) is smallest


def test_a_bank_with_terms_gets_the_whole_round() -> None:
    """It counts fallback rounds, which the small round leaves out."""
    model = c4b.LinearModel(dim=DIM, noise=0.2, norm_bound=1.5)
    gate = c4b.Policy("reserve-c4b+", model, reserve=1.0, baseline_floor=0.3).gate
    assert isinstance(gate, CompiledGate)
    rule = rule_numbers(gate.composition.rule(DIM, 0.2))
    assert decider(gate.evidence.flat, gate.ledger, rule) is decide


@pytest.mark.parametrize(
    ("name", "confidence"),
    [
        ("reserve-c4b+", "several-ridges"),
        ("checkpoints", "several-ridges"),
        ("separate", "several-ridges"),
        ("refresh", None),
        ("checkpoints", None),
        ("separate", None),
        ("linucb", None),
    ],
)
@pytest.mark.parametrize("lazy", [True, False])
def test_a_small_round_gives_the_bits_of_the_whole_one(
    name: str, confidence: str | None, lazy: bool
) -> None:
    rng = np.random.default_rng(7)
    gate, theta = gate_of(name, confidence), np.array([0.8, 0.4, -0.3, 0.1])
    rule, nothing = rule_numbers(gate.composition.rule(DIM, 0.2)), np.empty(0)
    baseline = np.array([1.0, 0.0, 0.0, 0.0])
    other, small = gate.ledger.copy(), decider(gate.evidence.flat, gate.ledger, rule)
    assert small is not decide
    for size in (1, 7, 40, 300, 7, 40, 9, 9, 9, 9):
        pool = np.c_[np.ones(size), 0.4 * rng.normal(size=(size, DIM - 1))]
        given = (rule, nothing, pool, baseline, np.nan, lazy, 0, 0)
        space = np.full(space_size(gate.evidence.flat, other, size) + 1, 7.0)  # one more, not to be used
        details = np.empty((2, ROWS, size))
        before = gate.ledger.copy()
        one = small(gate.evidence.flat, gate.ledger, *given, details[0], space[:-1])
        two = decide(gate.evidence.flat, other, *given, details[1], space[:-1])
        assert one[:2] == two[:2]
        assert np.array(one[2:]).tobytes() == np.array(two[2:]).tobytes()
        assert details[0].tobytes() == details[1].tobytes()
        assert space[: len(before)].tobytes() == before.tobytes()
        assert space[-1] == 7.0
        assert gate.ledger.tobytes() == other.tobytes()
        for row in pool[:20]:
            gate.absorb(row, float(row @ theta + 0.2 * rng.normal()))


def test_the_papers_setting_has_a_kernel_of_its_own() -> None:
    def runs(*methods: Method, **options: Any) -> object:
        found = prepare(Setting(rounds=2, **options), methods).compiled
        assert found is not None
        return found.run

    refresh, told = Method("refresh", "refresh"), Method("clucb", "clucb")
    assert runs(refresh, told) is run_usual_setting
    assert runs(refresh, count=33) is run_setting
    assert runs(refresh, Method("ours", "reserve-c4b+")) is run_setting
    assert runs(refresh, Method("hopeful", "reserve-c4b+", "self-normalized")) is run_setting
