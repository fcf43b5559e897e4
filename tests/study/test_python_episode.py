"""Gates in plain Python as methods of a study: the slow loop, and what its rows say and do not say."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from c4b.errors import InvalidInput
from c4b.policies import get
from c4b.policies.catalogue.registry import build
from c4b.policies.gate import GateTerms
from c4b.study.engine.chunk import simulate
from c4b.study.engine.episode_draws import EpisodeDraws
from c4b.study.engine.episode_metrics import Metric
from c4b.study.engine.prepared_setting import prepare
from c4b.study.engine.python_episode import GateFailed, play, play_method
from c4b.study.engine.run import run
from c4b.study.report.html_page import page, verdict
from c4b.study.results.results import Results, read
from c4b.study.results.safety_summary import reserve_cost, safety
from c4b.study.spec import identity
from c4b.study.spec.plan import Method, PythonGate, Study
from c4b.study.spec.setting import Setting
from support.any_world import COMPOSITIONS
from support.python_gates import ANSWERS, registered
from support.small_studies import C4B, TOML, small_study, study_file

ROUNDED = (Metric.RMIN_JOINT, Metric.RMIN_SEPARATE, Metric.SUM_PENALTY)
"""Numbers that the compiled episode computes for one candidate and ``decide`` for all at once."""
SETTINGS = (
    Setting(history="diverse", rho=0.4, sigma=0.2, rounds=40, count=7),
    Setting(history="baseline", rho=0.4, sigma=0.3, reserve=0.5, rounds=40, count=7, noise="uniform"),
    Setting(history="candidates", rho=0.8, sigma=0.6, assumed_sigma=0.1, rounds=40, count=32),
    Setting(history="baseline", rho=0.8, sigma=0.1, misspecification=0.01, rounds=40, count=3),
)
ARMS = Setting(
    generator="one-hot",
    history="baseline",
    sigma=0.2,
    alpha=0.2,
    reserve=150.0,
    rounds=60,
    count=2,
    theta=(0.5, 0.6, 0.3),
    baseline=(1.0, 0.0, 0.0),
)
PLAYED = [(name, setting) for name in COMPOSITIONS for setting in SETTINGS]
PLAYED += [(name, ARMS) for name in ("cucb", "cucb-unknown", "budget-first", "budget-first-arms")]


@pytest.fixture(scope="module", autouse=True)
def gates() -> Iterator[None]:
    with registered():
        yield


@pytest.mark.parametrize("late", [False, True], ids=["at once", "after the forced phase"])
@pytest.mark.parametrize(("name", "setting"), PLAYED, ids=lambda value: getattr(value, "history", value))
def test_the_slow_loop_finds_what_the_compiled_episode_finds(
    name: str, setting: Setting, late: bool
) -> None:
    method = Method(name, name, after_forced_phase=late)
    study = Study("twice", "twice", (method,), (setting,), (), 2, 3)
    for episode in range(2):
        compiled = simulate(study, episode, episode + 1)
        draws, prepared = EpisodeDraws(study.seed, episode), prepare(setting, study.methods)
        scene, history = draws.scene(prepared), draws.history(prepared)
        played = play_method(method, setting, scene, history, episode)
        assert played.fallbacks.tolist() == compiled.fallback_sum[0, 0].tolist()
        for metric in Metric:
            found, expected = played.metrics[metric], compiled.metrics[0, 0, 0, metric]
            if metric in ROUNDED:
                # expanded and direct squares allow differently for rounding
                assert found == pytest.approx(expected, rel=1e-8, abs=1e-8, nan_ok=True), metric
            else:
                assert found.tobytes() == expected.tobytes(), metric


def test_the_slow_loop_sees_coverage_fail() -> None:
    setting = SETTINGS[2]
    method = Method("refresh", "refresh")
    draws, prepared = EpisodeDraws(3, 0), prepare(setting, (method,))
    played = play_method(method, setting, draws.scene(prepared), draws.history(prepared), 0)
    assert played.metrics[Metric.COVERED] == 0.0


def mixed(**changes: object) -> Study:
    """Compiled methods and gates in Python, in turns."""
    policies = ("wrapped-refresh", "refresh", "silent", "linucb", "first")
    return small_study(policies, episodes=5).with_(**changes)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run(mixed(), tmp_path_factory.mktemp("mixed"), jobs=1)


def content(folder: Path) -> tuple[bytes, ...]:
    return tuple((folder / f"{name}.parquet").read_bytes() for name in ("results", "trajectories"))


def test_a_wrapped_policy_has_the_rows_of_the_policy(results: Results) -> None:
    for s in range(len(results.study.settings)):
        for metric in Metric:
            mine, known = (results.values(s, m, metric) for m in ("wrapped-refresh", "refresh"))
            assert mine == pytest.approx(known, rel=1e-12, abs=1e-12), metric
    of = results.trajectories.filter(pl.col("method") == "refresh").drop("method")
    assert results.trajectories.filter(pl.col("method") == "wrapped-refresh").drop("method").equals(of)


def test_compiled_methods_do_not_notice_the_others(results: Results, tmp_path: Path) -> None:
    alone = run(small_study(("refresh", "linucb"), episodes=5), tmp_path).frame
    beside = results.frame.filter(pl.col("method").is_in(["refresh", "linucb"]))
    assert alone.equals(beside, null_equal=True)


@pytest.mark.parametrize("name", ["wrapped-refresh", "silent", "first"])
def test_a_gate_alone_gives_the_same_rows(results: Results, tmp_path: Path, name: str) -> None:
    alone = run(small_study((name,), episodes=5), tmp_path).frame
    assert alone.equals(results.frame.filter(pl.col("method") == name), null_equal=True)


@pytest.mark.parametrize(("jobs", "chunk"), [(1, 2), (2, 1), (2, 3), (2, None)])
def test_jobs_and_chunks_leave_no_trace(
    results: Results, tmp_path: Path, jobs: int, chunk: int | None
) -> None:
    assert content(run(mixed(), tmp_path, jobs=jobs, chunk=chunk).folder) == content(results.folder)


def test_more_episodes_and_an_interrupted_run(results: Results, tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if done >= 3:
            raise Enough

    run(mixed(episodes=2), tmp_path, chunk=1)
    with pytest.raises(Enough):
        run(mixed(), tmp_path, jobs=1, chunk=1, progress=stop)
    assert run(mixed(), tmp_path).run["episodes_resumed"] >= 3
    assert content(tmp_path) == content(results.folder)


def test_what_a_gate_does_not_say_is_missing(results: Results) -> None:
    unknown = ("covered", "rmin_joint", "rmin_separate", "sum_penalty")
    silent = results.frame.filter(pl.col("method") == "silent")
    wrapped = results.frame.filter(pl.col("method") == "wrapped-refresh")
    for metric in Metric:
        values = silent[metric.column]
        if metric.column in unknown:
            assert values.null_count() == len(values), metric
        else:
            assert values.equals(wrapped[metric.column]), metric
    first = results.frame.filter(pl.col("method") == "first")
    missing = {metric.column for metric in Metric if first[metric.column].null_count()}
    assert missing == {*unknown, "min_slack", "final_bank"}
    assert first["fallback"].to_list() == [0.0] * len(first)


def test_tables_show_a_dash_where_a_gate_says_nothing(results: Results) -> None:
    rows = {row.method: row for row in safety(results)}
    assert (rows["silent"].on_covered, rows["silent"].uncovered, rows["silent"].min_slack) == (None,) * 3
    assert rows["wrapped-refresh"] == rows["refresh"]._replace(method="wrapped-refresh")
    assert rows["silent"].violations == rows["refresh"].violations
    costs = [row for row in reserve_cost(results) if row.method == "silent"]
    assert {(row.joint, row.separate, row.penalty, row.holds) for row in costs} == {(None,) * 4}
    html = page(results, [])
    dash = "<td>\N{EN DASH}</td>"
    assert f"<td>silent</td><td>10</td><td>0</td>{dash}{dash}" in html
    assert f"<td>silent</td>{dash * 5}</tr>" in html
    assert "nan" not in html.lower().replace("nanum", "")
    good, line = verdict(results)
    assert good
    assert line == (
        "0 violations in 30 gated episodes, 0 coverage failures in 20 (not known for silent)."
    )


def test_a_violation_without_known_coverage_is_not_excused(tmp_path: Path) -> None:
    settings = tuple(
        replace(s, sigma=1.5, assumed_sigma=0.01, rho=1.0, history_size=30, alpha=0.01, rounds=60)
        for s in small_study(("silent",)).settings
    )
    found = run(small_study(("silent",), episodes=12).with_(settings=settings), tmp_path)
    (row,) = safety(found)
    assert row.violations > 0
    assert verdict(found)[0] is False


def test_the_known_mean_reaches_a_gate_that_needs_it() -> None:
    for scale, share in ((1.0, 0.0), (0.8, 1.0)):
        theta = (scale, 0.5, 0.2)
        found = simulate(small_study(("knows-the-mean",), theta=theta, episodes=2), 0, 1)
        assert found.metrics[0, 0, 0, Metric.FALLBACK] == share


def test_a_gate_is_written_down_by_its_name() -> None:
    study = mixed()
    document = json.loads(json.dumps(study.to_dict()))
    assert document["methods"][2]["parts"] == {"gate": "silent", "gated": True, "source": None}
    assert document["methods"][4]["parts"] == {"gate": "first", "gated": False, "source": None}
    assert Study.from_dict(document) == study
    assert pickle.loads(pickle.dumps(study)) == study


def test_results_are_read_where_the_gate_is_not_known(results: Results, tmp_path: Path) -> None:
    document = (results.folder / "study.json").read_text().replace('"silent"', '"of another package"')
    for name in ("results.parquet", "trajectories.parquet"):
        (tmp_path / name).write_bytes((results.folder / name).read_bytes())
    (tmp_path / "study.json").write_text(document)
    found = read(tmp_path)
    assert found.study.methods[2].gated
    assert "of another package" in page(found, [])
    with pytest.raises(InvalidInput, match=r"of another package"):
        run(found.study.with_(episodes=9), tmp_path)


GATE = """
from c4b.policies import Composition, CompiledGate, Gate, get

