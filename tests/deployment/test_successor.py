"""A successor: the predecessor's outcomes, the rest of its reserve, nothing spent twice."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c4b import Deployment, LinearModel
from c4b.deployment.limits import Limits
from c4b.deployment.succession import pages
from c4b.deployment.transactions.commands import Commands
from c4b.deployment.transactions.rollout import OPEN
from c4b.errors import C4BError, DecisionsClosed, InvalidInput, NameTaken
from c4b.journal.entries import LEARNED
from support.shop_world import (
    BASELINE,
    create,
    entries_of,
    evidence_of,
    forge,
    fork,
    in_agreement,
    outcome,
    rivals,
    trade,
    waited,
)


def test_it_goes_on_with_what_was_learned_and_what_is_left(any_url: str) -> None:
    with create(any_url, "old") as old:
        rows = np.random.default_rng(0).normal(size=(10, 3))
        old.learn(rows, rows @ np.ones(3) * 0.1)
        trade(old, 40)
        known = old.state()
        bank = min(max(known.bank, 0.0), 0.5)
        with Deployment.successor(any_url, "old", "new", "a better model", by="ann") as new:
            assert new.configuration.reserve == bank
            assert new.state().bank == bank
            assert new.state().observations == known.observations
            assert np.allclose(evidence_of(new).estimate, evidence_of(old).estimate, rtol=1e-9)
            name, _, rest = str(new.configuration.predecessor).partition("@")
            seq, _, hash_ = rest.partition(":")
            assert (name, entries_of(old)[int(seq)].hash().hex()) == ("old", hash_)
            with pytest.raises(DecisionsClosed):
                old.decide(rivals(np.random.default_rng(0)), BASELINE)
            last = entries_of(old)[-1].unpack()[0]
            assert (last["action"], last["hash"]) == ("succeeded", entries_of(new)[0].hash().hex())
            trade(new, 10, seed=1)
            for each in (old, new):
                assert each.audit().clean
                assert in_agreement(each)
            again = Deployment.successor(any_url, "old", "new", "once more", by="ann")
            assert again.state().hash == new.state().hash  # nothing was done twice
            again.close()
        with pytest.raises(InvalidInput, match="already"):
            Deployment.successor(any_url, "old", "third", "no")


def test_nothing_is_closed_by_a_mistake(memory_url: str) -> None:
    other = LinearModel(dim=2, noise=0.1, norm_bound=1.0)
    with create(memory_url, "old") as old, create(memory_url, "taken"):
        trade(old, 5)
        for error, name, options in (
            (InvalidInput, "new", {"model": other}),
            (InvalidInput, "new", {"model": other, "translate": lambda x: x}),
            (InvalidInput, "new", {"model": LinearModel.bounded(3, 1.0, (5.0, 6.0))}),
            (InvalidInput, "new", {"translate": lambda x: x * np.nan}),
            (InvalidInput, "new", {"reserve": 5.0}),
            (InvalidInput, "new", {"alpha": 2.0}),
            (InvalidInput, "no name", {}),
            (NameTaken, "taken", {}),
        ):
            with pytest.raises(error):
                Deployment.successor(memory_url, "old", name, "oops", **options)
            assert old.state().mode == "live"
        assert Deployment.names(memory_url) == ["old", "taken"]


def test_other_features(memory_url: str) -> None:
    with create(memory_url, "old") as old:
        trade(old, 30)
        wider = LinearModel(dim=4, noise=0.1, norm_bound=1.0)
        with Deployment.successor(
            memory_url, "old", "new", "one more feature", wider, translate=lambda x: [*x, x[0] * x[1]]
        ) as new:
            learned = [e.unpack()[1]["features"] for e in entries_of(new) if e.kind == LEARNED]
            assert learned[0].shape == (old.state().observations, 4)
            assert np.array_equal(learned[0][:, 3], learned[0][:, 0] * learned[0][:, 1])
            assert new.audit().clean


def test_only_what_was_absorbed_is_history(memory_url: str) -> None:
    """An outcome that waits for an earlier one is left out, and so is a lost one."""
    with create(memory_url, "old") as old:
        made = old.decide_many([(rivals(np.random.default_rng(0)), BASELINE)] * 4)
        old.observe(made[0].id, 0.1)
        old.forget(made[1].id)
        old.executed(made[2].id, [1.0, 0.5, 0.0])
        old.observe(made[2].id, 0.2)
        with Deployment.successor(memory_url, "old", "new", "now") as new:
            (learned,) = [e.unpack()[1] for e in entries_of(new) if e.kind == LEARNED]
            assert learned["rewards"].tolist() == [0.1, 0.2]
            assert learned["features"][1].tolist() == [1.0, 0.5, 0.0]
        old.observe(made[3].id, 0.3)  # still taken
        assert old.audit().clean


def test_an_outcome_between_two_attempts_does_not_stop_the_second(
    memory_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outcomes are still taken after the closing; the history of the first attempt stays the history."""
    with create(memory_url, "old") as old:
        made = old.decide_many([(rivals(np.random.default_rng(0)), BASELINE)] * 2)
        old.observe(made[0].id, 0.1)

        with monkeypatch.context() as patched:
            patched.setattr(Commands, "control", _until_open(Commands.control))
            with pytest.raises(KeyboardInterrupt):
                Deployment.successor(memory_url, "old", "new", "now")
        old.observe(made[1].id, 0.2)
        with Deployment.successor(memory_url, "old", "new", "now") as new:
            assert (new.state().mode, new.state().observations) == ("live", 1)
            assert new.audit().clean


