"""Labels: journalled, shown instead of numbers, counted; what is searched for is found."""

from __future__ import annotations

import itertools
import math
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c4b import Deployment, LinearModel, Round
from c4b.deployment.questions import search
from c4b.deployment.summary.item_counts import LABELS, ItemCounts, half_width
from c4b.errors import InvalidInput, PayloadTooLarge
from support.same_state import same_bits

MODEL = LinearModel(dim=2, noise=0.1, norm_bound=1.0)
HISTORY = [[1.0, 0.0], [1.0, 0.5]] * 60, [0.5, 0.75] * 60
POOL, BASELINE = [[1.0, 0.8], [1.0, -0.3]], [1.0, 0.0]
_numbers = itertools.count()


@pytest.fixture
def dep() -> Any:
    with Deployment.create(
        f"memory://labels-{next(_numbers)}", "shop", MODEL, "refresh", 0.1, 1.0
    ) as made:
        made.learn(*HISTORY)
        yield made


def test_a_label_goes_with_its_decision_everywhere(dep: Deployment) -> None:
    made = dep.decide(POOL, BASELINE, request_id="r", labels=["red", "blue"])
    assert (made.action, made.label, made.labels) == (0, "red", ("red", "blue"))
    assert repr(made).startswith(f"Decision('{made.id}', 'red' (candidate 0), bank=")
    assert dep.decide(POOL, BASELINE, request_id="r", labels=["other", "names"]) == made  # as recorded
    record = dep.record(made)
    assert record.explain().summary.startswith("'red' (candidate 0) was played")
    assert [each.label for each in record.explain()] == ["red", "blue"]
    assert record.to_dict()["label"] == "red"
    assert dep.pending()[0].label == "red"
    many = dep.decide_many([(POOL, BASELINE)] * 2, labels=[["a", "b"], None])
    assert [each.label for each in many] == ["a", None]
    series = np.array(["c", "d"])
    assert dep.decide(POOL, BASELINE, labels=series).label == "c"  # type: ignore[arg-type]
    assert dep.audit().clean


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (["one"], InvalidInput),
        ("ab", InvalidInput),
        ([1, 2], InvalidInput),
        (["a", ""], InvalidInput),
        (["a", "  "], InvalidInput),
        (["a", "b\n"], InvalidInput),
        (["a", "b" * 201], PayloadTooLarge),
    ],
)
def test_labels_that_cannot_be_used(dep: Deployment, labels: Any, kind: type[Exception]) -> None:
    before = dep.state()
    with pytest.raises(kind, match="labels"):
        dep.decide(POOL, BASELINE, labels=labels)
    with pytest.raises(kind, match=r"rounds\[0\].labels"):
        dep.decide_many([Round(POOL, BASELINE, labels=labels)])
    assert dep.state() == before


def test_items_are_counted(dep: Deployment) -> None:
    made = [dep.decide(POOL, BASELINE, labels=["red", "blue"]) for _ in range(4)]
    dep.executed(made[0])  # the baseline was shown instead
    for each, reward in zip(made, (0.1, 0.8, 1.0), strict=False):
        dep.observe(each, reward)
    red, blue = dep.items()
    assert (red.label, red.offered, red.played, red.outcomes) == ("red", 4, 3, 2)
    assert (red.earned, red.mean) == (pytest.approx(1.8), pytest.approx(0.9))
    assert red.high - red.mean == pytest.approx(half_width(2, 0.1))
    assert (blue.played, blue.outcomes) == (0, 0)
    assert math.isnan(blue.low)
    assert blue.admissible == 4


def test_an_items_interval_holds_at_every_moment() -> None:
    """One interval in twenty may fail at some moment; these are far fewer."""
    noise = np.random.default_rng(5).standard_normal((2000, 300))
    counts = np.arange(1, 301)
    halves = np.array([half_width(n, 1.0) for n in counts.tolist()])
    failed = np.any(np.abs(np.cumsum(noise, 1) / counts) > halves, axis=1)
    assert 0.0 < failed.mean() <= 0.05


def test_many_labels_are_counted_together() -> None:
    items = ItemCounts()
    for n in range(LABELS + 5):
        items.decided(n, [f"item {n}"], [True], 0)
        items.outcome(n, 1.0)
    listed = items.items(0.1)
    assert len(listed) == LABELS + 1
    assert (listed[0].label, listed[0].played, listed[0].earned) == ("", 5, 5.0)


