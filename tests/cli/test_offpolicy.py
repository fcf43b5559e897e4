"""``c4b offpolicy``: a table for people, JSON for programs."""

import json
from pathlib import Path

import polars as pl
import pytest

from support.log_world import MAX_WEIGHT, log_world
from support.small_studies import Call


@pytest.fixture
def log(tmp_path: Path) -> Path:
    weights, rewards = log_world(100, rows=1500)
    path = tmp_path / "log.parquet"
    frame = pl.DataFrame({"reward": rewards, "w": weights, "propensity": 0.0375})
    frame.with_columns(policy_probability=pl.col("w") * 0.0375).write_parquet(path)
    return path


def test_json_when_piped(c4b: Call, log: Path) -> None:
    by_weight = c4b("offpolicy", log, "--weight", "w", "--max-weight", MAX_WEIGHT)
    assert by_weight.code == 0
    answer = json.loads(by_weight.out)
    assert answer["deploy"] is True
    assert 0 < answer["deployed_at_row"] <= 1500
    by_probability = c4b("offpolicy", log, "--max-weight", 26.67, "--json")
    assert json.loads(by_probability.out)["deploy"] is True


def test_a_table_on_a_terminal(c4b: Call, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("c4b.cli.log_commands.wants_json", lambda asked: asked)
    shown = c4b("offpolicy", log, "--weight", "w", "--max-weight", MAX_WEIGHT)
    assert "Deploy: row" in shown.out
    assert "mean weight" in shown.out


def test_contradictory_rows_end_with_code_1(c4b: Call, tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    pl.DataFrame({"reward": [0.5] * 400, "w": [2.0] * 400}).write_csv(path)
    answer = c4b("offpolicy", path, "--weight", "w", "--max-weight", 2)
    assert answer.code == 1
    assert "do not have mean 1" in json.loads(answer.out)["alarm"]


def test_mistakes_are_one_line(c4b: Call, log: Path) -> None:
    assert c4b("offpolicy", log, "--reward", "rewards").code == 2
    assert "did you mean 'reward'" in c4b.err
    assert c4b("offpolicy", log, "--weight", "w", "--max-weight", 3).code == 2
    assert "weights[" in c4b.err


def test_replay(c4b: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.csv"
    rows = 600
    pl.DataFrame(
        {"action": ["a", "b"] * (rows // 2), "reward": [0, 1] * (rows // 2), "p": [0.5] * rows}
    ).write_csv(path)
    arguments = ("replay", path, "--baseline", "a", "--propensity", "p", "--max-weight", 2)
    answer = json.loads(c4b(*arguments).out)
    assert answer["method"] == "queues"
    assert answer["results"][0]["policy"] == "reserve-c4b+"
    assert answer["judgement"]["weighted"]["deploy"] is True
    monkeypatch.setattr("c4b.cli.log_commands.wants_json", lambda asked: asked)
    shown = c4b(*arguments)
    assert "opened at" in shown.out
    assert "doubly robust" in shown.out
    refused = c4b("replay", path, "--baseline", "a")
    assert refused.code == 2
    assert "does not say how actions were drawn" in refused.err
