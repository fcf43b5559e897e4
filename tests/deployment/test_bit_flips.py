"""One flipped bit anywhere in a store: a typed error, a finding, or the right answer, and never a second
decision."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c4b import Deployment
from c4b.errors import C4BError
from support.shop_world import create, trade

pytestmark = pytest.mark.slow
FLIPS = 100
"""In ``make test``; the changelog says how many were tried once."""


def test_one_flipped_bit(tmp_path: Path) -> None:
    path, damaged = tmp_path / "shop.db", tmp_path / "damaged.db"
    with create(f"sqlite:///{path}", snapshot_every=20) as dep:
        trade(dep, 30, ids="r")
        sound, records = dep.state(), dep.decisions(limit=1000)
    content = path.read_bytes()
    for seed in range(FLIPS):
        rng = np.random.default_rng(seed)
        flipped = bytearray(content)
        flipped[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
        for leftover in tmp_path.glob("damaged.db*"):
            leftover.unlink()
        damaged.write_bytes(flipped)
        assert _second_decisions(f"sqlite:///{damaged}", sound.rounds, records) == 0, seed


def _second_decisions(url: str, rounds: int, records: list[Any]) -> int:
    """Repeat every request; returns how many got another decision than the first time."""
    different = 0
    try:
        with Deployment.open(url, "shop") as dep:
            for record in records:
                try:
                    made = dep.decide(record.candidates, record.baseline, request_id=record.request_id)
                    different += made != record.decision
                except C4BError:
                    continue
            different += dep.state().rounds != rounds
    except C4BError:
        pass
    return different
