"""Logs in files: the same answers as from memory, and replays that go on where they were killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from c4b.errors import InvalidInput, InvalidLog, LogCannotAnswer
from c4b.logs import Columns, Log, open_log, read_log
from c4b.planning import Simulator, plan_log
from c4b.planning.forecast import Episode
from c4b.replay import LogReplay, Terms, interruptible_run, replay_log
from c4b.replay import log_replay as replay_module

TERMS = Terms("0", policy="refresh", norm_bound=1.0, reserve=20.0)


def randomised(rows: int = 300, context: bool = True) -> pl.DataFrame:
    draw = np.random.default_rng(3)
    page, age = draw.integers(0, 3, rows), draw.random(rows)
    rate = np.array([0.3, 0.6, 0.2])[page] + 0.2 * age * context
    return pl.DataFrame(
        {
            "page": page.astype(str),
            "age": age,
            "click": (draw.random(rows) < rate).astype(float),
            "p": np.full(rows, 1.0 / 3.0),
        }
    )


def columns(context: bool) -> Columns:
    return Columns(reward="click", action="page", propensity="p", context=("age",) if context else ())


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_module, "ROWS_BETWEEN", 50)


@pytest.mark.parametrize("context", [True, False])
def test_the_same_answer_from_a_file(tmp_path: Path, context: bool) -> None:
    path, rows = tmp_path / "log.parquet", randomised(context=context)
    rows.write_parquet(path)
    seen: list[tuple[int, int]] = []
    streamed = replay_log(
        open_log(path, columns(context)), TERMS, progress=lambda *reported: seen.append(reported)
    )
    held = replay_log(read_log(rows, columns(context)), TERMS)
    assert streamed.method == ("matching" if context else "queues")
    assert streamed.as_dict() == held.as_dict()
    assert seen == sorted(seen)
    if context:
        assert seen[-1] == (480, 480)
    with ThreadPoolExecutor(2) as executor:
        assert replay_log(read_log(rows, columns(context)), TERMS, executor=executor).as_dict() == (
            held.as_dict()
        )


def test_the_same_plan_from_a_file(tmp_path: Path) -> None:
    path, rows = tmp_path / "log.parquet", randomised()
    rows.write_parquet(path)
    options = {"rounds_a_day": 100.0, "simulations": 2, "rounds": 30}
    streamed = plan_log(open_log(path, columns(True)), TERMS, **options)
    assert streamed == plan_log(read_log(rows, columns(True)), TERMS, **options)
    with ThreadPoolExecutor(2) as executor:
        assert streamed == plan_log(read_log(rows, columns(True)), TERMS, **options, executor=executor)


class Interrupted(Exception):
    pass


def test_an_interrupted_plan_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = read_log(randomised(), columns(True))
    options: dict[str, Any] = {"rounds_a_day": 100.0, "rounds": 30}
    played: list[list[int]] = []
    play = Simulator.episode

    def counted(self: Simulator, rounds: int, seed: list[int]) -> Episode:
        played.append(seed)
        return play(self, rounds, seed)

    def interrupt(unit: str, done: int, _total: int) -> None:
        if (unit, done) == ("simulations", 2):
            raise Interrupted

    monkeypatch.setattr(Simulator, "episode", counted)
    with pytest.raises(Interrupted):
        plan_log(log, TERMS, **options, simulations=4, resume=tmp_path, progress=interrupt)
    seen: list[tuple[str, int, int]] = []
    found = plan_log(
        log, TERMS, **options, simulations=4, resume=tmp_path, progress=lambda *told: seen.append(told)
    )
    assert played == [[0, n] for n in range(4)]  # none of them twice
    assert seen == [("simulations", n, 4) for n in (1, 2, 3, 4)]  # and no pass over the rows
    assert found == plan_log(log, TERMS, **options, simulations=4)
    (tmp_path / "simulation-1.npz").write_bytes(b"torn by a crash")
    more = plan_log(log, TERMS, **options, simulations=5, resume=tmp_path)
    assert played[8:] == [[0, 1], [0, 4]]
    assert more == plan_log(log, TERMS, **options, simulations=5)
    with pytest.raises(InvalidInput, match="choose another folder"):
        plan_log(log, TERMS, **options, simulations=4, seed=1, resume=tmp_path)


def test_a_plan_reports_every_row_once_a_pass() -> None:
    seen: list[tuple[str, int, int]] = []
    log = read_log(randomised(), columns(True))
    free = Terms("0", policy="refresh")
    options: dict[str, Any] = {"rounds_a_day": 100.0, "rounds": 30, "simulations": 2}
    plan_log(log, free, **options, progress=lambda *told: seen.append(told))
    rows = [told for told in seen if told[0] == "rows"]
    assert rows == [("rows", 150 * n, 750) for n in (1, 2, 3, 4, 5)]


@pytest.mark.parametrize("context", [True, False])
def test_an_interrupted_replay_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, context: bool
) -> None:
    monkeypatch.setattr(interruptible_run, "SECONDS", 0.0)
    monkeypatch.setattr(replay_module, "ROWS_BETWEEN", 50 if context else 200)
    log = read_log(randomised(context=context), columns(context))
    reports: list[int] = []

    def interrupt(done: int, _total: int) -> None:
        reports.append(done)
        if len(reports) == 3:
            raise Interrupted

    with pytest.raises(Interrupted):
        replay_log(log, TERMS, resume=tmp_path, progress=interrupt)
    later: list[int] = []
    found = replay_log(log, TERMS, resume=tmp_path, progress=lambda done, _: later.append(done))
    assert found.as_dict() == replay_log(log, TERMS).as_dict()
    assert later[0] > reports[-1] - 50  # it did not start again
    other = Terms("0", policy="refresh", norm_bound=2.0, reserve=20.0)
    with pytest.raises(InvalidInput, match="choose another folder"):
        replay_log(log, other, resume=tmp_path)


@pytest.mark.parametrize("in_a_file", [True, False])
def test_nothing_that_was_kept_of_other_rows_is_an_answer(tmp_path: Path, in_a_file: bool) -> None:
    def log(frame: pl.DataFrame) -> Log:
        frame.write_parquet(tmp_path / "log.parquet")
        return read_log(tmp_path / "log.parquet" if in_a_file else frame, columns(True))

    def ask(log: Log) -> list[Any]:
        options: dict[str, Any] = {"rounds_a_day": 100.0, "rounds": 30, "simulations": 2}
        return [
            replay_log(log, TERMS, resume=tmp_path / "replay").as_dict(),
            plan_log(log, TERMS, **options, resume=tmp_path / "plan"),
        ]

    frame = randomised()
    first = ask(log(frame))
    assert ask(log(frame)) == first
    other = log(frame.with_columns(click=1.0 - pl.col("click")))
    with pytest.raises(InvalidInput, match="choose another folder"):
        replay_log(other, TERMS, resume=tmp_path / "replay")
    with pytest.raises(InvalidInput, match="choose another folder"):
        plan_log(other, TERMS, rounds_a_day=100.0, rounds=30, simulations=2, resume=tmp_path / "plan")
    for told in (*tmp_path.glob("replay/*.json"), tmp_path / "plan" / "plan.json"):
        known = json.loads(told.read_text())
        del (known["terms"] if "place" in known else known)["content"]  # as earlier versions wrote it
        told.write_text(json.dumps(known))
    assert ask(log(frame)) == first


def test_a_killed_command_goes_on(tmp_path: Path) -> None:
    path, folder = tmp_path / "log.parquet", tmp_path / "state"
    randomised(1500).write_parquet(path)
    code = (
        "from c4b.replay import interruptible_run, log_replay; interruptible_run.SECONDS = 0.0; "
        "log_replay.ROWS_BETWEEN = 100; from c4b.cli.main import main; main()"
    )
    options = ["--baseline", "0", "--action", "page", "--reward", "click", "--propensity", "p"]
    options += ["--context", "age", "--policy", "refresh", "--norm-bound", "1", "--reserve", "20"]
    command = [sys.executable, "-c", code, "replay", str(path), *options, "--resume", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    while process.poll() is None and not list(folder.glob("linucb.json")):
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    again = subprocess.run(command, capture_output=True, text=True, check=True)
    whole = replay_log(open_log(path, columns(True)), TERMS).as_dict()
    answer = json.loads(again.stdout)
    assert answer["results"] == json.loads(json.dumps(whole["results"]))
    assert process.returncode == -signal.SIGKILL


def listed(rows: int = 900) -> pl.DataFrame:
    """Every row offers "0" and one or two of three others, and took one of them at random."""
    draw = np.random.default_rng(5)
    offers = [["0", *draw.permutation(["1", "2", "3"])[: draw.integers(1, 3)]] for _ in range(rows)]
    taken = [str(draw.choice(offer)) for offer in offers]
    rate = np.array([0.3, 0.7, 0.2, 0.4])[np.array(taken, dtype=int)]
    return pl.DataFrame(
        {
            "page": taken,
            "offer": offers,
            "click": (draw.random(rows) < rate).astype(float),
            "p": [1.0 / len(offer) for offer in offers],
        }
    )


LISTED = Columns(reward="click", action="page", propensity="p", candidates="offer")


def replayed(frame: pl.DataFrame, given: Columns = LISTED, terms: Terms = TERMS) -> LogReplay:
    return replay_log(read_log(frame, given), terms)


def test_rows_that_list_their_candidates() -> None:
    rows = listed()
    found = replayed(rows)
    assert found.method == "matching"
    assert found.actions == ("0", "1", "2", "3")
    gated, ungated = found.results
    assert 0.25 * 720 < gated.rounds < 0.7 * 720  # a row of two or three candidates matches so often
    assert ungated.reward > 0.5
    assert found.judgement is not None
    best = rows.tail(720).select(
        pl.when(pl.col("offer").list.contains("1"))
        .then(0.7)
        .otherwise(pl.when(pl.col("offer").list.contains("3")).then(0.4).otherwise(0.3))
    )
    assert abs(found.judgement.weighted.value - float(best.to_series().mean())) < 0.08
    unsaid = Columns(reward="click", action="page", candidates="offer")
    uniform = Terms("0", policy="refresh", norm_bound=1.0, reserve=20.0, uniform=True)
    assert [r.as_dict() for r in replayed(rows, unsaid, uniform).results] == [
        r.as_dict() for r in found.results
    ]


def test_listed_candidates_that_cannot_be_replayed() -> None:
    rows = listed()
    skewed = rows.with_columns(pl.col("offer").list.get(1).alias("page"))
    uniform = Terms("0", policy="refresh", norm_bound=1.0, uniform=True)
    with pytest.raises(LogCannotAnswer, match="declared equally likely"):
        replayed(skewed, Columns(reward="click", action="page", candidates="offer"), uniform)
    offers = rows["offer"].to_list()
    offers[400] = [label for label in offers[400] if label != "0"]
    taken = rows["page"].to_list()
    taken[400] = offers[400][0]
    without = rows.with_columns(pl.Series("offer", offers), pl.Series("page", taken))
    without = without.with_columns((1.0 / pl.col("offer").list.len()).alias("p"))
    with pytest.raises(InvalidLog, match=r"column 'offer', row 401.*incumbent's action '0'"):
        replayed(without)


def test_an_incumbent_of_each_row() -> None:
    """The same incumbent, named by a column: the same replay; and one that no row offers."""
    rows = listed().with_columns(pl.lit("0").alias("usual"))
    by_row = replace(LISTED, baseline="usual")
    found = replayed(rows, by_row, replace(TERMS, baseline=""))
    assert found.as_dict() == replayed(rows).as_dict()
    assert found.baseline_reward is not None
    with pytest.raises(InvalidInput, match="give one of the two"):
        replayed(rows, by_row, TERMS)
    with pytest.raises(InvalidLog, match=r"column 'offer', row 1 .*incumbent's action of column 'usual'"):
        read_log(rows.with_columns(pl.lit("9").alias("usual")), by_row)
    alone = Columns(reward="click", action="page", baseline="usual")
    with pytest.raises(InvalidLog, match=r"column 'usual', row 1 = '9': must be one of \['0', '1'"):
        replayed(rows.with_columns(pl.lit("9").alias("usual")), alone, replace(TERMS, baseline=""))
