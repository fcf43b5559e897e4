"""Plans and replays on a real Dask cluster of two processes: the same answers as here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from c4b.cli.main import app

distributed = pytest.importorskip("distributed")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

COLUMNS = ["--action", "page", "--reward", "click", "--baseline", "0", "--policy", "refresh"]
COMMANDS = {
    "plan": ["--simulations", "4", "--rounds", "50", "--rounds-a-day", "100"],
    "replay": ["--propensity", "p", "--context", "age", "--norm-bound", "1", "--reserve", "20"],
}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    draw = np.random.default_rng(7)
    page, age = draw.integers(0, 3, 400), draw.random(400)
    click = draw.random(400) < np.array([0.3, 0.6, 0.2])[page]
    frame = pl.DataFrame({"page": page.astype(str), "age": age, "click": click.astype(float)})
    path = tmp_path / "log.parquet"
    frame.with_columns(p=pl.lit(1.0 / 3.0)).write_parquet(path)
    return path


def answer(command: str, log: Path, *options: str) -> Any:
    given = [command, str(log), *COLUMNS, *COMMANDS[command], *options]
    found = CliRunner().invoke(app, given, catch_exceptions=False)
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_same_answer_on_a_cluster(command: str, log: Path, cluster: Any, tmp_path: Path) -> None:
    here = answer(command, log)
    there = [
        answer(command, log, "--cluster", cluster.scheduler_address, "--resume", str(tmp_path / "state"))
        for _ in range(2)  # the second time everything is known
    ]
    assert there == [here, here]