def test_snapshots_hold_the_summary_bit_for_bit(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with Deployment.create(url, "shop", MODEL, "refresh", 0.1, 1.0, snapshot_every=20) as dep:
        dep.learn(*HISTORY)
        for n in range(50):
            made = dep.decide(POOL, BASELINE, labels=[f"item {n % 7}", "blue"])
            if n % 3:
                dep.observe(made, 0.5)
        assert dep.audit().snapshots == 2
        one = dep._transactor.read(lambda journal, state: state)
        with Deployment.open(url, "shop") as again:
            other = again._transactor.read(lambda journal, state: state)
            assert same_bits(one, other)
            assert repr(again.items()) == repr(dep.items())
            assert again.earnings() == dep.earnings()
            assert again.earnings_course() == dep.earnings_course()


def test_what_is_searched_for_is_found(dep: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1e9]
    dep._transactor.clock = lambda: now[0]
    made = []
    for n in range(30):
        now[0] += 60.0
        pool = POOL if n % 2 else []
        labels = [f"item {n % 3}", "blue"] if n % 2 else None
        made.append(dep.decide(pool, BASELINE, request_id=f"r-{n}", labels=labels))
    dep.observe(made[4], 0.5)
    dep.forget(made[5], independent=True)
    times = [each.at for each in dep.decisions()]

    def found(**wanted: Any) -> list[int]:
        ids = [each.id for each in made]
        return [ids.index(each.decision.id) for each in dep.find(**wanted).records]

    assert found(request_id="r-7") == [7]
    assert found(request_id="nobody") == []
    assert found(request_id="r-7", label="item 0") == []
    assert found(label="item 1") == [25, 19, 13, 7, 1]
    assert found(outcome="observed") == [4]
    assert found(outcome="forgotten") == [5]
    assert found(outcome="pending", limit=2) == [29, 28]
    assert found(played="baseline", since=times[24]) == [28, 26, 24]
    assert found(since=times[3], until=times[5]) == [5, 4, 3]
    assert found(since=times[29] + timedelta(hours=1)) == []
    monkeypatch.setattr(search, "READ", 10)
    monkeypatch.setattr(search, "PAGE", 10)
    page = dep.find(label="item 1")
    assert (page.read, [each.decision.label for each in page.records]) == (10, ["item 1"])
    rest = dep.find(label="item 1", before=page.next)
    assert [each.decision.id for each in rest.records] == [made[19].id, made[13].id]
    for wrong in ({"outcome": "lost"}, {"played": "x"}, {"label": 3}, {"since": "yesterday"}):
        with pytest.raises(InvalidInput):
            dep.find(**wrong)  # type: ignore[arg-type]


def test_why_this_one() -> None:
    with Deployment.create(f"memory://labels-{next(_numbers)}", "shop", MODEL, alpha=0.1) as dep:
        first = dep.record(dep.decide(POOL, BASELINE))
        assert first.because.startswith("Forced phase")
        dep_rule = first.rule
        assert "Saving up:" in dep_rule
        assert "Latch:" in dep_rule
    with Deployment.create(f"memory://labels-{next(_numbers)}", "shop", MODEL, reserve=1.2) as dep:
        dep.learn([[1.0, 0.0]] * 300, [0.5] * 300)
        pool = [[1.0, 0.9], [1.001, 0.2], [1.0, -0.2]]
        made = [dep.decide(pool, BASELINE, labels=["bold", "modest", "back"]) for _ in range(3)]
        assert [one.action for one in made] == [0, 2, 2]
        said = [dep.record(one).because for one in made]
        assert said[0].startswith("It has a score of")
        for text in said[1:]:
            assert text.startswith("Saving up: the best-scored candidate is not admissible yet.")
            assert text.endswith("and is played to bring it nearer.")


def test_an_archived_beginning_hinders_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    with Deployment.create(url, "shop", MODEL, alpha=0.1, reserve=5.0, snapshot_every=5) as dep:
        dep.learn(*HISTORY)
        while dep.state().alarm is None:
            last = dep.decide(POOL, BASELINE, labels=["red", "blue"])
            dep.observe(last, -50.0)
        for _ in range(4):
            dep.observe(dep.decide(POOL, BASELINE, labels=["red", "blue"]), 0.5)
        kept, since = dep.decide(POOL, BASELINE), dep.record(last).at
        dep.archive(tmp_path / "past.parquet", "space")
        assert dep.state().archived >= last.receipt.seq  # type: ignore[union-attr]
        assert dep.state().alarm_after == last.id
        found = dep.find(since=since, played="baseline")
        assert found.records[0].decision == kept
        assert found.next is None
        assert dep.items()[0].offered > 0


def test_a_journal_that_keeps_less_knows_the_label_of_what_waits() -> None:
    url = f"memory://labels-{next(_numbers)}"
    options = {"records": "executed"}
    with Deployment.create(url, "shop", MODEL, "refresh", 0.1, 1.0, **options) as dep:
        dep.learn(*HISTORY)
        pool, names = [[1.0, -0.3], [1.0, 0.8]], ["down", "up"]
        made = dep.decide(pool, BASELINE, request_id="r", labels=names)
        assert (made.action, made.label) == (1, "up")
        assert [waiting.label for waiting in dep.pending()] == ["up"]
        again = dep.decide(pool, BASELINE, request_id="r", labels=names)
        assert again == made == dep.record(made.id).decision
