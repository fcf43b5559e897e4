"""``c4b plan``: numbers, expectations, a verdict; from a log or from rates."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from support.small_studies import Call

SHORT = ("--simulations", 2, "--rounds", 60)


def test_from_a_log(c4b: Call, tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    page = draw.choice(["home", "new"], 500)
    clicks = (draw.random(500) < np.where(page == "home", 0.3, 0.6)).astype(float)
    path = tmp_path / "log.csv"
    pl.DataFrame({"action": page, "reward": clicks}).write_csv(path)
    made = c4b("plan", path, "--baseline", "home", *SHORT, "--page", tmp_path / "plan.html")
    assert made.code == 0, made.err
    answer = json.loads(made.out)
    assert answer["proposal"]["noise"] == 0.5
    assert "first half" in answer["proposal"]["origins"]["norm_bound"]
    assert len(answer["forecast"]["uplift"]["12 weeks"]) == 3
    assert "data:image/png;base64" in (tmp_path / "plan.html").read_text()


def test_from_rates(c4b: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("c4b.cli.plan_command.wants_json", lambda asked: asked)
    shown = c4b("plan", "--rate", 0.3, "--rate", 0.6, "--history", 200, *SHORT)
    assert "Numbers to declare" in shown.out
    assert "uplift after 12 weeks" in shown.out
    assert "at risk" in shown.out


def test_a_page_that_cannot_be_written_does_not_cost_the_answer(c4b: Call, tmp_path: Path) -> None:
    page = tmp_path / "missing" / "plan.html"
    made = c4b("plan", "--rate", 0.3, "--rate", 0.6, *SHORT, "--json", "--page", page)
    assert made.code != 0
    assert "plan.html" in made.err
    assert json.loads(made.out)["proposal"]["noise"] == 0.5


def test_neither_or_both(c4b: Call) -> None:
    assert c4b("plan").code == 2
    assert "give either a log or --rate" in c4b.err


@pytest.mark.parametrize(
    ("option", "value"),
    [("--lowest", -1), ("--highest", 5), ("--norm-bound", 2), ("--baseline", "home"), ("--id", "key")],
)
def test_an_option_of_logs_is_not_ignored_beside_rates(c4b: Call, option: str, value: object) -> None:
    made = c4b("plan", "--rate", 0.3, "--rate", 0.6, option, value, *SHORT)
    assert made.code == 2
    assert option in made.err
    assert str(value) in made.err
    assert "needs a log" in made.err
    assert not made.out


def test_what_never_happens_is_null(c4b: Call) -> None:
    made = c4b("plan", "--rate", 0.01, "--rate", 0.02, "--simulations", 2, "--rounds", 20, "--json")
    assert json.loads(made.out)["forecast"]["opens_at"] == [None, None, None]


@pytest.mark.parametrize("command", ["plan", "replay", "diagnose", "offpolicy"])
def test_rows_out_of_order_and_ids_that_return(c4b: Call, tmp_path: Path, command: str) -> None:
    rows = {"action": ["a", "b"] * 20, "reward": [0.0, 1.0] * 20, "propensity": [0.5] * 40}
    times = [*range(39), 3]
    frame = pl.DataFrame({**rows, "policy_probability": [0.5] * 40, "when": times, "key": times})
    frame.write_parquet(tmp_path / "log.parquet")
    options = ["--baseline", "a"] if command in ("plan", "replay") else []
    for option, column, said in (
        ("--time", "when", "is earlier than the row before"),
        ("--id", "key", "is the id of row 4 already"),
    ):
        made = c4b(command, tmp_path / "log.parquet", *options, option, column)
        assert made.code == 2
        assert f"column '{column}', row 40 = 3: {said}" in made.err
