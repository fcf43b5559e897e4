"""Whatever is wrong with a call: a typed error that names the argument, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c4b import Deployment, Round
from c4b.deployment import Limits
from c4b.errors import (
    C4BError,
    InvalidInput,
    PayloadTooLarge,
    StoreUnavailable,
    UnknownDecision,
    UnknownName,
)
from support.shop_world import BASELINE, MODEL, create, entries_of, in_agreement, rivals, trade

X = [[1.0, 0.1, 0.0]]
nested: list[Any] = []
for _ in range(5000):
    nested = [nested]

CALLS: dict[str, tuple[Callable[[Deployment], object], type[C4BError], str]] = {
    "wrong dimension": (lambda d: d.decide([[1.0, 2.0]], BASELINE), InvalidInput, "candidates"),
    "wrong baseline": (lambda d: d.decide(X, [1.0]), InvalidInput, "baseline"),
    "NaN candidate": (lambda d: d.decide([[1.0, np.nan, 0.0]], BASELINE), InvalidInput, "candidates"),
    "infinite baseline": (lambda d: d.decide(X, [np.inf, 0, 0]), InvalidInput, "baseline"),
    "text": (lambda d: d.decide("abc", BASELINE), InvalidInput, "candidates"),
    "too many candidates": (lambda d: d.decide(np.ones((65, 3)), BASELINE), PayloadTooLarge, "64"),
    "context not JSON": (lambda d: d.decide(X, BASELINE, context={1, 2}), InvalidInput, "context"),
    "context NaN": (lambda d: d.decide(X, BASELINE, context=[np.nan]), InvalidInput, "context"),
    "context with numbers for keys": (
        lambda d: d.decide(X, BASELINE, context={1: 2}),
        InvalidInput,
        "text",
    ),
    "context with a tuple": (lambda d: d.decide(X, BASELINE, context={"a": (1,)}), InvalidInput, "list"),
    "context too deep": (lambda d: d.decide(X, BASELINE, context=nested), InvalidInput, "context"),
    "context too large": (lambda d: d.decide(X, BASELINE, context="x" * 999), PayloadTooLarge, "context"),
    "request id not text": (lambda d: d.decide(X, BASELINE, request_id=7), InvalidInput, "request_id"),  # type: ignore[arg-type]
    "request id empty": (lambda d: d.decide(X, BASELINE, request_id=""), InvalidInput, "request_id"),
    "request id with NUL": (
        lambda d: d.decide(X, BASELINE, request_id="a\0"),
        InvalidInput,
        "request_id",
    ),
    "request id half a letter": (
        lambda d: d.decide(X, BASELINE, request_id="\ud800"),
        InvalidInput,
        "request",
    ),
    "request id too long": (
        lambda d: d.decide(X, BASELINE, request_id="r" * 201),
        PayloadTooLarge,
        "200",
    ),
    "one of many": (lambda d: d.decide_many([(X, BASELINE), (X, [1.0])]), InvalidInput, "rounds"),
    "a late one of many": (
        lambda d: d.decide_many([(X, BASELINE), ([[np.nan] * 3], BASELINE)]),
        InvalidInput,
        "rounds",
    ),
    "not pairs": (lambda d: d.decide_many([1, 2]), InvalidInput, "rounds"),  # type: ignore[list-item]
    "too few ids": (lambda d: d.decide_many([(X, BASELINE)], []), InvalidInput, "request_ids"),
    "ids that are one text": (lambda d: d.decide_many([(X, BASELINE)], "a"), InvalidInput, "request_ids"),
    "too many rounds": (lambda d: d.decide_many([(X, BASELINE)] * 9), PayloadTooLarge, "rounds"),
    "reward NaN": (lambda d: d.observe("shop-1", np.nan), InvalidInput, "reward"),
    "reward text": (lambda d: d.observe("shop-1", "1"), InvalidInput, "reward"),  # type: ignore[arg-type]
    "one bad outcome of many": (
        lambda d: d.observe_many({"shop-99": 0.5, "shop-1": 0.5}),
        UnknownDecision,
        "shop-99",
    ),
    "too many outcomes": (lambda d: d.observe_many([("a", 1.0)] * 9), PayloadTooLarge, "outcomes"),
    "executed of wrong length": (lambda d: d.executed("shop-1", [1.0]), InvalidInput, "features"),
    "executed unknown": (lambda d: d.executed("shop-0"), UnknownDecision, "shop-0"),
    "forget unknown": (lambda d: d.forget("nothing"), UnknownDecision, "nothing"),
    "ragged history": (lambda d: d.learn([[1.0, 2.0], [1.0]], [1.0, 2.0]), InvalidInput, "features"),
    "history of wrong length": (lambda d: d.learn(np.eye(3), [1.0]), InvalidInput, "rewards"),
    "limit": (lambda d: d.decisions(limit=0), InvalidInput, "limit"),
    "sample": (lambda d: d.audit(sample=-1), InvalidInput, "sample"),
}


@pytest.mark.parametrize("case", CALLS)
def test_a_bad_call_writes_nothing(any_url: str, case: str) -> None:
    call, kind, word = CALLS[case]
    with create(any_url, limits=Limits(candidates=64, context_bytes=500, batch=8)) as dep:
        trade(dep, 2)
        before = dep.state()
        with pytest.raises(kind, match=word):
            call(dep)
        assert dep.state() == before
        trade(dep, 1)
        assert in_agreement(dep)


def test_too_much_history(any_url: str) -> None:
    with create(any_url, limits=Limits(payload_bytes=1000)) as dep:
        with pytest.raises(PayloadTooLarge, match="split"):
            dep.learn(np.ones((40, 3)), np.ones(40))
        with pytest.raises(PayloadTooLarge):
            dep.decide(np.ones((40, 3)), BASELINE)
        dep.learn(np.ones((20, 3)), np.ones(20))
        assert dep.state().observations == 20


def largest(accepted: Callable[[int], object]) -> int:
    """The largest size that a limit accepts."""
    size = 1
    while True:
        try:
            accepted(size + 1)
        except PayloadTooLarge:
            return size
        size += 1


@pytest.mark.parametrize("policy", ["refresh", "reserve-c4b+", "linucb"])
@pytest.mark.parametrize("limit", [2_000, 20_000])
def test_the_largest_accepted_input_fits_into_its_entry(sqlite_url: str, policy: str, limit: int) -> None:
    limits, rng = Limits(payload_bytes=limit), np.random.default_rng(0)
    context = {"said": 'a "quoted" \\ text', "letters": "ä" * 20}
    with create(sqlite_url, policy=policy, limits=limits) as dep:
        rows = largest(lambda size: limits.history("features", size, 3))
        dep.learn(rivals(rng, rows), 5.0 * rng.normal(size=rows))  # which refutes the model

        def ask(size: int) -> Round:
            labels = [f"label-{n}" for n in range(size)]
            return dep.request(Round(rivals(rng, size), BASELINE, labels=labels, context=context))

        pool = largest(ask)
        dep.call_each([ask(pool)])
        learned, decided = (
            next(entry for entry in entries_of(dep) if entry.kind == kind)
            for kind in ("learned", "decided")
        )
        assert decided.unpack()[0]["alarm"] is not None
        each = 8 * (3 + 6) + len('"label-1000",')
        unused = each * (pool // 6)
        if policy == "reserve-c4b+":  # no margin was needed
            unused = 300 + each + 8 * 6 * pool
        assert limit - 600 - unused < len(decided.payload)
        assert len(decided.payload) <= limit
        assert limit - 300 - 8 * 4 < len(learned.payload) <= limit


BAD_CREATIONS: dict[str, tuple[dict[str, Any], type[C4BError]]] = {
    "name": ({"name": "a/b"}, InvalidInput),
    "empty name": ({"name": ""}, InvalidInput),
    "name not text": ({"name": 7}, InvalidInput),
    "policy": ({"policy": "none"}, UnknownName),
    "alpha": ({"alpha": 1.5}, InvalidInput),
    "reserve": ({"reserve": -1.0}, InvalidInput),
    "model": ({"model": None}, InvalidInput),
    "timeout": ({"outcome_timeout": 0.0}, InvalidInput),
    "timeout reward": ({"outcome_timeout": 1.0, "timeout_reward": np.nan}, InvalidInput),
    "timeout reward alone": ({"timeout_reward": 0.0}, InvalidInput),
    "limits": ({"limits": 7}, InvalidInput),
    "snapshots": ({"snapshot_every": 0}, InvalidInput),
}


@pytest.mark.parametrize("case", BAD_CREATIONS)
def test_a_bad_creation_makes_no_file(tmp_path: Path, case: str) -> None:
    options, kind = BAD_CREATIONS[case]
    url = f"sqlite:///{tmp_path}/shop.db"
    with pytest.raises(kind):
        Deployment.create(**{"url": url, "name": "shop", "model": MODEL, **options})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "url", ["mysql://x/y", "sqlite://", "sqlite:///:memory:", "shop.db", "", 7, "http://x", "postgresql:"]
)
def test_bad_urls(url: Any) -> None:
    with pytest.raises((InvalidInput, StoreUnavailable)):
        Deployment.create(url, "shop", MODEL)


def test_opening_what_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="no such file"):
        Deployment.open(f"sqlite:///{tmp_path}/none.db", "shop")
    with pytest.raises(StoreUnavailable):
        create(f"sqlite:///{tmp_path}/no/such/folder/shop.db")
    assert not list(tmp_path.iterdir())


def test_passwords_are_not_shown() -> None:
    url = "postgresql://me:secret@127.0.0.1:1/nowhere"
    with pytest.raises(StoreUnavailable) as caught:
        Deployment.open(url, "shop")
    assert "secret" not in str(caught.value)
    with pytest.raises(InvalidInput) as refused:
        Deployment.open("mysql+wrong://me:secret@host/x", "shop")
    assert "secret" not in str(refused.value)


def test_limits_are_checked() -> None:
    with pytest.raises(InvalidInput):
        Limits(candidates=0)


def test_a_batch_that_would_hold_the_lock_for_long(any_url: str) -> None:
    """All or none is promised, so it is one piece of work under the lock; it must be a small one."""
    pool = np.ones((200, 3))
    with create(any_url, limits=Limits(batch_bytes=100_000)) as dep:
        before = dep.state()
        with pytest.raises(PayloadTooLarge, match=r"rounds = .*split it"):
            dep.decide_many([(pool, BASELINE)] * 8)
        assert dep.state() == before
        assert len(dep.decide_many([(pool, BASELINE)] * 4)) == 4
    with create(any_url, "large") as dep, pytest.raises(PayloadTooLarge, match="split it"):
        dep.decide_many([(np.ones((1000, 3)), BASELINE)] * 1000)