def _until_open(control: Callable[..., None]) -> Callable[..., None]:
    def interrupted(commands: Commands, action: str, *order: str, **more: Any) -> None:
        if action == OPEN:
            raise KeyboardInterrupt
        control(commands, action, *order, **more)

    return interrupted


def test_rows_of_many_features_fit_into_their_entries() -> None:
    wide = 5000
    rows = ((np.zeros(wide), 0.0) for _ in range(1000))
    sizes = [len(rewards) for _, rewards in pages(rows, None, wide)]
    assert sum(sizes) == 1000
    Limits().history("features", max(sizes), wide)


def test_with_an_alarm_nothing_is_left(memory_url: str) -> None:
    with create(memory_url, "old", policy="reserve-c4b+") as old:
        rows = np.tile(BASELINE, (200, 1))
        old.learn(rows, np.tile([0.9, -0.9], 100) * 5.0)
        assert old.state().alarm is not None
        with Deployment.successor(memory_url, "old", "new", "the model was wrong") as new:
            assert new.configuration.reserve == 0.0
        assert old.audit().clean


def test_a_late_correction_below_what_was_handed_over_is_an_alarm(memory_url: str) -> None:
    with create(memory_url, "old") as old:
        made = old.decide(rivals(np.random.default_rng(0)), BASELINE)
        with Deployment.successor(memory_url, "old", "new", "now") as new:
            assert new.configuration.reserve > 0.0
            old.executed(made.id, [0.0, 0.0, 2.0])
            assert "took over" in str(old.state().alarm)
        assert old.audit().clean


