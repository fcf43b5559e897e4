"""One flipped bit anywhere in a store: a typed error, a finding, or the right answer, and never a second
decision."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from c4b import Deployment
from c4b.errors import C4BError
from support.shop_world import create, trade

pytestmark = pytest.mark.slow
FLIPS = int(os.environ.get("C4B_FLIPS", "60"))
"""``make flips`` tries 500."""


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
        assert _wrong_answers(f"sqlite:///{damaged}", sound.rounds, records) == [], seed


def _wrong_answers(url: str, rounds: int, records: list[Any]) -> list[str]:
    """Repeat every request, read every decision and audit: each is right, or a typed error."""
    wrong = []
    try:
        with Deployment.open(url, "shop") as dep:
            for record in records:
                with suppress(C4BError):
                    made = dep.decide(record.candidates, record.baseline, request_id=record.request_id)
                    if made != record.decision:
                        wrong.append(f"{record.request_id} got {made}")
                with suppress(C4BError):
                    if dep.record(record.decision.id) != record:
                        wrong.append(f"{record.decision.id} is another one")
            if dep.state().rounds != rounds:
                wrong.append("there are other decisions than before")
            report = dep.audit(sample=0)
            if report.clean and dep.decisions(limit=1000) != records:
                wrong.append("a clean audit of another past")
    except C4BError:
        pass
    return wrong
