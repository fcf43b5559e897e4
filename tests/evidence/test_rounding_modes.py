"""Threads that do not round to nearest: refused at the start; bounds hold if it happens later."""

import ctypes
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import c4b
from c4b.errors import C4BError
from support import hostile_data

MODES = {"down": 0x400, "up": 0x800, "towards zero": 0xC00}
"""As fenv.h of x86-64 has them."""
pytestmark = pytest.mark.skipif(
    (platform.system(), platform.machine()) != ("Linux", "x86_64"), reason="rounding modes of x86-64"
)


@contextmanager
def rounding(mode: str) -> Iterator[None]:
    libm = ctypes.CDLL("libm.so.6")
    assert libm.fesetround(MODES[mode]) == 0
    try:
        yield
    finally:
        libm.fesetround(0)


@pytest.mark.parametrize("mode", MODES)
def test_no_policy_begins(mode: str) -> None:
    model = c4b.LinearModel(2, 0.1, 1.0)
    with rounding(mode), pytest.raises(C4BError, match="round to nearest"):
        c4b.Policy("refresh", model)
    assert c4b.Policy("refresh", model).bank == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_bounds_hold_all_the_same(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_mode(function: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            with rounding(mode):
                return function(*arguments)

        return called

    for owner, name in (
        (hostile_data, "absorb_many"),
        (hostile_data, "refined_lower"),
        (c4b.Evidence, "lower"),
        (c4b.Evidence, "upper"),
        (c4b, "joint_certificate"),
    ):
        monkeypatch.setattr(owner, name, in_mode(getattr(owner, name)))
    for seed in range(20):
        world = hostile_data.draw(seed)
        verdict = hostile_data.judge(world, len(world.rewards), seed)
        assert verdict[:3] == (0, 0, False), seed
