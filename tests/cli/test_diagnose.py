"""``c4b diagnose``: three questions, their remedies, and a figure."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from support.small_studies import Call


@pytest.fixture
def log(tmp_path: Path) -> Path:
    draw = np.random.default_rng(0)
    age = draw.uniform(-1, 1, 2000)
    means = 0.3 + 0.4 * np.abs(age)
    frame = pl.DataFrame(
        {
            "action": draw.choice(["a", "b"], 2000),
            "age": age,
            "week": np.arange(2000) // 500,
            "reward": (draw.random(2000) < means).astype(float),
        }
    )
    path = tmp_path / "log.parquet"
    frame.write_parquet(path)
    return path


def test_a_bend_is_reported(c4b: Call, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = log.with_suffix(".png")
    arguments = ("diagnose", log, "--context", "age", "--period", "week", "--figure", figure)
    answer = json.loads(c4b(*arguments).out)
    assert [finding["good"] for finding in answer["findings"]] == [False, True, True]
    assert len(answer["periods"]) == 4
    assert figure.read_bytes().startswith(b"\x89PNG")
    monkeypatch.setattr("c4b.cli.diagnose_command.wants_json", lambda asked: asked)
    shown = c4b(*arguments).out
    assert "Is the mean linear in these features?" in shown
    assert "What matters most" in shown
