"""Slates in a journal: recorded with their items, replayed bit for bit, recomputed by the audit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from c4b import Deployment, Round
from c4b.deployment.questions import export
from c4b.errors import ContradictoryOutcome, ContradictoryRequest, InvalidInput
from support.same_state import same_bits
from support.shop_world import BASELINE, THETA, Array, create, entries_of, forge, replayed, seen

INCUMBENT = np.array([BASELINE, BASELINE, BASELINE])


def slates(rng: np.random.Generator) -> Array:
    made: Array = BASELINE + 0.2 * rng.normal(size=(4, 3, 3))
    return made


def trade(dep: Deployment, rounds: int, seed: int = 0, **told: float) -> None:
    """Outcomes by item, as sums, late and never; other slates executed now and then."""
    rng = np.random.default_rng(seed)
    for n in range(rounds):
        pool = slates(rng)
        made = dep.decide(pool, INCUMBENT, **told)  # type: ignore[arg-type]
        items = INCUMBENT if made.action is None else pool[made.action]
        if n % 5 == 2:
            items = INCUMBENT if n % 2 else 0.9 * INCUMBENT[:2]
            dep.executed(made.id, None if n % 2 else items)
        rewards = items @ THETA + 0.1 * rng.normal(size=len(items))
        if n % 4:
            dep.observe(made.id, rewards.tolist() if n % 3 else float(rewards.sum()))


@pytest.mark.parametrize("policy", ["refresh", "reserve-c4b+", "clucb-plays", "clucb2"])
def test_a_journal_is_continued_bit_for_bit(sqlite_url: str, policy: str) -> None:
    told = {"baseline_mean": 1.8} if policy.startswith("clucb") else {}
    with create(sqlite_url, policy=policy, snapshot_every=7) as dep:
        trade(dep, 20, **told)
        bank = dep.state().bank
    with Deployment.open(sqlite_url, "shop") as dep:
        assert dep.state().bank == bank
        trade(dep, 5, seed=1, **told)
        assert same_bits(seen(dep), replayed(dep))
        report = dep.audit(sample=3)
        assert report.clean, report
        assert report.level == "recomputed"


def _other_items(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["items"] = arrays["items"].copy()
    arrays["items"][:, 0, 1] += 0.01


def _other_baseline(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["baseline_items"] = arrays["baseline_items"] + 0.01


def _another_reward(fields: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["numbers"] = np.append(arrays["numbers"], 0.1)


LIES: dict[str, Callable[[dict[str, Any], dict[str, Any]], None]] = {
    "decided: items that are not the slate": _other_items,
    "decided: a baseline of other items": _other_baseline,
    "observed: more rewards than items": _another_reward,
}


@pytest.mark.parametrize("lie", LIES)
def test_forged_slates_are_found(sqlite_url: str, lie: str) -> None:
    with create(sqlite_url) as dep:
        trade(dep, 8)
        number = [e.seq for e in entries_of(dep) if e.kind == lie.split(":", maxsplit=1)[0]][4]
        forge(dep, number, LIES[lie])
    with Deployment.open(sqlite_url, "shop") as dep:
        assert not dep.audit(sample=0).clean


def test_repetitions_are_recognised_by_their_items(sqlite_url: str) -> None:
    with create(sqlite_url) as dep:
        asked = Round(INCUMBENT[None] * 0.9, INCUMBENT, request_id="r")
        first = dep.decide(asked)
        assert dep.decide(asked) == first
        turned = np.array([[0.8 * BASELINE, 0.9 * BASELINE, BASELINE]])
        with pytest.raises(ContradictoryRequest):
            dep.decide(Round(turned, INCUMBENT, request_id="r"))
        with pytest.raises(InvalidInput):
            dep.observe(first.id, [0.1, 0.2])
        dep.observe(first.id, [0.1, 0.2, 0.3])
        dep.observe(first.id, [0.1, 0.2, 0.3])
        with pytest.raises(ContradictoryOutcome):
            dep.observe(first.id, [0.2, 0.1, 0.3])
        assert dep.record(first.id).reward == pytest.approx(0.6)


def test_records_and_tables_have_the_items(sqlite_url: str) -> None:
    with create(sqlite_url) as dep:
        trade(dep, 10)
        table, records = export.table(dep), list(export.records(dep))
        for record, row in zip(records, table.iter_rows(named=True), strict=True):
            assert record.items is not None
            assert np.array_equal(row["items"], record.items)
            assert np.allclose(record.items.sum(axis=0), row["features"])
            told = record.to_dict()
            assert told["items"] == row["items"]
            assert told.get("item_rewards") == row["item_rewards"]
        by_item = [record for record in records if record.item_rewards is not None]
        assert 0 < len(by_item) < len(records)
        for record in by_item:
            assert record.items is not None
            assert len(record.item_rewards or ()) == len(record.items)
            assert sum(record.item_rewards or ()) == pytest.approx(record.reward)


def test_a_slate_counts_with_all_its_items_against_the_limits(sqlite_url: str) -> None:
    with create(sqlite_url) as dep:
        rows = np.zeros((2000, 3))
        dep.decide(rows, BASELINE)
        with pytest.raises(InvalidInput, match="bytes in one entry"):
            dep.decide(np.zeros((2000, 400, 3)), INCUMBENT)
