"""The health of a deployment, case by case."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from c4b.deployment import Order, Status
from c4b.service.monitoring.health import health_of

GOOD = Status(
    name="shop",
    policy="refresh",
    alpha=0.05,
    reserve=1.0,
    bank=0.5,
    rounds=200,
    fallbacks=20,
    observations=199,
    pending=1,
    waiting=0,
    oldest_pending="shop-7",
    oldest_pending_age=5.0,
    clock_ahead=0.0,
    radius=1.0,
    alarm=None,
    seq=400,
    hash="00",
    at=datetime(2026, 1, 1, tzinfo=UTC),
)


def test_green() -> None:
    assert health_of(GOOD) == ("ok", [])
    assert health_of(replace(GOOD, bank=float("nan"))) == ("ok", [])  # no gate, no bank


def test_orders() -> None:
    def said(action: str) -> tuple[Order, ...]:
        return (Order(action, "ann", "checkout is down", GOOD.at),)

    health, reasons = health_of(replace(GOOD, mode="frozen", orders=said("freeze")))
    assert (health, "By ann" in reasons[0], "checkout is down" in reasons[0]) == ("attention", True, True)
    for action in ("close", "succeed"):
        health, reasons = health_of(replace(GOOD, mode="closed", orders=said(action)))
        assert (health, "checkout is down" in reasons[0]) == ("idle", True)
    assert health_of(replace(GOOD, mode="waiting", rounds=0))[0] == "idle"
    assert health_of(replace(GOOD, rounds=200, fallbacks=200, held=5))[0] == "ok"  # by order, not by lack


def test_no_traffic_yet() -> None:
    assert health_of(replace(GOOD, rounds=0, fallbacks=0))[0] == "idle"


def test_what_must_not_be_trusted() -> None:
    health, reasons = health_of(replace(GOOD, alarm="the data refute the model"))
    assert health == "alarm"
    assert "the data refute the model" in reasons[0]
    assert health_of(replace(GOOD, bank=-0.1))[0] == "alarm"


def test_what_deserves_attention() -> None:
    health, reasons = health_of(replace(GOOD, oldest_pending_age=7200.0))
    assert health == "attention"
    assert "shop-7" in reasons[0]
    assert "2.0 h" in reasons[0]
    assert health_of(replace(GOOD, oldest_pending_age=7200.0), outcome_timeout=7000.0)[0] == "ok"
    health, reasons = health_of(replace(GOOD, fallbacks=200))
    assert health == "attention"
    assert "baseline" in reasons[0]


def test_a_clock_that_was_ahead() -> None:
    health, reasons = health_of(replace(GOOD, clock_ahead=7200.0))
    assert health == "attention"
    assert "2.0 h ahead of the clock" in reasons[0]