class Mine(Gate):
    "{text}"
    def __new__(cls, terms):
        return CompiledGate(get("{policy}"), terms)
"""


def offer(folder: Path, policy: str = "contrast", text: str = "A gate of another package.") -> str:
    """Put a package that offers the gate ``mine`` into the folder."""
    folder.mkdir(exist_ok=True)
    (folder / "gates_of_a_package.py").write_text(GATE.format(policy=policy, text=text))
    info = folder / "gates_of_a_package-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gates-of-a-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[c4b.gates]\nmine = gates_of_a_package:Mine\n")
    return str(folder)


def call(installed: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [installed, os.environ.get("PYTHONPATH", "")]))
    return subprocess.run(
        [*C4B, *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_command_finds_a_gate_of_another_package(tmp_path: Path) -> None:
    """An entry point is enough; an edit of the gate makes other rows, and the command says so."""
    text = TOML.replace('"contrast", "refresh", "linucb"', '"mine", "contrast"')
    study, out = study_file(tmp_path, text), tmp_path / "out"
    command = ("study", "run", study, "--out", out)
    first = call(offer(tmp_path / "site"), *command)
    assert first.returncode == 0, first.stderr
    found = read(out)
    assert found.study.methods[0].parts == PythonGate("mine")
    for metric in (Metric.REWARD_RATIO, Metric.FALLBACK, Metric.COVERED, Metric.FINAL_BANK):
        mine, known = (found.values(2, label, metric) for label in ("mine", "contrast"))
        assert mine.tobytes() == known.tobytes()
    again = call(offer(tmp_path / "site"), *command)
    assert "nothing to simulate" in again.stdout
    edited = call(offer(tmp_path / "site", "refresh"), *command)
    assert "none of them is reused, all 6 episodes are simulated" in edited.stdout
    assert read(out).values(0, "mine", Metric.FALLBACK).tobytes() == simulate(
        found.study.with_(methods=(Method("refresh", "refresh"),)), 0, 6
    ).metrics[:, 0, 0, Metric.FALLBACK].tobytes()  # fmt: skip
    missing = call("", *command)
    assert missing.returncode != 0
    assert "methods.policy = 'mine'" in missing.stderr
    report = call("", "study", "report", out)
    assert report.returncode == 0, report.stderr


def test_a_gate_without_a_source_file_is_never_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    namespace: dict[str, object] = {}
    exec("def make(terms):\n    return None\n", namespace)
    made = namespace["make"]
    assert identity._source(made) == identity._source(made)  # type: ignore[arg-type]
    before = identity._source(made)  # type: ignore[arg-type]
    monkeypatch.setattr(identity, "_NO_SOURCE", b"of another process")
    assert identity._source(made) != before  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ANSWERS)
def test_a_gate_that_misbehaves_is_named(tmp_path: Path, name: str) -> None:
    study = small_study((name,), episodes=2)
    with pytest.raises(GateFailed) as caught:
        run(study, tmp_path)
    message = str(caught.value)
    assert message.startswith(f"method {name!r}, episode 0: the gate raised ")
    assert "\n" not in message
    if name == "raises":
        assert message.endswith("Broken: on purpose")


def test_a_compiled_gate_is_played_directly(results: Results) -> None:
    setting = results.study.settings[0]
    spec = get("refresh")
    draws = EpisodeDraws(results.study.seed, 0)
    prepared = prepare(setting, results.study.methods)
    gate = build(spec, GateTerms(setting.model("self-normalized"), setting.alpha, setting.reserve))
    gate.learn(*draws.history(prepared))
    played = play(gate, spec, draws.scene(prepared), 0)
    assert played.metrics[Metric.FINAL_BANK] == results.values(0, "refresh", Metric.FINAL_BANK)[0]
    assert np.all(np.diff(played.fallbacks) >= 0)