def test_a_bank_that_counts_on_later_rounds_is_not_handed_over(memory_url: str) -> None:
    """``clucb2t`` promises the ends of phases only: within one, its bank counts on the rest of it."""
    theta, incumbent, bad = np.array([1.0, 0.0]), np.array([1.0, 0.0]), np.array([-1.0, 1.0])
    model = LinearModel(dim=2, noise=0.01, norm_bound=1.001)
    terms: dict[str, Any] = {"alpha": 0.5, "reserve": 1.0, "baseline_floor": 1.0}
    with Deployment.create(memory_url, "old", model, "clucb2t", **terms) as old:
        rows = np.tile(np.eye(2), (300, 1))
        old.learn(rows, rows @ theta)
        truth = 1.0
        for _ in range(4):
            made = old.decide([bad], incumbent, baseline_mean=1.0)
            mean = float((incumbent if made.is_baseline else bad) @ theta)
            old.observe(made.id, mean)
            truth += mean - 0.5
        assert old.state().bank > 1.0
        assert truth < 0.0
        with pytest.raises(InvalidInput, match=r"must be at most 0\.0"):
            Deployment.successor(memory_url, "old", "new", "why", reserve=1.0)
        with Deployment.successor(memory_url, "old", "new", "why") as new:
            assert new.configuration.reserve == 0.0
        assert old.audit().clean


def test_handing_over_too_much_is_found(sqlite_url: str) -> None:
    with create(sqlite_url) as old:
        old.observe(old.decide(rivals(np.random.default_rng(0)), BASELINE).id, 0.5)
        number = old.state().seq + 1
        old._transactor.write(lambda commands: commands.succeed("new", None, "ann", "now"))
        forge(old, number, lambda fields, arrays: fields.update(handed=0.6))
        report = old.audit()
        assert (report.entry, "hands over" in str(report)) == (number, True)


@pytest.mark.slow
def test_kills_during_a_succession(url: str) -> None:
    """Workers decide on whichever is open while a successor is started and killed; both audit clean, the
    reserve is handed over once, and the predecessor decides nothing after that."""
    rng = np.random.default_rng(2)
    with create(url, "old", reserve=1.0, snapshot_every=9) as old:
        trade(old, 30)

    def work(seed: int) -> None:
        draws = np.random.default_rng(seed)
        while True:
            for name in ("old", "new"):
                try:
                    with Deployment.open(url, name, snapshot_every=9) as dep:
                        candidates = rivals(draws)
                        made = dep.decide(candidates, BASELINE)
                        dep.observe(made.id, outcome(candidates, made.action, draws))
                except C4BError:
                    continue

    def succeed() -> None:
        Deployment.successor(url, "old", "new", "now", by="ann").close()

    workers = [fork(lambda seed=seed: work(seed)) for seed in range(2)]
    try:
        for _ in range(6):
            pid = fork(succeed)
            threading.Event().wait(float(rng.uniform(0.005, 0.1)))
            os.kill(pid, signal.SIGKILL)
            waited(pid)
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGKILL)
            waited(pid)
    succeed()
    with Deployment.open(url, "old") as old:
        handed = [e.unpack()[0] for e in entries_of(old) if e.kind == "control"]
        assert [each["action"] for each in handed if each["action"] == "succeed"] == ["succeed"]
        assert old.audit(sample=2).clean
        assert in_agreement(old)
    with Deployment.open(url, "new") as new:
        assert new.configuration.reserve == handed[0]["handed"] <= 1.0
        assert new.audit(sample=2).clean


def test_orders_do_not_end_unnoticed(tmp_path: Path) -> None:
    url, model = f"sqlite:///{tmp_path}/orders.db", LinearModel(dim=2, noise=0.1, norm_bound=1.0)
    with Deployment.create(url, "quiet", model, mode="shadow"):
        pass
    with Deployment.successor(url, "quiet", "quieter", "the same") as new:
        assert new.state().mode == "shadow"
    for name, order in (
        ("frozen", lambda dep: dep.freeze("x")),
        ("slow", lambda dep: dep.ramp(0.1, "x")),
    ):
        with Deployment.create(url, name, model) as old:
            order(old)
            with pytest.raises(InvalidInput, match="a successor does not inherit"):
                Deployment.successor(url, name, f"{name}-2", "the same")
            assert old.state().mode != "closed"
        with Deployment.successor(url, name, f"{name}-2", "the same", mode="shadow") as new:
            assert new.state().mode == "shadow"
