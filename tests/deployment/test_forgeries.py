"""Forgeries whose hashes are right: what arithmetic finds, and what only a key or a witness can."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from c4b import Decision, Deployment, LinearModel
from c4b.deployment.audit.recomputed.recomputed_choice import RecomputedChoice, RecordedRule
from c4b.deployment.transactions.state import State
from c4b.errors import InvalidInput, JournalCorrupt, KeyMissing
from c4b.journal import seal
from c4b.policies import CandidateField
from support.forgeries import (
    Forgery,
    another,
    barred,
    barred_elsewhere,
    barred_unsaid,
    fallen_back,
    follow_banks,
    forge_decision,
    negative_radius,
    no_radius,
    nothing_possible,
    numbers_of,
    only_one,
    play,
)
from support.shop_world import BASELINE, THETA, create, entries_of, forge, in_agreement, rivals, trade

KEY, OTHER_KEY = "7" * 64, "8" * 64


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(seal.KEY, KEY)
    return KEY


def traded(url: str, rounds: int = 30, **options: Any) -> list[Any]:
    """A journal whose last entry is an outcome; returns its entries."""
    with create(url, **options) as dep:
        trade(dep, rounds)
        dep.observe(dep.pending()[0].id, 0.6)
        assert dep.audit(sample=0).clean
        return entries_of(dep)


def more(amount: float) -> Forgery:
    def change(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
        arrays["numbers"][0] += amount

    return change


@pytest.mark.parametrize("policy", ["refresh", "reserve-c4b+", "separate"])
def test_a_middle_reward_a_little_larger(sqlite_url: str, policy: str) -> None:
    rng = np.random.default_rng(3)
    with create(sqlite_url, policy=policy) as dep:
        for _ in range(20):
            dep.observe(dep.decide(rivals(rng), BASELINE).id, 0.6 + 0.1 * rng.normal())
        assert dep.audit(sample=0).clean
        number = numbers_of(entries_of(dep), "observed")[10]
        forge(dep, number, more(1e-5))
        assert dep.audit(sample=0).entry == number + 1  # the next decision does not follow from it


def chosen_among_several(dep: Deployment) -> Decision:
    """Of 40 rounds the last decision for a candidate where others were admissible, too."""
    rng, last = np.random.default_rng(1), None
    for _ in range(40):
        made = dep.decide(rivals(rng, 6) + 0.1, BASELINE)
        dep.observe(made.id, 0.6)
        if made.action is not None and (made.details[CandidateField.MARGIN] >= 0.0).sum() > 1:
            last = made
    assert last is not None
    return last


@pytest.mark.parametrize("forgery", [another, only_one])
@pytest.mark.parametrize("policy", ["refresh", "reserve-c4b+"])
def test_another_admissible_candidate(sqlite_url: str, policy: str, forgery: Forgery) -> None:
    with create(sqlite_url, policy=policy, reserve=5.0) as dep:
        receipt = chosen_among_several(dep).receipt
        assert receipt is not None
        assert dep.audit(sample=0).clean
        forge(dep, receipt.seq, forgery)
        assert dep.audit(sample=0).entry == receipt.seq


@pytest.mark.parametrize(
    "forgery",
    [barred, barred_elsewhere, barred_unsaid, fallen_back, nothing_possible, no_radius, negative_radius],
)
@pytest.mark.parametrize("policy", ["refresh", "separate", "contrast", "checkpoints", "reserve-c4b+"])
def test_numbers_that_no_rule_gives(sqlite_url: str, policy: str, forgery: Forgery) -> None:
    """A lower bound of -inf is safe, but it must not be why something else was chosen."""
    with create(sqlite_url, policy=policy, reserve=5.0) as dep:
        number = forge_decision(dep, chosen_among_several(dep), forgery)
        report = dep.audit(sample=0)
        assert report.entry == number, report


@pytest.mark.parametrize("policy", ["refresh", "separate", "reserve-c4b+"])
@pytest.mark.parametrize("factor", [0.9e-6, 0.9e-8])
def test_every_bank_a_little_larger(sqlite_url: str, policy: str, factor: float) -> None:
    traded(sqlite_url, rounds=12, policy=policy)
    with Deployment.open(sqlite_url, "shop") as dep:
        follow_banks(dep, factor)
        assert not dep.audit(sample=0).clean


def admit(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    """The candidate that is nearly admissible is admitted, and played."""
    margins = arrays["details"][CandidateField.MARGIN]
    nearly = int(np.argmax(np.where(margins < 0.0, margins, -np.inf)))
    margins[nearly] = 0.0
    play(nearly, fields, arrays)


def test_a_margin_of_almost_0_is_not_admitted(sqlite_url: str) -> None:
    """Rounding makes a margin smaller, never larger, so there is no more tolerance where one is small."""
    rng = np.random.default_rng(0)
    with create(sqlite_url) as dep:
        history = rivals(rng, 1000)
        dep.learn(history, history @ THETA + 0.1 * rng.normal(size=1000))
        steps = np.linspace(1.6, 1.7, 4000)[:, None]  # the further, the less is known
        made = dep.decide(BASELINE + steps * [1.0, 0.0, 3.0], BASELINE)
        margins = made.details[CandidateField.MARGIN]
        assert -1e-4 < margins[margins < 0.0].max() < -1e-6
        assert made.receipt is not None
        assert dep.audit(sample=0).clean
        forge(dep, made.receipt.seq, admit)
        assert "margin of candidates" in str(dep.audit(sample=0).finding)


def worse(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    """The best-scored candidate has a lower score and a higher UCB, and the next one is played."""
    scores = arrays["details"][CandidateField.SCORE]
    best, second = np.argsort(-scores)[:2].tolist()
    scores[best] = scores[second] - 1e-3
    play(second, fields, arrays)


def smaller_margins(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    action = fields["action"]
    arrays["details"][CandidateField.MARGIN] -= 0.1
    arrays["numbers"][1] = arrays["details"][CandidateField.MARGIN, action]


@pytest.mark.parametrize("sample", [0, 1])
@pytest.mark.parametrize("forgery", [worse, smaller_margins])
def test_worse_numbers_where_rounding_is_visible(sqlite_url: str, forgery: Forgery, sample: int) -> None:
    """Nobody but the fast path knows by how much an allowance for rounding makes a bound worse."""
    rng, baseline = np.random.default_rng(1), np.array([2000.0, 0.0, 0.0])
    model = LinearModel(3, 0.1, 1.0)
    with Deployment.create(sqlite_url, "shop", model, "refresh", alpha=0.1, reserve=50.0) as dep:
        for _ in range(12):
            pool = baseline + 0.3 * rng.normal(size=(6, 3))
            made = dep.decide(pool, baseline)
            played = baseline if made.action is None else pool[made.action]
            dep.observe(made.id, float(played @ [0.5 / 2000.0, 0.3, -0.2] + 0.1 * rng.normal()))
        assert made.action is not None
        assert (made.details[CandidateField.MARGIN] >= 0.2).all()
        assert dep.audit(sample=sample).clean
        number = forge_decision(dep, made, forgery)
        assert dep.audit(sample=sample).entry == number


@pytest.mark.parametrize("size", [1e10, 1e14, 1e20, 1e40])
@pytest.mark.parametrize("policy", ["refresh", "reserve-c4b+", "contrast"])
def test_a_huge_row_hides_nothing(sqlite_url: str, policy: str, size: float) -> None:
    """It leaves float64 little to say, but an audit knows what follows from the rows."""
    rng = np.random.default_rng(0)
    with create(sqlite_url, policy=policy) as dep:
        history = np.vstack([rivals(rng, 50), size * BASELINE])
        dep.learn(history, history @ THETA + 0.1 * rng.normal(size=51))
        made = dep.decide([BASELINE - 3.0 * THETA], BASELINE)
        assert made.action is None
        assert made.receipt is not None
        assert dep.audit(sample=1).clean

        def change(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
            arrays["details"][[CandidateField.MARGIN, CandidateField.JOINT], 0] = 5.0, 4.5
            play(0, fields, arrays)

        forge(dep, made.receipt.seq, change)
        assert "candidates: recorded" in str(dep.audit(sample=1).finding)


@pytest.mark.parametrize(("alarm", "expected"), [(None, 0), ("refuted", None)])
def test_a_refuted_model_plays_no_candidate(alarm: str | None, expected: int | None) -> None:
    """Whether a baseline with a margin of 0 competes hangs on rounding, but no alarm does."""
    rule = RecordedRule(0.0, 1.0, 0.0, latches=1.0, checkpoints=1.0, cushion=0.0, competes=1.0)
    books: Any = SimpleNamespace(bank=0.0, baseline_margin=lambda baseline: 0.0)
    decision: Any = SimpleNamespace(
        arrays={"candidates": BASELINE[None], "details": np.ones((5, 1))},
        played=SimpleNamespace(baseline=BASELINE),
        fields={"alarm": alarm},
        chosen=0,
    )
    choice = RecomputedChoice(rule, books, None, None, 0.1, True, False, 1e-9, 1.0, False, 1.0)
    assert choice.chosen(decision, np.ones(1)) == expected


def test_the_last_reward_is_for_a_key_or_a_witness(sqlite_url: str, tmp_path: Path) -> None:
    """Nothing was decided after it, so nothing contradicts it, if its fingerprint is made to fit."""
    last = traded(sqlite_url)[-1].seq
    with Deployment.open(sqlite_url, "shop") as dep:
        dep.witness(tmp_path / "kept")
        forge(dep, last, more(0.05))  # a larger one would be an alarm, and that is missing
        state = State(dep.configuration)
        state.replay(entries_of(dep))
        forge(dep, last, lambda fields, arrays: fields.update(set=state.fingerprint()))
        assert dep.audit().clean
        assert dep.audit(witness=tmp_path / "kept").entry == last


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("forged", ["last reward", "middle reward", "first entry", "context"])
def test_no_entry_can_be_forged_without_the_key(sqlite_url: str, forged: str) -> None:
    entries = traded(sqlite_url)
    outcomes, decisions = numbers_of(entries, "observed"), numbers_of(entries, "decided")
    number, change = {
        "last reward": (outcomes[-1], more(5.0)),
        "middle reward": (outcomes[5], more(1e-12)),
        "first entry": (0, lambda fields, arrays: fields.update(alpha=0.2)),
        "context": (decisions[4], lambda fields, arrays: fields.update(context='"other"')),
    }[forged]
    with Deployment.open(sqlite_url, "shop") as dep:
        forge(dep, number, change)
        report = dep.audit(sample=0)
        assert report.entry == number
        assert "sealed" in str(report)
    with pytest.raises(JournalCorrupt, match="sealed"):
        Deployment.open(sqlite_url, "shop")


def test_a_sealed_deployment(any_url: str, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with create(any_url, snapshot_every=5) as dep, create(any_url, "other") as other:
        trade(dep, 20, ids="r-")
        report = dep.audit(sealed=True)
        assert report.sealed
        assert report.clean
        assert "sealed" in str(report)
        assert in_agreement(dep)
        assert dep.configuration.key == other.configuration.key
    monkeypatch.setenv(seal.KEY, OTHER_KEY)
    with Deployment.open(any_url, "shop") as dep:  # may be read by who does not have the key
        before = dep.state()
        assert dep.audit(sample=0).clean
        assert "not sealed" in str(dep.audit(sample=0, sealed=True))
        for call in (lambda: dep.decide([], BASELINE), lambda: dep.observe(dep.pending()[0].id, 0.5)):
            with pytest.raises(KeyMissing, match=seal.KEY):
                call()
        assert dep.state() == before
    monkeypatch.setenv(seal.KEY, f"{OTHER_KEY} {KEY}")  # a new key, and the one from before
    with Deployment.open(any_url, "shop") as dep, create(any_url, "new") as new:
        trade(dep, 3)
        assert dep.audit(sample=0, sealed=True).clean
        assert new.configuration.key not in (None, dep.configuration.key)


def test_keys_from_a_file(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "key"
    monkeypatch.setenv(seal.KEY_FILE, str(file))
    with pytest.raises(InvalidInput, match="cannot be read"):
        create(sqlite_url)
    file.write_text("short\n")
    with pytest.raises(InvalidInput, match="32 characters") as caught:
        create(sqlite_url)
    assert "short" not in str(caught.value)
    file.write_text(f"{KEY}\n")
    with create(sqlite_url) as dep:
        trade(dep, 3)
        assert dep.audit(sample=0, sealed=True).clean
        assert dep.audit(sample=0, sealed=True, jobs=2).sealed


def test_a_journal_without_seals_is_not_sealed(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody could replace a sealed journal by one that never was."""
    with create(sqlite_url) as dep:
        trade(dep, 3)
    monkeypatch.setenv(seal.KEY, KEY)
    with Deployment.open(sqlite_url, "shop") as dep:
        assert dep.audit(sample=0).clean
        assert not dep.audit(sample=0, sealed=True).clean
